"""How far long work is: on a terminal, in a notebook, in a log, or nowhere."""

from __future__ import annotations

import io
import re
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

from anyorder.support import bars
from anyorder.support.advance import tracked, watched
from anyorder.support.bars import in_notebook, long_work, told_by_rows


class Stream(io.StringIO):
    """Standard error that is a terminal, or is none."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], Stream]:
    def replaced(terminal: bool) -> Stream:
        found = Stream(terminal)
        monkeypatch.setattr(sys, "stderr", found)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setenv("TERM", "xterm")
        return found

    return replaced


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that work is told to have taken."""
    now = [0.0]
    monkeypatch.setattr(bars.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pages that a notebook would have shown, one after the other in one place."""
    pages: list[str] = []

    class Handle:
        def update(self, page: Any) -> None:
            pages.append(page._repr_html_())

    def display(page: Any, display_id: bool) -> Handle:
        assert display_id
        return Handle()

    ipython, shown = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    shown.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    return pages


def work(show: bool | None, clock: list[float], seconds: float = 100.0) -> None:
    with long_work("growing trees", show) as bar:
        for step in range(1, 101):
            clock[0] += seconds / 100
            bar.tell(step / 100, words="as long again: +0.12 nats a cell, and more words than there is room for")


def test_at_80_columns_the_clock_stays(stream: Any, clock: list[float]) -> None:
    terminal = stream(True)
    with long_work("growing trees: 12 of 20 columns, set 2 of 4", True) as bar:
        clock[0] = 60.0
        bar.tell(0.5, words="words that go on " * 10)
    lines = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in re.split(r"[\r\n]", terminal.getvalue())]
    shown = next(line for line in lines if "growing" in line)
    assert len(shown) <= 80
    assert "set 2 of 4" in shown and "0:01:00" in shown and "1:00 left" in shown


def test_quick_work_is_not_talked_about(stream: Any, clock: list[float]) -> None:
    terminal = stream(True)
    work(None, clock, seconds=1.5)
    assert terminal.getvalue() == ""
    work(None, clock, seconds=10.0)
    assert "growing trees" in terminal.getvalue()


def test_parts_of_long_work_are_seen_at_once(stream: Any, clock: list[float]) -> None:
    terminal = stream(True)
    for doing in ("first part", "second part", "third part"):
        with long_work(doing, part=True) as bar:
            for _ in range(2):
                clock[0] += 0.8
                bar.tell(0.5)
    assert "first part" not in terminal.getvalue()
    assert "third part" in terminal.getvalue()
    clock[0] += 60.0
    with long_work("other work", part=True) as bar:
        clock[0] += 0.8
        bar.tell(0.5)
    assert "other work" not in terminal.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_false_is_silence(stream: Any, clock: list[float], terminal: bool) -> None:
    found = stream(terminal)
    work(False, clock)
    assert found.getvalue() == ""


def test_without_a_terminal_there_is_a_line_now_and_then(stream: Any, clock: list[float]) -> None:
    log = stream(False)
    work(None, clock)
    assert log.getvalue() == "", "nobody asked for it"
    work(True, clock, seconds=600.0)
    lines = log.getvalue().splitlines()
    assert 5 <= len(lines) <= 20 and "\x1b" not in log.getvalue()
    assert re.fullmatch(r"growing trees: \d+%, \d+:\d\d, \d+:\d\d left, as long again: .*", lines[0])


def test_in_a_notebook_one_place_is_kept_up_to_date(stream: Any, clock: list[float], notebook: list[str]) -> None:
    stream(False)
    assert in_notebook()
    work(None, clock, seconds=1.0)
    assert notebook == []
    work(None, clock, seconds=10.0)
    assert "growing trees" in notebook[0] and "<svg" in notebook[0]
    assert notebook[-1] == "", "gone once it is done"


def test_a_notebook_is_not_redrawn_all_the_time(stream: Any, clock: list[float], notebook: list[str]) -> None:
    stream(False)
    with long_work("x", True) as bar:
        for _ in range(1000):
            clock[0] += 0.001
            bar.tell(0.5)
    assert len(notebook) < 12


def test_this_is_no_notebook() -> None:
    assert not in_notebook()


def test_other_threads_say_nothing_unasked(stream: Any, clock: list[float]) -> None:
    terminal = stream(True)
    thread = threading.Thread(target=lambda: work(None, clock))
    thread.start()
    thread.join()
    assert terminal.getvalue() == ""


def test_loops_over_rows_are_told(stream: Any, clock: list[float]) -> None:
    log = stream(False)
    with told_by_rows("filling rows", True):
        for _ in tracked((slice(start, start + 10) for start in range(0, 40, 10)), 40):
            clock[0] += 8.0
    assert log.getvalue().splitlines()[0] == "filling rows: 25%, 0:08, 0:24 left, 10 of 40 rows"


def test_whoever_watches_already_is_told_instead(stream: Any, clock: list[float]) -> None:
    log = stream(False)
    told: list[int] = []
    with watched(lambda done, total: told.append(done)), told_by_rows("filling rows", True):
        for _ in tracked((slice(start, start + 10) for start in range(0, 40, 10)), 40):
            clock[0] += 8.0
    assert told == [10, 20, 30, 40] and log.getvalue() == ""
