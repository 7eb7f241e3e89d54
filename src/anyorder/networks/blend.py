"""Several networks side by side: the features of a blend are those of its members, one block after the other.

Each member has a layout of its own (its heads read other sizes) and was trained alone; :mod:`anyorder.heads.blend`
mixes what their heads say. So an ensemble, or a network together with boosted trees, is one model like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.networks.base import Network, Walk
from anyorder.query import Chain


@dataclass(eq=False)
class BlendNetwork(Network):
    """``members`` are ``{"network": description}``, in the order of the layout's ``members``."""

    name: ClassVar[str] = "blend"

    members: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        from anyorder.networks import networks  # the registry looks into this package: only once it is whole

        pairs = zip(self.members, self.layout.members, strict=True)
        self.parts = nn.ModuleList(networks.build(member["network"], layout=layout) for member, layout in pairs)
        # Without weights of its own (trees alone) the model must still know where it lives.
        self.register_buffer("here", torch.zeros(0), persistent=False)

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
    """The members' walks, in step with each other. Who only wants a draw may ask one of ``walks`` alone."""

    def __init__(self, network: BlendNetwork, walks: list[Walk]) -> None:
        self.network = network
        self.walks = walks

    def features(self, rows: Tensor | None = None) -> Tensor:
        return self.network._joined([walk.features(rows) for walk in self.walks])

    def tell(self, value: Tensor) -> None:
        for walk in self.walks:
            walk.tell(value)
