r"""Lossless parallel sampling: several variables a network call, distributed exactly as one at a time.

An any-order model can draft for itself (any-subset speculative decoding; Guo and Ermon 2025). One call of ``beside``
gives q_j = p(x_j | known) for all that is to come, from which the next k variables are drafted side by side. One call
of ``along`` gives p_j = p(x_j | known, drafts before j). Drafts are kept one after the other with probability
min(1, p_j / q_j); the first that is not is drawn anew from (p_j - q_j)^+, and whatever was drafted behind it is
forgotten. If all are kept, the same call tells the distribution of one more, which is drawn as well. Each variable then
follows p_j, as if it had been drawn alone.

The first draft is always kept (q_1 = p_1), and the one after it is kept or replaced: two calls settle two variables or
more, and a single one that is left takes one call. So there are never more calls than variables.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.heads import Categorical
from anyorder.model import AnyOrderModel
from anyorder.query import PAD, Chain


@dataclass(frozen=True)
class Speculated:
    """The values, the network calls that each row took part in, and how many variables each row drew."""

    values: Float[Tensor, "batch variables"]
    calls: Int[Tensor, " batch"]
    drawn: Int[Tensor, " batch"]


@torch.no_grad()
def speculate(
    model: AnyOrderModel,
    values: Float[Tensor, "batch variables"],
    chain: Chain,
    generator: torch.Generator | None = None,
    *,
    drafts: int = 8,
) -> Speculated:
    """``values`` with the asked variables drawn as the model would along the chain, ``drafts`` drafted at a time."""
    if drafts < 2:
        raise UserError(f"speculative sampling needs 2 drafts or more at a time, got {drafts}")
    if len(model.heads.distinct) > 1 or not isinstance(model.heads.of(0), Categorical):
        raise UserError("speculative sampling is for variables that share one alphabet; draw others one at a time")
    path = torch.cat([chain.prefix, chain.order], dim=1)
    first = chain.prefix.shape[1]
    ends = first + chain.counted.sum(dim=1)
    reached = torch.full_like(ends, first)
    calls = torch.zeros_like(ends)
    values = values.where(chain.evidence, 0.0)
    while bool((reached < ends).any()):
        rows = (reached < ends).nonzero()[:, 0]
        part = _from(path[rows], reached[rows], ends[rows], drafts + 1, chain.variables)
        told, settled, asked = _round(model, values[rows], part, min(drafts, part.steps), generator)
        values[rows], reached[rows] = told, reached[rows] + settled
        calls[rows] += asked
    return Speculated(values, calls, ends - first)


def _round(
    model: AnyOrderModel, values: Tensor, chain: Chain, drafts: int, generator: torch.Generator | None
) -> tuple[Tensor, Tensor, Tensor]:
    """One draft and its check: the values, how many steps of each row are settled, and the calls it took."""
    left = chain.counted.sum(dim=1)
    beside = model.network.beside(values, chain.evidence, chain.prefix)
    target = chain.order.clamp(min=0)
    draft_probs = _probs(model, beside.gather(1, target[..., None].expand(-1, -1, beside.shape[-1])))
    drafted = _draws(draft_probs, generator)
    # Padding writes into a column of its own, which is cut off again.
    places = torch.where(chain.counted, target, chain.variables)[:, :drafts]
    guess = torch.nn.functional.pad(values, (0, 1)).scatter(1, places, drafted[:, :drafts].to(values.dtype))[:, :-1]
    single = left == 1  # its only variable is drawn from the very distribution that was asked for
    if bool(single.all()):
        return guess, torch.ones_like(left), torch.ones_like(left)
    probs = _probs(model, model.network.along(guess, chain))
    chance = torch.rand(drafted.shape, generator=generator, dtype=torch.float64, device=probs.device)
    index = drafted.long()[..., None]
    ratio = probs.gather(-1, index)[..., 0] / draft_probs.gather(-1, index)[..., 0]
    steps = torch.arange(chain.steps, device=probs.device)
    kept = (chance < ratio) & (steps < drafts) & chain.counted
    count = kept.long().cumprod(dim=1).sum(dim=1)  # accepted before the first that is not
    # The next one: drawn anew from what the draft fell short of, or, if all drafts were kept, from p itself.
    row = torch.arange(len(values), device=probs.device)
    next_ = count.clamp(max=chain.steps - 1)
    rejected = (count < drafts)[:, None]
    short = (probs[row, next_] - draft_probs[row, next_]).clamp(min=0)
    # Rounding alone can leave nothing: then the draft's distribution is p itself.
    short = torch.where(short.sum(dim=1, keepdim=True) > 0, short, probs[row, next_])
    more = _draws(torch.where(rejected, short, probs[row, next_]), generator)
    exists = count < left
    settled = torch.where(single, torch.ones_like(count), count + exists.long())
    told = values.clone()
    for place in range(chain.steps):
        own = (place < count) | (single & (place == 0))
        value = torch.where(own, drafted[:, place], more)
        here = (place < settled).nonzero()[:, 0]
        told[here, target[here, place]] = value[here].to(values.dtype)
    return told, settled, torch.where(single, 1, 2)


def _from(path: Tensor, reached: Tensor, ends: Tensor, steps: int, variables: int) -> Chain:
    """The chains that go on where each row has got to, at most ``steps`` further."""
    width = path.shape[1]
    longest = int(reached.max())
    places = torch.arange(width, device=path.device)
    # The prefix is padded on the left: each row's read part is moved to the right.
    source = torch.arange(longest, device=path.device) - (longest - reached[:, None])
    prefix = path.gather(1, source.clamp(min=0)).where(source >= 0, PAD)
    ahead = min(steps, int((ends - reached).max()))
    source = reached[:, None] + places[:ahead]
    order = path.gather(1, source.clamp(max=width - 1)).where(source < ends[:, None], PAD)
    return Chain(prefix, order, variables)


def _probs(model: AnyOrderModel, features: Float[Tensor, "batch steps width"]) -> Float[Tensor, "batch steps levels"]:
    """Probabilities of the levels at every step."""
    return model.heads.of(0)(features[..., : model.heads.of(0).size].double()).probs()  # type: ignore[no-any-return]


def _draws(probs: Float[Tensor, "*batch levels"], generator: torch.Generator | None) -> Float[Tensor, "*batch"]:
    flat = probs.reshape(-1, probs.shape[-1])
    drawn = torch.multinomial(flat, 1, generator=generator)[:, 0]
    return drawn.reshape(probs.shape[:-1]).double()
