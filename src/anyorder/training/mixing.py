"""How much to believe a network and its counts: the weights of :mod:`anyorder.networks.counted`, from held-out text.

Both answer questions about text that neither has seen. What they say is computed once; the few hundred numbers that
turn it into weights are then fitted by maximum likelihood, with a part of the texts kept back to stop by.
"""

from __future__ import annotations

import copy
import time

import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.networks.counted import Counted, nearby_along
from anyorder.query import Chain
from anyorder.support.randomness import drawing_from

STEPS, RATE = 400, 0.02
KEPT_BACK = 4  # one of so many texts judges
PATIENCE = 60
AT_ONCE = 4  # texts


@torch.no_grad()
def answers(
    network: Counted, values: Float[Tensor, "rows variables"], chain: Chain, seconds: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Both laws, what is near, the symbol and the row of every step, for as many rows as there is time for."""
    end = time.monotonic() + seconds
    found = []
    for start in range(0, len(values), AT_ONCE):
        rows = slice(start, start + AT_ONCE)
        own, part = values[rows], chain.rows(rows)
        laws = [member.along(own, part) for member in network.inside]
        row, step = part.counted.nonzero(as_tuple=True)
        symbol = own.gather(1, part.order.clamp(min=0))[row, step].long()
        found.append((*(law[row, step] for law in laws), nearby_along(part)[row, step], symbol, row + start))
        if time.monotonic() > end and start + AT_ONCE >= 2 * KEPT_BACK:
            break
    one, other, near, symbols, numbers = (torch.cat(parts) for parts in zip(*found, strict=True))
    return one, other, near, symbols, numbers


def learn_mixing(
    network: Counted, values: Float[Tensor, "rows variables"], chain: Chain, *, seconds: float, seed: int
) -> dict[str, float]:
    """Fit the weights to questions about held-out texts, in at most about so many ``seconds``.

    Returns what both say alone and together about the texts that were kept back, in nats a symbol.
    """
    one, other, near, symbol, row = answers(network, values, chain, seconds)
    judges = row % KEPT_BACK == KEPT_BACK - 1
    weights = network.weights
    first = weights[0]
    assert isinstance(first, torch.nn.Linear)
    with drawing_from(torch.Generator().manual_seed(seed)):
        first.reset_parameters()
    optimiser = torch.optim.AdamW(weights.parameters(), lr=RATE, weight_decay=1e-3)
    best, since, kept = float("inf"), 0, copy.deepcopy(weights.state_dict())

    def loss(chosen: Tensor) -> Tensor:
        law = network.mixed(one[chosen], other[chosen], near[chosen])
        return -law.gather(1, symbol[chosen, None])[:, 0].mean()

    for _ in range(STEPS):
        with torch.no_grad():
            held_out = float(loss(judges))
        if held_out < best - 1e-5:
            best, since, kept = held_out, 0, copy.deepcopy(weights.state_dict())
        since += 1
        if since > PATIENCE:
            break
        optimiser.zero_grad()
        with torch.enable_grad():
            loss(~judges).backward()
        optimiser.step()
    weights.load_state_dict(kept)
    alone = {"neural": one, "counts": other}
    found = {name: _mean(law[judges].log_softmax(-1), symbol[judges]) for name, law in alone.items()}
    return found | {"together": -best}


def _mean(law: Float[Tensor, "steps levels"], symbol: Int[Tensor, " steps"]) -> float:
    return float(law.gather(1, symbol[:, None]).mean())
