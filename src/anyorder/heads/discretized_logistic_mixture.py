"""A mixture of K logistics, summed over the cells of a lattice: whole numbers, days, grey levels.

    P(point) = F(upper) - F(lower),   F(z) = sum_k w_k sigmoid((z - mean_k) / scale_k)

(Salimans et al., 2017, "PixelCNN++", here on any lattice and through any warp.) With a = (upper - mean) / scale
and b = (lower - mean) / scale, the difference of two sigmoids is, without cancellation however small or far the cell,

    sigmoid(a) - sigmoid(b) = sigmoid(a) sigmoid(-b) (1 - exp(b - a)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.curves import Curve
from anyorder.distributions.quadrature import by_component, in_parts, panels
from anyorder.heads._mixture import MixtureHead, by_lower_tail, components_of, draw
from anyorder.support.roots import increasing_root, least_index
from anyorder.variables.codecs import Space
from anyorder.variables.lattice import Lattice

CELLS = 1024  # up to so many cells are summed one by one; beyond, an integral over the line stands for the sum
LEFT_OUT = 1e-9  # probability outside the summed range of an endless lattice
FAR = 1e30  # stands for infinity: every sigmoid is flat there, and 0 * FAR is no NaN in a gradient
# The standard logistic at the middle of sixteen equally probable parts.
LOGISTIC_NODES = tuple(torch.logit((torch.arange(16, dtype=torch.float64) + 0.5) / 16).tolist())
BREAKS = (-30.0, -18.0, -11.0, -7.0, -4.0, -2.0, 0.0, 2.0, 4.0, 7.0, 11.0, 18.0, 30.0)


@dataclass(frozen=True, eq=False)
class DiscretizedLogisticMixtureDistribution(Distribution):
    """A batch of distributions over the points of one lattice. A value stands for the point nearest to it."""

    logits: Float[Tensor, "*batch components"]
    means: Float[Tensor, "*batch components"]
    log_scales: Float[Tensor, "*batch components"]
    lattice: Lattice

    @property
    def discrete(self) -> bool:
        return True

    @property
    def shape(self) -> torch.Size:
        return self.logits.shape[:-1]

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        nats = self._log_mass(self.lattice.index(value))
        return torch.where(self.lattice.reaches(value), nats, self.lattice.log_beyond(value).to(nats.dtype))

    def log_between(self, low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        start, end = (part.nan_to_num(posinf=0.0, neginf=0.0) for part in (low, high))
        first, last = self.lattice.index_below(start), self.lattice.index_below(end)
        rounding = 4 * torch.finfo(low.dtype).eps * start.abs().clamp(min=1).to(torch.float64)
        first = torch.where(self.lattice.at(first) >= start - rounding, first, first + 1)
        lower = self.lattice.edge(first - 1).masked_fill(low == -math.inf, -math.inf)
        upper = self.lattice.edge(last).masked_fill(high == math.inf, math.inf)
        none = upper <= lower
        return self._log_cells(lower, torch.where(none, math.inf, upper)).masked_fill(none, -math.inf)

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        chosen = draw(self.logits, generator)[..., None]
        mean, log_scale = (part.gather(-1, chosen)[..., 0].double() for part in (self.means, self.log_scales))
        level = torch.rand(self.shape, generator=generator, dtype=torch.float64, device=mean.device)
        return self.lattice.nearest(mean + log_scale.exp() * level.logit(eps=1e-16)).to(self.logits.dtype)

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return self._cdf(self.lattice.index_below(value))

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """By bracketed Newton steps for the edge, then the cell; carries no gradient."""
        index = self.lattice.index_reaching(self._line_quantile(level))
        # The cdf of this dtype decides where the edge and the level agree to rounding.
        index = torch.where(self._cdf(index - 1) >= level, self.lattice.within(index - 1), index)
        index = torch.where(self._cdf(index) < level, self.lattice.within(index + 1), index)
        return self.lattice.at(index).masked_fill(~((level >= 0) & (level <= 1)), math.nan).to(self.logits.dtype)

    @torch.no_grad()
    def bracket(self, level: Float[Tensor, "*batch"]) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        ends = (self.lattice.at(index) for index in self._index_bracket(level))
        low, high = (end.masked_fill(~((level >= 0) & (level <= 1)), math.nan) for end in ends)
        return low, high

    def curve(self) -> Curve | None:
        return components_of(self.logits, self.means, self.log_scales, logistic=True)

    def _index_bracket(self, level: Float[Tensor, "*batch"]) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        """The least and the greatest of the components' own quantiles, and a point to spare for rounding."""
        odds = torch.logit(level.double().clamp(1e-300, 1 - 1e-16))[..., None]
        each = self.means.double() + self.log_scales.double().exp() * odds
        least, most = (self.lattice.index_reaching(end) for end in (each.amin(-1), each.amax(-1)))
        return self.lattice.within(least - 1), self.lattice.within(most + 1)

    def mean(self) -> Float[Tensor, "*batch"]:
        """By summation over the cells; see :meth:`entropy`."""
        return self.expect(lambda points: points).to(self.logits.dtype)

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        """E[function(X)] for a function that acts on each value alone; see :meth:`entropy`."""
        if not fine:
            parts = (self.logits, self.means, self.log_scales)
            return by_component(lambda z: function(self.lattice.nearest(z)), *parts, LOGISTIC_NODES)
        return self._sum(function)

    def entropy(self) -> Float[Tensor, "*batch"]:
        """By summation over the cells, all but 1e-9 of the mass.

        Where that takes more than 1024 cells it is the integral of -p(z) log P(cell of z) by quadrature instead: within
        2e-3 nats while every scale spans twenty cells, within 0.1 where a component is as narrow as a cell.
        """
        return self._sum(None).to(self.logits.dtype)

    def tempered(self, temperature: float) -> DiscretizedLogisticMixtureDistribution:
        scales = self.log_scales + math.log(temperature)
        return DiscretizedLogisticMixtureDistribution(self.logits, self.means, scales, self.lattice)

    def _log_mass(self, index: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """log P of the points with these indices."""
        return self._log_cells(self.lattice.edge(index - 1), self.lattice.edge(index))

    def _log_cells(self, lower: Float[Tensor, "*batch"], upper: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """log P of the line between these edges, in float64."""
        dtype = self.logits.dtype
        # The width is taken in float64: in float32 the edges of a small cell may coincide.
        log_width = (upper - lower).log().to(dtype)[..., None]
        narrow = torch.exp(-self.log_scales)
        above = (upper.clamp(max=FAR).to(dtype)[..., None] - self.means) * narrow
        below = (lower.clamp(min=-FAR).to(dtype)[..., None] - self.means) * narrow
        ratio = torch.exp((log_width - self.log_scales).clamp(max=30.0))  # beyond, 1 - exp(-ratio) is one
        terms = F.logsigmoid(above) + F.logsigmoid(-below) + torch.log(-torch.expm1(-ratio))
        return (self.logits + terms).logsumexp(-1) - self.logits.logsumexp(-1)

    def _cdf(self, index: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        edge = self.lattice.edge(index).clamp(-FAR, FAR).to(self.logits.dtype)[..., None]
        reached = torch.sigmoid((edge - self.means) * torch.exp(-self.log_scales))
        total = (self.logits.softmax(-1) * reached).sum(-1).clamp(max=1)
        return total.masked_fill(edge[..., 0] == FAR, 1.0)

    def _beyond(self, index: Float[Tensor, "*batch"], level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return self._cdf(index) - level

    def _line_quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The quantile of the mixture before it is cut into cells, in float64."""
        weights, scales = self.logits.double().softmax(-1), self.log_scales.double().exp()

        def search(sign: Tensor, tail: Tensor) -> Tensor:
            means = sign[..., None] * self.means

            def excess(point: Tensor) -> tuple[Tensor, Tensor]:
                reached = torch.sigmoid((point[..., None] - means) / scales)
                return (weights * reached).sum(-1) - tail, (weights / scales * reached * (1 - reached)).sum(-1)

            each = means + scales * torch.logit(tail.clamp(min=1e-300))[..., None]
            return increasing_root(excess, each.amin(-1), each.amax(-1))

        return by_lower_tail(level, search)

    def _sum(self, function: Callable[[Tensor], Tensor] | None) -> Float[Tensor, "*batch"]:
        """The mean of a function of the point; without one, of its surprise."""
        parts = (self.logits.double(), self.means.double(), self.log_scales.double())
        first, count = self._range()
        components = self.logits.shape[-1]
        cells = min(int(count.max()), CELLS) if count.numel() else 0

        def summed(logits: Tensor, means: Tensor, log_scales: Tensor, first: Tensor) -> Tensor:
            spread = DiscretizedLogisticMixtureDistribution(
                logits[:, None], means[:, None], log_scales[:, None], self.lattice
            )
            index = first + torch.arange(cells, dtype=torch.float64, device=first.device)
            inside = (
                torch.ones_like(index, dtype=torch.bool) if self.lattice.count is None else index < self.lattice.count
            )
            if function is None:
                log_mass = spread._log_mass(self.lattice.within(index))
                return -(log_mass.exp() * inside * log_mass).sum(-1)
            # Differences of the cdf do for a mean: a probability with few digits has no weight in it.
            reached = spread._cdf(torch.cat([index[:, :1] - 1, index], dim=1))
            return (reached.diff(dim=1) * inside * function(self.lattice.at(index))).sum(-1)

        def integrated(logits: Tensor, means: Tensor, log_scales: Tensor) -> Tensor:
            spread = DiscretizedLogisticMixtureDistribution(
                logits[:, None], means[:, None], log_scales[:, None], self.lattice
            )
            nodes, weights = panels(means.detach(), log_scales.detach().exp(), BREAKS, self.lattice.warp.z)
            standard = (nodes[..., None] - spread.means) * torch.exp(-spread.log_scales)
            slope = F.logsigmoid(standard) + F.logsigmoid(-standard) - spread.log_scales
            density = (spread.logits.log_softmax(-1) + slope).exp().sum(-1)
            index = self.lattice.index(nodes)
            values = -spread._log_mass(index) if function is None else function(self.lattice.at(index))
            return (weights * density * values).sum(-1)

        result = in_parts(summed, 4 * cells * components, *parts, first[..., None])
        if bool((count > CELLS).any()):
            line = in_parts(integrated, 16 * (len(BREAKS) * components + len(self.lattice.warp.z)) * components, *parts)
            result = torch.where(count > CELLS, line, result)
        return result

    @torch.no_grad()
    def _range(self) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        """The first index of the range that holds nearly all mass, and how many points it has."""
        level = torch.full(self.shape, LEFT_OUT / 2, dtype=torch.float64, device=self.logits.device)
        if self.lattice.count is not None and self.lattice.count <= CELLS:
            return torch.zeros_like(level), torch.full_like(level, self.lattice.count)
        first, last = (
            least_index(partial(self._beyond, level=end), *self._index_bracket(end)) for end in (level, 1 - level)
        )
        return first, last - first + 1


@dataclass(eq=False)
class DiscretizedLogisticMixture(MixtureHead):
    """Three features per component: all logits, then all means, then all log scales, in model units."""

    name: ClassVar[str] = "discretized_logistic_mixture"
    space: ClassVar[Space] = Space.LATTICE
    couples: ClassVar[bool] = True
    deviation: ClassVar[float] = math.sqrt(3) / math.pi

    components: int
    lattice: Lattice

    def __post_init__(self) -> None:
        super().__post_init__()
        self.lattice = Lattice.read(self.lattice)

    @property
    def points(self) -> Lattice:
        return self.lattice

    def forward(self, features: Float[Tensor, "*batch size"]) -> DiscretizedLogisticMixtureDistribution:
        return DiscretizedLogisticMixtureDistribution(*self.parts(features), self.lattice)
