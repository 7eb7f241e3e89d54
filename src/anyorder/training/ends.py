r"""How often a new value lies beyond all that were seen, and the factors under which a blend says so too.

Of n cells, no two of them equal, the next one is the greatest of all with the chance 1 / (n + 1). Where cells share
an end it is less. Leave every cell out with the chance $\rho$: one lies beyond all that are kept if those that lie as
far out, $g$ of them with itself, are left out too. Beside a column of the same length without equal cells, the share of
cells left out that lie beyond is then

$$r = (1 - \rho) \sum_{\text{cells}} \rho^{g - 1},$$

which is 1 where no two are equal, 0.36 for an end that two share, and next to nothing for many. So on each side
$r / (n + 1)$ is expected, and the mean of what the members say of held-out cells, given what is known of their rows, is
brought there by a factor (:mod:`anyorder.heads.beyond`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.training.rows import Rows
from anyorder.variables.codecs import Codec, Space
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind

LEFT_OUT = 0.2
LEAST_CHANCE = 0.01  # beside cells that all differ: however many share an end, it may not be the end
LEAST, MOST = 1e-3, 3.0  # factors; where a member has next to nothing beyond an end, no factor makes much of it
SLIGHT = 1.2  # a factor nearer to one than this is none: it is not worth the time it takes
NOTHING = 1e-9  # mean probability beyond an end, below which there is nothing to change
ROUNDING = 1e-6  # of model values, relative or absolute
STEPS = 30


@dataclass(frozen=True)
class Ends:
    """Between which model values all cells of a column lie, and the chance of a new one below and above them."""

    low: float
    high: float
    expected: tuple[float, float]

    @classmethod
    def of(cls, codec: Codec, values: Float[np.ndarray, " cells"]) -> Ends | None:
        """Those of a column of numbers, from its cells in model units; None for other columns and for equal cells."""
        if codec.variable.kind not in (Kind.CONTINUOUS, Kind.INTEGER, Kind.SPIKED) or not len(values):
            return None
        ascending = np.sort(values)
        if ascending[0] == ascending[-1]:
            return None
        # A value counts as seen if it would be rounded to one that was.
        half = 0.5 if codec.space is Space.LATTICE else codec.variable.step / 2
        seen = codec.measure(ascending[[0, -1]].astype(np.float64))
        low, high = codec.from_measure(seen + np.array([-half, half])).tolist()
        least, most = (float(end) for end in ascending[[0, -1]])
        slack = [0.0 if codec.space is Space.LATTICE else ROUNDING * max(1.0, abs(end)) for end in (least, most)]
        chances = (chance_above(-ascending[::-1]), chance_above(ascending))
        return cls(min(low, least - slack[0]), max(high, most + slack[1]), chances)


def chance_above(ascending: Float[np.ndarray, " cells"]) -> float:
    """The chance that a new cell lies above all of these."""
    as_far = len(ascending) - np.searchsorted(ascending, ascending, side="left")
    differing = (1 - LEFT_OUT) * float((LEFT_OUT ** (as_far - 1.0)).sum())
    return min(max(differing, LEAST_CHANCE), 1.0) / (len(ascending) + 1)


def ends_of(encoding: Encoding, rows: Rows) -> list[Ends | None]:
    """The ends of all columns, from the rows that are known; context has none, since it is not expected."""
    return [
        None if codec.variable.context else Ends.of(codec, rows.values[rows.observed[:, number], number].numpy())
        for number, codec in enumerate(encoding.codecs)
    ]


def fit_factors(
    masses: Float[Tensor, "two members cells"],
    weights: Float[Tensor, "cells members"],
    counts: Float[Tensor, " cells"],
    expected: Sequence[float],
) -> tuple[float, float]:
    """The factors under which the cells of one variable have what is expected beyond its ends, within limits.

    ``masses``: what each member has there without them; ``weights``: those of the members.
    """
    share = (counts / counts.sum().clamp(min=1e-300))[:, None] * weights
    masses, wanted = masses.nan_to_num(nan=0.0).transpose(1, 2), torch.tensor(expected, dtype=torch.float64)
    idle = (share * masses).sum((1, 2)) < NOTHING
    factors = torch.ones(2, dtype=torch.float64)
    for _ in range(STEPS):  # what they say grows nearly in proportion
        changed = factors[:, None, None] * masses / (1 + (factors - 1) @ masses.flatten(1)).reshape(masses.shape[1:])
        said = (share * changed).sum((1, 2)).clamp(min=NOTHING**2)
        factors = (factors * wanted / said).clamp(LEAST, MOST).masked_fill(idle, 1.0)
    slight = factors.log().abs() < np.log(SLIGHT)
    below, above = factors.masked_fill(slight, 1.0).tolist()
    return below, above
