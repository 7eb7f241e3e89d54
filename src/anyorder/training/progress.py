"""What a fit says of itself in words: what is going on, how long it takes at most, what going on gains."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from anyorder.support.bars import clock, long_work
from anyorder.training.forecast import expected_gain, noticeable
from anyorder.training.loop import Progress as Training
from anyorder.training.loop import Watch


@contextmanager
def training_bar(
    show: bool | None, left: Callable[[], float] | None = None, doing: str = "training", *, alike: bool = False
) -> Iterator[Watch | None]:
    """A line that a trainer keeps up to date; None where nobody would see it.

    ``left`` tells the seconds that are left, where the trainer is one of several; ``alike``: as in
    :func:`~anyorder.training.forecast.noticeable`.
    """
    with long_work(doing, show, part=True) as bar:

        def watch(progress: Training, spent: float) -> None:
            # The clock of this trainer and the share it has used give what is left, for budgets in steps as well.
            seconds = left() if left else progress.seconds * (1 - spent) / max(spent, 1e-6)
            shown = f"{clock(seconds)} left at most" if math.isfinite(seconds) else f"step {progress.step}"
            bar.tell(spent, left=shown, words=_gain(progress, alike=alike))

        bar.tell(0.0)  # what is going on can be seen before there is anything to say of it
        yield watch if bar.shown else None


@contextmanager
def columns_bar(show: bool | None, doing: str, columns: int, sets: int = 1) -> Iterator[Callable[[], None]]:
    """A line that counts columns, in each of several sets; one call more for each that is done."""
    with long_work(doing, show, part=True) as bar:
        done = 0

        def advance() -> None:
            nonlocal done
            done += 1
            of_set = f", set {min((done - 1) // columns + 1, sets)} of {sets}" if sets > 1 else ""
            words = f"{doing}: {(done - 1) % columns + 1} of {columns} columns{of_set}"
            bar.tell(done / max(columns * sets, 1), doing=words)

        yield advance


def _gain(progress: Training, *, alike: bool) -> str:
    """What training as long again would gain, in nats per cell."""
    gain = expected_gain(progress.history, 0.0)
    if gain is None:
        return ""
    if gain <= noticeable(progress.best, alike=alike):
        return "hardly gains any more"
    return f"as long again: {gain:+.4f} nats a value" if alike else f"as long again: {gain:+.2f} nats a cell"
