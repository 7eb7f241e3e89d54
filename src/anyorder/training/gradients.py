"""The gradient of one batch, added up part by part.

What is asked is drawn for the whole batch at once, and every part counts by its share of the whole weight W:

    grad -1/W sum_b w_b log p_b = sum_parts grad -1/W sum_(b in part) w_b log p_b

so a batch in parts is the same step up to rounding, and only one part's activations are held at a time. What dropout
drops is drawn part by part: the same law, other draws.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.model import AnyOrderModel
from anyorder.training.objectives import Objective
from anyorder.training.rows import Rows


def add_gradients(
    model: AnyOrderModel, objective: Objective, batch: Rows, generator: torch.Generator, parts: int = 1
) -> Float[Tensor, ""]:
    """The loss of a batch; its gradients are added to those of the model's parameters."""
    drawn = objective.draw(model, batch.values, batch.observed, generator)
    whole = drawn.weight.sum()
    loss = batch.values.new_zeros(())
    for rows in torch.arange(len(batch), device=batch.values.device).chunk(parts):
        # All of them need no copies.
        some, asked = (batch, drawn) if len(rows) == len(batch) else (batch.take(rows), drawn.rows(rows))
        part = -asked.scores(model, some.values, some.log_det).mean(whole)
        part.backward()
        loss += part.detach()
    return loss
