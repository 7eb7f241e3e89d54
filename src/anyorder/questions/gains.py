r"""What a measurement is expected to tell: the target's uncertainty now, minus its expected uncertainty afterwards.

$$\mathrm{gain}(c) = U(t \mid e) - E_{x_c \sim p(\cdot \mid e)}\,[\,U(t \mid e, x_c)\,],$$

mutual information (SFARM eq. 15) if U is entropy. The inner U is exact, of a one-dimensional distribution; only the
answers x_c are drawn. Where all answers can be listed they are, each with its probability, and nothing is drawn. Else
the draws are stratified, at the same quantiles for all candidates, so that candidates are compared under common random
numbers; neighbouring strata make pairs, and half their squared differences are a variance that does not pretend that
the draws were independent (it errs upwards).

Many cases, candidates and draws are one batch: a network is asked a few times in all, not once a candidate.
Everything is in model units.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.distributions.sums import lattice_of
from anyorder.model import AnyOrderModel, row_chunks
from anyorder.questions.estimate import Estimate
from anyorder.questions.particles import doubled
from anyorder.questions.uncertainty import Uncertainty
from anyorder.support.threads import answering
from anyorder.variables.schema import Group

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
    """

    terms: Float[Tensor, "cases draws"]
    listed: bool

    @property
    def mean(self) -> Float[Tensor, " cases"]:
        return self.terms.mean(dim=1)

    @property
    def error(self) -> Float[Tensor, " cases"]:
        """The standard error of the mean: 0 where answers were listed."""
        return paired_error(self.terms)

    def estimate(self, case: int = 0) -> Estimate:
        """For one case; terms that agree to rounding are exact."""
        terms = self.terms[case]
        if float(terms.max() - terms.min()) <= 1e-12 * float(terms.abs().max()):
            return Estimate(float(terms.mean()))
        return Estimate(float(self.mean[case]), float(self.error[case]), f"exact steps over {len(terms)} strata")

    def joined(self, more: Gain) -> Gain:
        """With further draws of the same kind."""
        return Gain(torch.cat([self.terms, more.terms], dim=1), listed=False)


def paired_error(terms: Float[Tensor, "cases draws"]) -> Float[Tensor, " cases"]:
    """The standard error of the mean of stratified draws, from the differences of neighbouring strata."""
    pairs = terms.shape[1] // 2
    if not pairs:
        return torch.zeros(len(terms), dtype=terms.dtype)
    differences = terms[:, : 2 * pairs : 2] - terms[:, 1 : 2 * pairs : 2]
    return differences.square().sum(dim=1).sqrt() / (2 * pairs)


@dataclass(frozen=True)
class Futures:
    """What could become known: of each case several rows, whose weights sum to one over the case.

    ``listed``: all that can be, each with its probability; otherwise the same number of draws for each case, together.
    """

    case: Int[Tensor, " rows"]
    values: Float[Tensor, "rows variables"]
    known: Bool[Tensor, "rows variables"]
    weight: Float[Tensor, " rows"]
    listed: bool

    def repeated(self, times: int) -> Futures:
        """Every row so many times, one after the other; of equal weight together what it was."""
        case, values, known, weight = (
            part.repeat_interleave(times, dim=0) for part in (self.case, self.values, self.known, self.weight / times)
        )
        return Futures(case, values, known, weight, self.listed)


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
    simulation = _Simulation(model, draws, seed, list_up_to)
    beside = simulation.beside(values.double(), known)
    listed = [simulation.can_list((*candidate, *_answered_targets(goal))) for candidate in candidates]
    starts = {way: simulation.start(values, known, listed=way) for way in sorted(set(listed))}
    futures = [
        simulation.with_answers(starts[way], group, beside) for way, group in zip(listed, candidates, strict=True)
    ]
    # In one batch with what is left afterwards: a difference needs the same rule of summation on both sides.
    left = simulation.remaining([*starts.values(), *futures], goal, len(values))
    before, after = dict(zip(starts, left, strict=False)), left[len(starts) :]
    return [Gain(before[way] - rest, listed=way) for way, rest in zip(listed, after, strict=True)]


@answering
@torch.no_grad()
def uncertainty_now(
    model: AnyOrderModel,
    values: Float[Tensor, "cases variables"],
    known: Bool[Tensor, "cases variables"],
    goal: Goal,
    draws: int,
    seed: int = 0,
) -> Gain:
    """The target's uncertainty given what each case knows; draws are needed for a chain of targets only."""
    simulation = _Simulation(model, draws, seed)
    listed = simulation.can_list(_answered_targets(goal))
    start = simulation.start(values, known, listed=listed)
    return Gain(simulation.remaining([start], goal, len(values))[0], listed)


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
    simulation = _Simulation(model, draws, seed)
    return simulation.with_answers(simulation.start(values, known, listed=simulation.can_list(group)), group)


def _answered_targets(goal: Goal) -> Group:
    """The targets that others are asked about given them: all but the last of a chain."""
    return goal.targets[:-1] if goal.uncertainty.chained else ()


