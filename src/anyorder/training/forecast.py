"""What training on would still gain, read off the last part of a training curve.

Held-out scores rise ever more slowly. With the gains of the last two doublings of the time,

    g1 = s(t) - s(t / 2),    g0 = s(t / 2) - s(t / 4),

as long again will gain about g1 r, r = min(1, g1 / g0). The end of a curve, where the learning rate goes to zero, says
nothing of that: t is where it begins to. A run that ended by itself has nothing left to gain.
"""

from __future__ import annotations

from collections.abc import Sequence

from anyorder.training.loop import Trainer

NOTICEABLE = 0.01  # nats per cell
OF_ALL = 0.005  # of the nats per value where all are alike: many values make up a picture or a text


def noticeable(score: float, *, alike: bool) -> float:
    """What is worth training for, in nats per cell, once held-out cells score so much.

    Pixels and characters are many and each costs few nats: a gain that no cell of a table would show may be several
    nats of a picture. ``alike``: all variables are of that kind.
    """
    return min(NOTICEABLE, OF_ALL * abs(score)) if alike else NOTICEABLE


def expected_gain(history: Sequence[Sequence[float]], cool_down: float) -> float | None:
    """What training as long again would gain; None where the curve is too short to tell.

    ``history``: pairs of the share of the budget that was spent and the score then.
    """
    until = [point for point in history if point[0] <= 1 - cool_down] or list(history[:1])
    if len(until) < 3:
        return None
    end = until[-1][0]
    now, half, quarter = (_best(until, end * part) for part in (1.0, 0.5, 0.25))
    if half is None or now is None:
        return None
    last = max(now - half, 0.0)
    before = None if quarter is None else max(half - quarter, 0.0)
    return last if before is None or last >= before else last * last / before


def still_to_gain(one: Trainer) -> float | None:
    """What a network would gain from being trained as long again: nothing, if it ended by itself."""
    if one.progress.done and one.spent() < 1:
        return 0.0
    return expected_gain(one.progress.history, one.options.cool_down)


def _best(history: Sequence[Sequence[float]], until: float) -> float | None:
    """The best score up to a share of the budget."""
    return max((score for share, score in history if share <= until), default=None)
