r"""What lies beyond the values seen: peaks over a threshold, and an end to them.

Of a tail of the data, what exceeds a threshold inside them follows a generalised Pareto law (Pickands, 1975), and so
does what exceeds their greatest value, with another scale:

    P(X > u + t | X > u) = (1 + shape t / scale)^(-1 / shape),   exp(-t / scale) for shape 0.

The shape is the one under which left-out excesses are most probable, held back by a prior, since a few dozen excesses
say little; the scale then is the most probable one. No law that was read off n values can be trusted far beyond
them, so the survival function is multiplied by exp(-TAPER (t / width)^2): further out than the ``width`` of all that
was seen there is next to nothing, and yet every value has a density.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

SHARE = 0.1  # of the values, that counts as a tail,
FEWEST, MOST = 10, 500  # but no fewer and no more than these
SHAPES = tuple(round(0.1 * step, 1) for step in range(-4, 5))
SHAPE_PRIOR = 0.25  # standard deviation of the shape before any excess is seen
FOLDS = 5
SCALES = 2.0 ** (np.arange(-24, 17) / 4)  # tried, relative to the mean excess
LEAST = -20.0  # nats: what an excess that a law rules out costs
SCALES_OF_ROOM = 2.0  # that fit between the last value and a bound
TAPER = 8.0
REACHES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 1.75, 3.0)  # knots beyond the last value, in widths
STRIDE = 3.0  # and nearer ones, each so many times as far as the one before, from a third of the scale on
NEWTON = 12  # steps; six are enough


@dataclass(frozen=True)
class Tail:
    """The law of what exceeds the last value: hazard 1 / (scale + shape t) + 2 TAPER t / width^2."""

    scale: float
    shape: float
    width: float

    @classmethod
    def fit(cls, ascending: Float[np.ndarray, " rows"], least: float = 0.0, room: float = math.inf) -> Tail:
        """The upper tail of sorted values, not all equal; ``least`` is the smallest scale that makes sense.

        ``room``: how far it is to a bound, which cuts what lies beyond: most of the tail must fit in there.
        """
        rows = len(ascending)
        width = float(ascending[-1] - ascending[0])
        count = min(max(FEWEST, min(MOST, round(SHARE * rows))), rows // 2)
        threshold = float(ascending[rows - 1 - count])
        excess = ascending[rows - count :] - threshold
        excess = excess[excess > 0]
        if not len(excess):  # a tail of equal values: the others say how far apart values are
            return cls(min(max(least, width / rows), room / SCALES_OF_ROOM), 0.0, width)
        scale, shape = _generalised_pareto(excess)
        # What exceeds the greatest value. Its own shape is not below 0: no value is impossible for being large.
        beyond = max(scale + shape * float(excess.max()), 0.1 * scale, least, 1e-15 * width)
        return cls(min(beyond, width, room / SCALES_OF_ROOM), max(shape, 0.0), width)

    def knots(self) -> Float[Tensor, " points"]:
        """Distances beyond the last value at which a spline should follow the law."""
        near = self.scale / STRIDE
        steps = max(0, math.ceil(math.log(REACHES[0] * self.width / near) / math.log(STRIDE)))
        reach = [near * STRIDE**step for step in range(steps)]
        return torch.tensor([*reach, *(self.width * part for part in REACHES)], dtype=torch.float64)

    def scores(self, reach: Float[Tensor, " points"], start: float) -> tuple[Tensor, Tensor]:
        """The normal scores at these distances beyond the last value, whose own is ``start``, and their slopes."""
        gone = reach / self.scale if self.shape == 0 else torch.log1p(self.shape * reach / self.scale) / self.shape
        nats = gone + TAPER * (reach / self.width).square()
        before = torch.special.log_ndtr(torch.tensor(-start, dtype=torch.float64))
        score = _score_of(before - nats)
        hazard = 1 / (self.scale + self.shape * reach) + 2 * TAPER * reach / self.width**2
        normal = torch.exp(-0.5 * score.square() - 0.5 * math.log(2 * math.pi) - torch.special.log_ndtr(-score))
        return score, hazard / normal


def _generalised_pareto(excess: Float[np.ndarray, " excesses"]) -> tuple[float, float]:
    """Scale and shape of the law of these positive numbers."""
    mean = float(excess.mean())
    shape = np.array(SHAPES)[:, None, None]
    scale = SCALES[None, :, None]
    inside = 1 + shape * (excess / mean) / scale
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.where(shape == 0, -(excess / mean) / scale, -(1 / shape + 1) * np.log(inside))
    nats = np.where(inside > 0, power, -np.inf) - np.log(scale)
    nats = np.maximum(nats, LEAST)  # [shapes, scales, excesses]
    whole = nats.sum(-1)
    # Every fold is judged by the scale that the others ask for.
    judged = np.zeros(len(SHAPES))
    for fold in range(FOLDS):
        own = nats[:, :, fold::FOLDS].sum(-1)
        chosen = (whole - own).argmax(1)
        judged += own[np.arange(len(SHAPES)), chosen]
    best = int((judged - 0.5 * (np.array(SHAPES) / SHAPE_PRIOR) ** 2).argmax())
    return mean * float(SCALES[whole[best].argmax()]), SHAPES[best]


def _score_of(log_tail: Float[Tensor, " points"]) -> Float[Tensor, " points"]:
    """The z > 0 with log P(Z > z) = ``log_tail``, by Newton's method on a function that is nearly a parabola."""
    z = (-2 * log_tail).clamp(min=1e-4).sqrt()
    for _ in range(NEWTON):
        reached = torch.special.log_ndtr(-z)
        slope = -torch.exp(-0.5 * z.square() - 0.5 * math.log(2 * math.pi) - reached)
        z = z - (reached - log_tail) / slope
    return z