class _Simulation:
    """Lists or draws the answers to measurements, and asks what is then left to learn."""

    def __init__(self, model: AnyOrderModel, draws: int, seed: int, list_up_to: int | None = None) -> None:
        self.model, self.draws, self.most = model, draws, list_up_to or draws
        self.generator = torch.Generator().manual_seed(seed)
        self._levels: dict[int, Tensor] = {}

    def levels(self, position: int) -> Float[Tensor, " draws"]:
        """Stratified quantiles for the answer at this position of a chain; shuffled behind the first position."""
        for new in range(len(self._levels), position + 1):
            jitter = torch.rand(self.draws, generator=self.generator, dtype=torch.float64)
            level = (torch.arange(self.draws) + jitter) / self.draws
            shuffled = level[torch.randperm(self.draws, generator=self.generator)]
            self._levels[new] = shuffled if new else level
        return self._levels[position]

    def can_list(self, group: Group) -> bool:
        """Whether the answers to these are few enough to be listed."""
        sizes = [len(self.model.schema.variables[variable].levels) for variable in group]
        return all(sizes) and math.prod(sizes) <= self.most

    def start(self, values: Tensor, known: Tensor, *, listed: bool) -> Futures:
        """Nothing answered yet: each case once, or once for every draw to come."""
        one = torch.ones(len(values), dtype=torch.float64)
        futures = Futures(torch.arange(len(values)), values.double(), known, one, listed)
        return futures if listed else futures.repeated(self.draws)

    def with_answers(self, futures: Futures, group: Group, beside: Tensor | None = None) -> Futures:
        """With the answers of a group; ``beside``, if given, holds features of all variables as the cases stand."""
        for position, variable in enumerate(group):
            features = beside[futures.case, variable] if position == 0 and beside is not None else None
            futures = self.answer(futures, variable, position, features)
        return futures

    def answer(self, futures: Futures, variable: int, position: int, features: Tensor | None = None) -> Futures:
        """With one more answer, unless it is known already."""
        if features is None:
            features = self.features(futures, variable)
        distribution = doubled(self.model, features, variable)
        if futures.listed:
            count = len(self.model.schema.variables[variable].levels)
            codes = torch.arange(count, dtype=torch.float64)
            chance = distribution.log_prob(codes[:, None].expand(-1, len(features))).double().exp().T.flatten()
            futures = futures.repeated(count)
            answers = codes.repeat(len(features))
            same = (answers == futures.values[:, variable]).double()
            chance = torch.where(futures.known[:, variable], same, chance)
            futures = dataclasses.replace(futures, weight=futures.weight * count * chance)
        else:
            answers = distribution.quantile(self.levels(position).repeat(len(features) // self.draws)).double()
        new = ~futures.known[:, variable]
        values, known = futures.values.clone(), futures.known.clone()
        values[new, variable] = answers[new]
        known[:, variable] = True
        return dataclasses.replace(futures, values=values, known=known)

    def remaining(self, parts: Sequence[Futures], goal: Goal, cases: int) -> list[Float[Tensor, "cases draws"]]:
        """The uncertainty that is left in each set of futures: a column a draw, or one for the mean over a list."""
        found: dict[int, Tensor] = {}
        for listed in (True, False):
            here = [number for number, part in enumerate(parts) if part.listed is listed]
            if here:  # one batch
                found |= zip(here, self._remaining([parts[number] for number in here], goal, cases), strict=True)
        return [found[number] for number in range(len(parts))]

    def _remaining(self, parts: Sequence[Futures], goal: Goal, cases: int) -> Float[Tensor, "parts cases draws"]:
        futures = Futures(
            torch.cat([part.case for part in parts]),
            torch.cat([part.values for part in parts]),
            torch.cat([part.known for part in parts]),
            torch.cat([part.weight for part in parts]),
            parts[0].listed,
        )
        owner = torch.repeat_interleave(torch.tensor([len(part.case) for part in parts]))
        total = torch.zeros(len(parts), cases, 1 if futures.listed else self.draws, dtype=torch.float64)
        for position, target in enumerate(goal.targets):
            features = self.features(futures, target)
            left = self._uncertainty(goal, features, target)
            left = left.masked_fill(futures.known[:, target], 0.0)
            if futures.listed:
                total[:, :, 0].index_put_((owner, futures.case), left * futures.weight, accumulate=True)
            else:
                total += left.view(total.shape)
            if goal.uncertainty.chained and position < len(goal.targets) - 1:
                rows = len(futures.case)
                # Positions behind those of any candidate, so that before and after a measurement share their quantiles.
                futures = self.answer(futures, target, self.model.variables + position, features)
                owner = owner.repeat_interleave(len(futures.case) // rows)
        return total

    def _uncertainty(self, goal: Goal, features: Tensor, target: int) -> Float[Tensor, " rows"]:
        """In parts of about the same size: sums over long lattices have a coarser rule for large batches."""
        size = ROWS_OF_LATTICES if lattice_of(doubled(self.model, features[:1], target)) else ROWS_OF_LINES
        parts = features.tensor_split(math.ceil(len(features) / size))
        return torch.cat([goal.uncertainty.of(self.model, doubled(self.model, part, target), target) for part in parts])

    def beside(self, values: Tensor, known: Tensor) -> Float[Tensor, "cases variables width"]:
        """Features of every variable given what each case knows."""
        device = self.model.device
        parts = [
            self.model.features_beside(values[rows].to(device), known[rows].to(device)).double().cpu()
            for rows in row_chunks(self.model, len(values))
        ]
        return torch.cat(parts)

    def features(self, futures: Futures, variable: int) -> Float[Tensor, "rows width"]:
        """Features of one variable in every future."""
        device = self.model.device
        parts = [
            self.model.features_of(futures.values[rows].to(device), futures.known[rows].to(device), variable)
            for rows in row_chunks(self.model, len(futures.case))
        ]
        return torch.cat([part.double().cpu() for part in parts])
