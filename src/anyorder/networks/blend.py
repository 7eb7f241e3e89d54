"""Several networks side by side: the features of a blend are those of its members, one block after the other.

Each member has a layout of its own (its heads read other sizes) and was trained alone; :mod:`anyorder.heads.blend`
mixes what their heads say. So an ensemble, or a network together with boosted trees, is one model like any other.

Which member to believe depends on what is known: trees are vague about a single known column, a line is honest there.
Behind the members' features stands what the evidence e adds to the logarithms of their weights for variable i,

    gate_im(e) = a_im (share known - 1/2) + b_im / (1 + number known) + sum_j c_imj (1[j known] - 1/2),

and in tables with many columns only the first two terms. A context, which every question knows, counts as one variable
in the share and in the number, and its columns have no terms of their own. The gates depend on which variables are
known and on no value, so every answer stays normalised. :mod:`anyorder.training.gates` learns them. Where blends are
the sharper the more is known, one more gate is the share known itself, less one half.

Members of one kind are asked together wherever rows know the same (:mod:`.parts.stack`): one question, or many draws
for one. Other rows are put to one member after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.errors import UserError
from anyorder.networks.base import Heads, Network, Walk
from anyorder.networks.layout import Layout
from anyorder.networks.parts.stack import Stack
from anyorder.query import PAD, Chain, members
from anyorder.support.checks import whole
from anyorder.support.registry import describe
from anyorder.variables.missingness import without_partner

SEEN_ALL = -1  # the fold of a part that may have seen every row
MOST_FOLDS = 100
MOST_GATES = 100
MOST_NAMED = 60  # variables up to which the gates depend on which of them are known, not only on how many
STEEPEST = 100.0  # slope of a gate: it could rule out a member altogether


@dataclass(eq=False)
class BlendNetwork(Network):
    """``members`` are ``{"network": description}``, in the order of the layout's ``members``.

    They are built from that, unless they are ``trained`` already (:meth:`of`). Their weights must not be changed in
    place once the blend has answered: it keeps stacks of them. ``folds``: which fold of the table each of them has
    never seen, out of ``fold_count`` (:mod:`anyorder.variables.folds` tells the fold of a row); ``SEEN_ALL`` for one
    that may have seen every row, and nothing where that is true of all of them. ``gates``: how many numbers the
    evidence adds to the weights, one for each kind of member, and perhaps the share known behind them; 0 where weights
    are fixed.
    """

    name: ClassVar[str] = "blend"
    trainable: ClassVar[bool] = False

    members: tuple[Mapping[str, Any], ...] = ()
    folds: tuple[int, ...] = field(default=(), metadata={"later": True})
    fold_count: int = field(default=1, metadata={"later": True})
    gates: int = field(default=0, metadata={"later": True})
    trained: InitVar[Sequence[Network] | None] = None

    def __post_init__(self, trained: Sequence[Network] | None) -> None:
        super().__post_init__()
        self.fold_count = whole("fold_count", self.fold_count, 1, MOST_FOLDS)
        self.folds = tuple(whole("folds", fold, SEEN_ALL, self.fold_count - 1) for fold in self.folds)
        if self.folds and len(self.folds) != len(self.members):
            raise UserError(f"a blend of {len(self.members)} networks needs as many folds, got {len(self.folds)}")
        from anyorder.networks import networks  # the registry looks into this package: only once it is whole

        if trained is None:
            pairs = zip(self.members, self.layout.members, strict=True)
            trained = [networks.build(member["network"], layout=layout) for member, layout in pairs]
        self.parts = nn.ModuleList(trained)
        self._reads_order = any(part.reads_order for part in trained)
        self.gates = whole("gates", self.gates, 0, MOST_GATES)
        if sum(layout.width for layout in self.layout.members) + self.gates < self.layout.width:
            raise UserError("the heads of a blend read more features than its members and gates have")
        if self.gates:
            variables = self.layout.variables
            self.slopes: Tensor
            shape = (variables, self.gates, gate_count(len(self.layout.answered)))
            self.register_buffer("slopes", torch.zeros(shape, dtype=torch.float64))
        # Without weights of its own (trees alone) the model must still know where it lives.
        self.register_buffer("here", torch.zeros(0), persistent=False)
        self._stacks: list[tuple[list[int], Stack]] = []

    @classmethod
    def of(
        cls,
        layout: Layout,
        trained: Sequence[Network],
        folds: Sequence[int] = (),
        fold_count: int = 1,
        slopes: Float[Tensor, "variables gates features"] | None = None,
    ) -> BlendNetwork:
        """These networks, side by side, with gates of these slopes."""
        described = tuple({"network": describe(network)} for network in trained)
        gates = 0 if slopes is None else slopes.shape[1]
        network = cls(layout, described, tuple(folds) if fold_count > 1 else (), fold_count, gates, trained)
        if slopes is not None:
            network.slopes.copy_(slopes)
        return network

    def only(self, numbers: Sequence[int], layout: Layout) -> BlendNetwork:
        """A view with some of the members alone, which shares their weights and the gates."""
        parts = self._parts
        described = tuple(self.members[number] for number in numbers)
        folds = tuple(self.folds[number] for number in numbers) if self.folds else ()
        view = BlendNetwork(layout, described, folds, self.fold_count, self.gates, [parts[n] for n in numbers])
        if self.gates:
            view.slopes = self.slopes
        return view

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        self._stacks = []
        if self.gates and not self.slopes.is_meta and not bool((self.slopes.abs() <= STEEPEST).all()):
            raise UserError(f"the slopes of a blend's gates must be numbers up to {STEEPEST}")

    @classmethod
    def from_version_1(
        cls, described: dict[str, Any], tensors: dict[str, Tensor]
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        from anyorder.networks import networks

        members: list[dict[str, Any]] = []
        renewed: dict[str, Tensor] = {}
        for number, member in enumerate(described["members"]):
            prefix = f"parts.{number}."
            own = {name.removeprefix(prefix): tensors[name] for name in tensors if name.startswith(prefix)}
            network, own = networks.of(member["network"]).from_version_1(member["network"], own)
            members.append({**member, "network": network})
            renewed |= {prefix + name: tensor for name, tensor in own.items()}
        rest = {name: tensor for name, tensor in tensors.items() if not name.startswith("parts.")}
        return {**described, "members": members}, {**rest, **renewed}

    @property
    def inside(self) -> list[Network]:
        return self._parts

    @property
    def _parts(self) -> list[Network]:
        return [part for part in self.parts if isinstance(part, Network)]

    def stacks(self) -> list[tuple[list[int], Stack]]:
        """The members by kind, and their numbers; made when it is first asked for."""
        found = self._stacks
        if not found:
            by_kind: dict[type[Network], list[int]] = {}
            for number, part in enumerate(self._parts):
                by_kind.setdefault(type(part), []).append(number)
            parts = self._parts
            found = [(own, kind.stack([parts[number] for number in own])) for kind, own in by_kind.items()]
            self._stacks = found
        return found

    def _apply(self, *arguments: Any, **options: Any) -> Any:
        self._stacks = []  # the weights go elsewhere, or become others
        return super()._apply(*arguments, **options)  # type: ignore[no-untyped-call]  # as torch has it

    def _of_one_set(self, known: Bool[Tensor, "batch variables"]) -> bool:
        """Whether stacks can answer: all rows know the same, and no member reads an order or wants a gradient."""
        if torch.is_grad_enabled() or self.training or self._reads_order:
            return False
        return len(known) == 1 or (len(known) > 1 and bool((known == known[0]).all()))

    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        if self._of_one_set(known):
            blocks = self._in_turn([(own, stack.beside(values, known[0])) for own, stack in self.stacks()])
        else:
            blocks = [part.beside(values, known, prefix) for part in self._parts]
        return self._joined([*blocks, self._gates_beside(known)])

    def at(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        target: Int[Tensor, " batch"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch width"]:
        if self._of_one_set(known) and bool((target == target[0]).all()):
            asked, here = int(target[0]), values.where(known[0], 0.0)
            # Draws that have only begun still know the same values, too: one answer is that of all.
            rows = here[:1] if len(here) > 1 and bool((here == here[0]).all()) else here
            found = self._in_turn([(own, stack.at(rows, known[0], asked)) for own, stack in self.stacks()])
            gates = self.gates_at(known[:1], target[:1]).expand(len(rows), -1)
            return self._joined([*found, gates]).expand(len(values), -1)
        blocks = [part.at(values, known, target, prefix) for part in self._parts]
        return self._joined([*blocks, self.gates_at(known, target)])

    def _in_turn(self, found: list[tuple[list[int], list[Tensor]]]) -> list[Tensor]:
        """The blocks of all members, in their order."""
        by_number = {number: block for own, blocks in found for number, block in zip(own, blocks, strict=True)}
        return [by_number[number] for number in range(len(by_number))]

    def along(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Float[Tensor, "batch steps width"]:
        blocks = [part.along(values, chain) for part in self._parts]
        if not self.gates:
            return self._joined(blocks)
        gates = blocks[0].new_zeros(chain.batch, chain.steps, self.gates)
        for position in range(chain.steps):
            target = chain.order[:, position]
            known = without_partner(chain.known_before(position), target, self.layout.partners)
            gates[:, position] = self.gates_at(known, target.clamp(min=0)).to(gates.dtype)
        return self._joined([*blocks, gates])

    def walk(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Walk:
        path = torch.cat([chain.prefix, chain.order], dim=1)
        # Gates came with folds. A blend without them may be from an older file, whose seeds must give the same draws.
        if self.gates and chain.steps and self._of_one_set(chain.evidence) and bool((path == path[0]).all()):
            return OneQuestionWalk(self, values, chain)
        return BlendWalk(self, [part.walk(values, chain) for part in self._parts], chain)

    def _gates_beside(self, known: Bool[Tensor, "batch variables"]) -> Float[Tensor, "batch variables gates"]:
        """What the evidence adds to the weights, for every variable."""
        if not self.gates:
            return torch.zeros(*known.shape, 0, device=known.device)
        return torch.einsum("bf,vgf->bvg", gate_features(known, self.layout.answered), self.slopes).float()

    def gates_at(
        self, known: Bool[Tensor, "batch variables"], target: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch gates"]:
        """What the evidence adds to the weights, for one variable a row."""
        if not self.gates:
            return torch.zeros(len(known), 0, device=known.device)
        return (self.slopes[target] @ gate_features(known, self.layout.answered)[..., None])[..., 0].float()

    def _joined(self, blocks: list[Tensor]) -> Tensor:
        # A head reads from its member's start on, so only the last block may be shorter than its layout's width.
        return torch.cat(blocks, dim=-1)[..., : self.layout.width]


def gate_count(variables: int) -> int:
    """How many features the gates of so many variables, the context left out, are linear in."""
    return 2 + (variables if variables <= MOST_NAMED else 0)


def share_known(features: Float[Tensor, "batch features"]) -> Float[Tensor, " batch"]:
    """The share of the other variables that is known, from the features of the gates."""
    return features[:, 0] + 0.5


def gate_features(
    known: Bool[Tensor, "batch variables"], answered: Sequence[int] | None = None
) -> Float[Tensor, "batch features"]:
    """What the gates of every variable are linear in; ``answered``: those that are no context."""
    context = 0
    if answered is not None and len(answered) < known.shape[1]:
        known, context = known[:, torch.tensor(answered, device=known.device)], 1
    variables = known.shape[1]
    count = known.sum(dim=1, keepdim=True).double() + context
    features = [count / max(1, variables - 1 + context) - 0.5, 1 / (1 + count)]
    return torch.cat(features if variables > MOST_NAMED else [*features, known.double() - 0.5], dim=1)


class BlendWalk(Walk):
    """The members' walks, in step with each other."""

    def __init__(self, network: BlendNetwork, walks: list[Walk], chain: Chain) -> None:
        self.network = network
        self.walks = walks
        self.chain = chain
        self.known = chain.evidence
        self.step = 0

    def features(self, rows: Tensor | None = None) -> Tensor:
        blocks = [walk.features(rows) for walk in self.walks]
        return self.network._joined([*blocks, self._gates(rows)])

    def tell(self, value: Tensor) -> None:
        for walk in self.walks:
            walk.tell(value)
        self.known = self.known | members(self.chain.order[:, self.step : self.step + 1], self.chain.variables)
        self.step += 1

    def sample(self, heads: Heads, rows: Tensor, target: Tensor, generator: torch.Generator | None) -> Tensor:
        drawn = torch.zeros(len(rows), device=target.device)
        together = heads.sharpened_at(target)
        for part in (together.nonzero()[:, 0], (~together).nonzero()[:, 0]):
            if len(part):
                draw = self._sample_all if bool(together[part[0]]) else self._sample_one
                found = draw(heads, rows[part], target[part], generator)
                drawn = drawn.to(found.dtype).index_put((part,), found)
        return drawn

    def _sample_all(self, heads: Heads, rows: Tensor, target: Tensor, generator: torch.Generator | None) -> Tensor:
        """Draws from a power of the mixture: all members have to be asked."""
        return heads.sample_at(self.features(rows), target, generator)

    def _sample_one(self, heads: Heads, rows: Tensor, target: Tensor, generator: torch.Generator | None) -> Tensor:
        """Draws from the mixture, each from one member: only that one has to be asked."""
        gates = None
        if self.network.gates:
            own = self._gates(rows)
            gates = torch.nn.functional.pad(own, (self.network.layout.width - own.shape[1], 0))
        member = heads.member_at(target, generator, gates)
        drawn = torch.zeros(len(rows), device=target.device)
        for number, walk in enumerate(self.walks):
            here = (member == number).nonzero()[:, 0]
            if len(here):
                part = heads.sample_member_at(number, walk.features(rows[here]), target[here], generator)
                drawn = drawn.to(part.dtype).index_put((here,), part)
        return drawn

    def _gates(self, rows: Tensor | None) -> Tensor:
        here: Tensor | slice = slice(None) if rows is None else rows
        target = self.chain.order[here, self.step]
        known = without_partner(self.known[here], target, self.network.layout.partners)
        return self.network.gates_at(known, target.clamp(min=0))


