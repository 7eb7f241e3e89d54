"""A line on a terminal for long work, in words: what is going on, how long it takes at most, what going on gains."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from anyorder.training.forecast import NOTICEABLE, expected_gain
from anyorder.training.loop import Progress as Training
from anyorder.training.loop import Watch

BAR = 12  # characters: the words must fit into a terminal of 80


@contextmanager
def training_bar(
    show: bool, left: Callable[[], float] | None = None, doing: str = "training"
) -> Iterator[Watch | None]:
    """A line on standard error that a trainer keeps up to date; nothing where ``show`` is False.

    ``left`` tells the seconds that are left, where the trainer is one of several.
    """
    if not show:
        yield None
        return
    with _line(TextColumn("{task.fields[left]}", table_column=_whole()), _words("{task.fields[gain]}")) as bar:
        task = bar.add_task(doing, total=1.0, left="", gain="")

        def watch(progress: Training, spent: float) -> None:
            # The clock of this trainer and the share it has used give what is left, for budgets in steps as well.
            seconds = left() if left else progress.seconds * (1 - spent) / max(spent, 1e-6)
            shown = f"{_clock(seconds)} left at most" if math.isfinite(seconds) else f"step {progress.step}"
            bar.update(task, completed=min(spent, 1.0), left=shown, gain=_gain(progress))

        yield watch


@contextmanager
def columns_bar(show: bool, doing: str, columns: int, sets: int = 1) -> Iterator[Callable[[], None]]:
    """A line on standard error that counts columns, in each of several sets; one call more for each that is done."""
    if not show:
        yield lambda: None
        return
    with _line(_Left(table_column=_whole())) as bar:
        task = bar.add_task(f"{doing}: 0 of {columns} columns", total=columns * sets)

        def advance() -> None:
            bar.advance(task)
            done = int(bar.tasks[0].completed)
            of_set = f", set {(done - 1) // columns + 1} of {sets}" if sets > 1 else ""
            bar.update(task, description=f"{doing}: {(done - 1) % columns + 1} of {columns} columns{of_set}")

        yield advance


class _Left(ProgressColumn):
    """The time that is left, as far as it can be told."""

    def render(self, task: Task) -> Text:
        seconds = task.time_remaining
        return Text("" if seconds is None else f"{_clock(seconds)} left")


def _line(*columns: ProgressColumn) -> Progress:
    first = TextColumn("{task.description}", table_column=_whole())
    return Progress(first, BarColumn(BAR), *columns, console=Console(stderr=True), transient=True)


def _whole() -> Column:
    return Column(no_wrap=True)


def _words(text: str) -> TextColumn:
    return TextColumn(text, table_column=Column(no_wrap=True, overflow="ellipsis"))


def _gain(progress: Training) -> str:
    """What training as long again would gain, in nats per cell."""
    gain = expected_gain(progress.history, 0.0)
    if gain is None:
        return ""
    return f"as long again: {gain:+.2f} nats a cell" if gain > NOTICEABLE else "hardly gains any more"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(max(seconds, 0.0)), 60)
    return f"{minutes}:{rest:02d}"
