"""The contract of a network: values and what is known of them in, features for every variable out.

Two kinds keep one contract. A *mask network* answers ``beside`` in one pass (every p(x_i | x_known), i
unknown: ARDM eq. 4, MAC eq. 7) and ``along`` by unrolling it. A *chain network* answers ``along`` in one pass
(every step of one chain: MAC Algorithm 1) and keeps a cache while walking. No value of an unknown
variable may reach the output; :mod:`anyorder.testing` checks that by perturbation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.networks.layout import Layout
from anyorder.networks.parts.lookahead import BesideLookahead, Lookahead
from anyorder.query import Chain, Step, members
from anyorder.variables.missingness import without_partner

# Numbers a pass may hold per intermediate tensor: bounds memory (32 MB in float32), not results.
NUMBERS_AT_ONCE = 1 << 23


def rows_at_once(layout: Layout) -> int:
    """How many rows of features [variables, width], or of moments [variables, variables], are held at once."""
    return max(16, NUMBERS_AT_ONCE // (layout.variables * max(layout.width, layout.variables)))


# Inputs further out than this, in model units, look alike to a network: an absurd value must not become infinite.
FARTHEST = 100.0


class Walk(ABC):
    """One pass down a batch of chains, one step at a time, for sampling."""

    @abstractmethod
    def features(self, rows: Int[Tensor, " rows"] | None = None) -> Float[Tensor, "rows width"]:
        """Features of the variable at the current step (arbitrary where the row is padding); of ``rows`` only."""

    @abstractmethod
    def tell(self, value: Float[Tensor, " batch"]) -> None:
        """Fix the value of the current step's variable and go on to the next step."""


@dataclass(eq=False)
class Network(nn.Module, ABC):
    """Dataclass fields after ``layout`` are the network's options, and all that a model file keeps of it."""

    name: ClassVar[str]

    layout: Layout = field(metadata={"option": False})

    def __post_init__(self) -> None:
        nn.Module.__init__(self)

    @abstractmethod
    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        """Features of all variables, each given the same known set (arbitrary at known variables).

        ``prefix`` lists the known variables in reading order, as in a chain. Mask networks see a set and
        do not need it; chain networks read by ascending index without it.
        """

    def at(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        target: Int[Tensor, " batch"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch width"]:
        """Features of one variable a row: all of them and a choice, unless a network can do with less."""
        return chosen(self.beside(values, known, prefix), target)

    def begin(self, starts: Float[Tensor, "variables width"]) -> None:
        """Make the untrained network answer ``starts`` (each head's broad start) for every variable."""

    @abstractmethod
    def along(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Float[Tensor, "batch steps width"]:
        """Features of every step of the chain, each given the prefix and the steps before it."""

    @abstractmethod
    def walk(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Walk:
        """Start walking: only the evidence of ``values`` is read; the rest is told step by step."""

    def look_ahead(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Lookahead:
        """Start walking by guesses: the same, several steps a call."""
        return BesideLookahead(self, values, chain)


class MaskNetwork(Network):
    """A network whose one pass is ``beside``."""

    def along(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Float[Tensor, "batch steps width"]:
        return self.unrolled(chain, lambda step: self.at(values[step.row], step.known, step.target))

    def unrolled(
        self, chain: Chain, answer: Callable[[Step], Float[Tensor, "edges width"]]
    ) -> Float[Tensor, "batch steps width"]:
        """``along`` from the features of every step's target, in parts that fit into memory."""
        picked: list[Tensor] = []
        for step in chain.unroll(rows_at_once(self.layout)):
            known = without_partner(step.known, step.target, self.layout.partners)
            picked.append(answer(replace(step, known=known)))
        if not picked:
            return torch.zeros(chain.batch, chain.steps, self.layout.width, device=chain.order.device)
        features = torch.cat(picked)
        # Steps are unrolled row by row, so the counted places take them in their own order.
        out = features.new_zeros(chain.batch, chain.steps, features.shape[-1])
        return out.masked_scatter(chain.counted[..., None], features)

    def walk(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Walk:
        return _MaskWalk(self, values, chain)


def chosen(
    features: Float[Tensor, "batch variables width"], target: Int[Tensor, " batch"]
) -> Float[Tensor, "batch width"]:
    """The features of each row's target."""
    return features[torch.arange(len(target), device=features.device), target]


class _MaskWalk(Walk):
    """Walking a mask network: one question per step with one more variable known."""

    def __init__(self, network: MaskNetwork, values: Tensor, chain: Chain) -> None:
        self.network = network
        self.chain = chain
        self.known = chain.evidence
        self.values = values.where(self.known, torch.zeros_like(values))
        self.step = 0

    def features(self, rows: Tensor | None = None) -> Tensor:
        here: Tensor | slice = slice(None) if rows is None else rows
        target = self.chain.order[here, self.step]
        known = without_partner(self.known[here], target, self.network.layout.partners)
        return self.network.at(self.values[here], known, target.clamp(min=0))

    def tell(self, value: Tensor) -> None:
        now = members(self.chain.order[:, self.step : self.step + 1], self.chain.variables)
        self.values = torch.where(now, value[:, None].to(self.values.dtype), self.values)
        self.known = self.known | now
        self.step += 1


class ChainNetwork(Network):
    """A network whose one pass is ``along``."""