class OneQuestionWalk(Walk):
    """All rows know the same and are answered in the same order, as where one question is answered by many draws."""

    def __init__(self, network: BlendNetwork, values: Tensor, chain: Chain) -> None:
        self.network = network
        self.known = chain.evidence[0]
        self.values = values.where(self.known, 0.0)
        self.order = chain.order[0].tolist()
        self.step = 0

    def features(self, rows: Tensor | None = None) -> Tensor:
        values, known = self._here(rows), self._known()
        target = torch.full((len(values),), self.order[self.step], device=values.device)
        return self.network.at(values, known.expand(len(values), -1), target)

    def tell(self, value: Tensor) -> None:
        target = self.order[self.step]
        self.step += 1
        if target == PAD:
            return
        self.values = self.values.clone()
        self.values[:, target] = value
        self.known = self.known.clone()
        self.known[target] = True

    def sample(self, heads: Heads, rows: Tensor, target: Tensor, generator: torch.Generator | None) -> Tensor:
        if not len(rows):
            return torch.zeros(0, device=self.values.device)
        if bool(heads.sharpened_at(target[:1]).any()):
            return heads.sample_at(self.features(rows), target, generator)
        # A draw from a mixture is a draw from one member: only that one has to be asked.
        values, known, asked = self._here(rows), self._known(), self.order[self.step]
        gates = None
        if self.network.gates:
            added = self.network.gates_at(known[None], target[:1])
            gates = torch.nn.functional.pad(added, (self.network.layout.width - added.shape[1], 0))
        member = heads.members_of(asked, len(values), generator, gates)
        features = np.zeros((len(values), max(layout.width for layout in self.network.layout.members)))
        numbers = member.cpu().numpy()
        for own, stack in self.network.stacks():
            within = np.full(len(self.network.parts), -1)
            within[own] = np.arange(len(own))
            chosen = within[numbers]
            rows_here = np.flatnonzero(chosen >= 0)
            if len(rows_here):
                here, which = (torch.from_numpy(part).to(member.device) for part in (rows_here, chosen[rows_here]))
                found = stack.at_own(values[here], known, asked, which)
                features[rows_here, : found.shape[1]] = found.cpu().numpy()
        return heads.sample_members(asked, member, torch.from_numpy(features).to(values.device), generator)

    def _here(self, rows: Tensor | None) -> Tensor:
        return self.values if rows is None else self.values[rows]

    def _known(self) -> Bool[Tensor, " variables"]:
        target = torch.tensor(self.order[self.step : self.step + 1], device=self.known.device)
        return without_partner(self.known[None], target, self.network.layout.partners)[0]
