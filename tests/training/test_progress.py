"""What a fit says of itself on the line: what is going on in words, and what going on gains."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from anyorder.training import progress
from anyorder.training.loop import Progress
from anyorder.training.progress import columns_bar, training_bar


class Bar:
    """A line that notes what it is told."""

    shown = True

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def tell(self, done: float, **words: Any) -> None:
        self.told.append({"done": done, **words})


@pytest.fixture
def bar(monkeypatch: pytest.MonkeyPatch) -> Bar:
    line = Bar()

    @contextmanager
    def long_work(*_: Any, **__: Any) -> Iterator[Bar]:
        yield line

    monkeypatch.setattr(progress, "long_work", long_work)
    return line


def test_columns_are_counted_in_words(bar: Bar) -> None:
    with columns_bar(True, "growing trees", columns=3, sets=2) as advance:
        for _ in range(4):
            advance()
    assert bar.told[-1] == {"done": 4 / 6, "doing": "growing trees: 1 of 3 columns, set 2 of 2"}


def test_training_says_what_going_on_gains(bar: Bar) -> None:
    curve = [[share / 10, -1 / share] for share in range(1, 6)]
    with training_bar(True, lambda: 72.0, "training networks") as watch:
        assert watch is not None
        watch(Progress(step=30, seconds=5.0, history=curve), 0.5)
    assert bar.told[-1]["left"] == "1:12 left at most"
    assert re.fullmatch(r"as long again: \+0\.\d\d nats a cell", bar.told[-1]["words"])


def test_a_gain_too_small_for_a_table_may_be_nats_of_a_picture(bar: Bar) -> None:
    curve = [[share / 10, -0.1 - 0.002 / share] for share in range(1, 9)]
    for alike in (True, False):
        with training_bar(True, lambda: 72.0, alike=alike) as watch:
            assert watch is not None
            watch(Progress(step=30, seconds=5.0, history=curve, best=curve[-1][1]), 0.5)
    assert [told["words"] for told in bar.told if "words" in told] == ["hardly gains any more"] * 2
    steeper = [[share, 20 * (score + 0.1) - 0.1] for share, score in curve]
    with training_bar(True, lambda: 72.0, alike=True) as watch:
        assert watch is not None
        watch(Progress(step=30, seconds=5.0, history=steeper, best=steeper[-1][1]), 0.5)
    assert re.fullmatch(r"as long again: \+0\.00\d\d nats a value", bar.told[-1]["words"])


def test_nobody_is_told_where_nothing_is_shown(bar: Bar) -> None:
    bar.shown = False
    with training_bar(False) as watch:
        assert watch is None
