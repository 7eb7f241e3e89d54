"""AnyOrderModel: network + heads + protocol over the variables of a schema.

$$\\log p(x_u \\mid x_e) = \\sum_t \\log p_\\theta(x_{u_t} \\mid x_e, x_{u_{<t}}),$$

where the protocol chooses the order u_1, u_2, ... Everything here is in model units, on flat
``[batch, variables]`` tensors; :mod:`anyorder.questions.conditional` speaks in the units of the data.
"""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.errors import UserError
from anyorder.heads import Head, heads
from anyorder.heads.bank import HeadBank, shared
from anyorder.networks import Network, Walk, networks
from anyorder.networks.base import rows_at_once
from anyorder.networks.layout import Layout
from anyorder.protocols import Protocol, protocols
from anyorder.query import Chain, Query
from anyorder.support.advance import checked
from anyorder.support.allowance import Allowance, Counted, MachineAllowance
from anyorder.support.boundary import field
from anyorder.support.checks import whole
from anyorder.support.randomness import drawing_from
from anyorder.support.registry import describe
from anyorder.support.threads import answering
from anyorder.support.unset import WeightsUnset
from anyorder.variables.encoding import Encoding
from anyorder.variables.missingness import partner_known, without_partner
from anyorder.variables.schema import Schema

Limits: TypeAlias = tuple[Float[Tensor, " variables"], Float[Tensor, " variables"]]
"""The least and the greatest value that each variable may be drawn as, in model units."""

Score: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]
"""What a draw is worth, in nats: from features, the variables drawn and their values, a row each."""


