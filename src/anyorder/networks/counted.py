r"""A network and the counts of its text, answering together.

$$\log p(a \mid e) = w_1 \log p_{\text{network}}(a \mid e) + w_2 \log p_{\text{counts}}(a \mid e) - \log Z$$

Counts are sharp where a context was seen often, and know nothing beyond their few symbols; the network is vaguer and
sees the whole window. The weights depend on both laws (how sure each is, and how far apart they are) and on how many
neighbours on either side are known; never on the symbol that is asked, so every answer stays normalised.
:mod:`anyorder.training.mixing` learns them from held-out text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.errors import UserError
from anyorder.networks.base import Network, Walk
from anyorder.networks.counts import Counts
from anyorder.networks.layout import Layout
from anyorder.networks.parts.lookahead import GuessingLookahead, Lookahead
from anyorder.query import Chain, members
from anyorder.support.checks import check_fields
from anyorder.support.randomness import drawing_from
from anyorder.support.registry import describe

NEIGHBOURS = 8  # on either side that are looked at: as many as counts reach
FAR = 8.0  # nats beyond which two laws are apart, however far


@dataclass(eq=False)
class Counted(Network):
    """``members``: ``{"network": description}`` of the network and of the counts, in this order.

    They are built from that, unless they are ``trained`` already (:meth:`of`). ``hidden``: how many units the weights
    are computed by.
    """

    name: ClassVar[str] = "counted"
    trainable: ClassVar[bool] = False

    members: tuple[Mapping[str, Any], ...] = ()
    hidden: int = 24
    trained: InitVar[Sequence[Network] | None] = None

    def __post_init__(self, trained: Sequence[Network] | None) -> None:
        super().__post_init__()
        check_fields(self, whole={"hidden": 1}, section=self.name)
        from anyorder.networks import networks  # the registry looks into this package: only once it is whole

        if trained is None:
            trained = [networks.build(member["network"], layout=self.layout) for member in self.members]
        if len(trained) != 2 or not isinstance(trained[1], Counts) or isinstance(trained[0], Counts):
            raise UserError("counts go together with one network: the network first, then its counts")
        self.part, self.counts = trained
        last = nn.Linear(self.hidden, 2)
        nn.init.zeros_(last.weight)
        nn.init.constant_(last.bias, -math.log(2))  # half of each, before anything is learned
        self.weights = nn.Sequential(nn.Linear(_number_of_hints(), self.hidden), nn.Tanh(), last).double()

    @classmethod
    def of(cls, layout: Layout, network: Network, counts: Counts) -> Counted:
        """This network and these counts, half of each."""
        trained = [network, counts]
        described = tuple({"network": describe(own)} for own in trained)
        with drawing_from(torch.Generator().manual_seed(0)):  # the caller's random state is not ours
            return cls(layout, described, trained=trained)

    @property
    def inside(self) -> Sequence[Network]:
        return (self.part, self.counts)

    @property
    def reads_order(self) -> bool:  # type: ignore[override]  # as the network does
        return self.part.reads_order

    def mixed(
        self, network: Float[Tensor, "*batch levels"], counts: Float[Tensor, "*batch levels"], near: Tensor
    ) -> Float[Tensor, "*batch levels"]:
        """Log-probabilities of the mixture of two laws; ``near``: how much is known around each target."""
        if self.layout.width < 2:  # a single symbol has probability one
            return network
        one, other = network.double().log_softmax(-1), counts.double().log_softmax(-1)
        weight = self.weights(hints(one, other, near)).exp()
        mixture: Tensor = weight[..., :1] * one + weight[..., 1:] * other
        return mixture.log_softmax(-1).to(network.dtype)

    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        laws = [part.beside(values, known, prefix) for part in self.inside]
        everyone = torch.arange(self.layout.variables, device=known.device).expand_as(known)
        return self.mixed(laws[0], laws[1], nearby(known, everyone))

    def at(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        target: Int[Tensor, " batch"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch width"]:
        laws = [part.at(values, known, target, prefix) for part in self.inside]
        return self.mixed(laws[0], laws[1], nearby(known, target[:, None])[:, 0])

    def along(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Float[Tensor, "batch steps width"]:
        laws = [part.along(values, chain) for part in self.inside]
        return self.mixed(laws[0], laws[1], nearby_along(chain))

    def walk(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Walk:
        return _CountedWalk(self, values, chain)

    @property
    def drafter(self) -> Network:
        return self.counts

    def look_ahead(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Lookahead:
        return _CountedLookahead(self, values, chain)


class _CountedWalk(Walk):
    """Both walk, and what they say is mixed."""

    def __init__(self, network: Counted, values: Tensor, chain: Chain) -> None:
        self.network, self.chain = network, chain
        self.walks = [part.walk(values, chain) for part in network.inside]
        self.known = chain.evidence
        self.step = 0

    def features(self, rows: Tensor | None = None) -> Tensor:
        here: Tensor | slice = slice(None) if rows is None else rows
        laws = [walk.features(rows) for walk in self.walks]
        target = self.chain.order[here, self.step : self.step + 1].clamp(min=0)
        return self.network.mixed(laws[0], laws[1], nearby(self.known[here], target)[:, 0])

    def tell(self, value: Tensor) -> None:
        for walk in self.walks:
            walk.tell(value)
        self.known = self.known | members(self.chain.order[:, self.step : self.step + 1], self.chain.variables)
        self.step += 1


class _CountedLookahead(GuessingLookahead):
    """Both look ahead, each in its own way, and what they say is mixed."""

    def __init__(self, network: Counted, values: Tensor, chain: Chain) -> None:
        super().__init__(values, chain)
        self.network = network
        self.looks = [part.look_ahead(values, chain) for part in network.inside]

    def look(self, guesses: Tensor, reach: int) -> Tensor:
        laws = [look.look(guesses, reach) for look in self.looks]
        near = [nearby(known, targets) for _, known, targets in self.cases(guesses, reach)]
        return self.network.mixed(laws[0], laws[1], torch.stack(near, dim=1))

    def settle(self, right: Tensor, value: Tensor) -> None:
        for look in self.looks:
            look.settle(right, value)
        super().settle(right, value)


def hints(
    one: Float[Tensor, "*batch levels"], other: Float[Tensor, "*batch levels"], near: Float[Tensor, "*batch three"]
) -> Float[Tensor, "*batch hints"]:
    """What the weights depend on: how sure either law is, how far apart they are, and how much is known nearby."""
    first, second = one.exp(), other.exp()
    apart = [(law * (log - against)).sum(-1) for law, log, against in ((first, one, other), (second, other, one))]
    sure = [-(first * one).sum(-1), -(second * other).sum(-1), one.amax(-1), other.amax(-1)]
    numbers = torch.stack([*sure, *(part.clamp(max=FAR) for part in apart)], dim=-1)
    return torch.cat([numbers, near], dim=-1)


def _number_of_hints() -> int:
    """Asked of :func:`hints` itself, of a law of one symbol."""
    law, near = torch.zeros(1), nearby(torch.ones(1, 1, dtype=torch.bool), torch.zeros(1, 1, dtype=torch.long))[0, 0]
    return hints(law, law, near).shape[-1]


def nearby(
    known: Bool[Tensor, "batch variables"], target: Int[Tensor, "batch targets"]
) -> Float[Tensor, "batch targets three"]:
    """How many neighbours in a row are known to the left and to the right of each target, and the share of all."""
    sides = [_run(known, target, step) for step in (-1, 1)]
    share = known.double().mean(dim=1, keepdim=True).expand(-1, target.shape[1])
    return torch.stack([*sides, share], dim=-1)


def _run(known: Bool[Tensor, "batch variables"], target: Int[Tensor, "batch targets"], step: int) -> Tensor:
    """How many positions in a row are known from the next one on, in this direction; a share of all looked at."""
    position = target[..., None] + step * torch.arange(1, NEIGHBOURS + 1, device=known.device)
    inside = (position >= 0) & (position < known.shape[1])
    index = position.clamp(0, known.shape[1] - 1).flatten(1)
    there = known.gather(1, index).view(position.shape) & inside
    return there.long().cumprod(dim=-1).sum(dim=-1).double() / NEIGHBOURS


def nearby_along(chain: Chain) -> Float[Tensor, "batch steps three"]:
    """:func:`nearby` of every step of a chain, each with what is known by then."""
    found = torch.zeros(chain.batch, chain.steps, 3, dtype=torch.float64, device=chain.order.device)
    known = chain.evidence
    for step in range(chain.steps):
        target = chain.order[:, step : step + 1]
        found[:, step] = nearby(known, target.clamp(min=0))[:, 0]
        known = known | members(target, chain.variables)
    return found
