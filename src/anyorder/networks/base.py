"""The contract of a network: values and what is known of them in, features for every variable out.

Two kinds keep one contract. A *mask network* answers ``beside`` in one pass (every p(x_i | x_known), i
unknown: ARDM eq. 4, MAC eq. 7) and ``along`` by unrolling it. A *chain network* answers ``along`` in one pass
(every step of one chain: MAC Algorithm 1) and keeps a cache while walking. No value of an unknown
variable may reach the output; :mod:`anyorder.testing` checks that by perturbation.

Whoever builds, trains or asks a network goes by what it says of itself here (its presets, its objective, its modes),
never by its class or its name: that is what makes a new network one new file. A fitted network is asked by many threads
at once, so what belongs to one question is an argument or a view (:meth:`Network.in_mode`), never written to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.errors import UserError
from anyorder.networks.layout import Layout
from anyorder.networks.parts.lookahead import BesideLookahead, Lookahead
from anyorder.networks.parts.stack import Apart, Stack
from anyorder.query import Chain, Step, members
from anyorder.variables.missingness import without_partner

# Numbers a pass may hold per intermediate tensor: bounds memory (32 MB in float32), not results.
NUMBERS_AT_ONCE = 1 << 23


def rows_at_once(layout: Layout) -> int:
    """How many rows of features [variables, width], or of moments [variables, variables], are held at once."""
    return max(16, NUMBERS_AT_ONCE // (layout.variables * max(layout.width, layout.variables)))


# Inputs further out than this, in model units, look alike to a network: an absurd value must not become infinite.
FARTHEST = 100.0


class Heads(Protocol):
    """What a walk needs of the heads of all variables to draw (:class:`anyorder.heads.bank.HeadBank` has it)."""

    def sample_at(
        self, features: Float[Tensor, "steps width"], variable: Int[Tensor, " steps"], generator: torch.Generator | None
    ) -> Float[Tensor, " steps"]:
        """One draw of each variable named."""

    def member_at(
        self,
        variable: Int[Tensor, " steps"],
        generator: torch.Generator | None,
        gates: Float[Tensor, "steps width"] | None = None,
    ) -> Int[Tensor, " steps"]:
        """Where heads are blends: a member for each variable named, drawn by its weight given these gates."""

    def sharpened_at(self, variable: Int[Tensor, " steps"]) -> Bool[Tensor, " steps"]:
        """Where heads are blends: whether each variable named has a power of the mixture, so that no member has it."""

    def sample_member_at(
        self,
        member: int,
        features: Float[Tensor, "steps width"],
        variable: Int[Tensor, " steps"],
        generator: torch.Generator | None,
    ) -> Float[Tensor, " steps"]:
        """One draw of each variable named by this member of its blend, from the member's own features."""

    def members_of(
        self, variable: int, count: int, generator: torch.Generator | None, gates: Float[Tensor, "one width"] | None
    ) -> Int[Tensor, " count"]:
        """Where heads are blends: members of that of one variable, drawn by their weights given these gates."""

    def sample_members(
        self,
        variable: int,
        member: Int[Tensor, " draws"],
        features: Float[Tensor, "draws width"],
        generator: torch.Generator | None,
    ) -> Float[Tensor, " draws"]:
        """One draw of a variable by each of these members of its blend, from the member's own features."""

    def inside(self) -> Heads:
        """Where heads are wrapped in compatibilities: those inside, for the features of the network inside."""


class Walk(ABC):
    """One pass down a batch of chains, one step at a time, for sampling."""

    @abstractmethod
    def features(self, rows: Int[Tensor, " rows"] | None = None) -> Float[Tensor, "rows width"]:
        """Features of the variable at the current step (arbitrary where the row is padding); of ``rows`` only."""

    @abstractmethod
    def tell(self, value: Float[Tensor, " batch"]) -> None:
        """Fix the value of the current step's variable and go on to the next step."""

    def sample(
        self,
        heads: Heads,
        rows: Int[Tensor, " rows"],
        target: Int[Tensor, " rows"],
        generator: torch.Generator | None,
    ) -> Float[Tensor, " rows"]:
        """One draw of the current step's variable (``target``) of these rows."""
        return heads.sample_at(self.features(rows), target, generator)


