"""Questions under ranges: the weighted draws of one piece of evidence, and what can be computed from them.

P(A | e, R) is the weighted mean of the masses of A given each draw of R. Where A speaks of a variable of R itself, it
is the ratio P(A and R | e) / P(R | e) of two independent estimates. One range variable alone is exact.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.distributions.cut import Cut
from anyorder.distributions.region import Nothing, Region, intersection
from anyorder.distributions.weighted import Weighted
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.questions.answer import Answer
from anyorder.questions.estimate import Estimate, quotient, weighted_mean
from anyorder.questions.events import event_region
from anyorder.questions.grammar import parse_evidence
from anyorder.questions.particles import Particles, members, ranged_draws
from anyorder.questions.range_answer import RangedAnswer
from anyorder.support.threads import answering

DRAWS = 2000
FEW = 0.2  # effective draws a row below which samples are said to repeat each other


def event_of(event: str | Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """An event, typed or given by name, as one mapping."""
    said = dict(parse_evidence(event)) if isinstance(event, str) else dict(event or {})
    said.update(more)
    if not said:
        raise UserError("prob needs an event, as in prob('price > 30') or prob(price=Between(30, None))")
    return said


class Ranged:
    """Exact evidence, regions for other variables, and the draws that stand for both; nothing is drawn until needed."""

    def __init__(
        self,
        model: AnyOrderModel,
        row: Float[Tensor, "1 variables"],
        known: Bool[Tensor, "1 variables"],
        regions: Mapping[int, Region],
        draws: int,
        seed: int,
    ) -> None:
        self.model = model
        self.row, self.known = row, known[0]
        self.regions = dict(regions)
        self.draws, self.seed = draws, seed
        self._drawn: Particles | None = None

    @property
    def method(self) -> str:
        """How answers under ranges are found, in words."""
        return f"truncated draws ({self.draws})"

    def particles(self) -> Particles:
        """Draws of all range variables, made once."""
        if self._drawn is None:
            self._drawn = self._draw(self.regions, self.draws, self.seed).possible(self._said(self.regions))
        return self._drawn

    def _draw(self, regions: Mapping[int, Region], count: int, seed: int, *, draw_last: bool = True) -> Particles:
        generator = torch.Generator().manual_seed(seed)
        rows = self.row.expand(count, -1)
        return ranged_draws(self.model, rows, self.known, regions, generator, draw_last=draw_last)

    def answer(self, variable: int) -> Answer:
        """The distribution of one variable; of a range variable itself, its distribution inside the range."""
        schema, encoding = self.model.schema, self.model.encoding
        own = self.regions.get(variable)
        if own is None:
            particles = self.particles()
            mixture = Weighted(members(self.model, particles, variable), _normal(particles.log_weights))
            return RangedAnswer(schema.variables[variable], encoding, mixture, self.method)
        others = {index: region for index, region in self.regions.items() if index != variable}
        particles = self._draw(others, self.draws if others else 1, self.seed)
        cut = Cut(members(self.model, particles, variable), own)
        weighed = Particles(particles.values, particles.known, particles.log_weights + cut.log_mass())
        weighed.possible(self._said(self.regions))
        if not others:
            return Answer(schema.variables[variable], encoding, cut)
        mixture = Weighted(cut, _normal(weighed.log_weights))
        return RangedAnswer(schema.variables[variable], encoding, mixture, self.method)

    @answering
    def probability(self, event: Mapping[str, Any], exact: Mapping[int, float]) -> Estimate:
        """P(event | evidence), jointly."""
        wanted: dict[int, Region] = {}
        for name, said in event.items():
            index, region = event_region(self.model.encoding, name, said)
            if index in exact:
                raise UserError(f"{name!r} is given already; its probability given itself is not a question")
            # A column that is missing and its indicator are one variable: both statements must hold.
            wanted[index] = (intersection(wanted[index], region) or Nothing()) if index in wanted else region
        if not self.regions and len(wanted) == 1:
            (index, region), none = next(iter(wanted.items())), torch.zeros(1, dtype=torch.float64)
            law = members(self.model, Particles(self.row, self.known, none), index)
            return Particles(self.row, self.known, region.log_mass(law)).probability(self.method)
        if not self.regions:
            return self._draw(wanted, self.draws, self.seed, draw_last=False).probability(self.method)
        if not wanted.keys() & self.regions.keys():
            particles = self.particles()
            reached = self._further(particles, wanted, self.seed + 1)
            mean, error = weighted_mean(particles.weights, reached.log_weights.exp().numpy())
            return Estimate(float(mean), float(error), self.method)
        return self._inside(wanted)

    def _inside(self, wanted: Mapping[int, Region]) -> Estimate:
        """An event about range variables themselves: P(event and ranges) / P(ranges)."""
        both: dict[int, Region] = {}
        if any(isinstance(region, Nothing) for region in self.regions.values()):
            self._draw(self.regions, 1, self.seed).possible(self._said(self.regions))
        for index, region in self.regions.items():
            shared = intersection(region, wanted[index]) if index in wanted else region
            if shared is None:
                return Estimate(0.0)
            both[index] = shared
        rest = {index: region for index, region in wanted.items() if index not in both}
        one = 1 if len(self.regions) == 1 else self.draws
        below = self._draw(self.regions, one, self.seed, draw_last=False).possible(self._said(self.regions))
        # Other draws than those of the ranges alone, so that the two errors are independent.
        above = self._draw(both, self.draws if rest else one, self.seed + 2, draw_last=bool(rest))
        if rest:
            further = self._further(above, rest, self.seed + 3)
            above = Particles(above.values, above.known, above.log_weights + further.log_weights)
        return quotient(above.probability(self.method), below.probability(self.method), self.method)

    def _further(self, particles: Particles, wanted: Mapping[int, Region], seed: int) -> Particles:
        generator = torch.Generator().manual_seed(seed)
        return ranged_draws(self.model, particles.values, particles.known, wanted, generator, draw_last=False)

    def rows(self, n: int, seed: int) -> tuple[Float[Tensor, "n variables"], Bool[Tensor, "1 variables"]]:
        """``n`` rows drawn from the weighted draws in proportion to their weights, and which variables they know."""
        drawn = self._draw(self.regions, max(self.draws, n), seed).possible(self._said(self.regions))
        if drawn.effective < FEW * n:
            warnings.warn(
                f"the {n} rows come from {drawn.effective:.0f} effectively independent draws of the ranges: rows "
                f"repeat each other there; .using(draws=...) above {len(drawn.values)} gives more",
                UserWarning,
                stacklevel=3,
            )
        generator = torch.Generator().manual_seed(seed + 1)
        # Systematic: one uniform shift, so a draw of weight w comes n w times, rounded up or down.
        levels = (torch.arange(n, dtype=torch.float64) + torch.rand(1, generator=generator, dtype=torch.float64)) / max(
            n, 1
        )
        total = _normal(drawn.log_weights).cumsum(0)
        chosen = torch.searchsorted(total, levels * total[-1]).clamp(max=len(total) - 1)
        chosen = chosen[torch.randperm(n, generator=generator)]
        return drawn.values[chosen], drawn.known[None]

    def _said(self, regions: Mapping[int, Region]) -> str:
        return "about " + ", ".join(repr(self.model.schema.names[index]) for index in regions)


def _normal(log_weights: Float[Tensor, " draws"]) -> Float[Tensor, " draws"]:
    return (log_weights - log_weights.logsumexp(0)).exp()
