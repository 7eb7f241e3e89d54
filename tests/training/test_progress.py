"""The line on a terminal: what is going on in words, within 80 characters."""

from __future__ import annotations

import io
import re
from functools import partial

import pytest
from rich.console import Console

from anyorder.training import progress
from anyorder.training.loop import Progress
from anyorder.training.progress import columns_bar, training_bar


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A terminal of 80 columns in the place of standard error."""
    shown = io.StringIO()
    monkeypatch.setattr(progress, "Console", lambda stderr: Console(file=shown, force_terminal=True, width=80))
    return shown


def lines(terminal: io.StringIO) -> list[str]:
    """What stood on the line, one after the other."""
    return [text.strip() for text in re.split(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\n]+", terminal.getvalue()) if text.strip()]


def test_columns_are_counted_in_words(terminal: io.StringIO) -> None:
    with columns_bar(True, "growing trees", columns=3, sets=2) as advance:
        for _ in range(4):
            advance()
    text = " ".join(lines(terminal))
    assert "growing trees: 1 of 3 columns, set 2 of 2" in text
    assert all(len(line) <= 80 for line in lines(terminal))


def test_training_says_what_going_on_gains(terminal: io.StringIO) -> None:
    curve = [[share / 10, -1 / share] for share in range(1, 6)]
    with training_bar(True, lambda: 72.0, "training networks") as watch:
        assert watch is not None
        watch(Progress(step=30, seconds=5.0, history=curve), 0.5)
    text = " ".join(lines(terminal))
    assert "training networks" in text
    assert "1:12 left at most" in text
    assert re.search(r"as long again: \+0\.\d\d nats a cell", text)


@pytest.mark.parametrize("bar", [training_bar, partial(columns_bar, doing="growing trees", columns=3)])
def test_nothing_is_shown_unasked(bar: object, terminal: io.StringIO) -> None:
    with bar(False):  # type: ignore[operator]
        pass
    assert terminal.getvalue() == ""
