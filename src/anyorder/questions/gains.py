r"""What a measurement is expected to tell: how far the target's distribution is expected to move when it is made.

$$\mathrm{gain}(c) = U(\bar p) - E_{x_c}\,[U(t \mid e, x_c)] = E_{x_c}\,[\,d(p(t \mid e, x_c), \bar p)\,], \qquad
\bar p(t) = E_{x_c \sim p(\cdot \mid e)}\,[\,p(t \mid e, x_c)\,],$$

mutual information (SFARM eq. 15) if U is entropy and so d the Kullback-Leibler divergence. Since $\bar p$ is the mean
of the very distributions that are compared with it, no gain is below zero, with however few draws. A model that
contradicts itself has another $p(t \mid e)$ than $\bar p$; d between the two is the contradiction:

$$E\,[\,d(p(t \mid e, x_c), p(t \mid e))\,] = \mathrm{gain}(c) + d(\bar p, p(t \mid e)).$$

What is drawn is the left side; the last term is taken off it and told apart.

Information is symmetric, I(t; c) = I(c; t), but a learned model need not be: one way draws x_c and asks for t, the
other draws t and asks for x_c. The gain is the mean of both ways, half their difference part of the doubt about it.

The inner distributions are exact (:mod:`.cells`); only the answers x_c are drawn, unless all can be listed
(:mod:`.futures`). Neighbouring draws make pairs, and half their squared differences are a variance that does not
pretend that the draws were independent (it errs upwards).

Several targets are a chain, I(c; t_1) + E I(c; t_2 | t_1) + ..., where telling t_1 changes the weights of the answers.
Many cases, candidates and draws are one batch: a network is asked a few times in all, not once a candidate.
Everything is in model units.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.distributions.sums import lattice_of
from anyorder.model import AnyOrderModel
from anyorder.questions.cells import Cells
from anyorder.questions.estimate import EXACT, Estimate
from anyorder.questions.futures import LEAST, Futures, Simulation, exactly, features_in, together, under_ranges
from anyorder.questions.particles import Particles, doubled
from anyorder.questions.uncertainty import Uncertainty
from anyorder.support.threads import answering
from anyorder.variables.schema import Group

CELLS = 256  # of a target on a line,
CELLS_UNDER_RANGES = 96  # or where there are many more rows
GROUPS = 4  # parts of the rows of a range, left out one after the other to see what hangs on them
MANY_CANDIDATES = 3  # from here on one call for all variables is cheaper than one for each candidate
TRACE = 1e-6  # of what comes after, mixed into what was before
ROWS_OF_LATTICES, ROWS_OF_LINES = 128, 2048  # distributions whose uncertainty is computed at once


@dataclass(frozen=True)
class Goal:
    """The variables to learn about, and how their uncertainty is counted."""

    targets: Group
    uncertainty: Uncertainty


@dataclass(frozen=True)
class Gain:
    """What one candidate is expected to tell about each of some cases.

    ``terms`` has a column for each draw; their mean is the gain. Where all answers were ``listed`` it has one column.
    ``further``: a standard error beside that of the draws. ``apart``: half the difference between the two ways round.
    ``contradiction``: how far the mean of the target's distributions after the answer is from the one before it.
    """

    terms: Float[Tensor, "cases draws"]
    listed: bool
    further: Float[Tensor, " cases"]
    apart: Float[Tensor, " cases"]
    contradiction: Float[Tensor, " cases"]

    @property
    def mean(self) -> Float[Tensor, " cases"]:
        return self.terms.mean(dim=1)

    @property
    def error(self) -> Float[Tensor, " cases"]:
        """The standard error of the mean: 0 where answers were listed."""
        return (paired_error(self.terms).square() + self.further.square()).sqrt()

    def estimate(self, case: int = 0) -> Estimate:
        """For one case; terms that agree to rounding are exact."""
        terms, apart = self.terms[case], float(self.apart[case])
        same = float(terms.max() - terms.min()) <= 1e-12 * float(terms.abs().max())
        if same and not float(self.further[case]):
            return Estimate(float(terms.mean()), 0.0, EXACT, apart)
        method = f"exact steps over {len(terms)} strata"
        return Estimate(float(self.mean[case]), float(self.error[case]), method, apart)


def paired_error(terms: Float[Tensor, "cases draws"]) -> Float[Tensor, " cases"]:
    """The standard error of the mean of stratified draws, from the differences of neighbouring strata."""
    pairs = terms.shape[1] // 2
    if not pairs:
        return torch.zeros(len(terms), dtype=terms.dtype)
    differences = terms[:, : 2 * pairs : 2] - terms[:, 1 : 2 * pairs : 2]
    return differences.square().sum(dim=1).sqrt() / (2 * pairs)


@answering
@torch.no_grad()
def expected_gains(
    model: AnyOrderModel,
    values: Float[Tensor, "cases variables"],
    known: Bool[Tensor, "cases variables"],
    goal: Goal,
    candidates: Sequence[Group],
    draws: int,
    seed: int = 0,
    *,
    list_up_to: int | None = None,
) -> list[Gain]:
    """The gain of every candidate (variables measured together) for every case.

    A variable that a case knows already stays as it is: a candidate that is known altogether gains nothing. Answers
    are listed where there are no more than ``list_up_to``, by default ``draws``.
    """
    start = exactly(values, known)
    return _gains(model, start, goal, candidates, draws, seed, list_up_to or draws, CELLS)


@answering
@torch.no_grad()
def ranged_gains(
    model: AnyOrderModel,
    particles: Particles,
    goal: Goal,
    candidates: Sequence[Group],
    rows: int,
    draws: int,
    seed: int = 0,
    *,
    list_up_to: int | None = None,
) -> list[Gain]:
    """The gain of every candidate for one case whose evidence has ranges, for which so many rows stand."""
    start = under_ranges(particles, rows, torch.Generator().manual_seed(seed))
    return _gains(model, start, goal, candidates, draws, seed, list_up_to or draws, CELLS_UNDER_RANGES)


@answering
@torch.no_grad()
def uncertainty_now(
    model: AnyOrderModel, values: Float[Tensor, "cases variables"], known: Bool[Tensor, "cases variables"], goal: Goal
) -> Float[Tensor, " cases"]:
    """The uncertainty of one target given what each case knows."""
    (target,) = goal.targets
    features = features_in(model, values.double(), known, target)
    # In parts of about the same size: sums over long lattices have a coarser rule for large batches.
    size = ROWS_OF_LATTICES if lattice_of(doubled(model, features[:1], target)) else ROWS_OF_LINES
    parts = [goal.uncertainty.of(model, doubled(model, part, target), target) for part in features.split(size)]
    return torch.cat(parts).masked_fill(known[:, target], 0.0)


@answering
@torch.no_grad()
def answered(
    model: AnyOrderModel,
    values: Float[Tensor, "cases variables"],
    known: Bool[Tensor, "cases variables"],
    group: Group,
    draws: int,
    seed: int = 0,
) -> Futures:
    """The futures in which a measurement has been made: all its answers if they are few enough, else draws."""
    return Simulation(model, draws, seed, draws).outcomes(exactly(values, known), group)


def _gains(
    model: AnyOrderModel,
    start: Futures,
    goal: Goal,
    candidates: Sequence[Group],
    draws: int,
    seed: int,
    most: int,
    cells: int,
) -> list[Gain]:
    """All candidates, in as few calls of the network as can be."""
    simulation = Simulation(model, draws, seed, most)
    beside = simulation.beside(start) if len(candidates) >= MANY_CANDIDATES else None
    found: list[Gain | None] = [None] * len(candidates)
    listed = [simulation.can_list((*group, *_answered(goal.targets, goal))) for group in candidates]
    forward = _Comparison(simulation, goal.uncertainty, cells)
    for way in sorted(set(listed)):
        here = [number for number, one in enumerate(listed) if one is way]
        futures = [simulation.outcomes(start, candidates[number], beside, listed=way) for number in here]
        for number, told in zip(here, forward.told(start, futures, goal.targets), strict=True):
            found[number] = told
    gains = [gain for gain in found if gain is not None]
    if not goal.uncertainty.symmetric:
        return gains
    # The other way round: draws of the targets, the same for all candidates, and what they tell of each.
    back = Simulation(model, draws, seed, most)
    backward = _Comparison(back, goal.uncertainty, cells)
    listed = [back.can_list((*goal.targets, *_answered(group, goal))) for group in candidates]
    for way in sorted(set(listed)):
        here = [number for number, one in enumerate(listed) if one is way]
        drawn = back.outcomes(start, goal.targets, listed=way)
        features = back.beside(drawn) if len(here) >= MANY_CANDIDATES else None
        for number in here:
            first = None if features is None else features[:, :, candidates[number][0]]
            told = backward.told(start, [drawn], candidates[number], first)[0]
            both = _both_ways(gains[number], told)
            if not both.listed and len(goal.targets) + len(candidates[number]) > 2:
                # Down a chain the weights of the draws are random too: two estimates of one number tell how far.
                both = dataclasses.replace(both, further=(both.further.square() + both.apart.square()).sqrt())
            gains[number] = both
    return gains


def _both_ways(one: Gain, other: Gain) -> Gain:
    """The mean of two ways to the same gain."""
    few, many = sorted((one.terms, other.terms), key=lambda terms: terms.shape[1])
    return Gain(
        terms=(many + (few if few.shape == many.shape else few.mean(dim=1, keepdim=True))) / 2,
        listed=one.listed and other.listed,
        further=(one.further.square() + other.further.square()).sqrt() / 2,
        apart=(one.mean - other.mean).abs() / 2,
        contradiction=one.contradiction,
    )


def _answered(targets: Group, goal: Goal) -> Group:
    """The targets that others are asked about given them: all but the last of a chain."""
    return targets[:-1] if goal.uncertainty.chained else ()


@dataclass(frozen=True)
class _Moved:
    """Each outcome's distance from the start times its weight; that of their mean, and the squared error of a range."""

    losses: Float[Tensor, " outcomes"]
    contradiction: Float[Tensor, " owners"]
    error: Float[Tensor, " owners"]


