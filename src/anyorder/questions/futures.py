r"""What could become known: the answers to measurements, listed or drawn, and how each changes what else is known.

Where all answers can be listed they are, each with its probability. Else they are quantiles at levels
$u = s^2 (3 - 2s)$ of evenly spaced s behind one random shift, weighted by du/ds: close to each other at both ends,
where much is told. All measurements have the same levels, so that they are compared under common random numbers.

Evidence with ranges is a mixture of weighted rows (:mod:`.particles`). An answer comes from one of them and changes the
weights of all: p(row | answer) is proportional to p(row) p(answer | row). Everything is in model units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.model import AnyOrderModel, row_chunks
from anyorder.questions.cells import Cells
from anyorder.questions.particles import Particles, doubled
from anyorder.variables.schema import Group

PATHS = 4096  # rows of one candidate and case down a chain of targets, which bounds the draws of a target
LEAST = 1e-300  # a weight of less is none


@dataclass(frozen=True)
class Futures:
    """What could become known: for each case several outcomes, each a few rows, whose weights sum to one over the case.

    An outcome has one row, unless evidence is a range: then as many as stand for the range. ``listed``: outcomes are
    all that can be, each with its probability; otherwise the same number of draws for each case, together.
    """

    case: Int[Tensor, " outcomes"]
    values: Float[Tensor, "outcomes rows variables"]
    known: Bool[Tensor, "outcomes variables"]
    weight: Float[Tensor, "outcomes rows"]
    listed: bool

    @property
    def rows(self) -> int:
        """Rows of one outcome."""
        return self.weight.shape[1]

    def take(self, index: Int[Tensor, " some"]) -> Futures:
        """Some outcomes, by their numbers."""
        return Futures(self.case[index], self.values[index], self.known[index], self.weight[index], self.listed)

    def knowing(self, variable: int, answers: Float[Tensor, " outcomes"]) -> Futures:
        """With the answers of a variable, where it is not known yet."""
        new = ~self.known[:, variable]
        values, known = self.values.clone(), self.known.clone()
        values[new, :, variable] = answers[new, None]
        known[:, variable] = True
        return Futures(self.case, values, known, self.weight, self.listed)

    def weighing(self, weight: Float[Tensor, "outcomes rows"], case: Int[Tensor, " outcomes"] | None = None) -> Futures:
        """With other weights, and of other cases if said so."""
        return Futures(self.case if case is None else case, self.values, self.known, weight, self.listed)


def together(parts: Sequence[Futures], cases: int) -> Futures:
    """Several sets of futures as one: case k of part number n becomes case ``n * cases + k``."""
    return Futures(
        torch.cat([part.case + number * cases for number, part in enumerate(parts)]),
        torch.cat([part.values for part in parts]),
        torch.cat([part.known for part in parts]),
        torch.cat([part.weight for part in parts]),
        parts[0].listed,
    )


def exactly(values: Float[Tensor, "cases variables"], known: Bool[Tensor, "cases variables"]) -> Futures:
    """Nothing answered yet, and everything said is exact."""
    one = torch.ones(len(values), 1, dtype=torch.float64)
    return Futures(torch.arange(len(values)), values.double()[:, None], known, one, listed=True)


def under_ranges(particles: Particles, rows: int, generator: torch.Generator) -> Futures:
    """Nothing answered yet, and weighted draws stand for ranges: as many of equal weight, spread evenly over them."""
    weights = torch.as_tensor(particles.weights)
    # Beside each other in the variables that were drawn, so that evenly spaced ones are spread over the ranges.
    varying = (particles.values != particles.values[:1]).any(dim=0).nonzero()[:, 0].tolist()
    order = torch.arange(len(weights))
    for variable in reversed(varying):
        order = order[particles.values[order, variable].argsort(stable=True)]
    total = weights[order].cumsum(0)
    levels = (torch.arange(rows) + torch.rand(1, generator=generator, dtype=torch.float64)) / rows
    chosen = order[torch.searchsorted(total, levels * total[-1]).clamp(max=len(total) - 1)]
    weight = torch.full((1, rows), 1 / rows, dtype=torch.float64)
    return Futures(
        torch.zeros(1, dtype=torch.int64), particles.values[chosen][None], particles.known[None], weight, True
    )


class Simulation:
    """Lists or draws the answers to measurements."""

    def __init__(self, model: AnyOrderModel, draws: int, seed: int, most: int) -> None:
        self.model, self.draws, self.most = model, draws, most
        self.generator = torch.Generator().manual_seed(seed)
        self._levels: dict[tuple[int, int], Tensor] = {}
        steps = (torch.arange(draws) + torch.rand(1, generator=self.generator, dtype=torch.float64)) / draws
        self.first_levels = (steps.square() * (3 - 2 * steps)).clamp(1e-9, 1 - 1e-9)
        self.first_weights = steps * (1 - steps) / (steps * (1 - steps)).sum()

    def levels(self, count: int, position: int) -> Float[Tensor, " count"]:
        """Stratified levels in random order; the same for whoever asks for this position."""
        if (count, position) not in self._levels:
            jitter = torch.rand(count, generator=self.generator, dtype=torch.float64)
            level = (torch.arange(count) + jitter) / count
            self._levels[count, position] = level[torch.randperm(count, generator=self.generator)]
        return self._levels[count, position]

    def can_list(self, group: Group) -> bool:
        """Whether the answers to these are few enough to be listed."""
        sizes = [len(self.model.schema.variables[variable].levels) for variable in group]
        return all(sizes) and math.prod(sizes) <= self.most

    def outcomes(
        self, start: Futures, group: Group, beside: Tensor | None = None, *, listed: bool | None = None
    ) -> Futures:
        """The answers of a group; ``beside``, if given, holds features of all variables at the start."""
        futures, listed = start, self.can_list(group) if listed is None else listed
        for position, variable in enumerate(group):
            features = beside[:, :, variable] if position == 0 and beside is not None else None
            if features is None:
                features = self.features(futures, variable)
            if listed:
                futures = self._listed(futures, variable, features)
            else:
                futures = self._drawn(futures, variable, features, position)
        return Futures(futures.case, futures.values, futures.known, futures.weight, listed)

    def _listed(self, futures: Futures, variable: int, features: Tensor) -> Futures:
        """Every outcome once for each level, with its probability."""
        count = len(self.model.schema.variables[variable].levels)
        chance = self._of_levels(features, variable)
        repeated = futures.take(torch.arange(len(futures.case)).repeat_interleave(count))
        codes = torch.arange(count, dtype=torch.float64).repeat(len(futures.case))
        same = (codes[:, None] == repeated.values[:, :, variable]).double()
        chance = torch.where(repeated.known[:, variable, None], same, chance.movedim(-1, 1).flatten(0, 1))
        return repeated.knowing(variable, codes).weighing(repeated.weight * chance)

    def _of_levels(self, features: Float[Tensor, "outcomes rows width"], variable: int) -> Tensor:
        """The probability of every level, [outcomes, rows, levels]."""
        none = Cells(self.model, variable, torch.zeros(1, 0, dtype=torch.float64))
        flat = features.flatten(0, 1)
        return none.probabilities(flat, torch.zeros(len(flat), dtype=torch.int64)).view(*features.shape[:2], -1)

    def _drawn(self, futures: Futures, variable: int, features: Tensor, position: int) -> Futures:
        """One more answer drawn: at first as many as there are draws for every case, then one for every outcome."""
        levels, share = self.levels(self.draws, position), None
        if position == 0:
            index = torch.arange(len(futures.case)).repeat_interleave(self.draws)
            futures, features = futures.take(index), features[index]
            levels, share = self.first_levels, self.first_weights.repeat(len(index) // self.draws)
        count = len(futures.case) // self.draws
        picked = self._pick(futures.weight, self.levels(self.draws, -1 - position).repeat(count))
        chosen = features[torch.arange(len(picked)), picked]
        answers = doubled(self.model, chosen, variable).quantile(levels.repeat(count)).double()
        weight = futures.weight * (1.0 if share is None else share[:, None])
        return futures.weighing(self._after(futures, variable, features, answers, weight)).knowing(variable, answers)

    def _after(
        self, futures: Futures, variable: int, features: Tensor, answers: Tensor, weight: Float[Tensor, "outcomes rows"]
    ) -> Float[Tensor, "outcomes rows"]:
        """The weights of the rows of each outcome once it has answered; an outcome keeps its weight as a whole."""
        if futures.rows == 1:
            return weight
        distribution = doubled(self.model, features.flatten(0, 1), variable)
        nats = distribution.log_prob(answers.repeat_interleave(futures.rows)).double().view(weight.shape)
        nats = nats.masked_fill(futures.known[:, variable, None], 0.0) + weight.log()
        share = (nats - nats.amax(dim=1, keepdim=True)).exp()
        return share / share.sum(dim=1, keepdim=True) * weight.sum(dim=1, keepdim=True)

    @staticmethod
    def _pick(weight: Float[Tensor, "outcomes rows"], levels: Float[Tensor, " outcomes"]) -> Int[Tensor, " outcomes"]:
        """One row of each outcome, by the rows' weights."""
        if weight.shape[1] == 1:
            return torch.zeros(len(weight), dtype=torch.int64)
        total = weight.cumsum(dim=1)
        return torch.searchsorted(total, (levels * total[:, -1])[:, None])[:, 0].clamp(max=weight.shape[1] - 1)

    def values(
        self, futures: Futures, target: int, features: Tensor, cases: int, paths: int
    ) -> Float[Tensor, "paths values"]:
        """The values of a target by which every path goes on: all of them, or some that are drawn."""
        here = cases * paths
        if futures.listed:
            count = len(self.model.schema.variables[target].levels)
            return torch.arange(count, dtype=torch.float64).expand(here, -1)
        outcomes = len(futures.case) // here
        count = 1 if paths > 1 else max(2, min(outcomes, PATHS // (outcomes * futures.rows)))
        # Each path begins in one outcome, by their weights, and takes a value from there.
        level = (torch.arange(paths * count) + 0.5) / (paths * count)
        level = level if paths == 1 else self.levels(paths * count, -200)
        total = futures.weight.sum(dim=1).view(here, outcomes).cumsum(dim=1)
        level = (level.repeat(cases).view(here, count) * total[:, -1:]).contiguous()
        begun = torch.searchsorted(total, level).clamp(max=outcomes - 1) + torch.arange(here)[:, None] * outcomes
        begun = begun.flatten()
        picked = self._pick(futures.weight[begun], self.levels(paths * count, -100).repeat(cases))
        quantile = self.levels(paths * count, 100 + target).repeat(cases)
        drawn = doubled(self.model, features[begun, picked], target).quantile(quantile).double()
        return drawn.where(~futures.known[begun, target], futures.values[begun, picked, target]).view(here, count)

    def knowing(
        self, futures: Futures, target: int, features: Tensor, value: Float[Tensor, "paths values"]
    ) -> tuple[Futures, Float[Tensor, " paths"]]:
        """Futures that also know a target: every path goes on as one for each of its values, with its probability.

        Each path is a case of its own, in which outcomes and rows have the weights that the value leaves them.
        """
        (here, count), outcomes = value.shape, len(futures.case) // len(value)
        index = torch.arange(len(futures.case)).view(here, 1, outcomes).expand(-1, count, -1).flatten()
        path = torch.arange(here * count).repeat_interleave(outcomes)
        values, known = value.flatten()[path], futures.known[index, target]
        distribution = doubled(self.model, features[index].flatten(0, 1), target)
        nats = distribution.log_prob(values.repeat_interleave(futures.rows)).double().view(len(index), -1)
        same = torch.where(values[:, None] == futures.values[index, :, target], 0.0, -torch.inf)
        nats = torch.where(known[:, None], same, nats) + futures.weight[index].log()
        top = nats.view(here * count, -1).amax(dim=1).clamp(min=-1e300)
        weight = (nats - top[path, None]).exp()
        whole = weight.view(here * count, -1).sum(dim=1)
        weight = weight / whole.clamp(min=LEAST)[path, None]
        chance = whole * top.exp() if futures.listed else torch.full_like(whole, 1 / count)
        return futures.take(index).knowing(target, values).weighing(weight, path), chance

    def beside(self, futures: Futures) -> Float[Tensor, "outcomes rows variables width"]:
        """Features of every variable in every future."""
        device, rows = self.model.device, futures.rows
        values, known = futures.values.flatten(0, 1), futures.known.repeat_interleave(rows, dim=0)
        parts = [
            self.model.features_beside(values[part].to(device), known[part].to(device)).double().cpu()
            for part in row_chunks(self.model, len(values))
        ]
        found = torch.cat(parts)
        return found.view(len(futures.case), rows, *found.shape[1:])

    def features(self, futures: Futures, variable: int) -> Float[Tensor, "outcomes rows width"]:
        """Features of one variable in every future."""
        values, known = futures.values.flatten(0, 1), futures.known.repeat_interleave(futures.rows, dim=0)
        return features_in(self.model, values, known, variable).view(*futures.weight.shape, -1)


def features_in(
    model: AnyOrderModel, values: Float[Tensor, "rows variables"], known: Bool[Tensor, "rows variables"], variable: int
) -> Float[Tensor, "rows width"]:
    parts = [
        model.features_of(values[part].to(model.device), known[part].to(model.device), variable).double().cpu()
        for part in row_chunks(model, len(values))
    ]
    return torch.cat(parts)
