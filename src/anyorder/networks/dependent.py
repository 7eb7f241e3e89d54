"""Columns that fix each other, around any network: its features, and a limit for levels that go badly with them.

A dependency says that column j fixes column i, x_i = f(x_j), but for a small share of rows (a city fixes its country).
Where x_j is known, levels of i other than f(x_j) together have a probability of ``forward`` at most; where x_i is
known, so have the levels of j that f leads elsewhere, of ``backward``. Where several columns object to a level, the
lowest limit counts and not their product, since columns that copy each other say one thing twice.

:mod:`anyorder.heads.compatible` holds the network's own distribution below these limits. They depend on what is known
and on nothing else, so every step of a chain stays normalised.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.networks.base import Heads, Network, Walk
from anyorder.networks.layout import Layout
from anyorder.query import Chain, members
from anyorder.support.checks import inside, whole
from anyorder.support.registry import describe

LEAST_LIMIT = 1e-12  # no table has rows enough to say less


@dataclass(frozen=True)
class Dependency:
    """Level k of ``source`` goes with level ``image[k]`` of ``target``, or with any where that is -1."""

    source: int
    target: int
    image: tuple[int, ...]
    forward: float
    backward: float

    @classmethod
    def read(cls, described: Dependency | Mapping[str, Any]) -> Dependency:
        """A dependency as it is, or as a model file has it."""
        if isinstance(described, Dependency):
            return described
        if not isinstance(described, Mapping):
            raise UserError(f"a dependency needs a source, a target and an image, got {described!r:.80}")
        return cls(**{**described, "image": tuple(described["image"])})

    def check(self, levels: Sequence[int]) -> None:
        """Refuse one that is not about variables with so many levels."""
        for name, variable in (("source", self.source), ("target", self.target)):
            if not levels[whole(name, variable, 0, len(levels) - 1)]:
                raise UserError(f"the {name} of a dependency must have levels, and variable {variable} has none")
        if self.source == self.target:
            raise UserError(f"variable {self.source} cannot depend on itself")
        if len(self.image) != levels[self.source]:
            raise UserError(f"a dependency of {levels[self.source]} levels has an image of {len(self.image)}")
        for level in self.image:
            whole("image", level, -1, levels[self.target] - 1)
        for name in ("forward", "backward"):
            if not inside(value := getattr(self, name), f"[{LEAST_LIMIT:g}, 1]"):
                raise UserError(f"{name} must be a probability of {LEAST_LIMIT:g} or more, got {value!r:.80}")


@dataclass(frozen=True, eq=False)
class _View:
    """What one known variable says about the levels of another."""

    given: int
    images: Int[Tensor, " levels"]  # of the source
    limit: float
    forward: bool

    def log_limits(self, value: Float[Tensor, " rows"], levels: int) -> Float[Tensor, "rows levels"]:
        code = value.long()[:, None]
        if self.forward:
            image = self.images.to(code.device)[code]
            objection = (torch.arange(levels, device=code.device) != image) & (image >= 0)
        else:
            images = self.images.to(code.device)
            objection = (images != code) & (images >= 0)
        return torch.where(objection, math.log(self.limit), 0.0)


@dataclass(eq=False)
class DependentNetwork(Network):
    """``inner`` is ``{"network": description}`` of the one inside, built from that unless it is ``trained`` already."""

    name: ClassVar[str] = "dependent"
    trainable: ClassVar[bool] = False

    inner: Mapping[str, Any]
    dependencies: tuple[Dependency, ...]
    trained: InitVar[Network | None] = None

    def __post_init__(self, trained: Network | None) -> None:
        super().__post_init__()
        from anyorder.networks import networks  # the registry looks into this package: only once it is whole

        if not isinstance(self.inner, Mapping) or set(self.inner) != {"network"}:
            raise UserError(f"a network with dependencies has one network inside, got {self.inner!r:.80}")
        if len(self.layout.members) != 1:
            raise UserError("a network with dependencies is for heads with limits, and these have none")
        if not isinstance(self.dependencies, Sequence) or not self.dependencies:
            raise UserError(f"a network needs dependencies, one or more, got {self.dependencies!r:.80}")
        self.dependencies = tuple(Dependency.read(one) for one in self.dependencies)
        self._views: dict[int, list[_View]] = {}
        for one in self.dependencies:
            one.check(self.layout.levels)
            images = torch.tensor(one.image, device="cpu")
            if self.layout.sizes[one.target]:  # context says something, and nothing is said of it
                self._views.setdefault(one.target, []).append(_View(one.source, images, one.forward, True))
            if self.layout.sizes[one.source]:
                self._views.setdefault(one.source, []).append(_View(one.target, images, one.backward, False))
        own = self.layout.members[0]
        self._after = own.width
        for variable, (size, alone) in enumerate(zip(self.layout.sizes, own.sizes, strict=True)):
            expected = own.width + own.levels[variable] if variable in self._views else alone
            if size != expected:
                raise UserError(f"the head of variable {variable} reads {size} features, and has {expected}")
        self.network = trained or networks.build(self.inner["network"], layout=own)
        # A model without weights (trees alone) must still know where it lives.
        self.register_buffer("here", torch.zeros(0), persistent=False)
        self.reads_order = self.network.reads_order  # type: ignore[misc]  # as its network does
        self.folds, self.fold_count = self.network.folds, self.network.fold_count

    @classmethod
    def of(cls, layout: Layout, network: Network, dependencies: Sequence[Dependency]) -> DependentNetwork:
        """This network, with dependencies around it."""
        return cls(layout, {"network": describe(network)}, tuple(dependencies), network)

    @property
    def inside(self) -> tuple[Network, ...]:
        return (self.network,)

    @property
    def learned(self) -> tuple[bool, ...]:
        return self.network.learned

    def only(self, parts: Sequence[int], layout: Layout) -> DependentNetwork:
        return DependentNetwork.of(layout, self.network.only(parts, layout.members[0]), self.dependencies)

    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        features = self._padded(self.network.beside(values, known, prefix))
        for variable in self._views:
            block = self._log_limits(variable, values, known)
            features[:, variable, self._after : self._after + block.shape[1]] = block.to(features.dtype)
        return features

    def at(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        target: Int[Tensor, " batch"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch width"]:
        return self._with_block(self.network.at(values, known, target, prefix), values, known, target)

    def along(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Float[Tensor, "batch steps width"]:
        inner = self.network.along(values, chain)
        features = inner.new_zeros(*inner.shape[:2], self.layout.width)
        for step in range(chain.steps):
            known = chain.known_before(step)
            features[:, step] = self._with_block(inner[:, step], values, known, chain.order[:, step])
        return features

    def walk(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Walk:
        return DependentWalk(self, values, chain)

    def speaks(self, known: Bool[Tensor, "batch variables"], target: Int[Tensor, " batch"]) -> Bool[Tensor, " batch"]:
        """Whether something that is known of a row says something about its target."""
        found = torch.zeros(len(target), dtype=torch.bool, device=target.device)
        for variable, views in self._views.items():
            found |= (target == variable) & known[:, [view.given for view in views]].any(dim=1)
        return found

    def _with_block(self, features: Tensor, values: Tensor, known: Tensor, target: Tensor) -> Tensor:
        features = self._padded(features)
        for variable in self._views:
            rows = (target == variable).nonzero()[:, 0]
            if len(rows):
                block = self._log_limits(variable, values[rows], known[rows])
                features[rows, self._after : self._after + block.shape[1]] = block.to(features.dtype)
        return features

    def _log_limits(
        self, variable: int, values: Float[Tensor, "rows variables"], known: Bool[Tensor, "rows variables"]
    ) -> Float[Tensor, "rows levels"]:
        levels = self.layout.levels[variable]
        least = torch.zeros(len(values), levels, device=values.device)
        for view in self._views[variable]:
            told = known[:, view.given]
            each = view.log_limits(values[:, view.given].where(told, 0.0), levels)
            least = torch.minimum(least, each.where(told[:, None], 0.0))
        return least

    def _padded(self, features: Tensor) -> Tensor:
        """A copy as wide as the layout: the network's features, then zeros, which are no limits."""
        return F.pad(features[..., : self._after], (0, self.layout.width - min(features.shape[-1], self._after)))


