"""How far long work is, wherever it runs: a line on a terminal, one in a notebook, or lines of a log now and then.

Whoever works calls ``tell`` with what there is to say; what is seen of it depends on where standard error goes. By
default (``show=None``) something is seen on a terminal and in a notebook, and only of work that takes its time; True
asks for it at once and anywhere, False for nothing.
"""

from __future__ import annotations

import importlib
import math
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from anyorder.support import html
from anyorder.support.advance import is_watched, watched

PATIENCE = 2.0  # seconds of work before anything is shown unasked
BAR = 12  # characters: the words must fit into a terminal of 80
REDRAWN = 0.2  # seconds between two pictures in a notebook
FIRST_LINE, LAST_GAP = 5.0, 60.0  # seconds before the first line of a log, and between two of them at most


@dataclass(frozen=True)
class Status:
    """How far work is: a share that is done, the seconds spent, the clock of what is left, and words beside it."""

    doing: str
    share: float
    seconds: float
    left: str = ""
    words: str = ""

    def __str__(self) -> str:
        said = ", ".join(part for part in (clock(self.seconds), self.left, self.words) if part)
        return f"{self.doing}: {self.share:.0%}, {said}"


class Bar:
    """What long work tells: :meth:`tell` shows it, if anyone is to see it."""

    def __init__(self, doing: str, show: bool | None, since: float | None = None) -> None:
        self.doing = doing
        self._kind = _seen_on(show)
        self._began = time.monotonic()
        # What belongs to work that has gone on for a while already is seen at once.
        self._silent_until = -math.inf if show else (self._began if since is None else since) + PATIENCE
        self._display: _Display | None = None

    @property
    def shown(self) -> bool:
        """Whether telling is of any use."""
        return self._kind is not None

    def tell(self, share: float, *, doing: str = "", left: str | None = None, words: str = "") -> None:
        """``left`` is the clock of what is left; worked out from the share where it is None."""
        now = time.monotonic()
        if self._kind is None or now < self._silent_until:
            return
        seconds = now - self._began
        share = min(max(share, 0.0), 1.0)
        if left is None:
            left = f"{clock(seconds * (1 - share) / share)} left" if share > 0 else ""
        if self._display is None:
            self._display = self._kind()
        self._display.show(Status(doing or self.doing, share, seconds, left, words))

    def close(self) -> None:
        """Take it away."""
        if self._display is not None:
            self._display.close()


@contextmanager
def long_work(doing: str, show: bool | None = None, *, part: bool = False) -> Iterator[Bar]:
    """A bar for what is done within. ``part``: of work whose parts follow each other, each with a bar."""
    now = time.monotonic()
    if not part or now - _parts.ended > PATIENCE:
        _parts.began = now
    bar = Bar(doing, show, _parts.began if part else None)
    try:
        yield bar
    finally:
        bar.close()
        if part:
            _parts.ended = time.monotonic()


class _Parts(threading.local):
    """When the work of a thread began whose parts follow each other, and when its last part ended."""

    began: float = 0.0
    ended: float = -math.inf


_parts = _Parts()


@contextmanager
def told_by_rows(doing: str, show: bool | None = None) -> Iterator[None]:
    """A bar for an answer about many rows, whose loops tell how far they are; none if someone is watching already."""
    if is_watched():
        yield
        return
    with long_work(doing, show) as bar:
        tell: Callable[[int, int], None] | None = None
        if bar.shown:

            def tell(done: int, total: int) -> None:
                bar.tell(done / max(total, 1), words=f"{done:,} of {total:,} rows")

        with watched(tell):
            yield


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    minutes, rest = divmod(int(max(seconds, 0.0)), 60)
    return f"{minutes}:{rest:02d}"


class _Display(ABC):
    @abstractmethod
    def show(self, status: Status) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


def _seen_on(show: bool | None) -> Callable[[], _Display] | None:
    if show is False or (show is None and threading.current_thread() is not threading.main_thread()):
        return None  # the lines of several threads would overwrite each other
    if in_notebook():
        return _InNotebook
    if sys.stderr is not None and sys.stderr.isatty():
        return _OnTerminal
    return _InLog if show else None


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None


class _OnTerminal(_Display):
    """One line: what is done, a bar, the clocks; and as much of the words as there is room for."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column

        # Of all columns only the words may be cut: the clock is to stay on a narrow terminal.
        cut = TextColumn("{task.fields[words]}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1))
        columns = (
            TextColumn("{task.description}"),
            BarColumn(BAR),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            cut,
        )
        # Results go to standard output, which the bar must leave alone.
        console = Console(stderr=True)
        self._progress = Progress(*columns, console=console, transient=True, redirect_stdout=False, expand=True)
        self._progress.start()
        self._task: Any = None

    def show(self, status: Status) -> None:
        facts: dict[str, Any] = {"completed": status.share, "left": status.left, "words": status.words}
        if self._task is None:
            self._task = self._progress.add_task("", start=False, total=1.0, visible=False, **facts)
            self._progress.tasks[0].start_time = self._progress.get_time() - status.seconds
        first = not self._progress.tasks[0].visible
        self._progress.update(self._task, description=status.doing, visible=True, refresh=first, **facts)

    def close(self) -> None:
        self._progress.stop()


class _InNotebook(_Display):
    """A line below the cell that is running; gone once it is done."""

    def __init__(self) -> None:
        shown: Any = importlib.import_module("IPython.display")  # there, since this is a notebook
        self._handle: Any = shown.display(_Page(""), display_id=True)
        self._drawn = -REDRAWN

    def show(self, status: Status) -> None:
        if status.seconds - self._drawn < REDRAWN and status.share < 1:
            return
        self._drawn = status.seconds
        clocks = " · ".join(part for part in (clock(status.seconds), status.left, status.words) if part)
        self._update(html.Markup(f"{html.escaped(status.doing)} {html.bar(status.share)} {html.remark(clocks)}"))

    def close(self) -> None:
        self._update("")

    def _update(self, page: str) -> None:
        if self._handle is not None:
            self._handle.update(_Page(page))


class _Page:
    """HTML that a notebook shows."""

    def __init__(self, page: str) -> None:
        self._page = page

    def __repr__(self) -> str:
        return ""

    def _repr_html_(self) -> str:
        return self._page


class _InLog(_Display):
    """A line on standard error now and then, more rarely the longer it takes."""

    def __init__(self) -> None:
        self._next = FIRST_LINE

    def show(self, status: Status) -> None:
        if status.seconds < self._next or sys.stderr is None:
            return
        self._next = status.seconds + min(max(status.seconds / 2, FIRST_LINE), LAST_GAP)
        sys.stderr.write(f"{status}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Lines of a log stay."""
