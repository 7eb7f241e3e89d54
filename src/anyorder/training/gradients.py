"""The gradient of one batch, added up part by part.

What is asked is drawn for the whole batch at once, and every part counts by its share of the whole weight W:

    grad -1/W sum_b w_b log p_b = sum_parts grad -1/W sum_(b in part) w_b log p_b

so a batch in parts is the same step up to rounding, and only one part's activations are held at a time. What dropout
drops is drawn part by part: the same law, other draws.

Processes that train together are parts in another sense: all of them draw the same, each passes its own rows of every
part, and the gradients are added up. ``parts`` bounds the rows of one pass, so with as many processes as parts one pass
is enough. This is a plain all-reduce and not torch's ``DistributedDataParallel``: that one wraps ``forward``, while our
networks are asked by ``beside``, ``along`` and ``staged``; it averages what must be added by weight; and it would have
to be told of parts, of weights without a gradient and of everything else that processes agree on.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.model import AnyOrderModel
from anyorder.networks.parts.dropout import dropout_of
from anyorder.support.processes import ALONE, Processes, add_all
from anyorder.training.objectives import Objective
from anyorder.training.rows import Rows


def add_gradients(
    model: AnyOrderModel,
    objective: Objective,
    batch: Rows,
    generator: torch.Generator,
    parts: int = 1,
    processes: Processes = ALONE,
) -> Float[Tensor, ""]:
    """The loss of a batch; its gradients are added to those of the model's parameters, which have none yet.

    ``processes``: those that share out the batch; all of them get the same loss and the same gradients.
    """
    drawn = objective.draw(model, batch.values, batch.observed, generator)
    whole = drawn.weight.sum()
    loss = batch.values.new_zeros(())
    passes = -(-parts // processes.count)
    for every in torch.arange(len(batch), device=batch.values.device).chunk(passes):
        own = processes.share(len(every))
        rows = every[own]
        if not len(rows):
            continue
        # All of them need no copies.
        some, asked = (batch, drawn) if len(rows) == len(batch) else (batch.take(rows), drawn.rows(rows))
        with dropout_of(own, len(every)):
            part = -asked.scores(model, some.values, some.log_det).mean(whole)
            part.backward()
        loss += part.detach()
    return loss if processes.count == 1 else _added(model, loss, processes)


def _added(model: AnyOrderModel, loss: Float[Tensor, ""], processes: Processes) -> Float[Tensor, ""]:
    """The loss of all processes; their gradients take the place of this one's.

    A weight that no process has a gradient for, as of a head that nobody was asked about, keeps none:
    it must not decay.
    """
    weights = list(model.parameters())
    moved = [0.0 if weight.grad is None else 1.0 for weight in weights]
    said = torch.cat([loss.reshape(1).double(), torch.tensor(moved, dtype=torch.float64, device=loss.device)])
    processes.add(said)
    of_all = [weight for weight, count in zip(weights, said[1:].tolist(), strict=True) if count > 0]
    for weight in of_all:
        if weight.grad is None:
            weight.grad = torch.zeros_like(weight)
    add_all(processes, [weight.grad for weight in of_all if weight.grad is not None])
    return said[0].to(loss.dtype)