@dataclass(eq=False)
class Network(nn.Module, ABC):
    """Dataclass fields after ``layout`` are the network's options, and all that a model file keeps of it."""

    name: ClassVar[str]

    objective: ClassVar[str] = "parallel"
    """The objective that trains it unless another one is asked for."""

    trainable: ClassVar[bool] = True
    """Whether it learns by gradients; False where it is closed-form, grown, or made of trained networks."""

    reads_order: ClassVar[bool] = False
    """Whether it reads what is known one by one, in an order, so that no step can hide what an earlier one has read."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Options by the name of a size."""

    for_short_tables: ClassVar[Mapping[str, Any]] = {}
    """Options for a table of few rows, for whose folds there are several of these networks."""

    encodings: ClassVar[tuple[str, ...]] = ("normal_scores",)
    """The ways to encode the numbers of a table that are worth trying with it."""

    # Not annotated, or the dataclass would make them options of every network.
    modes = 0  # how many masking modes it can be asked in: 0 .. modes - 1
    folds = tuple[int, ...]()  # which fold of the rows each of its parts has never seen (see :mod:`.blend`)
    fold_count = 1  # how many folds there were
    coupled = 0  # levels of a pixel whose channels depend on each other in the answers of one call; 0 if they do not

    layout: Layout = field(metadata={"option": False})

    def __post_init__(self) -> None:
        nn.Module.__init__(self)

    @property
    def inside(self) -> Sequence[Network]:
        """The networks that it is made of, in the order of its layout's ``members``; none where it is one itself."""
        return ()

    @property
    def repeated(self) -> Sequence[nn.Module]:
        """The blocks that make up most of it, if it has any: they can be compiled, and computed again for gradients."""
        return ()

    @property
    def drafter(self) -> Network | None:
        """A network that is cheap to ask and guesses well what this one will say; None where there is none."""
        return None

    @classmethod
    def defaults(cls, encoding: str, reals: int) -> Mapping[str, Any]:
        """Options that it chooses by itself for a table in this encoding with so many columns on a line."""
        return {}

    @classmethod
    def from_version_1(
        cls, described: dict[str, Any], tensors: dict[str, Tensor]
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What a model file of version 1 says of such a network and the tensors it has for it, as version 2 would."""
        return described, tensors

    @property
    def learned(self) -> tuple[bool, ...]:
        """Whether more than the marginal was learned, for each variable."""
        return (True,) * self.layout.variables

    def only(self, parts: Sequence[int], layout: Layout) -> Network:
        """A view that shares all weights and answers with some of its parts alone; ``layout``: of their heads."""
        raise UserError(f"the network {self.name!r} has no parts")

    @classmethod
    def stack(cls, networks: Sequence[Network]) -> Stack:
        """Several networks of this class, to be asked the same question together."""
        return Apart(networks)

    def in_mode(self, mode: int | None) -> Self:
        """A view that shares all weights and answers every question in this masking mode; itself for None."""
        if mode is None:
            return self
        raise UserError(f"the network {self.name!r} has no masking modes, got mode {mode}; leave it out")

    def remembering(self) -> Self:
        """A view for a single question, which need not pass again what it has just passed; itself if nothing repeats.

        It shares all weights. What it remembers makes it unfit for several threads and for training.
        """
        return self

    def prepare(self, values: Float[Tensor, "rows variables"], observed: Bool[Tensor, "rows variables"]) -> None:
        """Look at the rows to learn from once before training, if there is something to take from them at once."""

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

    def staged(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        modes: Int[Tensor, " batch"] | None,
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        """The pass that the objective ``stages`` trains: ``beside``, with the masking mode of every row.

        ``modes``: 0 .. ``self.modes`` - 1, or ``self.modes`` where the row is to be answered without one; None for a
        network that has none. Where channels are coupled, each sees those before it in its pixel, known or not.
        """
        return self.beside(values, known, prefix)

    def begin(self, starts: Float[Tensor, "variables width"]) -> None:
        """Make the untrained network answer ``starts`` (each head's broad start) for every variable."""

    @abstractmethod
    def along(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Float[Tensor, "batch steps width"]:
        """Features of every step of the chain, each given the prefix and the steps before it."""

    @abstractmethod
    def walk(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Walk:
        """Start walking: only the evidence of ``values`` is read; the rest follows step by step."""

    def look_ahead(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Lookahead:
        """Start walking by guesses: the same, several steps a call."""
        return BesideLookahead(self, values, chain)


class MaskNetwork(Network):
    """A network whose one pass is ``beside``."""

    def along(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Float[Tensor, "batch steps width"]:
        return self.unrolled(chain, lambda step: self.at(values[step.row], step.known, step.target))

    def unrolled(
        self, chain: Chain, answer: Callable[[Step], Float[Tensor, "edges width"]], edges: int | None = None
    ) -> Float[Tensor, "batch steps width"]:
        """``along`` from the features of every step's target, in parts that fit into memory: of ``edges`` if given."""
        picked: list[Tensor] = []
        for step in chain.unroll(edges or rows_at_once(self.layout)):
            known = without_partner(step.known, step.target, self.layout.partners)
            picked.append(answer(replace(step, known=known)))
        if not picked:
            return torch.zeros(chain.batch, chain.steps, self.layout.width, device=chain.order.device)
        features = torch.cat(picked)
        # Steps are unrolled row by row, so the counted positions take them in their own order.
        out = features.new_zeros(chain.batch, chain.steps, features.shape[-1])
        return out.masked_scatter(chain.counted[..., None], features)

    def walk(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Walk:
        return _MaskWalk(self.remembering(), values, chain)


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
        self.every = None if bool((chain.order < 0).any()) else torch.arange(len(values), device=values.device)
        self.step = 0

    def features(self, rows: Tensor | None = None) -> Tensor:
        here: Tensor | slice = slice(None) if rows is None or len(rows) == len(self.values) else rows
        target = self.chain.order[here, self.step]
        known = without_partner(self.known[here], target, self.network.layout.partners)
        return self.network.at(self.values[here], known, target.clamp(min=0))

    def tell(self, value: Tensor) -> None:
        if self.every is not None:  # no row has ended
            here = (self.every, self.chain.order[:, self.step])
            self.values = self.values.index_put(here, value.to(self.values.dtype))
            self.known = self.known.index_put(here, torch.ones((), dtype=torch.bool, device=self.known.device))
            self.step += 1
            return
        now = members(self.chain.order[:, self.step : self.step + 1], self.chain.variables)
        self.values = torch.where(now, value[:, None].to(self.values.dtype), self.values)
        self.known = self.known | now
        self.step += 1


class ChainNetwork(Network):
    """A network whose one pass is ``along``."""

    objective: ClassVar[str] = "chain"
    reads_order: ClassVar[bool] = True
