"""Questions under ranges: the weighted draws of one piece of evidence, and what can be computed from them.

P(A | e, R) is the weighted mean of the masses of A given each draw of R. Where A speaks of a variable of R itself, it
is the ratio P(A and R | e) / P(R | e) of two independent estimates. One range variable alone is exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.cut import Cut
from anyorder.distributions.pinned import Pinned
from anyorder.distributions.region import Nothing, Region, intersection
from anyorder.distributions.weighted import Weighted
from anyorder.errors import UserError
from anyorder.heads.gaussian import GaussianDistribution
from anyorder.model import AnyOrderModel
from anyorder.questions.answer import Answer
from anyorder.questions.comparisons import Comparison, as_rules, by_levels, common_levels, separated
from anyorder.questions.estimate import Estimate, quotient, weighted_mean
from anyorder.questions.events import event_region
from anyorder.questions.evidence import Value
from anyorder.questions.grammar import parse_evidence
from anyorder.questions.particles import Particles, members, ranged_draws
from anyorder.questions.range_answer import RangedAnswer
from anyorder.questions.ruled_draws import Ruled
from anyorder.questions.rules import Rules
from anyorder.support.notes import note
from anyorder.support.threads import answering
from anyorder.variables.codecs import Space

DRAWS = 2000
MORE = 4  # draws under rules, for every row that is shown
KERNEL = 0.5  # of the usual width of a kernel density, whose tails would break the rules
NARROW = 1e-6  # in model units: draws that lie so near are one value
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
        rules: Rules | None = None,
    ) -> None:
        self.model = model
        self.row, self.known = row, known[0]
        self.regions = dict(regions)
        self.rules = rules
        columns = rules.columns if rules else []
        self.ruled = frozenset(column for column in columns if not bool(self.known[column]))
        if rules:
            rules.check_context(known)
        self.draws, self.seed = draws, seed
        self._drawn: Particles | None = None

    @property
    def method(self) -> str:
        """How answers under ranges are found, in words."""
        return f"truncated draws ({self.draws}){' under rules' if self.rules else ''}"

    def particles(self) -> Particles:
        """Draws of all range variables, made once."""
        if self._drawn is None:
            self._drawn = self._draw(self.regions, self.draws, self.seed).possible(self._said(self.regions))
        return self._drawn

    def _draw(
        self,
        regions: Mapping[int, Region],
        count: int,
        seed: int,
        *,
        draw_last: bool = True,
        without: int | None = None,
    ) -> Particles:
        generator = torch.Generator().manual_seed(seed)
        rows = self.row.expand(count, -1)
        if self.rules:
            drawn = Ruled(self.model, self.rules, regions)
            known = self.known.expand(count, -1)
            values, told, log_weights = drawn.draws(rows, known, generator, draw_last=draw_last, without=without)
            return Particles(values, told[0], log_weights)
        return ranged_draws(self.model, rows, self.known, regions, generator, draw_last=draw_last)

    def answer(self, variable: int) -> Answer:
        """The distribution of one variable; of a range variable itself, its distribution inside the range."""
        schema, encoding = self.model.schema, self.model.encoding
        own = self.regions.get(variable)
        if self.rules and variable in self.ruled:
            return self._ruled_answer(variable)
        if own is None:
            particles = self.particles()
            mixture = Weighted(members(self.model, particles, variable), _normal(particles.log_weights))
            return RangedAnswer(schema.variables[variable], encoding, mixture, self.method)
        cut, weights = self.inside(variable)
        if len(weights) == 1:
            return Answer(schema.variables[variable], encoding, cut)
        return RangedAnswer(schema.variables[variable], encoding, Weighted(cut, weights), self.method)

    def inside(self, variable: int) -> tuple[Cut, Float[Tensor, " draws"]]:
        """The laws of a range variable inside its range, one for each draw of the others, and their weights."""
        others = {index: region for index, region in self.regions.items() if index != variable}
        particles = self._draw(others, self.draws if others or self.ruled else 1, self.seed)
        cut = Cut(members(self.model, particles, variable), self.regions[variable])
        weighed = Particles(particles.values, particles.known, particles.log_weights + cut.log_mass())
        return cut, _normal(weighed.possible(self._said(self.regions)).log_weights)

    def _ruled_answer(self, variable: int) -> Answer:
        """The distribution of a column that rules speak of."""
        assert self.rules
        about, codec = self.model.schema.variables[variable], self.model.encoding.codecs[variable]
        if self.rules.fixes(variable):
            # A column of an equality has no density given the others: its draws stand for it.
            particles = self.particles()
            at, weights = particles.values[:, variable], _normal(particles.log_weights)
            members_: Distribution = Pinned(at, codec.lattice)
            mean = (weights * at).sum()
            spread = (weights * (at - mean).square()).sum().sqrt()
            if codec.space is Space.LINE and float(spread) > NARROW:
                width = KERNEL * spread * particles.effective**-0.2
                members_ = GaussianDistribution(at, width.log().expand(len(at)))
            mixture = Weighted(members_, weights)
        else:
            particles = self._draw(self.regions, self.draws, self.seed, without=variable)
            ruled = Ruled(self.model, self.rules, self.regions)
            region = ruled.region(particles.values, particles.known.expand(len(particles.values), -1), variable)
            cut = Cut(members(self.model, particles, variable), region)
            weighed = Particles(particles.values, particles.known, particles.log_weights + cut.log_mass())
            weighed = weighed.possible(self._said(self.regions))
            keep = weighed.log_weights > -math.inf
            if not bool(keep.all()):  # nothing can be drawn from what has no mass
                kept = Particles(particles.values[keep], particles.known, particles.log_weights[keep])
                region = ruled.region(kept.values, kept.known.expand(len(kept.values), -1), variable)
                cut = Cut(members(self.model, kept, variable), region)
                weighed = Particles(kept.values, kept.known, weighed.log_weights[keep])
            mixture = Weighted(cut, _normal(weighed.log_weights))
        return RangedAnswer(about, self.model.encoding, mixture, self.method)

    @answering
    def probability(self, event: Mapping[str, Any], exact: Mapping[int, float]) -> Estimate:
        """P(event | evidence), jointly."""
        event, compared = separated(self.model.encoding, event)
        if compared:
            return self._comparing(compared, event, exact)
        wanted = self._wanted(event, exact)
        free = not self.regions and not self.ruled
        if free and len(wanted) == 1:
            (index, region), none = next(iter(wanted.items())), torch.zeros(1, dtype=torch.float64)
            law = members(self.model, Particles(self.row, self.known, none), index)
            return Particles(self.row, self.known, region.log_mass(law)).probability(self.method)
        if free:
            return self._draw(wanted, self.draws, self.seed, draw_last=False).probability(self.method)
        if not wanted.keys() & (self.regions.keys() | self.ruled):
            particles = self.particles()
            reached = self._further(particles, wanted, self.seed + 1)
            mean, error = weighted_mean(particles.weights, reached.log_weights.exp().numpy())
            return Estimate(float(mean), float(error), self.method)
        return self._inside(wanted)

    def _wanted(self, event: Mapping[str, Any], exact: Mapping[int, float]) -> dict[int, Region]:
        """The regions of an event, by variable."""
        wanted: dict[int, Region] = {}
        for name, said in event.items():
            index, region = event_region(self.model.encoding, name, said)
            if index in exact:
                raise UserError(f"{name!r} is already given; to ask about it, leave it out of the evidence")
            # A column that is missing and its indicator are one variable: both statements must hold.
            wanted[index] = (intersection(wanted[index], region) or Nothing()) if index in wanted else region
        return wanted

    def _comparing(
        self, compared: Sequence[Comparison], event: Mapping[str, Any], exact: Mapping[int, float]
    ) -> Estimate:
        """An event in which columns are compared with each other."""
        encoding, first = self.model.encoding, compared[0]
        if any(one.mark == "!=" for one in compared):
            if event or len(compared) > 1:
                raise UserError(
                    f"{str(first)!r} can only be asked on its own, since != is computed as the opposite of ="
                )
            same = self._comparing([replace(first, mark="=")], {}, exact)
            return Estimate(1 - same.value, same.standard_error, same.method)
        level_by_level = [by_levels(encoding, one) for one in compared]  # which refuses what cannot be compared
        if any(level_by_level):
            if len(compared) > 1:
                raise UserError("a question can hold only one comparison of columns with levels")
            return self._same_level(first, event, exact)
        rules = Rules([*(self.rules.rules if self.rules else ()), *as_rules(encoding, compared)], encoding)
        if all(column in exact for column in rules.columns):
            raise UserError(f"{str(first)!r}: both columns are already given, so there is nothing to ask")
        both = dict(self.regions)
        for index, region in self._wanted(event, exact).items():
            both[index] = (intersection(both[index], region) or Nothing()) if index in both else region
        joint = Ranged(self.model, self.row, self.known[None], both, self.draws, self.seed, rules)
        count = 1 if len(joint.ruled | both.keys()) == 1 else self.draws
        above = joint._draw(both, count, self.seed + 2, draw_last=False).probability(joint.method)
        if not self.regions and not self.ruled:
            return above
        count = 1 if len(self.ruled | self.regions.keys()) == 1 else self.draws
        below = self._draw(self.regions, count, self.seed, draw_last=False).possible(self._said(self.regions))
        return quotient(above, below.probability(self.method), joint.method)

    def _same_level(self, about: Comparison, event: Mapping[str, Any], exact: Mapping[int, float]) -> Estimate:
        """P(two columns have the same level, and the event): a sum over the levels that both have."""
        columns = [self.model.schema.index(name) for name in (about.name, about.other)]
        if all(column in exact for column in columns):
            raise UserError(f"{str(about)!r}: both columns are already given, so there is nothing to ask")
        free = not self.regions and not self.ruled and not event
        # Where nothing else is drawn, all draws of one order are alike: one for each of the two orders is enough.
        few = Ranged(self.model, self.row, self.known[None], {}, 2, self.seed) if free else self
        total, errors = 0.0, [0.0]
        for levels in common_levels(self.model.encoding, about):
            said = dict(zip((about.name, about.other), (Value(level) for level in levels), strict=True))
            values = [self.model.encoding.encode_value(name, one.given) for name, one in said.items()]
            if any(exact.get(column, value) != value for column, value in zip(columns, values, strict=True)):
                continue  # one of them is known to have another level
            unknown = {
                name: one for (name, one), column in zip(said.items(), columns, strict=True) if column not in exact
            }
            found = few.probability({**event, **unknown}, exact)
            total, errors = total + found.value, [*errors, found.standard_error]
        return Estimate(total) if free else Estimate(total, math.hypot(*errors), self.method)

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
        both |= {index: region for index, region in wanted.items() if index in self.ruled and index not in both}
        rest = {index: region for index, region in wanted.items() if index not in both}
        one = 1 if len(self.regions | dict.fromkeys(self.ruled)) == 1 else self.draws
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
        # What is drawn under rules is shown: few of its draws should come twice.
        count = max(self.draws, MORE * n) if self.ruled else max(self.draws, n)
        drawn = self._draw(self.regions, count, seed).possible(self._said(self.regions))
        if drawn.effective < FEW * n:
            note(
                f"the {n} rows come from only about {drawn.effective:.0f} independent draws of the ranges, so rows "
                f"repeat; for more draws, use .using(draws=...) above {len(drawn.values)}",
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
        about = ", ".join(repr(self.model.schema.names[index]) for index in regions)
        rules = ", ".join(f"{str(rule)!r}" for rule in self.rules.rules) if self.rules else ""
        parts = [*([f"about {about}"] if about else []), *([f"under the rules {rules}"] if rules else [])]
        return " ".join(parts)


def _normal(log_weights: Float[Tensor, " draws"]) -> Float[Tensor, " draws"]:
    return (log_weights - log_weights.logsumexp(0)).exp()
