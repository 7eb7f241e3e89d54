r"""Each row by those parts of a model that have never seen it, and surprises set against those of the other rows.

A part that has learned from a row finds it less strange than it is. A table fitted in folds has, for every row, parts
that have not (:mod:`anyorder.model.leave_out`); for a row that is new to the model any of them will do.

The tail probabilities of such rows are p-values only as far as the model is right: one that is too sure of itself
calls too many cells impossible. Where there are cells enough they say so themselves: a tail is replaced by the share of
all cells whose tails are as small,

$$p(u) = \frac{1 + \#\{j : u_j \le u\}}{1 + n} \;\;(u > t), \qquad p(u) = p(t)\,(u / t)^{1/h} \;\;(u \le t),$$

where below a threshold t the tails of clean cells are taken to fall off as a power, with h the median of log(t / u)
there over log 2, or 1 if that is more (h = 1 and p(u) = u where the model is right). One map for all cells, which
keeps their order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from numpy.typing import NDArray

from anyorder.model import AnyOrderModel
from anyorder.model.leave_out import folds, leave_out
from anyorder.variables.folds import folds_of

Judge: TypeAlias = tuple[AnyOrderModel, Int[np.ndarray, " rows"]]
"""Parts of a model, and rows that they have never seen."""

ENOUGH = 200  # cells whose tails are set against each other
BEYOND = 0.05  # the share of them that is taken for the tail


def unseen_parts(model: AnyOrderModel, frame: pd.DataFrame) -> Iterator[Judge]:
    """Parts of the model, and the rows that they have never seen; the whole model and all rows, if it has no folds."""
    count = folds(model)
    if count == 1:
        yield model, np.arange(len(frame))
        return
    fold = folds_of(model.encoding, frame, count)
    for number in range(count):
        rows = np.flatnonzero(fold == number)
        if len(rows):
            yield leave_out(model, number), rows


def among_others(
    tails: Float[np.ndarray, " cells"], others: Float[np.ndarray, " others"] | None = None
) -> NDArray[np.float64]:
    """p-values of tail probabilities by each other (or others), in the same order; as they are, where those are few."""
    ordered = np.sort(tails if others is None else others)
    if len(ordered) < ENOUGH:
        return np.asarray(tails)
    threshold = float(ordered[int(BEYOND * len(ordered))])
    shares = (1 + np.searchsorted(ordered, np.maximum(tails, threshold), side="right")) / (1 + len(ordered))
    least = np.finfo(np.float64).tiny
    if threshold <= least:
        return np.asarray(shares)
    beyond = np.log(threshold / np.maximum(ordered[ordered <= threshold], least))
    # A median: some wrong cells, as far out as can be, must not make the others' tail look heavy.
    fall = max(1.0, float(np.median(beyond)) / math.log(2))
    return np.asarray(shares * np.minimum(np.maximum(tails, least) / threshold, 1.0) ** (1 / fall))
