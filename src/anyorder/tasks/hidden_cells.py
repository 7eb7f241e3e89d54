r"""Score every hidden cell by its own conditional: where it falls, how likely it is, how far off.

For a cell x of the variable X given the known cells of its row, with F the exact one-dimensional conditional cdf:

    below = P(X < x | known),  at = P(X = x | known)      (0 on a line)
    pit = below + u at,        u uniform on (0, 1)        the randomised probability integral transform
    depth = |2 pit - 1|                                   the least level whose central interval holds x

Under the true conditionals pit and depth are uniform on (0, 1), whatever the kind. Levels without an order are put in
the order of their probability, so `below` is the mass of the more likely ones and depth = pit: the least level whose
set of likeliest levels holds x. Nothing here samples, but for the u of a cell that has mass. The codec of a variable
says where a cell stands in its conditional, and its ranked score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from anyorder.model import AnyOrderModel, row_chunks
from anyorder.query import random_subset
from anyorder.questions.particles import doubled
from anyorder.support.threads import answering
from anyorder.variables.schema import Kind, Variable


@dataclass(frozen=True, repr=False)
class HiddenCellScores:
    """One entry per scored cell. ``row`` counts the rows of the masks.

    ``rarity``: the probability of all values that are no more probable than the cell's. It and ``crps`` are NaN where
    they were not asked for.
    """

    row: Int[np.ndarray, " cells"]
    variable: Int[np.ndarray, " cells"]
    known: Int[np.ndarray, " cells"]  # how many cells of the row were known
    below: Float[np.ndarray, " cells"]
    at: Float[np.ndarray, " cells"]
    log_prob: Float[np.ndarray, " cells"]  # nats, in the units of the data
    crps: Float[np.ndarray, " cells"]
    rarity: Float[np.ndarray, " cells"]
    ordered: Bool[np.ndarray, " cells"]

    def __repr__(self) -> str:
        return f"HiddenCellScores({len(self.row)} cells)"

    def pit(self, seed: int) -> Float[np.ndarray, " cells"]:
        """The randomised probability integral transform."""
        return np.asarray(self.below + np.random.default_rng(seed).random(len(self.below)) * self.at).clip(0.0, 1.0)

    def depth(self, seed: int) -> Float[np.ndarray, " cells"]:
        """The least level whose central interval (set of likeliest levels) holds the cell."""
        pit = self.pit(seed)
        return np.where(self.ordered, np.abs(2 * pit - 1), pit)


def has_order(variable: Variable) -> bool:
    """Whether smaller and greater mean something for its values."""
    return variable.kind not in (Kind.CATEGORICAL, Kind.BOOLEAN)


def random_known(
    observed: Bool[np.ndarray, "rows variables"], rng: np.random.Generator, context: Sequence[int] = ()
) -> Bool[np.ndarray, "rows variables"]:
    """For each row a number of known cells, uniform on 0 .. observed - 1, and that many of its cells at random.

    Those of the ``context`` are known besides, and not counted.
    """
    always = np.zeros(observed.shape[1], dtype=bool)
    always[list(context)] = True
    some = observed & ~always
    size = np.floor(rng.random(len(some)) * some.sum(axis=1)).astype(np.int64)
    chosen: Bool[np.ndarray, "rows variables"] = random_subset(
        torch.as_tensor(some), torch.from_numpy(size), rng
    ).numpy()
    return chosen | (observed & always)


@answering
@torch.no_grad()
def score_hidden_cells(
    model: AnyOrderModel,
    values: Float[np.ndarray, "rows variables"],
    known: Bool[np.ndarray, "rows variables"],
    asked: Bool[np.ndarray, "rows variables"],
    *,
    crps: bool = False,
    rarity: bool = False,
) -> HiddenCellScores:
    """Score each asked cell given the known cells of its row, the others marginalised out; one pass a row."""
    log_det = model.encoding.log_det(values)
    parts: list[HiddenCellScores] = []
    for rows in row_chunks(model, len(values)):
        part = torch.as_tensor(values[rows]).to(model.device)
        features = model.features_beside(part, torch.as_tensor(known[rows]).to(model.device))
        for variable, codec in enumerate(model.encoding.codecs):
            here = np.flatnonzero(asked[rows, variable])
            if not len(here):
                continue
            # In double precision: single has no digits left of an upper tail of 1e-8.
            distribution = doubled(model, features[here, variable].cpu(), variable)
            cells = part[here, variable].double().cpu()
            standing = codec.standing(distribution, cells)
            score = codec.ranked_score(distribution, cells) if crps else np.full(len(cells), np.nan)
            rare = codec.rarity(distribution, cells) if rarity else np.full(len(cells), np.nan)
            row = here + rows.start
            parts.append(
                HiddenCellScores(
                    row,
                    np.full(len(row), variable),
                    known[row].sum(axis=1),
                    standing.below,
                    standing.at,
                    standing.log_prob + log_det[row, variable],
                    score,
                    rare,
                    np.full(len(row), has_order(codec.variable)),
                )
            )
    if not parts:
        empty = np.zeros(0)
        whole = empty.astype(np.int64)
        return HiddenCellScores(whole, whole, whole, empty, empty, empty, empty, empty, empty.astype(bool))
    return HiddenCellScores(
        *(np.concatenate([getattr(part, entry.name) for part in parts]) for entry in fields(HiddenCellScores))
    )
