"""A progress bar for long work: what is running, how good it is, how long it will still take at most."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from anyorder.training.forecast import expected_gain
from anyorder.training.loop import Progress as Training
from anyorder.training.loop import Watch


@contextmanager
def training_bar(show: bool, left: Callable[[], float] | None = None) -> Iterator[Watch | None]:
    """A bar on standard error that a trainer keeps up to date; nothing where ``show`` is False.

    ``left`` tells the seconds that are left, where the trainer is one of several.
    """
    if not show:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[score]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("training", total=1.0, score="", left="")

        def watch(progress: Training, spent: float) -> None:
            score = f"held-out {progress.validation:.3f} nats (best {progress.best:.3f}), step {progress.step}"
            gain = expected_gain(progress.history, 0.0)
            score += "" if gain is None else f", {gain:+.3f} expected of as long again"
            # The clock of this trainer and the share it has used give what is left, for budgets in steps as well.
            seconds = left() if left else progress.seconds * (1 - spent) / max(spent, 1e-6)
            shown = f"at most {_clock(seconds)} left" if math.isfinite(seconds) else ""
            bar.update(task, completed=min(spent, 1.0), score=score, left=shown)

        yield watch


@contextmanager
def trees_bar(show: bool, total: int) -> Iterator[Callable[[], None]]:
    """A bar on standard error that counts the variables whose trees are grown."""
    if not show:
        yield lambda: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("growing trees", total=total)
        yield lambda: bar.advance(task)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(max(seconds, 0.0)), 60)
    return f"{minutes}:{rest:02d}"
