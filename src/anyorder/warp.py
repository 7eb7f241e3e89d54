"""A smooth, strictly increasing map of the real line with an exact inverse: user units x <-> model units z.

A monotone rational-quadratic spline (Gregory and Delbourgo, 1982) through the knots (x_k, z_k) with the
derivatives slope_k, continued outside by straight lines. In a bin of width w and height h, with secant h / w,
relative end slopes a = slope_k w / h and b = slope_{k+1} w / h, and u = (x - x_k) / w:

    z     = z_k + h (u^2 + a u (1 - u)) / (1 + (a + b - 2) u (1 - u))
    dz/dx = (h / w) (b u^2 + 2 u (1 - u) + a (1 - u)^2) / (1 + (a + b - 2) u (1 - u))^2

and the inverse is the root of a quadratic. A density in model units becomes one in the user's units by adding
``log_slope``. Everything is float64, since x may be 1e12 plus a small variation; only differences of x are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.normal_scores import normal_score_knots


@dataclass(frozen=True)
class Warp:
    """The spline through (x_k, z_k) with derivatives slope_k; plain tuples, so it is JSON-ready as it stands."""

    x: tuple[float, ...]
    z: tuple[float, ...]
    slope: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("x", "z", "slope"):
            object.__setattr__(self, name, tuple(float(number) for number in getattr(self, name)))
        if len(self.x) < 2 or not len(self.x) == len(self.z) == len(self.slope):
            lengths = f"{len(self.x)}, {len(self.z)} and {len(self.slope)}"
            raise ValueError(f"a warp needs two or more of x, z and slope, as many of each; got {lengths}")
        rising = all(low < high for knots in (self.x, self.z) for low, high in pairwise(knots))
        if not rising or not all(0 < slope < math.inf for slope in self.slope):
            raise ValueError("the knots of a warp must increase strictly and its slopes must be positive and finite")

    @classmethod
    def affine(cls, location: float, scale: float) -> Warp:
        """z = (x - location) / scale."""
        if not (scale > 0 and math.isfinite(scale) and math.isfinite(location)):
            raise ValueError(f"expected a finite location and a positive scale, got {location} and {scale}")
        # The second knot must be a float well apart from the first, even where scale is lost beside location.
        second = location + max(scale, abs(location) * 1e-6)
        return cls((location, second), (0.0, (second - location) / scale), (1 / scale, 1 / scale))

    @classmethod
    def normal_scores(
        cls, values: Float[np.ndarray, " rows"], knots: int = 64, minimum_scale: float | None = None
    ) -> Warp:
        """The map under which these values look standard normal: Phi^-1 of their kernel-smoothed cdf.

        ``minimum_scale``, in the units of the values, is the finest structure worth resolving: the rounding step of
        the data, say. Values of which only one is distinct are merely shifted, and scaled by ``minimum_scale``.
        """
        found = normal_score_knots(values, knots, minimum_scale)
        if found is None:
            finite = values[np.isfinite(values)]
            return cls.affine(float(finite[0]) if len(finite) else 0.0, minimum_scale or 1.0)
        return cls(*found)

    def forward(self, x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """User units to model units."""
        x = x.to(torch.float64)
        if self._straight:
            return (x - self.x[0]) * self.slope[0] + self.z[0]
        left, width, bottom, height, a, b = self._bins(self._knots[0], x)
        inside = x.clamp(self.x[0], self.x[-1])
        u = (inside - left) / width
        spread = u * (1 - u)
        z = bottom + height * (u * u + a * spread) / (1 + (a + b - 2) * spread)
        below = torch.where(x < self.x[0], (x - self.x[0]) * self.slope[0], 0.0)
        above = torch.where(x > self.x[-1], (x - self.x[-1]) * self.slope[-1], 0.0)
        return z + below + above

    def inverse(self, z: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """Model units to user units."""
        z = z.to(torch.float64)
        if self._straight:
            return (z - self.z[0]) / self.slope[0] + self.x[0]
        left, width, bottom, height, a, b = self._bins(self._knots[1], z)
        v = (z.clamp(self.z[0], self.z[-1]) - bottom) / height
        bend = (a + b - 2) * v
        # Of the two roots of (1 - a + bend) u^2 + (a - bend) u - v = 0, the one in [0, 1], without cancellation.
        root = (a - bend).square() + 4 * (1 - a + bend) * v
        u = 2 * v / (a - bend + root.clamp(min=0).sqrt())
        x = left + width * u.clamp(0, 1)
        below = torch.where(z < self.z[0], (z - self.z[0]) / self.slope[0], 0.0)
        above = torch.where(z > self.z[-1], (z - self.z[-1]) / self.slope[-1], 0.0)
        return x + below + above

    def log_slope(self, x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """log dz/dx at ``x`` in user units: what a log-density in model units gains in the user's units."""
        x = x.to(torch.float64)
        if self._straight:
            return torch.where(x.isnan(), x, math.log(self.slope[0]))
        left, width, _, height, a, b = self._bins(self._knots[0], x)
        u = (x.clamp(self.x[0], self.x[-1]) - left) / width  # at the ends the formula gives the end slopes
        rest = 1 - u
        shape = b * u * u + 2 * u * rest + a * rest * rest
        return height.log() - width.log() + shape.log() - 2 * torch.log1p((a + b - 2) * u * rest)

    @cached_property
    def _straight(self) -> bool:
        """Whether it is one straight line, for which there is nothing to look up."""
        secant = (self.z[1] - self.z[0]) / (self.x[1] - self.x[0])
        return len(self.x) == 2 and all(math.isclose(slope, secant, rel_tol=1e-12) for slope in self.slope)

    @cached_property
    def _knots(self) -> Float[Tensor, "two knots"]:
        return torch.tensor([self.x, self.z], dtype=torch.float64)

    @cached_property
    def _table(self) -> Float[Tensor, "six bins"]:
        x, z = self._knots
        slope = torch.tensor(self.slope, dtype=torch.float64)
        width, height = x.diff(), z.diff()
        return torch.stack([x[:-1], width, z[:-1], height, slope[:-1] * width / height, slope[1:] * width / height])

    def _bins(self, knots: Float[Tensor, " knots"], value: Tensor) -> tuple[Tensor, ...]:
        """Left edge, width, bottom, height and relative end slopes of the bin each value falls into."""
        index = torch.searchsorted(knots[1:-1].to(value.device), value.detach().contiguous(), right=True)
        return self._table.to(value.device)[:, index].unbind(0)
