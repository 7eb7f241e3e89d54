"""How soft the edges of a variable's bins are: as soft as held-out cells allow.

Every blur leaves the trees as they are, so one pass over questions about held-out rows serves them all. Of the blurs
whose log-probability is within half a standard error of the best one's (of the paired difference over the cells),
the softest is taken: what held-out cells cannot tell apart should look smooth.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.heads import Head
from anyorder.heads.bank import HeadBank
from anyorder.model import AnyOrderModel
from anyorder.training.rows import Rows
from anyorder.training.trees.growing import beside_context, random_subsets
from anyorder.training.unbiased_edges import allowed_targets, recorded

BLURS = (0.0, 0.25, 0.5, 1.0)
QUESTIONS = 2_000  # about all sets of held-out rows
NOISE = 0.5  # standard errors that a blur may lose against the best


def softened(head: Head, blur: float) -> Head:
    """The head with soft edges between its bins, if it has any."""
    return head.with_family(lambda family, _: family.blurred(blur), np.zeros(0))


@torch.no_grad()
def chosen_blurs(models: Sequence[AnyOrderModel], held_out: Sequence[Rows], seed: int) -> list[float]:
    """A blur for every variable; each model is judged on its own held-out rows."""
    variables = models[0].variables
    cells: list[list[Tensor]] = [[] for _ in range(variables)]
    for model, rows in zip(models, held_out, strict=True):
        if not len(rows):
            continue
        partners = model.encoding.schema.partners
        layout = model.network.layout
        most = max(QUESTIONS // len(held_out), 1)
        some = random_subsets(most, len(layout.answered), np.random.default_rng([seed, 11]))
        subsets = torch.as_tensor(beside_context(layout, some))
        asked = rows.take(torch.arange(most) % len(rows))
        known = recorded(subsets, asked.observed, partners)
        wanted = asked.observed & allowed_targets(subsets, partners)
        own = [model.heads.of(variable) for variable in range(variables)]
        features = model.features_beside(asked.values, known)
        each = [HeadBank([softened(head, blur) for head in own]) for blur in BLURS]
        nats = torch.stack([bank.log_prob_beside(features, asked.values).double() for bank in each])
        for variable in range(variables):
            cells[variable].append(nats[:, wanted[:, variable], variable])
    judged = sum(len(rows) for rows in held_out)
    return [_softest(torch.cat(parts, dim=1), judged) if parts else BLURS[-1] for parts in cells]


def _softest(nats: Float[Tensor, "blurs cells"], rows: int) -> float:
    if not nats.shape[1]:
        return BLURS[-1]
    best = nats[nats.mean(1).argmax()]
    lost = best - nats
    # Many questions about one row are worth little more than one.
    error = lost.std(dim=1, correction=0) / min(nats.shape[1], rows) ** 0.5
    good = lost.mean(1) <= NOISE * error
    return max(blur for blur, fine in zip(BLURS, good.tolist(), strict=True) if fine)
