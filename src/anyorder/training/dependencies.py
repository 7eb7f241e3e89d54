r"""Functional dependencies: columns that fix others, found in the rows and put around a model.

Column j fixes column i if each level b of j comes with one level f(b) of i, the most frequent one beside it. How often
that fails is counted with every row judged by the *other* rows of its level (leave one out), so that levels seen once
prove nothing:

$$r = \frac{\text{failures} + 1/2}{\text{rows} + 1}.$$

It is a dependency if r is small, in itself and against the failures of always saying the most frequent level, and if
there were rows enough for many failures.

The levels that f rules out are then held below a limit l, where the model alone, asked random questions, gives them
more. With m their mass in a question, each question standing for so many rows of the table, it is the limit under which
what happened is most probable,

$$\sum_{\text{failed}} \log \min(m, l) + \sum_{\text{held}} \log(1 - \min(m, l)),$$

with half a failure more, of which the model knew as little as of any row. So a dependency that never fails is believed
as far as its rows allow, and where the model knows better than a noisy one when it fails, there is no limit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.model import AnyOrderModel, row_chunks
from anyorder.model.dependent import dependent
from anyorder.networks.dependent import LEAST_LIMIT, Dependency
from anyorder.training.rows import Rows
from anyorder.training.trees.growing import beside_context, random_subsets

MOST_FAILURES = 0.02  # of the rows,
OF_CHANCE = 0.1  # and of the failures of the most frequent level
FEWEST_BY_CHANCE = 25.0  # failures that chance would have made: none is then an accident in e^25
SCREENED = 4_000  # rows on which all pairs are tried before those that pass are counted on all rows
MOST_COLUMNS = 100  # with levels, above which pairs are too many to be tried
QUESTIONS = 1_500  # about a variable, by which the model is judged,
FAILURES = 200  # and rows of each dependency in which it failed, if there are so many
GRID = 481  # limits that are tried
WORTH = 0.5  # nats, over the whole table, that the limit of a dependency with exceptions must bring


@dataclass(frozen=True, eq=False)
class Found:
    """That ``source`` fixes ``target``: the level that goes with each level (-1: none was seen), and how often not."""

    source: int
    target: int
    image: Int[np.ndarray, " levels"]
    rows: int
    failures: int

    @property
    def rate(self) -> float:
        return (self.failures + 0.5) / (self.rows + 1)


def with_dependencies(model: AnyOrderModel, rows: Rows, seed: int) -> tuple[AnyOrderModel, list[dict[str, Any]]]:
    """The model with the dependencies of these rows around it, and what to say of them; itself where there are none."""
    found = find_dependencies(model, rows)
    if not found:
        return model, []
    limits = _limits(model, rows, found, seed)
    dependencies = [
        Dependency(one.source, one.target, tuple(one.image.tolist()), forward, backward)
        for one, (forward, backward) in zip(found, limits, strict=True)
        if min(forward, backward) < 1
    ]
    if not dependencies:
        return model, []
    names = model.schema.names
    said = [
        {"column": names[one.target], "fixed_by": names[one.source], "rows": one.rows, "exceptions": one.failures}
        for one in found
    ]
    return dependent(model, dependencies), said


def find_dependencies(model: AnyOrderModel, rows: Rows) -> list[Found]:
    """Every pair of columns with levels of which one fixes the other."""
    variables = model.schema.variables
    columns = [index for index, one in enumerate(variables) if len(one.levels) > 1 and not one.indicates]
    if not 2 <= len(columns) <= MOST_COLUMNS:
        return []
    levels = [len(variable.levels) for variable in variables]
    codes = {column: rows.values[:, column].long().numpy() for column in columns}
    known = {column: rows.observed[:, column].numpy() for column in columns}
    some = np.random.default_rng(0).permutation(len(rows))[:SCREENED]
    found = []
    for source, target in itertools.permutations(columns, 2):
        if variables[source].context and variables[target].context:
            continue
        for chosen, strict in ((some, False), (slice(None), True)):
            both = known[source][chosen] & known[target][chosen]
            pair = codes[source][chosen][both], codes[target][chosen][both]
            one, by_chance = _counted(source, target, *pair, levels[source], levels[target])
            # A part of the rows may have too few of a level to prove anything, and only rules out what fails often.
            if one.failures > 2 * MOST_FAILURES * one.rows + 5:
                break
            enough = by_chance >= FEWEST_BY_CHANCE and one.rate <= min(MOST_FAILURES, OF_CHANCE * by_chance / one.rows)
            if strict and enough:
                found.append(one)
    return found


def _counted(
    source: int, target: int, given: Int[np.ndarray, " rows"], asked: Int[np.ndarray, " rows"], many: int, few: int
) -> tuple[Found, float]:
    """The best image, its failures, and how many the most frequent level alone would have."""
    pairs, counts = np.unique(given * few + asked, return_counts=True)
    levels, answers = pairs // few, pairs % few
    # By level, the most frequent answer first: the second of a level is what its rows are judged against.
    order = np.lexsort((-counts, levels))
    levels, answers, counts = levels[order], answers[order], counts[order]
    first = np.r_[True, levels[1:] != levels[:-1]]
    image = np.full(many, -1)
    image[levels[first]] = answers[first]
    total = np.bincount(levels, counts, many).astype(np.int64)
    best = np.zeros(many, dtype=np.int64)
    best[levels[first]] = counts[first]
    second = np.zeros(many, dtype=np.int64)
    follows = np.r_[False, first[:-1]] & ~first
    second[levels[follows]] = counts[follows]
    # A row of the most frequent answer is right if that is still the most frequent one without it.
    failures = np.where(best - 1 >= second, total - best, total)
    counted = total >= 2
    rows = int(total[counted].sum())
    judged = counted[given]
    frequent = np.bincount(asked[judged], minlength=few).max(initial=0)
    return Found(source, target, image, rows, int(failures[counted].sum())), float(rows - frequent)


def _limits(model: AnyOrderModel, rows: Rows, found: Sequence[Found], seed: int) -> list[tuple[float, float]]:
    """The limits of every dependency, forward and backward."""
    views: dict[int, list[_View]] = {}
    for one in found:
        for asked, given in ((one.target, one.source), (one.source, one.target)):
            if not model.schema.variables[asked].context:
                views.setdefault(asked, []).append(_View(one, given))
    limits: dict[tuple[Found, int], float] = {}
    for variable, own in views.items():
        generator = np.random.default_rng([seed, 11, variable])
        for view, masses in zip(own, _masses(model, rows, variable, own, generator), strict=True):
            limits[view.found, view.given] = _limit(*masses)
    # Of context nothing is asked, so nothing is held back.
    return [(limits.get((one, one.source), 1.0), limits.get((one, one.target), 1.0)) for one in found]


@dataclass(frozen=True)
class _View:
    """A dependency as seen from one of its two columns, which is ``given``."""

    found: Found
    given: int

    def ruled_out(self, code: Int[Tensor, " rows"], levels: int) -> Bool[Tensor, "rows levels"]:
        """The levels of the other column that do not go with these levels of the one given."""
        image = torch.as_tensor(self.found.image)
        if self.given != self.found.source:
            return (image != code[:, None]) & (image >= 0)
        answer = image[code][:, None]
        return (torch.arange(levels) != answer) & (answer >= 0)

    def failed(self, rows: Rows) -> Bool[np.ndarray, " rows"]:
        """Rows in which it does not hold."""
        known = rows.observed[:, self.found.source] & rows.observed[:, self.found.target]
        image = torch.as_tensor(self.found.image)[rows.values[:, self.found.source].where(known, 0.0).long()]
        return (known & (image >= 0) & (image != rows.values[:, self.found.target])).numpy()


@torch.no_grad()
def _masses(
    model: AnyOrderModel, rows: Rows, variable: int, views: Sequence[_View], generator: np.random.Generator
) -> Iterator[tuple[_Asked, _Asked]]:
    """What the model alone gives to the levels ruled out, where each dependency held and where it failed."""
    there = rows.observed[:, variable].numpy()
    chosen: list[np.ndarray] = []
    given: list[int] = []
    for view in views:
        both = there & rows.observed[:, view.given].numpy()
        failed = view.failed(rows)
        for some, most in ((both & failed, FAILURES), (both & ~failed, max(QUESTIONS // len(views), FAILURES))):
            taken = generator.permutation(np.flatnonzero(some))[:most]
            chosen.append(taken)
            given += [view.given] * len(taken)
    asked = rows.take(torch.as_tensor(np.concatenate(chosen)))
    layout = model.network.layout
    some = beside_context(layout, random_subsets(len(asked), len(layout.answered), generator))
    known = torch.as_tensor(some) & asked.observed
    known[torch.arange(len(asked)), torch.tensor(given, dtype=torch.long)] = True
    known[:, variable] = False
    probabilities = _level_probabilities(model, asked, known, variable)
    ends = np.cumsum([0, *(len(part) for part in chosen)])
    for number, view in enumerate(views):
        both = there & rows.observed[:, view.given].numpy()
        failed = view.failed(rows)
        parts = []
        for index, some in ((2 * number + 1, both & ~failed), (2 * number, both & failed)):
            part = slice(ends[index], ends[index + 1])
            out = view.ruled_out(asked.values[part, view.given].long(), probabilities.shape[1])
            parts.append(_Asked((probabilities[part] * out).sum(dim=1).clamp(0, 1), int(some.sum())))
        yield parts[0], parts[1]


@dataclass(frozen=True)
class _Asked:
    """Masses of levels ruled out, in questions that stand for so many rows."""

    mass: Float[Tensor, " questions"]
    rows: int

    def log_likelihood(self, log: Callable[[Tensor], Tensor], limit: Float[Tensor, " limits"]) -> Tensor:
        if not len(self.mass):
            return torch.zeros_like(limit)
        return self.rows * log(torch.minimum(self.mass[:, None], limit).clamp(LEAST_LIMIT, 1 - LEAST_LIMIT)).mean(dim=0)


def _level_probabilities(
    model: AnyOrderModel, rows: Rows, known: Tensor, variable: int
) -> Float[Tensor, "rows levels"]:
    levels = torch.arange(model.heads.of(variable).levels, dtype=torch.float32)
    parts = []
    for part in row_chunks(model, len(rows)):
        features = model.features_of(rows.values[part], known[part], variable)
        law = model.heads.distribution(features, variable)
        parts.append(law.log_prob(levels[:, None].expand(-1, len(features))).double().exp().T)
    return torch.cat(parts)


def _limit(held: _Asked, failed: _Asked) -> float:
    """The limit under which what held and what failed is most probable; 1 where none is worth having."""
    limit = torch.logspace(math.log10(LEAST_LIMIT), 0, GRID, dtype=torch.float64)[:-1]
    limit = torch.cat([limit, torch.ones(1, dtype=torch.float64)])
    found = held.log_likelihood(lambda mass: torch.log1p(-mass), limit) + failed.log_likelihood(torch.log, limit)
    half = 0.5 * held.log_likelihood(torch.log, limit) / max(held.rows, 1)
    best = int((found + half)[:-1].argmax())
    if failed.rows:
        return float(limit[best]) if bool(found[best] - found[-1] > WORTH) else 1.0
    # What never failed is held to also where these questions did not need it: others are further from the rows.
    return max(float(limit[best]), 0.5 / (held.rows + 1)) if held.rows else 1.0
