"""The density of the energy heads: an energy that tilts a mixture proposal, or that is the density by itself.

    p(x) = q(x) exp(-e(x)) / Z,   Z = E_q[exp(-e)]
    p(x) = exp(-e(x)) / Z         (``alone``)

Z comes from draws of the proposal, as ACE has it, or from quadrature, which in one dimension gives it to float
precision: panels follow every component of q and, outside training, are halved until nothing changes. Cdf, quantile
and draws come from that grid under either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.quadrature import composite, tail_breaks
from anyorder.heads._energy_network import EnergyFunction
from anyorder.heads.gaussian_mixture import GaussianMixtureDistribution
from anyorder.support.roots import increasing_root

BREAKS = (-8.5, -4.0, -1.5, 1.5, 4.0, 8.5)  # panel edges of each component, in its own scales
SETTLED = 1e-6  # the change of log Z at which halving the panels stops: the error left is many times smaller
MOST_HALVINGS = 6
AT_ONCE = 1 << 18  # values of the energy at once: bounds the memory, not the result


@dataclass(frozen=True, eq=False)
class EnergyDistribution(Distribution):
    """A batch of tilted mixtures. ``draws`` is 0 for quadrature; ``fine`` halves panels until they settle.

    ``alone``: the proposal is no factor, and only says where to look: exp(-e) within its reach, and beyond that with
    the tails of a normal, since a bounded energy alone has no finite normaliser.
    """

    proposal: GaussianMixtureDistribution
    latent: Float[Tensor, "*batch latent"]
    network: EnergyFunction
    draws: int = 0
    seed: int = 0
    fine: bool = True
    alone: bool = False

    @property
    def shape(self) -> torch.Size:
        return self.proposal.shape

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The proposal learns from its own likelihood alone, the energy from that of p, as in ACE."""
        exact = self._double() if self.fine else self
        shape = np.broadcast_shapes(value.shape, self.shape)
        at = value.expand(shape)[..., None].to(exact.latent.dtype)
        own = exact.proposal.log_prob(value.to(at.dtype))
        if self.alone:
            own = own - own.detach()  # no factor, but it learns all the same
            tilt = exact._expanded(shape)._log_tilted(at)[..., 0]
        else:
            tilt = exact._expanded(shape)._tilt(at)[..., 0]
        log_z = exact._drawn_log_z() if self.draws else exact._log_z()
        return own.add(tilt - log_z).to(self.latent.dtype)

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        """By inversion of the cdf."""
        level = torch.rand(self.shape, generator=generator, dtype=torch.float64, device=self.latent.device)
        return self.quantile(level)

    @torch.no_grad()
    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The mass of all panels below and of the part of one; carries no gradient."""
        breaks, totals = self._grid
        shape = np.broadcast_shapes(value.shape, self.shape)
        at = value.double().expand(shape).clamp(breaks[..., 0], breaks[..., -1])
        panel = (breaks[..., 1:-1] <= at[..., None]).sum(-1)
        start, below = (_take(part, panel) for part in (breaks, totals))
        reached = below + self._double()._expanded(shape)._part(start, at)
        return (reached / totals[..., -1]).clamp(0, 1).to(self.latent.dtype)

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The panel from the grid, then bracketed Newton steps inside it; carries no gradient."""
        breaks, totals = self._grid
        shape = np.broadcast_shapes(level.shape, self.shape)
        wanted = (level.double().clamp(0, 1) * totals[..., -1]).expand(shape)
        panel = (totals[..., 1:-1] < wanted[..., None]).sum(-1)
        start, below = (_take(part, panel) for part in (breaks, totals))
        double = self._double()._expanded(shape)

        def excess(point: Tensor) -> tuple[Tensor, Tensor]:
            return below + double._part(start, point) - wanted, double._log_tilted(point[..., None])[..., 0].exp()

        value = increasing_root(excess, start, _take(breaks, panel + 1))
        value = value.masked_fill(level == 0, -math.inf).masked_fill(level == 1, math.inf)
        return value.masked_fill(~((level >= 0) & (level <= 1)), math.nan).to(self.latent.dtype)

    def log_between(self, low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        shape = np.broadcast_shapes(low.shape, high.shape, self.shape)
        double = self._double()._expanded(shape)
        breaks = self._grid[0].expand(*shape, -1)
        within = torch.maximum(breaks, low.double()[..., None]).minimum(high.double()[..., None])
        found = double._on(within) - double._on(breaks)
        # Beyond the grid there still is the proposal (or the tail), lowered by at most twice the greatest energy.
        if self.alone:
            least = double._tails(low.double(), high.double()) - self.network.limit - double._on(breaks)
        else:
            least = double._frozen().log_between(low.double(), high.double()) - 2 * self.network.limit
        return torch.maximum(found, least).to(self.latent.dtype)

    def mean(self) -> Float[Tensor, "*batch"]:
        return self.expect(lambda values: values).to(self.latent.dtype)

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        """On the grid of the normaliser, or without ``fine`` on its coarsest."""
        return self._integrate(lambda values, log_density: function(values), fine)

    def entropy(self) -> Float[Tensor, "*batch"]:
        return self._integrate(lambda values, log_density: -log_density, True).to(self.latent.dtype)

    def nodes(self, low: float, high: float) -> tuple[Float[Tensor, "*batch nodes"], Float[Tensor, "*batch nodes"]]:
        breaks = self._grid[0]
        scale = self.proposal.log_scales.detach().double().exp().amax(-1)
        return composite(torch.cat([breaks, tail_breaks(low, high, scale)], dim=-1), low, high)

    @cached_property
    def _grid(self) -> tuple[Float[Tensor, "*batch breaks"], Float[Tensor, "*batch breaks"]]:
        """Settled breakpoints and the unnormalised mass up to each, in float64."""
        with torch.no_grad():
            double = self._double()
            breaks = double._settled()[0]
            parts = []
            for rows, some in double._in_parts(4 * breaks.shape[-1]):
                points, weights = composite(breaks.flatten(0, -2)[rows] if self.shape else breaks[None])
                mass = (some._log_tilted(points).exp() * weights).unflatten(-1, (-1, 4)).sum(-1)
                parts.append(torch.nn.functional.pad(mass.cumsum(-1), (1, 0)))
            return breaks, torch.cat(parts).view(breaks.shape)

    def _integrate(self, function: Callable[[Tensor, Tensor], Tensor], fine: bool) -> Float[Tensor, "*batch"]:
        double = self._double()
        breaks = (self._grid[0] if fine else double._breaks()).flatten(0, -2) if self.shape else self._grid[0][None]
        parts = []
        for rows, some in double._in_parts(4 * breaks.shape[-1]):
            points, weights = composite(breaks[rows])
            log_tilted = some._log_tilted(points)
            log_z = (log_tilted + weights.log()).logsumexp(-1, keepdim=True)
            log_density = log_tilted - log_z
            parts.append((weights * log_density.exp() * function(points, log_density)).sum(-1))
        return torch.cat(parts).view(self.shape) if parts else self.latent.new_zeros(self.shape).double()

    def _log_z(self) -> Float[Tensor, "*batch"]:
        """log Z by quadrature, with the gradient of the energy."""
        if self.fine:
            with torch.no_grad():
                breaks, log_z = self._settled()
            return self._on(breaks) if torch.is_grad_enabled() else log_z.view(self.shape)
        return self._on(self._breaks())

    def _on(self, breaks: Float[Tensor, "*batch breaks"]) -> Float[Tensor, "*batch"]:
        """log Z on these panels."""
        flat, parts = breaks.reshape(-1, breaks.shape[-1]), []
        for rows, some in self._in_parts(4 * breaks.shape[-1]):
            points, weights = composite(flat[rows])
            parts.append((some._log_tilted(points) + weights.log()).logsumexp(-1))
        return torch.cat(parts).view(self.shape) if parts else self.latent.new_zeros(self.shape)

    def _drawn_log_z(self) -> Float[Tensor, "*batch"]:
        """log Z by the mean over draws from the proposal."""
        generator = torch.Generator(device=self.latent.device).manual_seed(self.seed)
        totals = []
        for _, some in self._in_parts(self.draws):
            spread = GaussianMixtureDistribution(
                *(part[:, None].expand(-1, self.draws, -1) for part in _parts(some._frozen()))
            )
            values = spread.sample(generator)
            weights = some._log_tilted(values) - spread.log_prob(values) if self.alone else some._tilt(values)
            totals.append(weights.logsumexp(-1))
        return torch.cat(totals).view(self.shape) - math.log(self.draws)

    def _settled(self) -> tuple[Float[Tensor, "*batch breaks"], Float[Tensor, " flat"]]:
        """Breakpoints halved until no log Z changes, and log Z; what has settled is not computed again."""
        breaks = self._breaks()
        log_z = self._on(breaks).flatten()
        moving = torch.arange(len(log_z), device=log_z.device)
        for _ in range(MOST_HALVINGS):
            breaks = torch.cat([breaks, (breaks[..., 1:] + breaks[..., :-1]) / 2], dim=-1).sort(-1).values
            some = self._flat_rows(moving)
            finer = some._on(breaks.reshape(-1, breaks.shape[-1])[moving])
            changed = (finer - log_z[moving]).abs() > SETTLED
            log_z[moving] = finer
            moving = moving[changed]
            if not len(moving):
                break
        return breaks, log_z

    def _breaks(self) -> Float[Tensor, "*batch breaks"]:
        _, means, log_scales = _parts(self._frozen())
        reach = torch.tensor(BREAKS, dtype=means.dtype, device=means.device)
        breaks = (means[..., None] + log_scales.exp()[..., None] * reach).flatten(-2)
        if self.alone:
            low, high, scale = self._reach()
            # So far out that even the lowest energy there and the highest everywhere else leave nothing beyond.
            last = math.sqrt(2 * (2 * self.network.limit + 37))
            out = torch.tensor((1.5, 4.0, 8.5, last), dtype=means.dtype, device=means.device) * scale[..., None]
            breaks = torch.cat([breaks, low[..., None] - out, high[..., None] + out], dim=-1)
        return breaks.sort(-1).values

    def _reach(self) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        """The ends of the proposal's panels, and its largest scale."""
        _, means, log_scales = _parts(self._frozen())
        scales = log_scales.exp()
        low, high = (means + BREAKS[0] * scales).amin(-1), (means + BREAKS[-1] * scales).amax(-1)
        return low, high, scales.amax(-1)

    def _tails(self, low: Tensor, high: Tensor) -> Tensor:
        """log of the integral of the two tails alone between two points: half a normal beyond either end."""
        left, right, scale = self._reach()
        shape = np.broadcast_shapes(low.shape, high.shape, self.shape)
        sides = []
        outside = ((left - high, left - low), (low - right, high - right))
        for start, end in ((near / scale, far / scale) for near, far in outside):
            near = torch.special.log_ndtr(-start.clamp_min(0).expand(shape))
            far = torch.special.log_ndtr(-end.clamp_min(0).expand(shape))
            sides.append(near + torch.log1p(-(far - near).exp().clamp_max(1.0)))  # -inf where nothing is asked there
        return torch.logaddexp(*sides) + scale.log() + 0.5 * math.log(2 * math.pi)

    def _part(self, start: Tensor, end: Tensor) -> Tensor:
        """The unnormalised mass between two points of one panel."""
        points, weights = composite(torch.stack([start, end], dim=-1))
        return (self._log_tilted(points).exp() * weights).sum(-1)

    def _log_tilted(self, points: Float[Tensor, "*batch points"]) -> Float[Tensor, "*batch points"]:
        """log q - e (alone: -e and the tails) at several points of each element; the proposal carries no gradient."""
        if self.alone:
            low, high, scale = (part[..., None] for part in self._reach())
            beyond = (low - points).clamp_min(0) + (points - high).clamp_min(0)
            return self._tilt(points) - 0.5 * (beyond / scale).square()
        spread = GaussianMixtureDistribution(*(part[..., None, :] for part in _parts(self._frozen())))
        return spread.log_prob(points) + self._tilt(points)

    def _tilt(self, points: Float[Tensor, "*batch points"]) -> Float[Tensor, "*batch points"]:
        proposal = self._frozen()
        weights = proposal.logits.softmax(-1)
        centre = proposal.mean()
        variance = (weights * ((proposal.means - centre[..., None]).square() + (2 * proposal.log_scales).exp())).sum(-1)
        relative = (points - centre[..., None]) / variance.sqrt()[..., None]
        dtype = self.network.dtype  # sums are in float64 where needed; the energy itself need not be
        energy: Tensor = self.network(points.to(dtype), relative.to(dtype), self.latent.to(dtype))
        return -energy.to(points.dtype)

    def _frozen(self) -> GaussianMixtureDistribution:
        return GaussianMixtureDistribution(*(part.detach() for part in _parts(self.proposal)))

    def _double(self) -> EnergyDistribution:
        proposal = GaussianMixtureDistribution(*(part.double() for part in _parts(self.proposal)))
        return self._with(proposal, self.latent.double())

    def _expanded(self, shape: tuple[int, ...]) -> EnergyDistribution:
        proposal = GaussianMixtureDistribution(*(part.expand(*shape, -1) for part in _parts(self.proposal)))
        return self._with(proposal, self.latent.expand(*shape, -1))

    def _in_parts(self, cost: int) -> Iterator[tuple[slice, EnergyDistribution]]:
        """Flat parts of the batch for which ``cost`` energies of each element fit."""
        size = max(1, AT_ONCE // max(cost, 1))
        for start in range(0, math.prod(self.shape), size):
            rows = slice(start, start + size)
            yield rows, self._flat_rows(rows)

    def _flat_rows(self, rows: slice | Tensor) -> EnergyDistribution:
        logits, means, log_scales, latent = (
            part.reshape(-1, part.shape[-1])[rows] for part in (*_parts(self.proposal), self.latent)
        )
        return self._with(GaussianMixtureDistribution(logits, means, log_scales), latent)

    def _with(self, proposal: GaussianMixtureDistribution, latent: Tensor) -> EnergyDistribution:
        return EnergyDistribution(proposal, latent, self.network, self.draws, self.seed, self.fine, self.alone)


def _parts(mixture: GaussianMixtureDistribution) -> tuple[Tensor, Tensor, Tensor]:
    return mixture.logits, mixture.means, mixture.log_scales


def _take(table: Tensor, index: Tensor) -> Tensor:
    return table.expand(*index.shape, -1).gather(-1, index[..., None])[..., 0]
