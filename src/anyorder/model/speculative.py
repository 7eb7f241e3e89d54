r"""Lossless parallel sampling: several variables per network call, distributed exactly as one at a time.

An any-order model can draft for itself (any-subset speculative decoding; Guo and Ermon 2025). Drafts $d_1, ..., d_k$ of
the next k variables of a chain were drawn side by side from distributions $q_1, ..., q_k$ that an earlier call gave.
One call of the network (:mod:`anyorder.networks.parts.lookahead`) gives for every i the model's own distribution of the
next variable if the drafts before it are right, $p_i = p(x_i \mid known, d_1, ..., d_{i-1})$. Drafts are kept one after
the other with probability min(1, p_i / q_i); the first that is not is drawn anew from (p_i - q_i)^+, and whatever was
drafted behind it is forgotten. If all are kept, the call also gives the distribution of one more, which is drawn. Each
variable then follows p_i, as if it had been drawn alone.

The same call predicts the variables further on, given the drafts before i but not the variable i itself, whose value
was not known yet: these are the distributions of the next drafts. So a round takes one call and settles one variable
at least: there are never more calls than variables. A network that comes with a cheap one which guesses what it will
say (:attr:`~anyorder.networks.base.Network.drafter`: the counts of a text) has its drafts from that, each given those
before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.model.any_order import AnyOrderModel
from anyorder.networks import Network
from anyorder.query import PAD, Chain, Query, members
from anyorder.support.threads import answering


@dataclass(frozen=True)
class Speculated:
    """The values, the network calls that each row took part in, and how many variables each row drew."""

    values: Float[Tensor, "batch variables"]
    calls: Int[Tensor, " batch"]
    drawn: Int[Tensor, " batch"]


@dataclass(frozen=True)
class Drafted:
    """A sampler: ``drafts`` variables drafted at a time and checked by one call; the model's own distribution."""

    drafts: int = 4

    def __call__(self, model: AnyOrderModel, values: Tensor, query: Query, generator: torch.Generator) -> Tensor:
        return speculate(model, values, model.chain(query, generator), generator, drafts=self.drafts).values


@answering
@torch.no_grad()
def speculate(
    model: AnyOrderModel,
    values: Float[Tensor, "batch variables"],
    chain: Chain,
    generator: torch.Generator | None = None,
    *,
    drafts: int = 4,
) -> Speculated:
    """``values`` with the asked variables drawn as the model would along the chain, ``drafts`` drafted at a time."""
    if drafts < 1:
        raise UserError(f"speculative sampling needs 1 draft or more at a time, got {drafts}")
    if len(model.heads.distinct) > 1 or not model.heads.of(0).free:
        raise UserError("speculative sampling is for variables that share one alphabet; draw others one at a time")
    left = chain.counted.sum(dim=1)
    drawn = left.clone()
    calls = torch.zeros_like(left)
    values = values.where(chain.evidence, 0.0)
    look = model.network.look_ahead(values, chain)
    drafter = model.network.drafter
    # Nothing is drafted yet: the first call settles one variable and tells what to draft.
    drafted = values.new_zeros(chain.batch, 0)
    law = torch.zeros(chain.batch, 0, model.heads.of(0).levels, dtype=torch.float64, device=values.device)
    known = chain.evidence
    while bool((left > 0).any()):
        count = min(drafts, int(left.max()))
        if drafter is not None:
            drafted, law = _drafted_by(drafter, model, values, known, look.upcoming(count), generator)
        target = look.upcoming(drafted.shape[1] + 1)
        probs = _probs(model, look.look(drafted, reach=1 if drafter is not None else 1 + count))
        right, more = _accepted(probs[:, :, 0], law, drafted, left, generator)
        settled = torch.minimum(right + 1, left)
        drawn_now = torch.nn.functional.pad(drafted, (0, 1)).scatter(1, right[:, None], more[:, None].to(values.dtype))
        position = torch.arange(drawn_now.shape[1], device=values.device)
        # What is not settled is written into a column of its own, which is cut off again.
        target = target.where(position < settled[:, None], chain.variables)
        values = torch.nn.functional.pad(values, (0, 1)).scatter(1, target, drawn_now)[:, :-1]
        known = known | members(target.where(target < chain.variables, PAD), chain.variables)
        calls += (left > 0).long()
        left = left - settled
        look.settle(right, more)
        if drafter is None:
            law = probs[torch.arange(chain.batch, device=values.device), right, 1:]
            drafted = _draws(law, generator).to(values.dtype)
    return Speculated(values, calls, drawn)


def _drafted_by(
    drafter: Network,
    model: AnyOrderModel,
    values: Float[Tensor, "batch variables"],
    known: Bool[Tensor, "batch variables"],
    targets: Int[Tensor, "batch drafts"],
    generator: torch.Generator | None,
) -> tuple[Float[Tensor, "batch drafts"], Float[Tensor, "batch drafts levels"]]:
    """Drafts of the next variables, each given those before it, and the laws they were drawn from."""
    drafts, laws = [], []
    for target in targets.unbind(1):
        law = _probs(model, drafter.at(values, known, target.clamp(min=0)))
        drawn = _draws(law, generator).to(values.dtype)
        now = members(target[:, None], values.shape[1])
        values, known = torch.where(now, drawn[:, None], values), known | now
        drafts.append(drawn)
        laws.append(law)
    return torch.stack(drafts, dim=1), torch.stack(laws, dim=1)


def _accepted(
    probs: Float[Tensor, "batch steps levels"],
    law: Float[Tensor, "batch drafts levels"],
    drafted: Float[Tensor, "batch drafts"],
    left: Int[Tensor, " batch"],
    generator: torch.Generator | None,
) -> tuple[Int[Tensor, " batch"], Float[Tensor, " batch"]]:
    """How many drafts of each row are kept, and the value of the variable behind them."""
    count = drafted.shape[1]
    index = drafted.long()[..., None]
    ratio = probs[:, :count].gather(-1, index)[..., 0] / law.gather(-1, index)[..., 0]
    chance = torch.rand(drafted.shape, generator=generator, dtype=torch.float64, device=probs.device)
    kept = (chance < ratio) & (torch.arange(count, device=probs.device) < left[:, None])
    right = kept.long().cumprod(dim=1).sum(dim=1)
    row = torch.arange(len(probs), device=probs.device)
    own = probs[row, right]
    if count == 0:
        return right, _draws(own, generator)
    # A draft that was not kept is drawn anew from what its law fell short of.
    short = (own - law[row, right.clamp(max=count - 1)]).clamp(min=0)
    # Rounding alone can leave nothing: then the draft's law is p itself.
    short = torch.where(short.sum(dim=1, keepdim=True) > 0, short, own)
    return right, _draws(torch.where((right < count)[:, None], short, own), generator)


def _probs(model: AnyOrderModel, features: Float[Tensor, "batch steps width"]) -> Float[Tensor, "batch steps levels"]:
    """Probabilities of the levels at every step."""
    return model.heads.of(0)(features[..., : model.heads.of(0).size].double()).probs()  # type: ignore[no-any-return]


def _draws(probs: Float[Tensor, "*batch levels"], generator: torch.Generator | None) -> Float[Tensor, "*batch"]:
    flat = probs.reshape(-1, probs.shape[-1])
    drawn = torch.multinomial(flat, 1, generator=generator)[:, 0]
    return drawn.reshape(probs.shape[:-1]).double()
