r"""What is to be said of every column at once: p(x_i | evidence) for all i, from one pass and one table a column.

An :class:`~anyorder.questions.answer.Answer` is exact and answers anything, one column at a time. To look at all
columns of a table, less is enough: how much lies in each of a few dozen cells whose edges never change, so that two
pictures of a column have the same axis; the mean, the median and the central 90 %. All of it is read off the cdf F:

$$P(a < x \le b) = F(b) - F(a), \qquad E[x] = \sum_k m_k \bigl(F(b_k) - F(a_k)\bigr),$$

with m_k the middle of a cell. F is taken twice: at the edges, and at values that by these should divide it into equal
parts. What is left is the error of straight lines between those values, of about a hundredth of the spread.

Many questions are answered together, ``BLOCK`` at a time and one a row; a block that is not full is filled up. The
pass through the network is made for each question by itself, since a product of matrices rounds a row in a way that
depends on how many there are; what follows is as many numbers side by side, and always as many. So the numbers of a
question are the same to the last bit, whichever questions stand beside it, and a service may answer those together that
arrive together. Under ranges a question has a block of its own, of as many rows as there are draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.model import AnyOrderModel
from anyorder.questions.answer import as_times
from anyorder.questions.conditional import Conditional
from anyorder.questions.outline import SKEWED, WIDE
from anyorder.questions.units import one_value, shown
from anyorder.support.threads import answering
from anyorder.variables.codecs import Codec
from anyorder.variables.schema import Kind, Variable

BLOCK = 16
"""Rows that are answered together: fewer are slower for many questions, more for a single one."""

CELLS = 64
"""Into which the axis of a column is divided."""

DRAWS = 128
"""That stand for ranges among the evidence: enough for pictures."""

FINE = np.array([0.0005, 0.005, *np.linspace(0.02, 0.98, 49), 0.995, 0.9995])  # the parts, for the second time
FARTHER = (0.05, 0.15, 0.4, 1.0, 3.0, 10.0, 40.0)  # times the width of an axis: values beyond its ends, for the mean
LEVELS = (0.05, 0.5, 0.95)  # the ends of the central 90 %, and the median
ROUNDING = 1e-9
BESIDE = 1.05  # how far an axis goes beyond what was seen

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """The cells of one column, which are the same whatever is known: ``edges`` in the units of the data, days since
    1970 for times. A cell holds its upper edge and not its lower one.
    """

    edges: Numbers
    step: float  # between neighbouring values of whole numbers and days; 0 on a line
    logarithmic: bool = False


@dataclass(frozen=True, repr=False)
class Marginal:
    """What is to be said of one column given evidence.

    Parameters
    ----------
    variable
        What the schema says of the column.
    probs
        The probability of each level, or of each atom; empty for other numbers and times.
    cells
        The probability of each cell of the column's :class:`Axis`, for numbers and times; ``below`` and ``above`` is
        what lies beyond its ends.
    mean, median, low, high
        In the units of the data: the mean, the median, and the ends of the central 90 %. None where levels have none.
    best
        The most probable level; None for numbers and times.
    standard_error
        Of a probability, at most: above 0 where draws stand for ranges.

    Examples
    --------
    >>> found = model.marginals({"rooms": 6})["river"]
    >>> found.best, abs(sum(found.probs.values()) - 1) < 1e-6
    ('no', True)
    """

    variable: Variable
    probs: dict[Any, float] = field(default_factory=dict)
    cells: Numbers | None = None
    below: float = 0.0
    above: float = 0.0
    mean: Any = None
    median: Any = None
    low: Any = None
    high: Any = None
    best: Any = None
    standard_error: float = 0.0

    def __repr__(self) -> str:
        if self.best is not None:
            return f"Marginal({self.variable.name}: {self.best!r} {max(self.probs.values()):.3f})"
        low, middle, high = (shown(self.variable, value) for value in (self.low, self.median, self.high))
        return f"Marginal({self.variable.name}: median {middle}, 90 % in {low} .. {high})"


class Marginals:
    """The marginals of the columns of one model, question by question or many questions at once.

    Parameters
    ----------
    model
        The ``core`` of a table model.

    Examples
    --------
    >>> from anyorder.questions.marginals import Marginals
    >>> marginals = Marginals(model.core)
    >>> one, other = marginals.of([model.given(rooms=4), model.given(rooms=8)])
    >>> one["price"].mean < other["price"].mean
    True
    """

    def __init__(self, model: AnyOrderModel) -> None:
        self.model = model
        self._taken: dict[int, tuple[Numbers, Tensor, NDArray[np.int64]]] = {}

    @cached_property
    def axes(self) -> dict[str, Axis]:
        """The axis of every column of numbers or times, by its name."""
        schema = self.model.schema
        return {
            variable.name: _axis(self.model.encoding.codec(variable.name))
            for variable in schema.variables
            if not variable.levels
        }

    def of(
        self, questions: Sequence[Conditional], names: Sequence[Sequence[str]] | None = None
    ) -> list[dict[str, Marginal]]:
        """The marginals of each question: of the columns that it names, or of all that its evidence leaves open.

        Parameters
        ----------
        questions
            Conditionals of this model.
        names
            The columns to answer for each of them.

        Returns
        -------
        list of dict
            By the name of the column. A column of which a value is given is left out; one of which a range is given is
            not.

        Examples
        --------
        >>> from anyorder.questions.marginals import Marginals
        >>> found, = Marginals(model.core).of([model.given(rooms=6)], [["price"]])
        >>> list(found)
        ['price']
        """
        wanted = [self._wanted(one, names[at] if names else ()) for at, one in enumerate(questions)]
        found: list[dict[str, Marginal]] = [{} for _ in questions]
        exact = [at for at, one in enumerate(questions) if not one.ranged]
        for start in range(0, len(exact), BLOCK):
            block = exact[start : start + BLOCK]
            answers = self._block([questions[at] for at in block], [wanted[at] for at in block])
            for at, answer in zip(block, answers, strict=True):
                found[at] = answer
        for at, one in enumerate(questions):
            if one.ranged:
                found[at] = self._ranged(one, wanted[at])
        return found

    def _wanted(self, question: Conditional, names: Sequence[str]) -> list[int]:
        schema = self.model.schema
        known = question.exact[1][0].tolist()
        asked = map(schema.asked, names) if names else schema.answered
        return [at for at in asked if not known[at] and (names or not schema.variables[at].indicates)]

    @answering
    @torch.no_grad()
    def _block(self, questions: Sequence[Conditional], wanted: Sequence[Sequence[int]]) -> list[dict[str, Marginal]]:
        """Questions whose evidence is exact, ``BLOCK`` at most."""
        rows = [self._features(*question.exact) for question in questions]
        features = torch.cat(rows + rows[:1] * (BLOCK - len(rows)))
        found: list[dict[str, Marginal]] = [{} for _ in questions]
        for index in sorted({index for some in wanted for index in some}):
            law = self.model.heads.distribution(features[:, index], index)
            read = self._reader(index, law, None, len(questions))
            for row, some in enumerate(wanted):
                if index in some:
                    found[row][self.model.schema.names[index]] = read(row)
        return found

    @answering
    @torch.no_grad()
    def _ranged(self, question: Conditional, wanted: Sequence[int]) -> dict[str, Marginal]:
        """One question with ranges: the weighted mean over draws that lie inside them."""
        drawn = question.particles()
        shares = drawn.weights / drawn.weights.sum()
        features = self._features(drawn.values, drawn.known.expand(len(drawn.values), -1))
        found = {}
        for index in wanted:
            name = self.model.schema.names[index]
            if not bool(drawn.known[index]):
                law = self.model.heads.distribution(features[:, index], index)
                found[name] = self._reader(index, law, shares)(0)
                continue
            # A column that has a range itself: its laws inside of it are smooth, what was drawn from them is not.
            # Where rules speak of it, there is nothing but what was drawn.
            inside = question.inside(name)
            found[name] = self._reader(index, *(inside or (Drawn(drawn.values[:, index].double()), shares)))(0)
        return found

    def _features(self, values: Tensor, known: Tensor) -> Tensor:
        return self.model.features_beside(values.to(self.model.device), known.to(self.model.device)).cpu()

    def _reader(
        self, index: int, law: Distribution, shares: Numbers | None, count: int = 1
    ) -> Callable[[int], Marginal]:
        """The marginals of one column by the number of the question: one a row, or one for all rows with shares.

        ``count`` rows are questions; the others fill up their block, as copies of the first.
        """
        codec, variable = self.model.encoding.codecs[index], self.model.schema.variables[index]

        def mixed(table: Tensor) -> Numbers:
            """[values, rows] as [values, questions]."""
            numbers = np.asarray(table.double().numpy())
            return numbers if shares is None else (numbers @ shares)[:, None]

        at = torch.tensor(codec.atoms or range(len(variable.levels)), dtype=torch.float64)
        each = law.mass_at(at[:, None]) if len(at) else torch.zeros(0, *law.shape)
        masses, error = mixed(each), _error(each, shares)
        if variable.levels:
            return lambda row: _of_levels(variable, masses[:, row], error)
        axis = self.axes[variable.name]
        width = axis.edges[-1] - axis.edges[0]
        points, at, inner = self._points(index)
        table = law.cdf(at)
        coarse, error = mixed(table), max(error, _error(table, shares))
        parts = [_divided(axis, points, column) for column in coarse.T[:count]]
        fine = np.stack(parts + parts[:1] * (coarse.shape[1] - len(parts)), axis=1)
        reached = mixed(law.cdf(torch.as_tensor(codec.from_measure(fine))))

        def read(row: int) -> Marginal:
            inside = coarse[inner, row]
            mean, quantiles = _summary(axis, points, coarse[:, row], fine[:, row], reached[:, row])
            quantiles = [_on_atom(value, variable.atoms, ROUNDING * width) for value in quantiles]
            units = self.in_units(variable, [mean, *quantiles])
            return Marginal(
                variable,
                dict(zip(variable.atoms, masses[:, row].tolist(), strict=True)),
                np.diff(inside).clip(min=0.0),
                *(float(inside[0]), float(1 - inside[-1])),
                *(units[0], units[2], units[1], units[3]),
                standard_error=error,
            )

        return read

    def _points(self, index: int) -> tuple[Numbers, Tensor, NDArray[np.int64]]:
        """Where the cdf of a column is taken first: in the units of the data and of the model; which are the edges."""
        if index not in self._taken:
            codec, variable = self.model.encoding.codecs[index], self.model.schema.variables[index]
            axis = self.axes[variable.name]
            width = axis.edges[-1] - axis.edges[0]
            low = [axis.edges[0] - times * width for times in reversed(FARTHER)]
            high = [axis.edges[-1] + times * width for times in FARTHER]
            # The cdf jumps at an atom: it is taken there, and just before.
            jumps = [end for atom in variable.atoms for end in (atom - ROUNDING * width, atom)]
            points, first = np.unique(np.array([*low, *axis.edges, *high, *jumps]), return_index=True)
            inner = np.flatnonzero((first >= len(low)) & (first < len(low) + len(axis.edges)))
            self._taken[index] = points, torch.as_tensor(codec.from_measure(points))[:, None], inner
        return self._taken[index]

    def in_units(self, variable: Variable, numbers: Sequence[float]) -> list[Any]:
        """Numbers as values of a column: days since 1970 become times."""
        if variable.kind is Kind.DATETIME:
            return [one_value(time) for time in as_times(np.array(numbers), variable)]
        return [float(number) for number in numbers]


class Drawn(Distribution):
    """Each draw as a law of its own: all of its probability lies on one value."""

    def __init__(self, values: Float[Tensor, " draws"]) -> None:
        self.values = values

    @property
    def discrete(self) -> bool:
        return True

    @property
    def shape(self) -> torch.Size:
        return self.values.shape

    def log_prob(self, value: Tensor) -> Tensor:
        return (value == self.values).double().log()

    def cdf(self, value: Tensor) -> Tensor:
        return (self.values <= value).double()

    def quantile(self, level: Tensor) -> Tensor:
        return self.values.expand(np.broadcast_shapes(level.shape, self.shape))

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        return self.values

    def mean(self) -> Tensor:
        return self.values

    def entropy(self) -> Tensor:
        return torch.zeros_like(self.values)

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Tensor:
        return function(self.values)


def _error(table: Tensor, shares: Numbers | None) -> float:
    """The greatest standard error of the weighted means of a table [values, draws]."""
    if shares is None or not len(table):
        return 0.0
    numbers = table.double().numpy()
    apart = numbers - (numbers @ shares)[:, None]
    return float(np.sqrt((apart**2 @ shares**2).max()))


def _of_levels(variable: Variable, masses: Numbers, error: float) -> Marginal:
    levels: Sequence[Any] = variable.levels
    if len(set(levels)) < len(levels):  # 1 and True are one key to Python, but two levels of a mixed column
        levels = [repr(level) for level in levels]
    probs = dict(zip(levels, masses.tolist(), strict=True))
    best = variable.levels[int(masses.argmax())]
    if variable.kind is not Kind.ATOMS and variable.kind is not Kind.ORDINAL:
        return Marginal(variable, probs, best=best, standard_error=error)
    # Levels with an order have quantiles, and numbers among them a mean.
    reached = np.searchsorted(masses.cumsum() / masses.sum(), LEVELS).clip(max=len(levels) - 1)
    low, middle, high = (variable.levels[at] for at in reached)
    mean = float(np.array(variable.levels, dtype=float) @ masses) if variable.kind is Kind.ATOMS else None
    return Marginal(variable, probs, mean=mean, median=middle, low=low, high=high, best=best, standard_error=error)


def _axis(codec: Codec) -> Axis:
    """Cells over what was seen of a column, and a little more on both sides."""
    variable = codec.variable
    low, high = codec.seen or codec.measure(np.array([-3.0, 3.0])).tolist()
    if not low < high:
        low, high = low - 0.5, high + 0.5
    if variable.discrete:
        step = max(1.0, math.ceil((high - low + 1) / CELLS))
        return Axis(np.arange(math.floor(low) - 1, high + step, step), 1.0)
    middle = float(codec.measure(np.zeros(1))[0])
    if low > 0 and variable.kind is not Kind.DATETIME and high > WIDE * low and high - middle > SKEWED * (middle - low):
        return Axis(np.geomspace(low / BESIDE, high * BESIDE, CELLS + 1), 0.0, logarithmic=True)
    beside = (BESIDE - 1) * (high - low)
    ends = variable.bounds
    first = low - beside if ends[0] is None else max(low - beside, ends[0])
    last = high + beside if ends[1] is None else min(high + beside, ends[1])
    return Axis(np.linspace(first, last, CELLS + 1), 0.0)


def _divided(axis: Axis, points: Numbers, reached: Numbers) -> Numbers:
    """Values that divide a cdf, given at some points and straight between them, into equal parts."""
    fine = _inverse(FINE, points, np.maximum.accumulate(reached))
    return np.rint(fine) if axis.step else fine


def _summary(
    axis: Axis, points: Numbers, coarse: Numbers, fine: Numbers, reached: Numbers
) -> tuple[float, list[float]]:
    """The mean and the quantiles, off the cdf at two sets of values."""
    values, first = np.unique(np.concatenate([fine, points]), return_index=True)
    cdf = np.maximum.accumulate(np.concatenate([reached, coarse])[first])
    mean = float(((values[1:] + values[:-1] + axis.step) / 2) @ np.diff(cdf))
    mean += float(values[0] * cdf[0] + values[-1] * (1 - cdf[-1]))
    quantiles = _inverse(np.array(LEVELS), values, cdf)
    # Between two values of the table there may be several whole numbers: the least that reaches a level is wanted.
    return mean, (np.ceil(quantiles - ROUNDING) if axis.step else quantiles).tolist()


def _on_atom(value: float, atoms: Sequence[float], before: float) -> float:
    """A quantile at which the cdf jumps is the atom itself, and not a place just before it."""
    return next((float(atom) for atom in atoms if atom - before <= value <= atom), value)


def _inverse(levels: Numbers, values: Numbers, cdf: Numbers) -> Numbers:
    """The least value at which a cdf, straight between some values, reaches each level."""
    after = np.searchsorted(cdf, levels).clip(1, len(cdf) - 1)
    before = after - 1
    rise = cdf[after] - cdf[before]
    share = np.divide(levels - cdf[before], rise, out=np.zeros(len(levels)), where=rise > 0).clip(0, 1)
    return np.asarray(values[before] + share * (values[after] - values[before]))