class _Comparison:
    """Sets what is believed of targets in some futures against what was believed before."""

    def __init__(self, simulation: Simulation, uncertainty: Uncertainty, cells: int) -> None:
        self.simulation, self.uncertainty, self.cells = simulation, uncertainty, cells

    def told(self, start: Futures, parts: Sequence[Futures], targets: Group, first: Tensor | None = None) -> list[Gain]:
        """What each set of futures tells about the targets; ``first``: features of the first target, if known."""
        cases = len(start.case)
        futures = together(parts, cases)
        features = self.simulation.features(futures, targets[0]) if first is None else first
        before = self.simulation.features(start, targets[0])
        moved = self._moved(start, before, futures, features, targets[0])
        shape = (len(parts), cases)
        if futures.listed:
            terms = torch.zeros(len(moved.error), dtype=torch.float64).index_add(0, futures.case, moved.losses)
            terms = terms.view(*shape, 1)
        else:
            terms = moved.losses.view(*shape, self.simulation.draws) * self.simulation.draws
        terms = terms - moved.contradiction.view(*shape, 1)
        error = moved.error.view(shape)
        if len(targets) > 1:
            split = features.split([len(part.case) for part in parts])
            rest = [self._rest(start, before, *part, targets) for part in zip(parts, split, strict=True)]
            terms = terms + torch.stack([gained for gained, _ in rest])
            error = error + torch.stack([squared for _, squared in rest])
        apart = torch.zeros(cases, dtype=torch.float64)
        found = zip(terms, error.sqrt(), moved.contradiction.view(shape), strict=True)
        return [Gain(each, futures.listed, further, apart, differs) for each, further, differs in found]

    def _moved(self, start: Futures, before: Tensor, futures: Futures, features: Tensor, target: int) -> _Moved:
        """How far each outcome moves the target from where it was at the start, and how far all do together."""
        cases, owner = len(start.case), futures.case
        owners, case = int(owner.max()) + 1, owner % cases
        cells = self._cells(case, target, features, cases)
        profile = self.uncertainty.profile(cells, features.flatten(0, 1), case.repeat_interleave(futures.rows))
        profile = profile.view(*futures.weight.shape, -1)
        row = start.case.repeat_interleave(start.rows)
        now = self.uncertainty.profile(cells, before.flatten(0, 1), row).view(*start.weight.shape, -1)
        now = (start.weight[..., None] * now).sum(dim=1)
        known = futures.known[:, target]
        which = torch.arange(owners) % cases
        halves = [torch.arange(len(owner)) % 2 == half for half in (0, 1)]

        def found(weight: Float[Tensor, "outcomes rows"]) -> tuple[Tensor, Tensor]:
            whole = weight.sum(dim=1)
            summed = (weight[..., None] * profile).sum(dim=1)

            def mean_of(some: Bool[Tensor, " outcomes"]) -> Float[Tensor, "owners numbers"]:
                mean = torch.zeros(owners, summed.shape[1], dtype=torch.float64).index_add(0, owner[some], summed[some])
                total = torch.zeros(owners, dtype=torch.float64).index_add(0, owner[some], whole[some])
                return mean / total.clamp(min=LEAST)[:, None]

            mean = mean_of(torch.ones_like(known))
            # Where the start has nothing at all a loss is still finite.
            from_ = (1 - TRACE) * now[which] + TRACE * mean
            own = summed / whole.clamp(min=LEAST)[:, None]
            losses = whole * self.uncertainty.losses(cells, case, own, from_[owner])
            differs = self.uncertainty.losses(cells, which, mean, from_)
            if not futures.listed:
                # A mean of few draws differs from the start by chance, one of half as many twice as much.
                by_half = [self.uncertainty.losses(cells, which, mean_of(half), from_) for half in halves]
                differs = torch.minimum((2 * differs - (by_half[0] + by_half[1]) / 2).clamp(min=0.0), differs)
            return losses.masked_fill(known, 0.0), differs.masked_fill(start.known[which, target], 0.0)

        losses, contradiction = found(futures.weight)
        error = torch.zeros(owners, dtype=torch.float64)
        if futures.rows >= 2 * GROUPS:
            sums = []
            for group in range(GROUPS):
                left = futures.weight * (torch.arange(futures.rows) % GROUPS != group)
                scale = futures.weight.sum(dim=1) / left.sum(dim=1).clamp(min=LEAST)
                without, differs = found(left * scale[:, None])
                sums.append(torch.zeros_like(error).index_add(0, owner, without) - differs)
            error = torch.stack(sums).var(dim=0, unbiased=False) * (GROUPS - 1)
        return _Moved(losses, contradiction, error)

    def _cells(self, case: Int[Tensor, " outcomes"], target: int, features: Tensor, cases: int) -> Cells:
        """Shared by all candidates of one case; every case has as many rows."""
        order = case.repeat_interleave(features.shape[1]).argsort(stable=True)
        by_case = features.flatten(0, 1)[order].view(cases, -1, features.shape[-1])
        return Cells.of(self.simulation.model, target, by_case, self.cells, self.simulation.generator)

    def _rest(
        self, start: Futures, before: Tensor, futures: Futures, features: Tensor, targets: Group
    ) -> tuple[Float[Tensor, "cases draws"], Float[Tensor, " cases"]]:
        """What is told about the targets behind the first, by draw unless all is listed, and its squared error."""
        cases, outcomes = len(start.case), 1 if futures.listed else self.simulation.draws
        gained, error = torch.zeros(cases, outcomes, dtype=torch.float64), torch.zeros(cases, dtype=torch.float64)
        share = torch.ones(cases, 1, dtype=torch.float64)  # of every path of each case
        for told, asked in itertools.pairwise(targets):
            value = self.simulation.values(futures, told, features, cases, share.shape[1])
            futures, chance = self.simulation.knowing(futures, told, features, value)
            start, _ = self.simulation.knowing(start, told, before, value)
            share = (share[..., None] * chance.view(*share.shape, -1)).flatten(1)
            features, before = self.simulation.features(futures, asked), self.simulation.features(start, asked)
            moved = self._moved(start, before, futures, features, asked)
            losses = moved.losses.view(*share.shape, -1)
            each = losses.sum(dim=-1) - moved.contradiction.view(share.shape)
            if futures.listed:
                gained = gained + (share * each).sum(dim=1, keepdim=True)
            else:  # each draw has its part in every path, and their differences are what draws are uncertain by
                parts = (share[..., None] * losses).sum(dim=1) * outcomes
                gained = gained + parts - (share * moved.contradiction.view(share.shape)).sum(dim=1, keepdim=True)
                error = error + paired_error(each).square()
            error = error + (share * moved.error.view(share.shape).sqrt()).sum(dim=1).square()
        return gained, error