class DependentWalk(Walk):
    """The walk of the network inside, and what is known so far."""

    def __init__(self, network: DependentNetwork, values: Tensor, chain: Chain) -> None:
        self.network = network
        self.inside = network.network.walk(values, chain)
        self.chain = chain
        self.known = chain.evidence
        self.values = values.where(self.known, 0.0)
        self.step = 0

    def features(self, rows: Tensor | None = None) -> Tensor:
        here: Tensor | slice = slice(None) if rows is None else rows
        target = self.chain.order[here, self.step]
        return self.network._with_block(self.inside.features(rows), self.values[here], self.known[here], target)

    def tell(self, value: Tensor) -> None:
        self.inside.tell(value)
        now = members(self.chain.order[:, self.step : self.step + 1], self.chain.variables)
        self.values = torch.where(now, value[:, None].to(self.values.dtype), self.values)
        self.known = self.known | now
        self.step += 1

    def sample(self, heads: Heads, rows: Tensor, target: Tensor, generator: torch.Generator | None) -> Tensor:
        speaks = self.network.speaks(self.known[rows], target)
        told, free = speaks.nonzero()[:, 0], (~speaks).nonzero()[:, 0]
        if not len(told):
            # Where no dependency speaks, the network inside may have a quicker way to draw.
            return self.inside.sample(heads.inside(), rows, target, generator)
        drawn = super().sample(heads, rows[told], target[told], generator)
        if not len(free):
            return drawn
        rest = self.inside.sample(heads.inside(), rows[free], target[free], generator)
        both = torch.zeros(len(rows), device=target.device, dtype=torch.promote_types(drawn.dtype, rest.dtype))
        return both.index_put((told,), drawn.to(both.dtype)).index_put((free,), rest.to(both.dtype))
