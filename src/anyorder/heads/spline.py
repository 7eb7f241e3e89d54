"""A monotone spline between two uniform scales, with the tails of a normal.

    F(x) = S(Phi((x - location) / scale)),   p(x) = S'(Phi(.)) phi(.) / scale

S is a monotone rational-quadratic spline of [0, 1] onto itself (Durkan et al., 2019, "Neural Spline Flows"; formulas in
:mod:`anyorder.variables.warp`). Inside it bends the normal into any shape; outside, where Phi is near 0 or 1, p is the
normal's tail times an end slope. Density, cdf and quantile are closed forms: nothing is iterated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.quadrature import composite, tail_breaks
from anyorder.distributions.tails import FARTHEST, finite, log_difference
from anyorder.errors import UserError
from anyorder.heads._mixture import bounded
from anyorder.heads.base import Head

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
LEAST = 1e-4  # of the unit interval: no bin is narrower or lower, so that every slope stays a float
NODES = 32  # equally probable values that stand for the distribution in a quick expectation
SHARES = (0.0, 0.03, 0.15, 0.5, 0.85, 0.97)  # of a bin: where its panels end
ENDS = (-9.0, -7.0, -5.0, -3.5, 3.5, 5.0, 7.0, 9.0)  # panel edges in the tails, in scales


@dataclass(frozen=True, eq=False)
class SplineDistribution(Distribution):
    """A batch of splined normals: knots u -> v of S with its slopes there, the first and last knot at 0 and 1."""

    location: Float[Tensor, "*batch"]
    log_scale: Float[Tensor, "*batch"]
    widths: Float[Tensor, "*batch bins"]
    heights: Float[Tensor, "*batch bins"]
    log_slopes: Float[Tensor, "*batch knots"]

    @property
    def shape(self) -> torch.Size:
        return self.location.shape

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        standard = (value - self.location) * torch.exp(-self.log_scale)
        reached: Tensor = torch.special.ndtr(standard)
        width, height, a, b, inside = self._bin(reached, self.widths)[2:]
        rest = 1 - inside
        shape = b * inside * inside + 2 * inside * rest + a * rest * rest
        log_slope = (height / width).log() + shape.log() - 2 * torch.log1p((a + b - 2) * inside * rest)
        return log_slope - 0.5 * standard.square() - self.log_scale - HALF_LOG_TWO_PI

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        reached: Tensor = torch.special.ndtr((value - self.location) * torch.exp(-self.log_scale))
        _, bottom, _, height, a, b, inside = self._bin(reached, self.widths)
        spread = inside * (1 - inside)
        return (bottom + height * (inside * inside + a * spread) / (1 + (a + b - 2) * spread)).clamp(0, 1)

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """By the root of a quadratic, in float64, each tail from its own end; carries no gradient."""
        level = level.double()
        low, high = (part._lower_quantile(tail) for part, tail in ((self, level), (self._mirrored(), 1 - level)))
        value = torch.where(level > 0.5, -high, low)
        return value.masked_fill(~((level >= 0) & (level <= 1)), math.nan).to(self.location.dtype)

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        level = torch.rand(self.shape, generator=generator, dtype=torch.float64, device=self.location.device)
        return self.quantile(level.clamp(1e-16, 1 - 1e-16))

    def log_between(self, low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        low, high = finite(low), finite(high)
        lower = log_difference(self._log_cdf(high), self._log_cdf(low))
        mirrored = self._mirrored()
        upper = log_difference(mirrored._log_cdf(-low), mirrored._log_cdf(-high))
        return torch.where(self.cdf(low) + self.cdf(high) > 1, upper, lower)

    def mean(self) -> Float[Tensor, "*batch"]:
        """By quadrature; see :meth:`entropy`."""
        return self.expect(lambda values: values).to(self.location.dtype)

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        if not fine:
            levels = (torch.arange(NODES, dtype=torch.float64, device=self.location.device) + 0.5) / NODES
            values = self._over(-1).quantile(levels.expand(*self.shape, NODES))
            return function(values.double()).mean(-1)
        return self._integrate(lambda values, log_density: function(values))

    def entropy(self) -> Float[Tensor, "*batch"]:
        """By quadrature in float64 on panels that follow the bins; the error is below 1e-5 nats."""
        return self._integrate(lambda values, log_density: -log_density).to(self.location.dtype)

    def nodes(self, low: float, high: float) -> tuple[Float[Tensor, "*batch nodes"], Float[Tensor, "*batch nodes"]]:
        double = self._double()
        location, scale = double.location.detach(), double.log_scale.detach().exp()
        edges, levels = (
            F.pad(part.detach().cumsum(-1), (1, 0))[..., :-1, None] for part in (double.widths, double.heights)
        )
        # A bin's slope may turn sharply at either end: split it where it has covered shares of its width and height.
        shares = torch.tensor(SHARES, dtype=torch.float64, device=edges.device)
        across = (edges + double.widths.detach()[..., None] * shares).flatten(-2)
        upward = (levels + double.heights.detach()[..., None] * shares[1:]).flatten(-2)
        ends = torch.tensor(ENDS, dtype=torch.float64, device=edges.device).expand(*self.shape, -1)
        points = torch.cat([torch.special.ndtri(across).clamp(-ENDS[-1], ENDS[-1]), ends], dim=-1)
        points = location[..., None] + scale[..., None] * points
        breaks = [points, double._over(-1).quantile(upward), tail_breaks(low, high, scale)]
        return composite(torch.cat(breaks, dim=-1), low, high)

    def _integrate(self, function: Callable[[Tensor, Tensor], Tensor]) -> Float[Tensor, "*batch"]:
        points, weights = self.nodes(-math.inf, math.inf)
        log_density = self._double()._over(-1).log_prob(points)
        return (weights * log_density.exp() * function(points, log_density)).sum(-1)

    def _log_cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """log F, also where F itself is too small for a float: S(u) is nearly a multiple of u there."""
        standard = ((value - self.location) * torch.exp(-self.log_scale)).clamp(-FARTHEST, FARTHEST)
        left, bottom, width, height, a, b, inside = self._bin(torch.special.ndtr(standard), self.widths)
        rest = 1 - inside
        bend = 1 + (a + b - 2) * inside * rest
        near = torch.special.log_ndtr(standard) + (height / width * (inside + a * rest) / bend).log()
        far = bottom + height * inside * (inside + a * rest) / bend
        return torch.where(left == 0, near, far.where(left > 0, 0.5).log())

    def _bin(self, at: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        """Left, bottom, width, height, relative end slopes of the bin of ``at``, and the position inside it.

        ``lengths`` are the widths, or the heights when ``at`` is a height.
        """
        shape = np.broadcast_shapes(at.shape, self.shape)
        at = at.expand(shape)
        index = self._index(at, lengths)
        ends = [F.pad(part.cumsum(-1), (1, 0))[..., :-1] for part in (self.widths, self.heights)]
        slopes = self.log_slopes.exp()
        tables = (*ends, self.widths, self.heights, slopes[..., :-1], slopes[..., 1:])
        left, bottom, width, height, first, last = (
            table.expand(*shape, -1).gather(-1, index[..., None])[..., 0] for table in tables
        )
        start, length = (left, width) if lengths is self.widths else (bottom, height)
        inside = ((at - start) / length).clamp(0, 1)
        return left, bottom, width, height, first * width / height, last * width / height, inside

    def _index(self, at: Tensor, lengths: Tensor) -> Int[Tensor, "*batch"]:
        edges = lengths.detach().cumsum(-1)[..., :-1]
        return (edges <= at.detach()[..., None]).sum(-1)

    def _lower_quantile(self, level: Tensor) -> Tensor:
        """The quantile for levels up to about one half, where no digit is lost."""
        double = self._double()
        left, _, width, _, a, b, inside = double._bin(level.clamp(0, 1), double.heights)
        bend = (a + b - 2) * inside
        root = (a - bend).square() + 4 * (1 - a + bend) * inside
        reached = left + width * (2 * inside / (a - bend + root.clamp(min=0).sqrt())).clamp(0, 1)
        value: Tensor = double.location + double.log_scale.exp() * torch.special.ndtri(reached)
        return value

    def _mirrored(self) -> SplineDistribution:
        """The distribution of -X."""
        parts = (part.flip(-1) for part in (self.widths, self.heights, self.log_slopes))
        return SplineDistribution(-self.location, self.log_scale, *parts)

    def _double(self) -> SplineDistribution:
        parts = (self.location, self.log_scale, self.widths, self.heights, self.log_slopes)
        return SplineDistribution(*(part.double() for part in parts))

    def _over(self, dim: int) -> SplineDistribution:
        """With a further batch dimension of one, for many values of each element."""
        location, log_scale = self.location.unsqueeze(dim), self.log_scale.unsqueeze(dim)
        tables = (part.unsqueeze(dim - 1) for part in (self.widths, self.heights, self.log_slopes))
        return SplineDistribution(location, log_scale, *tables)


@dataclass(eq=False)
class Spline(Head):
    """3 ``bins`` + 3 features: location, log scale, widths, heights, and log slopes relative to the bins beside."""

    name: ClassVar[str] = "spline"

    bins: int = 16

    def __post_init__(self) -> None:
        if not 1 <= self.bins <= 1000:
            raise UserError(f"a spline needs between 1 and 1000 bins, got bins={self.bins}")

    @property
    def size(self) -> int:
        return 3 * self.bins + 3

    @property
    def locations(self) -> tuple[int, ...]:
        return (0,)

    @property
    def log_scales(self) -> tuple[int, ...]:
        return (1,)

    def forward(self, features: Float[Tensor, "*batch size"]) -> SplineDistribution:
        location, log_scale = features[..., 0], bounded(features[..., 1])
        widths, heights, slopes = features[..., 2:].split([self.bins, self.bins, self.bins + 1], dim=-1)
        shares = [LEAST + (1 - LEAST * self.bins) * part.softmax(-1) for part in (widths, heights)]
        # Relative to the mean of the bins beside: equal features stand for a smooth curve, however steep.
        secants = (shares[1] / shares[0]).log()
        beside = torch.cat([secants[..., :1], (secants[..., 1:] + secants[..., :-1]) / 2, secants[..., -1:]], dim=-1)
        return SplineDistribution(location, log_scale, shares[0], shares[1], beside + bounded(slopes))
