"""Conditional: p(asked | evidence), lazy. Nothing runs until a number is asked for.

The direct chain answers: log p(u | e) is the sum of the steps of *one* chain from e to e + u, so it is always
normalised (MAC section 5.2). Other orders give other answers, since nothing forces a trained network to be
coherent; averaging K of them is the log of the mean *probability* (SFARM eq. 14), their spread a diagnostic.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.distributions.region import Region, agreement
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.model.leave_out import folds
from anyorder.model.likelihood import log_probs, usual_orders
from anyorder.model.sampling import draws
from anyorder.query import Query
from anyorder.questions.answer import Answer
from anyorder.questions.doubt import parts_of, with_doubt
from anyorder.questions.estimate import Estimate, weighted_mean
from anyorder.questions.events import understand
from anyorder.questions.evidence import Statement, Value, read_statement
from anyorder.questions.most_probable import MostProbable, most_probable
from anyorder.questions.particles import Particles
from anyorder.questions.ranges import DRAWS, Ranged, event_of
from anyorder.questions.rules import Rules
from anyorder.support.checks import checked_seed, whole
from anyorder.support.memory import check_room
from anyorder.variables.missingness import blank_holes, with_indicators_along
from anyorder.variables.schema import Kind


@dataclass(frozen=True)
class OrderSpread:
    """The log-probability of the same values along several orders, in nats: how much an answer depends on the order.

    Made by :meth:`Conditional.order_spread`.

    Parameters
    ----------
    log_probs
        One number an order; the first is that of the model's own order.

    Examples
    --------
    >>> spread = model.given(rooms=6).order_spread(price=40.0, river="yes", orders=4)
    >>> len(spread.log_probs), spread.deviation >= 0
    (4, True)
    >>> min(spread.log_probs) <= spread.average <= max(spread.log_probs)
    True
    """

    log_probs: tuple[float, ...]

    @property
    def average(self) -> float:
        """The log of the mean probability."""
        return float(np.logaddexp.reduce(self.log_probs)) - math.log(len(self.log_probs))

    @property
    def deviation(self) -> float:
        """The standard deviation over orders: 0 for a coherent model."""
        return float(np.std(self.log_probs))

    @property
    def left(self) -> float:
        """The deviation over pairs of opposite orders, each averaged: how :meth:`Conditional.log_prob` answers."""
        each = np.array(self.log_probs)[: len(self.log_probs) // 2 * 2].reshape(-1, 2)
        return float(np.std(np.logaddexp.reduce(each, axis=1))) if len(each) else 0.0


class Conditional:
    """p(asked | evidence): what the model says about some variables, by default all others, given evidence.

    Made by :meth:`TableModel.given <anyorder.modalities.tables.model.TableModel.given>` and
    :meth:`TableModel.asking <anyorder.modalities.tables.model.TableModel.asking>`. Nothing runs until a number is asked
    for. It is one question: for many rows, give a frame, which is much faster than a loop.

    Parameters
    ----------
    model
        The ``core`` of a table model.
    evidence
        By variable: a value, ``Between(low, high)``, ``OneOf(...)``, ``MISSING``, or a text that says one of these
        (``"30..40"``).
    asked
        The variables that are asked about; None for all others.
    draws, seed
        Ranges are answered by so many truncated draws, the same ones for the same seed.
    rules
        Rules between columns that hold (:mod:`anyorder.questions.rules`).

    Examples
    --------
    >>> known = model.given(rooms=6)
    >>> known
    p(... | rooms=6)
    >>> known["price"].mean() < model.given(rooms=8)["price"].mean()
    True
    """

    def __init__(
        self,
        model: AnyOrderModel,
        evidence: Mapping[str, Any] | None = None,
        asked: tuple[str, ...] | None = None,
        *,
        draws: int = DRAWS,
        seed: int = 0,
        rules: Rules | None = None,
        _read: Mapping[str, Statement] | None = None,
    ) -> None:
        self.model = model
        self.evidence = dict(evidence or {})
        self.draws, self.seed = whole("draws", draws, 2), checked_seed(seed)
        check_room("draws", self.draws, model.variables)
        # What an earlier question has read already comes along with it, so that nothing is read twice.
        self._statements = {
            name: read_statement(model.encoding.codec(name), said)
            if _read is None or name not in _read
            else _read[name]
            for name, said in self.evidence.items()
        }
        found = _together(model, self._statements, self.evidence)
        self._encoded = {index: said for index, said in found.items() if not isinstance(said, Region)}
        self._regions = {index: said for index, said in found.items() if isinstance(said, Region)}
        for name in asked or ():
            if model.schema.index(name) in self._encoded:
                raise UserError(f"{name!r} is both asked and given; leave it out of one of them")
        self.asked = asked
        # Rules about what is known already are checked once; what they say of the rest needs draws.
        self.rules = self._rules = rules or None
        if self._rules is not None:
            self._check_rules(self._rules)
            if all(column in self._encoded for column in self._rules.columns):
                self._rules = None

    def __repr__(self) -> str:
        asked = ", ".join(self.asked) if self.asked is not None else "..."
        given = ", ".join(f"{name}={value!r}" for name, value in self.evidence.items())
        return f"p({asked} | {given})" if given else f"p({asked})"

    def given(self, evidence: Mapping[str, Any] | None = None, /, **more: Any) -> Conditional:
        """Add evidence.

        Parameters
        ----------
        evidence, **more
            By variable, as in :meth:`TableModel.given <anyorder.modalities.tables.model.TableModel.given>`. It replaces
            what was said about the same variable before.

        Returns
        -------
        Conditional
            A new one; this one stays as it is.

        Examples
        --------
        >>> model.given(rooms=6).given(river="yes")
        p(... | rooms=6, river='yes')
        """
        added = {**(evidence or {}), **more}
        read = {name: said for name, said in self._statements.items() if name not in added}
        return self._with({**self.evidence, **added}, self.asked, read)

    def asking(self, *names: str) -> Conditional:
        """Ask about these variables only; the others are marginalised out.

        Not needed for one variable: index by its name instead.

        Parameters
        ----------
        *names
            The variables.

        Returns
        -------
        Conditional
            A new one; this one stays as it is.

        Examples
        --------
        >>> model.given(rooms=6).asking("river", "price").sample(3, seed=0).shape
        (3, 3)
        """
        return self._with(self.evidence, names, self._statements)

    def using(self, *, draws: int | None = None, seed: int | None = None) -> Conditional:
        """Choose the draws that stand for ranges; without ranges, answers do not change.

        The standard error of an answer falls with the root of the number of draws.

        Parameters
        ----------
        draws
            How many, 2 or more; None for as many as now.
        seed
            Decides them; None for the present one.

        Returns
        -------
        Conditional
            A new one; this one stays as it is.

        Examples
        --------
        >>> few = model.given(rooms=ao.Between(4, 6)).using(draws=16)
        >>> many = few.using(draws=256)
        >>> many["price"].mean().standard_error < few["price"].mean().standard_error
        True
        """
        draws, seed = self.draws if draws is None else draws, self.seed if seed is None else seed
        return Conditional(
            self.model, self.evidence, self.asked, draws=draws, seed=seed, rules=self.rules, _read=self._statements
        )

    def by_parts(self) -> list[Conditional]:
        """This question to each part of the model, if it was fitted in folds: what its doubt is made of.

        Returns
        -------
        list of Conditional

        Examples
        --------
        >>> len(model.given(rooms=6).by_parts()) >= 0
        True
        """
        return [
            Conditional(
                part,
                self.evidence,
                self.asked,
                draws=self.draws,
                seed=self.seed,
                rules=self.rules,
                _read=self._statements,
            )
            for part in parts_of(self.model)
        ]

    def _doubted(self, found: Estimate, ask: Callable[[Conditional], float]) -> Estimate:
        """With the doubt of the parts, which is found when it is asked for."""
        if folds(self.model) == 1:
            return found
        return with_doubt(found, lambda: [ask(part) for part in self.by_parts()])

    def _with(
        self, evidence: Mapping[str, Any], asked: tuple[str, ...] | None, read: Mapping[str, Statement]
    ) -> Conditional:
        return Conditional(self.model, evidence, asked, draws=self.draws, seed=self.seed, rules=self.rules, _read=read)

    def _check_rules(self, rules: Rules) -> None:
        known = np.array([[column in self._encoded for column in rules.columns]])
        units = np.array([[rules.value(column, self._encoded.get(column, 0.0)) for column in rules.columns]])
        for rule, broken in zip(rules.rules, rules.broken(units, known), strict=True):
            if broken[0]:
                raise UserError(f"the evidence breaks the rule {str(rule)!r}; change one of them, or leave it out")

    def __getitem__(self, name: str) -> Answer:
        """The distribution of one variable: exact, in one step; under ranges a mixture with standard errors.

        Parameters
        ----------
        name
            The variable.

        Returns
        -------
        Answer

        Examples
        --------
        >>> low, high = model.given(rooms=6, river="no")["price"].interval(0.9)
        >>> bool(low < high)
        True
        """
        index = self.model.schema.index(name)
        if index in self._encoded:
            raise UserError(f"{name!r} is given ({self.evidence.get(name, True)!r}); ask for another variable")
        return self._in_parts(self._ranged.answer(index) if self.ranged else self._exactly(index), name)

    def _exactly(self, index: int) -> Answer:
        values, known = (part.to(self.model.device) for part in self._row())
        with torch.no_grad():
            features = self.model.features_of(values, known, index).cpu()
            distribution = self.model.heads.distribution(features, index)
        return Answer(self.model.schema.variables[index], self.model.encoding, distribution)

    def answers(self, *names: str) -> dict[str, Answer]:
        """The distributions of several variables, each by itself, in one pass: quicker than asking one by one.

        Parameters
        ----------
        *names
            The variables; without any, those that were asked about, or all that are not given.

        Returns
        -------
        dict
            An answer by the name of each variable.

        Examples
        --------
        >>> found = model.given(rooms=6).answers("price", "river")
        >>> bool(np.isclose(found["price"].median(), model.given(rooms=6)["price"].median()))
        True
        """
        schema = self.model.schema
        wanted = names or self.asked or [name for i, name in enumerate(schema.names) if i not in self._encoded]
        if self.ranged or any(schema.index(name) in self._encoded for name in wanted):
            return {name: self[name] for name in wanted}
        values, known = (part.to(self.model.device) for part in self._row())
        with torch.no_grad():
            features = self.model.features_beside(values, known).cpu()
            laws = {
                name: self.model.heads.distribution(features[:, schema.index(name)], schema.index(name))
                for name in wanted
            }
        return {
            name: self._in_parts(Answer(schema[name], self.model.encoding, law), name) for name, law in laws.items()
        }

    def _in_parts(self, answer: Answer, name: str) -> Answer:
        """An answer that knows how to ask the parts of the model, if it was fitted in folds."""
        if folds(self.model) > 1:
            answer.parts = lambda: [part[name] for part in self.by_parts()]
        return answer

    def log_prob(
        self, values: Mapping[str, Any] | None = None, /, *, orders: int | None = None, seed: int = 0, **more: Any
    ) -> Estimate:
        """log p(values | evidence), jointly, in nats and in the units of the data.

        A log-density where a value is continuous, so it depends on the units; for the probability of an event use
        :meth:`prob`.

        Parameters
        ----------
        values, **more
            By variable: one value each.
        orders
            Average the probability over so many orders (SFARM eq. 14), two if not given: costs as many passes.
        seed
            Decides the orders.

        Returns
        -------
        Estimate

        Examples
        --------
        >>> known = model.given(rooms=6)
        >>> known.log_prob(price=36.0, river="no") > known.log_prob(price=60.0, river="no")
        True
        """
        wanted, count = {**(values or {}), **more}, usual_orders(self.model, orders)
        found = self._log_prob(wanted, count, seed)
        return self._doubted(found, lambda part: part.log_prob(wanted, orders=count, seed=seed))

    def _log_prob(self, wanted: Mapping[str, Any], orders: int, seed: int) -> Estimate:
        if not self.ranged:
            return Estimate(self.order_spread(wanted, orders=orders, seed=seed).average)
        particles = self._ranged.particles()
        rows, query = self._wanted(wanted, particles.values, particles.known)
        nats = np.logaddexp.reduce(log_probs(self.model, rows, query, orders=orders, seed=seed)) - math.log(orders)
        top = float(nats.max())
        if top == -math.inf:
            return Estimate(-math.inf)
        mean, error = (float(part) for part in weighted_mean(particles.weights, np.exp(nats - top)))
        return Estimate(top + math.log(mean), error / mean, self._ranged.method)

    def prob(self, event: str | Mapping[str, Any] | None = None, /, **more: Any) -> Estimate:
        """The probability of an event given the evidence, jointly.

        Parameters
        ----------
        event
            A text such as ``"price > 30, river=yes"``, or a mapping from variables to values, ranges or sets.
        **more
            Values, ranges or sets by variable: ``price=Between(30, None)``.

        Returns
        -------
        Estimate
            Exact for one variable under exact evidence; else an average over draws.

        Examples
        --------
        >>> known = model.given(rooms=6)
        >>> known.prob("price > 30") == known.prob(price=ao.Between(30, None, low_open=True))
        True
        """
        found = self._ranged.probability(event_of(event, more), self._encoded)
        return self._doubted(found, lambda part: part.prob(event, **more))

    def entropy(self, *names: str) -> Estimate:
        """The joint entropy of these variables given the evidence, in nats and in the units of the data.

        Continuous variables have a differential entropy, which may be negative and depends on the units.

        Parameters
        ----------
        *names
            The variables.

        Returns
        -------
        Estimate
            Exact for one variable under exact evidence; else an average over draws.

        Examples
        --------
        >>> model.given(rooms=6).entropy("price") < model.given().entropy("price")
        True
        """
        from anyorder.questions.information import joint_entropy

        return self._doubted(joint_entropy(self, names), lambda part: joint_entropy(part, names))

    def most_probable(self, *names: str) -> MostProbable:
        """The values of these variables, by default of all others, that are most probable together.

        Not the most probable value of each by itself: those need not go together. Exact for variables with levels where
        the search can be completed; for numbers, whose densities are in the units of the data, the best one found.

        Parameters
        ----------
        *names
            The variables.

        Returns
        -------
        MostProbable

        Examples
        --------
        >>> best = model.given(rooms=6).most_probable("river")
        >>> best.row, best.exact
        ({'river': 'no'}, True)
        """
        if self._rules is not None:
            raise UserError("the most probable completion is searched without rules; ask given(..., rules=[])")
        schema = self.model.schema
        wanted = names or self.asked or [variable.name for variable in schema.variables if not variable.indicates]
        asked = [index for index in (schema.index(name) for name in wanted) if names or index not in self._encoded]
        for index in asked:
            if index in self._encoded:
                raise UserError(f"{schema.names[index]!r} is given; ask for another variable")
        for index in self._regions.keys() - set(asked):
            raise UserError(f"{schema.names[index]!r} is known as a range; ask for it too, or give one value")
        if not asked:
            raise UserError("nothing is left to complete: every variable is given")
        row, known = self._row()
        values, nats, exact = most_probable(self.model, row, known, asked, self._regions)
        frame = self.model.encoding.decode(values[None].double().numpy())
        return MostProbable({schema.names[i]: _plain(frame[schema.names[i]].iloc[0]) for i in asked}, nats, exact)

    def order_spread(
        self, values: Mapping[str, Any] | None = None, /, *, orders: int = 8, seed: int = 0, **more: Any
    ) -> OrderSpread:
        """How the log-probability of these values differs from order to order.

        A diagnostic of the model, for exact evidence only. For the probability itself use :meth:`log_prob`.

        Parameters
        ----------
        values, **more
            By variable: one value each.
        orders
            How many orders; the first is the model's own.
        seed
            Decides the others.

        Returns
        -------
        OrderSpread

        Examples
        --------
        >>> model.given(rooms=6).order_spread(price=40.0, river="no").deviation >= 0
        True
        """
        if self.ranged:
            raise UserError("the spread over orders is a question about exact evidence; this one has ranges or rules")
        row, known = self._row()
        row, query = self._wanted({**(values or {}), **more}, row, known[0])
        nats = log_probs(self.model, row, query, orders=orders, seed=seed)
        return OrderSpread(tuple(nats[:, 0].tolist()))

    @cached_property
    def _ranged(self) -> Ranged:
        """The machinery of ranges, made for the first question that needs it: most never do."""
        return Ranged(self.model, *self._row(), self._regions, self.draws, self.seed, self._rules)

    @property
    def ranged(self) -> bool:
        """Whether some of the evidence is a range or a rule, so that answers are estimates."""
        return bool(self._regions) or self._rules is not None

    @property
    def exact(self) -> tuple[Float[Tensor, "1 variables"], Bool[Tensor, "1 variables"]]:
        """The row of exactly known model values, and which they are."""
        return self._row()

    @property
    def given_indices(self) -> frozenset[int]:
        """The variables that the evidence speaks of."""
        return frozenset(self._encoded) | frozenset(self._regions)

    @property
    def given_places(self) -> frozenset[int]:
        """An older name of :attr:`given_indices`."""
        warnings.warn("given_places is now called given_indices", DeprecationWarning, stacklevel=2)
        return self.given_indices

    def particles(self) -> Particles:
        """The weighted draws that stand for the ranges, in model units; of use where :meth:`sample` is not enough.

        Returns
        -------
        Particles

        Examples
        --------
        >>> drawn = model.given(rooms=ao.Between(4, 6)).using(draws=64).particles()
        >>> len(drawn.values) == len(drawn.weights) == 64
        True
        """
        return self._ranged.particles()

    def ranged_rows(self, n: int) -> tuple[Float[Tensor, "n variables"], Bool[Tensor, "1 variables"]]:
        """Rows of model values drawn inside the ranges.

        Parameters
        ----------
        n
            How many.

        Returns
        -------
        tuple of Tensor
            The rows, and which variables they know.

        Examples
        --------
        >>> rows, known = model.given(rooms=ao.Between(4, 6)).ranged_rows(8)
        >>> rows.shape[0], int(known.sum())
        (8, 1)
        """
        n = whole("n", n, 0)
        check_room("n", n, self.model.variables)
        return self._ranged.rows(n, self.seed)

    def _wanted(
        self, wanted: Mapping[str, Any], rows: Float[Tensor, "rows variables"], known: Bool[Tensor, " variables"]
    ) -> tuple[Float[Tensor, "rows variables"], Query]:
        """The rows with the wanted values in them, and the query that asks for those."""
        if not wanted:
            raise UserError("log_prob needs values, as in log_prob(price=22.0)")
        rows = rows.clone()
        asked = torch.zeros_like(known)
        for name, value in wanted.items():
            index = self.model.schema.index(name)
            if self._rules is not None and index in self._rules.columns:
                raise UserError(f"rules speak of {name!r}; ask for the probability of a range of it instead")
            if index in self._encoded or index in self._regions:
                raise UserError(f"{name!r} is given already; its probability given itself is not a question")
            if self.asked is not None and name not in self.asked:
                raise UserError(f"{name!r} is not among the asked variables {list(self.asked)}")
            rows[:, index] = self.model.encoding.encode_value(name, value)
            asked[index] = True
        return rows, Query(known.expand(len(rows), -1), asked.expand(len(rows), -1))

    def sample(self, n: int = 1, seed: int = 0, *, holes: bool = False) -> pd.DataFrame:
        """Draw rows jointly: evidence as given, asked variables drawn, others left out.

        Of one variable, ``conditional[name].sample`` is cheaper. To complete the rows of a table, use
        :meth:`TableModel.fill <anyorder.modalities.tables.model.TableModel.fill>`.

        Parameters
        ----------
        n
            How many.
        seed
            The same seed gives the same rows.
        holes
            Drawn cells are missing where they would not be recorded; needs a model fitted with ``missingness="joint"``.

        Returns
        -------
        DataFrame

        Examples
        --------
        >>> drawn = model.given(rooms=6).sample(5, seed=0)
        >>> drawn.shape, set(drawn["rooms"]) == {6}
        ((5, 4), True)
        """
        n, seed = whole("n", n, 0), checked_seed(seed)
        check_room("n", n, self.model.variables)
        row, known = self._ranged.rows(n, seed) if self.ranged else self._row()
        asked = ~known
        if self.asked is not None:
            asked = torch.zeros_like(known)
            asked[0, [self.model.schema.index(name) for name in self.asked]] = True
            asked &= ~known  # a variable with a range is drawn already
        asked, wanted = with_indicators_along(self.model.schema, known, asked, named=self.asked is not None)
        query = Query(known.expand(n, -1), asked.expand(n, -1))
        drawn = draws(self.model, row.expand(n, -1), query, seed=seed, orders=usual_orders(self.model))
        if holes and not self.model.schema.pairs:
            raise UserError("the model knows of no holes: fit a table that has some with missingness='joint'")
        if holes:
            blank_holes(self.model.schema, drawn, asked[0].numpy())
        frame = self.model.encoding.decode(drawn)
        for name, statement in self._statements.items():
            # A range or set of one value is known exactly as well, and comes out of its encoding.
            if isinstance(statement, Value) and self.model.schema.index(name) in self._encoded:
                frame[name] = self._as_column(name, statement.given, n, frame[name])
        shown = [v.name for i, v in enumerate(self.model.schema.variables) if bool(wanted[0, i])]
        return frame[shown]

    def _as_column(self, name: str, value: Any, n: int, decoded: pd.Series) -> pd.Series:
        # What the user gave, not its image under encoding and decoding; text from a command line is read as the kind.
        if self.model.schema[name].kind is Kind.INTEGER and float(value) != np.rint(float(value)):
            return pd.Series(float(value), index=decoded.index)  # a fraction among whole numbers
        return decoded if isinstance(value, str) else pd.Series([value] * n, index=decoded.index).astype(decoded.dtype)

    def _row(self) -> tuple[Float[Tensor, "1 variables"], Bool[Tensor, "1 variables"]]:
        values, known = [0.0] * self.model.variables, [False] * self.model.variables
        for index, value in self._encoded.items():
            values[index], known[index] = float(value), True
        return torch.tensor([values], dtype=torch.float64), torch.tensor([known])


def _plain(value: Any) -> Any:
    """A cell as Python has it, where it is a number of NumPy's."""
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value


def _together(
    model: AnyOrderModel, statements: Mapping[str, Statement], evidence: Mapping[str, Any]
) -> dict[int, float | Region]:
    """What is known of every variable that the evidence speaks of: its model value, or the region it lies in."""
    found: dict[int, float | Region] = {}
    for name, statement in statements.items():
        index, known = understand(model.encoding, name, statement, evidence=True)
        # A column said to be missing speaks of its indicator, which may be named as well.
        both = agreement(found[index], known) if index in found else known
        if both is None:
            raise UserError(
                f"the evidence contradicts itself about {model.schema.names[index]!r}: {name}={evidence[name]} does "
                "not agree with the rest of it; leave one of the two out"
            )
        found[index] = both
    return found
