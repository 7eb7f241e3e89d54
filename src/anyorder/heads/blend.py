"""Several heads' distributions of one variable as one mixture: p(x) = sum_m w_m(e) p_m(x).

The weights are fixed, or depend on the evidence e: then :mod:`anyorder.networks.blend` puts what e adds to their
logarithms behind the features of the members, log w_m(e) = log w_m + gate_m(e) - log sum.

A mixture is less sure than its members. So levels may have a power of it, q(k) = p(k)^exp(a s) / sum_j p(j)^exp(a s)
with s the share of the other variables that is known, which also stands behind the features.

Blending univariate conditionals keeps every answer exact: each step of a chain is normalised, so the product is.
Members read their own block of the features (:mod:`anyorder.networks.blend` puts them side by side) and must be
distributions over the same values: all densities, or all probabilities of the same points. Members with equal heads,
such as those of several folds, are one batch; where many values are asked for, all of one family are first made one
(:mod:`.merging`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from anyorder.distributions.base import Distribution
from anyorder.errors import UserError
from anyorder.heads.base import Head
from anyorder.heads.beyond import BeyondDistribution, total
from anyorder.heads.blended import BlendDistribution
from anyorder.heads.bounded import BoundedDistribution
from anyorder.heads.categorical import CategoricalDistribution
from anyorder.heads.member_draws import draws_by_member
from anyorder.heads.merging import Joins, folded, of_one_shape, rows_together
from anyorder.heads.one_blend import NO_ENDS, NO_FACTORS, Curves, OneBlend
from anyorder.support.checks import inside, whole
from anyorder.support.registry import describe

SHARPEST = 3.0  # of the logarithm of a power
FACTORS = "[1e-6, 1e6]"  # of what lies beyond an end
FARTHEST = "[-1e30, 1e30]"  # where an end may lie


@dataclass(eq=False)
class Blend(Head):
    """``members`` read their features from ``starts`` on; ``weights`` are theirs in the mixture.

    ``gates``: which feature is added to the logarithm of each member's weight, where they depend on the evidence.
    ``sharpness``: the logarithm of the power of the mixture where all is known, 0 for the mixture itself; ``share``:
    the feature that is the share known, less one half. ``ends``: the two between which all that was seen lies, in model
    units, and ``beyond``: the factors on what every member has beyond them (:mod:`.beyond`); none for members as they
    are.
    """

    name: ClassVar[str] = "blend"
    wraps: ClassVar[bool] = True

    members: tuple[Head, ...]
    weights: tuple[float, ...]
    starts: tuple[int, ...]
    gates: tuple[int, ...] = field(default=(), metadata={"later": True})
    sharpness: float = field(default=0.0, metadata={"later": True})
    share: int = field(default=0, metadata={"later": True})
    ends: tuple[float, ...] = field(default=(), metadata={"later": True})
    beyond: tuple[float, ...] = field(default=(), metadata={"later": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.weights = tuple(float(weight) for weight in self.weights)
        self.starts = tuple(whole("starts", start, 0) for start in self.starts)
        if not len(self.members) == len(self.weights) == len(self.starts) > 0:
            raise UserError("a blend needs as many weights and starts as members, one or more of each")
        if min(self.weights) < 0 or abs(sum(self.weights) - 1) > 1e-6:
            raise UserError(f"the weights of a blend must be shares that add up to one, got {self.weights}")
        self.gates = tuple(whole("gates", gate, 0) for gate in self.gates)
        if len(self.gates) not in (0, len(self.members)):
            raise UserError("a blend needs as many gates as members, or none")
        self.share = whole("share", self.share, 0)
        if not inside(self.sharpness, f"[{-SHARPEST}, {SHARPEST}]") or (self.sharpness and not self.levels):
            raise UserError(f"the sharpness of a blend must be a number up to {SHARPEST}, 0 without levels")
        if len({head.levels for head in self.members}) > 1:
            raise UserError("the members of a blend must have the same levels")
        self._check_ends()
        self.parts = nn.ModuleList(self.members)
        self._joins: Joins = {}
        self.log_weights: Tensor
        weights = torch.tensor(self.weights, dtype=torch.float64)
        self.register_buffer("log_weights", (weights / weights.sum()).log(), persistent=False)

    def _check_ends(self) -> None:
        self.ends, self.beyond = tuple(self.ends), tuple(self.beyond)
        self._ends, self._factors = (0.0, 0.0), (1.0, 1.0)
        if not self.ends and not self.beyond:
            return
        if self.levels or not len(self.ends) == len(self.beyond) == 2:
            raise UserError("a blend of numbers has two ends and a factor for beyond each of them, or none")
        if not all(inside(end, FARTHEST) for end in self.ends) or not self.ends[0] < self.ends[1]:
            raise UserError(f"the ends of a blend must be two numbers that increase, got {self.ends!r:.80}")
        if not all(inside(factor, FACTORS) for factor in self.beyond):
            raise UserError(f"the factors beyond the ends of a blend must lie in {FACTORS}, got {self.beyond!r:.80}")
        self._ends, self._factors = (self.ends[0], self.ends[1]), (self.beyond[0], self.beyond[1])

    @property
    def size(self) -> int:
        return self._size

    @cached_property
    def _size(self) -> int:
        members = (start + head.size for start, head in zip(self.starts, self.members, strict=True))
        return max(*members, *(gate + 1 for gate in self.gates), self.share + 1 if self.sharpness else 0)

    @property
    def levels(self) -> int:
        return self.members[0].levels

    @property
    def blended(self) -> tuple[Head, ...]:
        return self.members

    def only(self, parts: Sequence[int], widths: Sequence[int]) -> Blend:
        total = sum(self.weights[part] for part in parts)
        starts = list(accumulate((widths[part] for part in parts), initial=0))
        gone = sum(widths) - starts[-1]
        return Blend(
            tuple(self.members[part] for part in parts),
            # A variable of which none of them has learned anything is answered by all of them alike.
            tuple(self.weights[part] / total if total else 1 / len(parts) for part in parts),
            tuple(starts[:-1]),
            tuple(self.gates[part] - gone for part in parts) if self.gates else (),
            self.sharpness,
            self.share - gone if self.sharpness else 0,
            self.ends,
            self.beyond,
        )

    def forward(self, features: Float[Tensor, "*batch size"]) -> Distribution:
        counted = self.counted
        if len(counted) == 1:
            only = self.member(counted[0], features[..., self.starts[counted[0]] :])
            return self._sharpened(only, features) if self.sharpness else only
        alone = math.prod(features.shape[:-1]) == 1 and features.device.type == "cpu"
        if not alone or torch.is_grad_enabled() or self._curves is None:
            return self._mixed(features)
        return OneBlend(features, self.members[0].points, self._curves, partial(self._mixed, features))

    def _mixed(self, features: Float[Tensor, "*batch size"]) -> Distribution:
        log_weights = self.weights_for(features)
        members: list[Distribution] = []
        shares: list[Tensor] = []
        masses: list[Tensor] = []
        for numbers, index in self._bundles:
            alone = len(numbers) == 1
            law: Distribution | None
            if alone:
                own = log_weights[..., numbers]
                law = self._alone(numbers[0], features[..., self.starts[numbers[0]] :])
            else:
                own = log_weights[..., self._chosen(numbers)]
                law = self.members[numbers[0]](features[..., index])
            assert law is not None
            if self.beyond:
                mass = law.outside(*self._ends)
                mass = mass[..., None] if alone else mass
                own = own - total(mass, self._factors).log()
                masses.append((own.exp() * mass).sum(-1))
            share = own if alone else own.logsumexp(-1, keepdim=True)
            if not alone:
                law = folded(law, (own - share).expand(law.shape))
                assert law is not None  # or they would be no bundle
            members.append(law)
            shares.append(share[..., 0])
        each = torch.stack(shares, dim=-1)
        if self.beyond:
            return self._with_factors(members, each, torch.stack(masses).sum(0))
        mixed = BlendDistribution(tuple(members), each, self.levels, self._joins)
        if self.levels:
            return self._sharpened(mixed.merged, features) if self.sharpness else mixed.merged
        return members[0] if len(members) == 1 and isinstance(members[0], BoundedDistribution) else mixed

    def _with_factors(
        self, members: Sequence[Distribution], shares: Float[Tensor, "*batch some"], masses: Float[Tensor, "two *batch"]
    ) -> Distribution:
        """The mixture with factors beyond its ends; the shares of its members are divided by what these left of them.

        ``masses``: what all members together have beyond the ends, with the same shares, which add up to anything.
        """
        whole = shares.logsumexp(-1, keepdim=True)
        mixed: Distribution = BlendDistribution(tuple(members), shares - whole, self.levels, self._joins)
        if len(members) == 1 and isinstance(members[0], BoundedDistribution):
            mixed = members[0]
        return BeyondDistribution(mixed, self._ends, self._factors, masses / whole[..., 0].exp())

    def _sharpened(self, mixed: Distribution, features: Float[Tensor, "*batch size"]) -> Distribution:
        codes = torch.arange(self.levels, dtype=features.dtype, device=features.device)
        log_probs = mixed.log_prob(codes.reshape(-1, *[1] * (features.ndim - 1))).movedim(0, -1)
        # Whatever a file may say, the share is one.
        share = (features[..., self.share, None] + 0.5).clamp(0, 1)
        power = (self.sharpness * share).exp()
        return CategoricalDistribution(log_probs * power.to(log_probs.dtype))

    @cached_property
    def alike(self) -> list[list[int]]:
        """The members that count, those with equal heads together; a head with weights of its own is like no other."""
        found: dict[str, list[int]] = {}
        for number in self.counted:
            head = self.members[number]
            key = str(number) if head.state_dict() else json.dumps(describe(head))
            found.setdefault(key, []).append(number)
        return list(found.values())

    @cached_property
    def _group(self) -> Int[np.ndarray, " members"]:
        """Which of :attr:`alike` each member belongs to; -1 for one that does not count."""
        group = np.full(len(self.members), -1)
        for number, own in enumerate(self.alike):
            group[own] = number
        return group

    @cached_property
    def _bundles(self) -> list[tuple[list[int], Int[Tensor, "members size"]]]:
        """The members that count, those together whose laws fold into one, and where the features of each stand."""
        bundles = []
        for own in self.alike:
            head = self.members[own[0]]
            folds = len(own) > 1 and folded(head(head.start()[None, None]), torch.zeros(1, 1)) is not None
            bundles += [own] if folds else [[number] for number in own]
        starts = [torch.tensor([self.starts[number] for number in own])[:, None] for own in bundles]
        return [
            (own, start + torch.arange(self.members[own[0]].size)) for own, start in zip(bundles, starts, strict=True)
        ]

    @cached_property
    def _curves(self) -> Curves | None:
        """How the features of one row become a curve; None for levels, and where members have none."""
        if self.levels:
            return None
        bundles = [(own, self.members[own[0]], index.cpu().numpy()) for own, index in self._bundles]
        gates = self._gate_index.cpu().numpy() if self.gates else None
        law_ends = (self._ends, self._factors) if self.beyond else (NO_ENDS, NO_FACTORS)
        return Curves.of(bundles, self.log_weights.cpu().numpy(), gates, *law_ends)

    def _chosen(self, numbers: Sequence[int]) -> slice | list[int]:
        """Members by their numbers: in a slice, which is quicker, where they stand in a row."""
        first, last = numbers[0], numbers[-1]
        return slice(first, last + 1) if last - first + 1 == len(numbers) else list(numbers)

    @cached_property
    def _shapes(self) -> list[list[int]]:
        """Which of the members of :attr:`alike` answer with laws of one shape."""
        return of_one_shape([self.members[own[0]](self.members[own[0]].start()[None]) for own in self.alike])

    @cached_property
    def counted(self) -> list[int]:
        """The members with a weight above zero."""
        return [index for index, weight in enumerate(self.weights) if weight > 0]

    def member(self, index: int, features: Float[Tensor, "*batch features"]) -> Distribution:
        """What one member says in the mixture, from features that begin with its own."""
        return self._around(self._alone(index, features))

    def _alone(self, index: int, features: Float[Tensor, "*batch features"]) -> Distribution:
        head = self.members[index]
        said: Distribution = head(features[..., : head.size])
        return said

    def _around(self, law: Distribution) -> Distribution:
        return BeyondDistribution.around(law, self._ends, self._factors) if self.beyond else law

    @torch.no_grad()
    def drawn_by(
        self,
        member: Int[Tensor, " rows"],
        features: Float[Tensor, "rows features"],
        generator: torch.Generator | None,
    ) -> Float[Tensor, " rows"]:
        """A draw by the member named in each row, from features that begin with its own."""
        if len(member) and self._curves is not None and features.device.type == "cpu":
            levels = torch.rand(2, len(member), generator=generator, dtype=torch.float64).numpy()
            found = draws_by_member(self._curves, member.numpy(), features.double().numpy(), levels)
            if found is not None:
                line = torch.from_numpy(found)
                lattice = self.members[0].points
                return (line if lattice is None else lattice.nearest(line)).to(features.dtype)
        out = torch.zeros(len(member), dtype=features.dtype, device=features.device)
        for rows, law in self.by_member(member, features):
            drawn = law.sample_within(-math.inf, math.inf, generator)
            out[rows] = (law.sample(generator) if drawn is None else drawn).to(out.dtype)
        return out

    def by_member(
        self, member: Int[Tensor, " rows"], features: Float[Tensor, "rows features"]
    ) -> list[tuple[Int[Tensor, " some"], Distribution]]:
        """What the member named in each row says, from features that begin with its own: rows, and their laws."""
        which = self._group[member.cpu().numpy()]
        ends = np.bincount(which, minlength=len(self.alike)).cumsum()[:-1]
        sorted_rows = np.split(which.argsort(kind="stable"), ends)
        rows = [torch.from_numpy(part).to(member.device) for part in sorted_rows]
        laws = [self._alone(own[0], features[here]) for own, here in zip(self.alike, rows, strict=True)]
        # Histograms of several folds differ in their bins, mixtures in their components. As one batch they are drawn
        # from in one go; all of them, also those without rows, so that there is one set of joined bins to keep.
        found = [
            (torch.cat([rows[number] for number in own]), rows_together([laws[number] for number in own], self._joins))
            for own in self._shapes
        ]
        return [(here, self._around(law)) for here, law in found if len(here)]

    def weights_for(self, features: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch members"]:
        """The logarithms of the members' weights, given the features of this variable."""
        if not self.gates:
            return self.log_weights.to(features.device)
        log_weights = self.log_weights.to(features.device)  # whoever asks may have fetched the features to the CPU
        return (log_weights + features[..., self._gate_index.to(features.device)].double()).log_softmax(-1)

    @cached_property
    def _gate_index(self) -> Int[Tensor, " members"]:
        return torch.tensor(self.gates)

    def start(self) -> Float[Tensor, " size"]:
        features = torch.zeros(self.size)
        for start, head in zip(self.starts, self.members, strict=True):
            features[start : start + head.size] = head.start()
        return features