class AnyOrderModel(nn.Module):
    """One joint distribution that answers every conditional query about its variables."""

    def __init__(self, encoding: Encoding, network: Network, heads_: Sequence[Head], protocol: Protocol) -> None:
        super().__init__()
        self.encoding = encoding
        self.network = network
        self.heads = HeadBank(heads_)
        self.protocol = protocol
        self.former_digest: str | None = None  # of a model from a file of version 1 that had to be changed: what it was

    @classmethod
    def build(
        cls,
        encoding: Encoding,
        heads_: Sequence[Head],
        network: dict[str, Any],
        protocol: Protocol,
        *,
        seed: int,
    ) -> AnyOrderModel:
        """An untrained model; ``network`` is a name and options. Weights depend on ``seed`` alone.

        A network that could not be trained on this machine is refused before memory is taken for it.
        """
        with drawing_from(torch.Generator().manual_seed(seed)), Counted(MachineAllowance()):
            net = networks.build(network, layout=layout_of(encoding.schema, heads_))
        model = cls(encoding, net, heads_, protocol)
        starts = torch.zeros(len(heads_), net.layout.width)
        for variable, head in enumerate(heads_):
            starts[variable, : head.size] = head.start()
        net.begin(starts)
        return model.eval()

    def in_mode(self, mode: int | None) -> AnyOrderModel:
        """A view that shares everything and answers every question in this masking mode; itself for None."""
        if mode is None:
            return self
        view = copy.copy(self)
        # The copy shares the dictionary of its parts, so it gets one of its own before one of them is another.
        view._modules = {**self._modules, "network": self.network.in_mode(mode)}
        return view

    @property
    def schema(self) -> Schema:
        return self.encoding.schema

    @property
    def variables(self) -> int:
        return len(self.heads)

    @property
    def device(self) -> torch.device:
        tensor = next(self.network.parameters(), None)
        return next(self.network.buffers()).device if tensor is None else tensor.device

    @property
    def channels_in_turn(self) -> int:
        """How many neighbouring variables depend on each other in one call's answers: 1 unless colour is coupled."""
        return self.schema.grid[-1] if self.network.coupled else 1

    def description(self) -> dict[str, Any]:
        """Everything but the weights, as JSON-ready values; neighbours with equal heads share one entry."""
        runs = itertools.groupby(self.heads.assigned.tolist())
        return {
            "encoding": self.encoding.to_json(),
            "heads": [
                {"head": describe(self.heads.distinct[which]), "variables": len(list(run))} for which, run in runs
            ],
            "network": describe(self.network),
            "protocol": describe(self.protocol),
            **({} if self.former_digest is None else {"former_digest": self.former_digest}),
        }

    @classmethod
    def from_description(cls, description: dict[str, Any], allowance: Allowance | None = None) -> AnyOrderModel:
        """The model of :meth:`description`, its weights still to be loaded.

        Errors name the entry that is wrong. ``allowance``: how much memory it may take.
        """
        with field("encoding"):
            encoding = Encoding.from_json(description["encoding"])
        with nullcontext() if allowance is None else Counted(allowance), WeightsUnset():
            with field("heads"):
                heads_ = _heads(description["heads"], encoding.schema, allowance)
            with field("network"):
                network = networks.build(description["network"], layout=layout_of(encoding.schema, heads_))
        with field("protocol"):
            protocol = protocols.build(description["protocol"])
            protocol.keys(torch.ones(1, len(heads_), dtype=torch.bool), torch.Generator())  # refuses other numbers
        model = cls(encoding, network, heads_, protocol)
        model.former_digest = _sha256(description.get("former_digest"))
        return model

    def chain(self, query: Query, generator: torch.Generator | None = None) -> Chain:
        """The query's chain under the model's own protocol."""
        return self.protocol.chain(query, generator, self.schema.context)

    @answering
    def step_log_prob(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Float[Tensor, "batch steps"]:
        """log p of each step of the chain, 0 at padding: they sum to log p(x_asked | x_evidence)."""
        if chain.steps == 0:
            return values.new_zeros(chain.order.shape)
        features = self.network.along(values, chain)
        row, position = chain.counted.nonzero(as_tuple=True)
        target = chain.order[row, position]
        steps = self.heads.log_prob_at(features[row, position], target, values[row, target])
        return features.new_zeros(chain.order.shape).index_put((row, position), steps)

    @answering
    def features_beside(
        self, values: Float[Tensor, "batch variables"], known: Bool[Tensor, "batch variables"]
    ) -> Float[Tensor, "batch variables width"]:
        """The network's features of every variable given the same known set, its own partner left out of it."""
        features = self.one_pass(values, known)
        # Where the partner of an unknown variable is known it was seen: those few are asked again, one by one.
        row, variable = (partner_known(known, self.network.layout.partners) & ~known).nonzero(as_tuple=True)
        if not len(row):
            return features
        for part in torch.arange(len(row), device=row.device).split(rows_at_once(self.network.layout)):
            here, target = row[part], variable[part]
            alone = self.one_pass(values[here], without_partner(known[here], target, self.network.layout.partners))
            features = features.index_put((here, target), alone[torch.arange(len(part), device=row.device), target])
        return features

    @answering
    def one_pass(
        self, values: Float[Tensor, "batch variables"], known: Bool[Tensor, "batch variables"]
    ) -> Float[Tensor, "batch variables width"]:
        """Features by a single pass: a variable whose partner is known has seen it.

        See :mod:`anyorder.variables.missingness`.
        """
        return self.network.beside(values, known, self._prefix(known))

    @answering
    def staged_pass(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        modes: Int[Tensor, " batch"] | None,
    ) -> Float[Tensor, "batch variables width"]:
        """Features by a single pass as :meth:`~anyorder.networks.Network.staged` gives them."""
        return self.network.staged(values, known, modes, self._prefix(known))

    @answering
    def features_of(
        self, values: Float[Tensor, "batch variables"], known: Bool[Tensor, "batch variables"], variable: int
    ) -> Float[Tensor, "batch width"]:
        """The network's features of one variable, its own partner left out of what is known."""
        target = torch.full((len(values),), variable, device=values.device)
        known = without_partner(known, target, self.network.layout.partners)
        return self.network.at(values, known, target, self._prefix(known))

    def _prefix(self, known: Bool[Tensor, "batch variables"]) -> Int[Tensor, "batch prefix"] | None:
        """The order in which to read what is known, for networks that read an order; the others see a set."""
        if self.network.reads_order and not self.protocol.random:
            return self.chain(Query(known, torch.zeros_like(known))).prefix
        return None

    def log_prob_beside(
        self, values: Float[Tensor, "batch variables"], known: Bool[Tensor, "batch variables"]
    ) -> Float[Tensor, "batch variables"]:
        """log p(x_i | x_known) for every variable i (meaningless at the known ones)."""
        return self.heads.log_prob_beside(self.features_beside(values, known), values)

    @answering
    def draw(
        self,
        values: Float[Tensor, "batch variables"],
        chain: Chain,
        generator: torch.Generator | None = None,
        *,
        greedy: bool = False,
        limits: Limits | None = None,
    ) -> Float[Tensor, "batch variables"]:
        """``values`` with the asked variables replaced by one joint draw given the evidence.

        ``greedy`` takes the most probable level at each step instead of a draw; all asked variables must have levels.
        ``limits``: what is drawn beyond them is moved to the nearest, before the next variable is drawn given it.
        """

        def choose(walk: Walk, row: Tensor, asked: Tensor) -> Tensor:
            if greedy:
                return self.heads.best_at(walk.features(row), asked)
            return clipped(walk.sample(self.heads, row, asked, generator), asked, limits)

        return self._walked(values, chain, choose)

    @answering
    def scored_draw(
        self,
        values: Float[Tensor, "batch variables"],
        chain: Chain,
        generator: torch.Generator | None = None,
        *,
        greedy: bool = False,
        limits: Limits | None = None,
        score: Score | None = None,
    ) -> tuple[Float[Tensor, "batch variables"], Float[Tensor, "batch variables"]]:
        """:meth:`draw`, and the log-probability of each asked variable when it was drawn; one walk for both.

        By ``score``, if given; else by the heads, which have a log-density for a number on a line.
        """
        nats = torch.zeros(values.shape, dtype=torch.float64, device=values.device)
        nats_of = self.heads.log_prob_at if score is None else score

        def choose(walk: Walk, row: Tensor, asked: Tensor) -> Tensor:
            features = walk.features(row)
            heads = self.heads
            drawn = heads.best_at(features, asked) if greedy else heads.sample_at(features, asked, generator)
            drawn = clipped(drawn, asked, limits)
            nats[row, asked] = nats_of(features, asked, drawn.to(values.dtype)).to(nats)
            return drawn

        return self._walked(values, chain, choose), nats

    def _walked(
        self,
        values: Float[Tensor, "batch variables"],
        chain: Chain,
        choose: Callable[[Walk, Tensor, Tensor], Tensor],
    ) -> Float[Tensor, "batch variables"]:
        """``values`` with what is chosen at each step, for the rows that still ask something there."""
        values = values.where(chain.evidence, 0.0)
        if chain.steps == 0:
            return values
        walk = self.network.walk(values, chain)
        every, padded = torch.arange(len(values), device=values.device), not bool(chain.counted.all())
        for step in range(chain.steps):
            target = chain.order[:, step]
            row = (target >= 0).nonzero()[:, 0] if padded else every
            asked = target[row] if padded else target
            drawn = choose(walk, row, asked).to(values.dtype)
            values = values.index_put((row, asked), drawn)
            walk.tell(values.gather(1, target.clamp(min=0)[:, None])[:, 0] if padded else drawn)
        return values


def clipped(
    drawn: Float[Tensor, " rows"], variable: Int[Tensor, " rows"], limits: Limits | None
) -> Float[Tensor, " rows"]:
    """Draws of the variables named, moved to the nearest limit; in the dtype of the limits, so that these are kept."""
    if limits is None:
        return drawn
    low, high = (side.to(variable.device)[variable] for side in limits)
    return drawn.to(low.dtype).clamp(low, high)


def _heads(runs: list[dict[str, Any]], schema: Schema, allowance: Allowance | None) -> list[Head]:
    """The head of every variable, from runs of variables with the same head."""
    found: list[Head] = []
    for number, run in enumerate(runs):
        with field(str(number)):
            count = whole("variables", run["variables"])
            variables = schema.variables[len(found) : len(found) + count]
            if len(variables) < count:
                raise UserError(f"there are heads for more than the {len(schema)} variables")
            head = heads.build(run["head"])
            if allowance is not None:
                allowance.check(len(schema) * head.size)
            for levels in {len(variable.levels) for variable in variables}:
                if head.levels != levels:
                    raise UserError(f"a head of {head.levels} levels cannot answer for a variable of {levels}")
            for variable in variables:
                if variable.context == bool(head.size):
                    raise UserError(f"{variable.name!r}: a variable has a head unless it is context, and only then")
            found += [head] * count
    if len(found) != len(schema):
        raise UserError(f"there are heads for {len(found)} of {len(schema)} variables")
    return found


def _sha256(digits: object) -> str | None:
    """Digits of a SHA-256, or None where there are none."""
    if digits is not None and not (isinstance(digits, str) and re.fullmatch("[0-9a-f]{64}", digits)):
        raise UserError(f"former_digest must be 64 hexadecimal digits, got {digits!r:.80}")
    return digits


def layout_of(schema: Schema, heads_: Sequence[Head]) -> Layout:
    """What a network must know. Where the variables are alike (characters, pixels), equal heads share one group."""
    groups = shared(heads_)[1] if schema.alike else range(len(heads_))
    members = range(max(len(head.blended) for head in heads_))
    # One head may stand for thousands of pixels: it is asked once.
    features = {id(head): (head.locations, head.log_scales) for head in heads_}
    return Layout(
        levels=tuple(head.levels for head in heads_),
        sizes=tuple(head.size for head in heads_),
        groups=tuple(groups),
        grid=schema.grid,
        locations=tuple(features[id(head)][0] for head in heads_),
        log_scales=tuple(features[id(head)][1] for head in heads_),
        partners=schema.partners,
        members=tuple(layout_of(schema, [head.part(member) for head in heads_]) for member in members),
    )


def row_chunks(model: AnyOrderModel, rows: int) -> Iterator[slice]:
    """Rows in parts that fit into memory; the parts do not change a result, only when random draws are taken."""
    size = min(rows_at_once(model.network.layout), 4096)
    for start in range(0, rows, size):
        checked()
        yield slice(start, start + size)
