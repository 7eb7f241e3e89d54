"""A user's texts on a terminal and in a drawing: shown, never obeyed."""

from __future__ import annotations

import io

import pytest

from anyorder.support.plotting import new_figure
from anyorder.support.visible import drawn, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größe, 大きさ", "größe, 大きさ"),
        ("a\x1b[31mred\x07", r"a\x1b[31mred\x07"),
        ("two\nlines\r\t", r"two\nlines\r\t"),
        ("\x9b2J", r"\x9b2J"),
        ("cod\u202etxt.exe", r"cod\u202etxt.exe"),
        ("a\u2066b\u2069\ufeff", r"a\u2066b\u2069\ufeff"),
        ("half \ud800", r"half \ud800"),
        ("می\u200cخواهم", "می\u200cخواهم"),  # a joiner that the script needs
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(visible(text)) == visible(text)


def test_some_may_be_kept() -> None:
    assert visible("a\nb\x1b", kept="\n") == "a\nb\\x1b"


@pytest.mark.parametrize("text", ["$x^{", "cost in $ or $$", r"\$a$", "$" * 7, "a\x00b", "x" * 10_000])
def test_labels_are_drawn_as_they_are(text: str) -> None:
    figure = new_figure(5, 2)
    axes = figure.add_subplot()
    title = axes.set_title(drawn(text))
    axes.set_yticks([0], [drawn(text)])
    figure.savefig(io.BytesIO(), format="svg")
    assert not title.get_window_extent().width > 5000
