"""Several networks side by side: the features of a blend are those of its members, one block after the other.

Each member has a layout of its own (its heads read other sizes) and was trained alone; :mod:`anyorder.heads.blend`
mixes what their heads say. So an ensemble, or a network together with boosted trees, is one model like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.errors import UserError
from anyorder.networks.base import Heads, Network, Walk
from anyorder.networks.layout import Layout
from anyorder.query import Chain
from anyorder.support.checks import whole
from anyorder.support.registry import describe

SEEN_ALL = -1  # the fold of a part that may have seen every row
MOST_FOLDS = 1000


@dataclass(eq=False)
class BlendNetwork(Network):
    """``members`` are ``{"network": description}``, in the order of the layout's ``members``.

    They are built from that, unless they are ``trained`` already (:meth:`of`). ``folds``: which fold of the
    table each of them has never seen, out of ``fold_count`` (:mod:`anyorder.variables.folds` tells the fold of a row);
    ``SEEN_ALL`` for one that may have seen every row, and nothing where that is true of all of them.
    """

    name: ClassVar[str] = "blend"
    trainable: ClassVar[bool] = False

    members: tuple[Mapping[str, Any], ...] = ()
    folds: tuple[int, ...] = field(default=(), metadata={"later": True})
    fold_count: int = field(default=1, metadata={"later": True})
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
        # Without weights of its own (trees alone) the model must still know where it lives.
        self.register_buffer("here", torch.zeros(0), persistent=False)

    @classmethod
    def of(
        cls, layout: Layout, trained: Sequence[Network], folds: Sequence[int] = (), fold_count: int = 1
    ) -> BlendNetwork:
        """These networks, side by side."""
        described = tuple({"network": describe(network)} for network in trained)
        return cls(layout, described, tuple(folds) if fold_count > 1 else (), fold_count, trained)

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
    def _parts(self) -> list[Network]:
        return [part for part in self.parts if isinstance(part, Network)]

    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        return self._joined([part.beside(values, known, prefix) for part in self._parts])

    def at(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        target: Int[Tensor, " batch"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch width"]:
        return self._joined([part.at(values, known, target, prefix) for part in self._parts])

    def along(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Float[Tensor, "batch steps width"]:
        return self._joined([part.along(values, chain) for part in self._parts])

    def walk(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Walk:
        return BlendWalk(self, [part.walk(values, chain) for part in self._parts])

    def _joined(self, blocks: list[Tensor]) -> Tensor:
        # A head reads from its member's start on, so only the last block may be shorter than its layout's width.
        return torch.cat(blocks, dim=-1)[..., : self.layout.width]


class BlendWalk(Walk):
    """The members' walks, in step with each other."""

    def __init__(self, network: BlendNetwork, walks: list[Walk]) -> None:
        self.network = network
        self.walks = walks

    def features(self, rows: Tensor | None = None) -> Tensor:
        return self.network._joined([walk.features(rows) for walk in self.walks])

    def tell(self, value: Tensor) -> None:
        for walk in self.walks:
            walk.tell(value)

    def sample(self, heads: Heads, rows: Tensor, target: Tensor, generator: torch.Generator | None) -> Tensor:
        # A draw from a mixture is a draw from one member: only that one has to be asked.
        member = heads.member_at(target, generator)
        drawn = torch.zeros(len(rows), device=target.device)
        for number, walk in enumerate(self.walks):
            here = (member == number).nonzero()[:, 0]
            if len(here):
                part = heads.sample_member_at(number, walk.features(rows[here]), target[here], generator)
                drawn = drawn.to(part.dtype).index_put((here,), part)
        return drawn
