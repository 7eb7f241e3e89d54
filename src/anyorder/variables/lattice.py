"""A lattice of user values start + step * k, seen in model units through a warp.

Whole numbers, days, grey levels: the variable takes no value between the points, so what is modelled is the
probability of a *cell*, the part of the model's line nearer (in user units) to this point than to any other. With a
``count`` the outer cells reach to infinity, so that the mass of the line is exactly the mass of the points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.variables.warp import Warp

LOG_WRONG = math.log(1e-12)  # of the chance that an end read off the data is wrong: less than a cdf's rounding
MOST_STEPS = 1e15  # from zero: a float64 can tell the points apart so far out


@dataclass(frozen=True)
class Lattice:
    """The points start + step * k for k = 0..count-1, or for every integer k where ``count`` is None.

    An *index* is the number k of a point, as a float64 that holds an integer. Results are float64. Ends that are not
    ``firm`` were read off the data and may be wrong: see :meth:`log_beyond`.
    """

    start: float
    step: float
    count: int | None
    warp: Warp
    firm: bool = field(default=True, metadata={"later": True})

    def __post_init__(self) -> None:
        if isinstance(self.start, bool) or not (self.step > 0 and math.isfinite(self.step + self.start)):
            raise ValueError(f"a lattice needs a finite start and a positive step, got {self.start} and {self.step}")
        if self.count is not None and (not isinstance(self.count, int) or self.count < 1):
            raise ValueError(f"a lattice needs a whole number of points, one or more, got count {self.count!r}")
        if self.count is not None and not math.isfinite(self.start + self.step * self.count):
            raise ValueError(f"a lattice of {self.count} points in steps of {self.step} has no end that is finite")
        if max(abs(self.start), abs(self.warp.x[0]), abs(self.warp.x[-1])) > MOST_STEPS * self.step:
            raise ValueError(f"steps of {self.step} are lost to rounding on a lattice that starts at {self.start}")

    @classmethod
    def read(cls, described: object) -> Lattice:
        """A lattice as it is, or the one that the description of a component holds, as plain values."""
        if isinstance(described, Lattice):
            return described
        if not isinstance(described, Mapping):
            raise ValueError(f"a lattice needs a start, a step, a count and a warp, got {described!r:.80}")
        if not isinstance(described.get("firm", True), bool):
            raise ValueError(f"the ends of a lattice are firm or not, got {described['firm']!r:.80}")
        return cls(**{**described, "warp": Warp(**described["warp"])})

    def index(self, z: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The index of the point nearest to ``z``."""
        return self.within(((self.warp.inverse(z) - self.start) / self.step).round())

    def index_below(self, z: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The greatest index whose point is at most ``z``, up to the rounding of ``z``'s own dtype.

        With a ``count``, -1 stands for "before the first point".
        """
        near = ((self.warp.inverse(z) - self.start) / self.step).round()
        if self.count is not None:
            near = near.clamp(-1, self.count - 1)
        rounding = 4 * torch.finfo(z.dtype).eps * z.abs().clamp(min=1).to(torch.float64)
        return torch.where(self.at(near) <= z + rounding, near, near - 1)

    def index_reaching(self, z: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The index of the cell that ``z`` falls into, cells being open below and closed above."""
        return self.within(((self.warp.inverse(z) - self.start) / self.step - 0.5).ceil())

    def reaches(self, z: Float[Tensor, "*batch"]) -> Bool[Tensor, "*batch"]:
        """Whether the point nearest to ``z`` exists: always, on an endless lattice."""
        if self.count is None:
            return torch.ones_like(z, dtype=torch.bool)
        index = ((self.warp.inverse(z) - self.start) / self.step).round()
        return (index >= 0) & (index < self.count)

    def log_beyond(self, z: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """log P of a point that does not exist: none where the ends are firm, else next to none."""
        index = ((self.warp.inverse(z) - self.start) / self.step).round()
        return torch.full_like(index, -math.inf) if self.firm else LOG_WRONG - (index - self.within(index)).abs()

    def within(self, index: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The nearest index that exists."""
        return index if self.count is None else index.clamp(0, self.count - 1)

    def at(self, index: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The point with this index, in model units."""
        return self.warp.forward(self.start + self.step * index)

    def edge(self, index: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The upper edge of this cell, which is the lower edge of the next, in model units."""
        edge = self.warp.forward(self.start + self.step * (index + 0.5))
        if self.count is None:
            return edge
        return edge.masked_fill(index < 0, -math.inf).masked_fill(index >= self.count - 1, math.inf)

    def cell(self, z: Float[Tensor, "*batch"]) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        """Lower and upper edge, in model units, of the cell of the point nearest to ``z``."""
        index = self.index(z)
        return self.edge(index - 1), self.edge(index)

    def nearest(self, z: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The point nearest to ``z``, in model units."""
        return self.at(self.index(z))

    def point(self, z: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The point nearest to ``z``, in the units of the user."""
        return self.start + self.step * self.index(z)
