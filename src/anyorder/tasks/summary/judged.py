"""Every known cell given all others of its row, by parts of the model that have never learned from that row.

One pass gives what the summary is made of: how far the best guess is off, how surprising the cell is, and how much
probability all values have that are no more probable. The last costs most, so only the least likely cells of each
column are asked for it; the others are not odd, and count as 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float

from anyorder.model import AnyOrderModel
from anyorder.questions.particles import doubled
from anyorder.support.threads import answering
from anyorder.tasks.unseen_rows import Judge

LEAST_LIKELY = 0.15  # of the cells of a column: thrice the share that is taken for the tail of all tails


@dataclass(frozen=True)
class JudgedCells:
    """One entry for each cell of a frame, NaN for cells that were not judged.

    ``cell`` and ``guess``: the value and the median that was predicted, in the units of the data; codes of levels and
    the likeliest of them, where the variable has levels. ``square``: the squared error of all probabilities, of levels.
    """

    cell: Float[np.ndarray, "rows variables"]
    guess: Float[np.ndarray, "rows variables"]
    square: Float[np.ndarray, "rows variables"]
    nats: Float[np.ndarray, "rows variables"]
    tail: Float[np.ndarray, "rows variables"]

    @property
    def judged(self) -> Bool[np.ndarray, "rows variables"]:
        """Which cells were judged."""
        judged: Bool[np.ndarray, "rows variables"] = ~np.isnan(self.nats)
        return judged


@answering
@torch.no_grad()
def judge_cells(model: AnyOrderModel, frame: pd.DataFrame, judges: Sequence[Judge]) -> JudgedCells:
    """Judge every known cell of the columns of the table; neither a column's
    indicator of missing cells nor context is such a column.
    """
    values, observed = model.encoding.encode(frame)
    log_det = model.encoding.log_det(values)
    found = JudgedCells(*(np.full(values.shape, np.nan) for _ in range(5)))
    for part, rows in judges:
        for variable, codec in enumerate(model.encoding.codecs):
            here = rows[observed[rows, variable]]
            if codec.variable.indicates or codec.variable.context or not len(here):
                continue
            known = observed[here].copy()
            known[:, variable] = False
            given = torch.as_tensor(values[here])
            features = part.features_of(given.to(part.device), torch.as_tensor(known).to(part.device), variable).cpu()
            law, cells = doubled(part, features, variable), given[:, variable].double()
            at = (here, variable)
            log_prob = codec.standing(law, cells).log_prob
            found.nats[at] = -(log_prob + log_det[at])
            low = np.flatnonzero(log_prob <= np.quantile(log_prob, LEAST_LIKELY))
            found.tail[at] = 1.0
            found.tail[here[low], variable] = codec.rarity(doubled(part, features[low], variable), cells[low])
            if codec.variable.levels:
                codes = torch.arange(len(codec.variable.levels), dtype=torch.float64)
                masses = law.log_prob(codes[:, None].expand(-1, len(here))).double().exp().T.numpy()
                found.cell[at], found.guess[at] = cells.numpy(), masses.argmax(axis=1)
                right = np.arange(len(codes)) == cells.numpy()[:, None]
                found.square[at] = ((masses - right) ** 2).sum(axis=1)
            else:
                middle = law.quantile(torch.full((len(here),), 0.5, dtype=torch.float64)).double().numpy()
                found.cell[at], found.guess[at] = codec.measure(cells.numpy()), codec.measure(middle)
    return found
