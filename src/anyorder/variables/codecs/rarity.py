r"""How rare a value is: the probability of all values that are no more probable than it.

$$r(x) = P(p(X) \le p(x)),$$

with p the density per unit of the data, or the probability of a point. Under the true law r is uniform (on points, no
smaller than uniform), so it is a p-value. A two-sided tail is the same for a symmetric law with one mode, but calls the
least of many small values extreme, however dense it lies there, and a value in the gap between two modes usual.

On a line the mass is cut near some quantiles, and at the value itself. Where the density crosses p(x) between two of
them, the crossing is searched for; a rise and fall between two is not seen (next to a mode, r may be 1 where it is a
little less), nor is a crossing beyond OUTERMOST. On a lattice all points are looked at, or so many that what lies
between two can be interpolated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.support.roots import first_crossing
from anyorder.variables.cells import Numbers
from anyorder.variables.codecs.scores import Law
from anyorder.variables.lattice import Lattice

EVEN, ODDS = 31, 26  # levels that share out the probability, and its log odds
OUTERMOST = 1e-13
FIRST, FARTHEST = 65, 1e3  # points at first, from one end of what model units reach to the other
ROUNDS = 3  # in which they are moved to where the mass is
POINTS, BULK = 129, 1e-3  # points of a lattice that are looked at, and what lies beyond them on either side
AS_LIKELY = 1e-9  # nats: points whose probabilities differ by rounding alone
PRECISION = 1e-9  # of a crossing, in model units

Function = Callable[[Tensor], Tensor]


def _levels() -> Float[Tensor, " levels"]:
    odds = torch.linspace(np.log(OUTERMOST), -np.log(OUTERMOST), ODDS, dtype=torch.float64)
    even = torch.arange(1, EVEN + 1, dtype=torch.float64) / (EVEN + 1)
    return torch.cat([torch.sigmoid(odds), even]).sort().values


LEVELS = _levels()


def on_line(law: Law, values: Float[Tensor, " cells"], height: Function, atoms: Sequence[float] = ()) -> Numbers:
    """The rarity of values of a continuum, each under its own law; ``atoms`` in it are more probable than any.

    ``height`` is the log of the density at model values, in the units of the data.
    """
    held = [(atom, law.mass_at(torch.full_like(values, atom)).double()) for atom in atoms]
    whole = 1 - sum((mass for _, mass in held), torch.zeros_like(values))

    def below(at: Tensor) -> Tensor:
        """The mass of the continuum up to there."""
        return law.cdf(at).double() - sum((mass * (at >= atom) for atom, mass in held), torch.zeros_like(values))

    points = _spread(values, below, whole)
    for atom in atoms:  # next to an atom, since its own height is a probability
        aside = float(np.nextafter(np.float32(atom), np.float32(np.inf)))
        points = torch.where((points - atom).abs() <= abs(aside - atom), aside, points)
    points, order = torch.cat([values[None], points]).sort(dim=0)
    own, level = order == 0, height(values)
    above = (height(points) - level).masked_fill(own, 0.0).nan_to_num(nan=0.0)
    reached, rare = below(points), above <= 0
    found = torch.where(rare[0], reached[0], 0.0) + torch.where(rare[-1], whole - reached[-1], 0.0)
    found = found + torch.where(rare[:-1] & rare[1:], reached.diff(dim=0), 0.0).sum(dim=0)
    here, first = _where(rare[:-1] != rare[1:])
    falls = rare.gather(0, first + 1)
    # At the value itself the crossing is known: there is nothing between the ends.
    low, high = points.gather(0, first), points.gather(0, first + 1)
    low, high = (
        torch.where(own.gather(0, first + 1) & falls, high, low),
        torch.where(own.gather(0, first) & ~falls, low, high),
    )
    sign = torch.where(falls, -1.0, 1.0)
    crossing = first_crossing(lambda at: sign * (height(at) - level), low, high, PRECISION)
    at, before, after = below(crossing), reached.gather(0, first), reached.gather(0, first + 1)
    part = torch.where(falls, after - at, at - before).clamp(min=0.0)
    found = found + torch.where(here, part, 0.0).sum(dim=0)
    return np.asarray(found.clamp(0.0, 1.0).numpy())


def on_lattice(law: Law, values: Float[Tensor, " cells"], lattice: Lattice) -> Numbers:
    """The rarity of points of a lattice, each under its own law."""
    at = law.mass_at(values).double()
    spread = _spread(values, lambda points: law.cdf(points).double(), torch.ones_like(values))
    index = lattice.index(spread)
    # Where most of the mass is, every point, or so many of them.
    low, high = (index[int(place)] for place in torch.searchsorted(LEVELS, torch.tensor([BULK, 1 - BULK]).double()))
    even = (low + (high - low) * torch.linspace(0, 1, POINTS, dtype=torch.float64)[:, None]).round()
    points = torch.cat([values[None], lattice.at(torch.cat([index, even]))]).sort(dim=0).values
    above = law.log_prob(points).double() - law.log_prob(values).double() - AS_LIKELY
    # The value itself is counted apart: what stands up to it and what ends with it differ by it.
    reached = law.cdf(points).double() - at * (points >= values)
    rare = above <= 0
    # Of the points between two that are no neighbours, those nearer to the rarer end are as rare.
    share = (above[:-1].clamp(max=0.0) + above[1:].clamp(max=0.0)).abs() / (above[:-1].abs() + above[1:].abs())
    share = torch.where(lattice.index(points).diff(dim=0) > 1, share, rare[1:].double())
    share = torch.where(rare[:-1] == rare[1:], rare[1:].double(), share)
    found = at + (share * reached.diff(dim=0)).sum(dim=0)
    found = found + torch.where(rare[0], reached[0], 0.0) + torch.where(rare[-1], 1 - at - reached[-1], 0.0)
    return np.asarray(found.clamp(0.0, 1.0).numpy())


def of_points(law: Law, values: Float[Tensor, " cells"], points: Numbers) -> tuple[Numbers, Numbers]:
    """The mass of those of some ``points`` that are no more probable than each value, and that of all of them."""
    each = torch.as_tensor(points, dtype=torch.float64)[:, None].expand(-1, len(values))
    mass = law.mass_at(each).double()
    rare = mass.log() <= law.mass_at(values).double().log() + AS_LIKELY
    return np.asarray((mass * rare).sum(dim=0).numpy()), np.asarray(mass.sum(dim=0).numpy())


def _where(
    mixed: Bool[Tensor, "pieces cells"],
) -> tuple[Bool[Tensor, "most cells"], Int[Tensor, "most cells"]]:
    """The numbers of the mixed pieces of each cell, as many as any cell has, and which of these are its own."""
    most = max(1, int(mixed.sum(dim=0).max())) if mixed.numel() else 1
    first = mixed.to(torch.int8).argsort(dim=0, descending=True, stable=True)[:most]
    return mixed.gather(0, first), first


def _spread(
    values: Float[Tensor, " cells"], below: Function, whole: Float[Tensor, " cells"]
) -> Float[Tensor, "points cells"]:
    """Points at about the LEVELS of each law: quantiles need not be sharp, as what lies between is asked for anyway."""
    points = torch.sinh(torch.linspace(-1, 1, FIRST, dtype=torch.float64) * np.arcsinh(FARTHEST))
    points = torch.cat([points[:, None].expand(-1, len(values)), values[None]]).sort(dim=0).values
    wanted = (LEVELS[:, None] * whole).T.contiguous()
    for _ in range(ROUNDS):
        reached = below(points).cummax(dim=0).values.T.contiguous()
        after = torch.searchsorted(reached, wanted).clamp(1, len(points) - 1)
        start, end = reached.gather(1, after - 1), reached.gather(1, after)
        low, high = points.T.gather(1, after - 1), points.T.gather(1, after)
        share = ((wanted - start) / (end - start).clamp(min=1e-300)).clamp(0.0, 1.0)
        points = (low + share * (high - low)).T
    return points
