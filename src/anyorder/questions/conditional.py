"""Conditional: p(asked | evidence), lazy. Nothing runs until a number is asked for.

It holds what is known (:mod:`anyorder.questions.known`) and what is asked, and hands every question on: one variable
to :mod:`anyorder.questions.answer`, several to :mod:`anyorder.questions.joint`, ranges and events to
:mod:`anyorder.questions.ranges`, draws to :mod:`anyorder.questions.drawn_rows`.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.model.leave_out import folds
from anyorder.model.likelihood import usual_orders
from anyorder.questions.answer import Answer
from anyorder.questions.as_fitted import as_fitted
from anyorder.questions.case import cells_of_row, known_cells, stated
from anyorder.questions.comparisons import separated, with_evidence
from anyorder.questions.doubt import parts_of, with_doubt
from anyorder.questions.drawn_rows import draw_rows
from anyorder.questions.estimate import Estimate
from anyorder.questions.evidence import Between, OneOf, Statement, Value
from anyorder.questions.joint import OrderSpread, log_prob_over, order_spread
from anyorder.questions.known import Known
from anyorder.questions.most_probable import MostProbable, completion
from anyorder.questions.particles import Particles
from anyorder.questions.ranges import DRAWS, Ranged, event_of
from anyorder.questions.rules import Rules
from anyorder.questions.units import one_value, shown_evidence
from anyorder.support import html
from anyorder.support.checks import checked_seed, whole
from anyorder.support.memory import check_room
from anyorder.support.notes import note
from anyorder.support.threads import answering

MOST_SHOWN = 30  # columns that are listed in a notebook


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
        _row: frozenset[str] = frozenset(),
        _library: object = "",
    ) -> None:
        self.model = model
        self.evidence = {name: one_value(said) for name, said in stated(evidence or {}).items()}
        self._library = _library  # in which drawn rows come
        self._of_row = _row  # what came as the cells of a row: such a cell may be asked about nevertheless
        self.draws, self.seed = whole("draws", draws, 2), checked_seed(seed)
        check_room("draws", self.draws, model.variables)
        alone, compared = separated(model.encoding, self.evidence)
        self._known = Known(model, alone, _read)
        # What was marked as a value, whatever it looks like, has been read as one.
        self.evidence = {name: said.given if isinstance(said, Value) else said for name, said in self.evidence.items()}
        for name in asked or ():
            if model.schema.asked(name) in self._known.values:
                raise UserError(f"{name!r} is both asked and given; leave it out of one of them")
        self.asked = asked
        # Rules about what is known already are checked once; what they say of the rest needs draws.
        self.rules = rules or None
        self._rules = with_evidence(model.encoding, self.rules, compared)
        if self._rules is not None:
            self._known.check(self._rules)
            if all(column in self._known.values for column in self._rules.columns):
                self._rules = None

    def __repr__(self) -> str:
        asked = ", ".join(self.asked) if self.asked is not None else "..."
        given = ", ".join(f"{name}={_said(value)}" for name, value in self.evidence.items())
        return f"p({asked} | {given})" if given else f"p({asked})"

    def _repr_html_(self) -> str:
        schema = self.model.schema
        known = [[shown_evidence(schema, {name: said})] for name, said in self.evidence.items()]
        known += [[f"rule: {rule}"] for rule in self.rules.rules] if self.rules else []
        unknown = [schema.names[at] for at in schema.answered if at not in self._known.values]
        names = self.asked or [name for name in unknown if not schema[name].indicates]
        kinds = [[name, schema[name].kind.value] for name in names[:MOST_SHOWN]]
        kinds += [["", f"and {len(names) - MOST_SHOWN} more"]] if len(names) > MOST_SHOWN else []
        if not names:
            return html.titled("Every column is known", html.table([""], known))
        example = html.code(f"[{names[0]!r}]")
        return html.titled(
            "What is known" if known else "Nothing is known yet",
            html.table([""], known) if known else "",
            html.titled("What can be asked", html.table(["", ""], kinds)),
            html.remark(html.Markup(f"one of them by {example}, rows of all by {html.code('.sample(5)')}")),
        )

    def given(self, evidence: Any = None, /, **more: Any) -> Conditional:
        """Add evidence.

        Parameters
        ----------
        evidence, **more
            By variable, as in :meth:`TableModel.given <anyorder.modalities.tables.model.TableModel.given>`: a mapping
            or a row. It replaces what was said about the same variable before; what is unknown in it does not.

        Returns
        -------
        Conditional
            A new one; this one stays as it is.

        Examples
        --------
        >>> model.given(rooms=6).given(river="yes")
        p(... | rooms=6, river='yes')
        """
        added = stated({**known_cells(self.model.schema, evidence), **more})
        read = {name: said for name, said in self._known.statements.items() if name not in added}
        row = (self._of_row | cells_of_row(evidence)) - more.keys()
        return self._again(evidence={**self.evidence, **added}, _read=read, _row=row)

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
        return self._again(asked=names)

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
        return self._again(draws=draws, seed=seed)

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
        return [self._again(model=part) for part in parts_of(self.model)]

    def _doubted(self, found: Estimate, ask: Callable[[Conditional], float]) -> Estimate:
        """With the doubt of the parts, which is found when it is asked for."""
        if folds(self.model) == 1:
            return found
        return with_doubt(found, lambda: [ask(part) for part in self.by_parts()])

    def _again(self, **changed: Any) -> Conditional:
        """This question with something else in it; what is read already need not be read again."""
        kept: dict[str, Any] = {"model": self.model, "evidence": self.evidence, "asked": self.asked}
        kept |= {"draws": self.draws, "seed": self.seed, "rules": self.rules, "_read": self._known.statements}
        kept |= {"_row": self._of_row, "_library": self._library}
        return Conditional(**(kept | changed))

    @answering
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
        index = self.model.schema.asked(name)
        if index in self._known.values and name in self._of_row:
            note(
                f"{name!r} is asked, so its value in the given row ({_said(self.evidence[name])}) is ignored",
                stacklevel=3,
            )
            return self._again(evidence={other: said for other, said in self.evidence.items() if other != name})[name]
        if index in self._known.values:
            raise UserError(f"{name!r} is given ({_said(self.evidence.get(name, True))}); ask for another variable")
        return self._told(self._ranged.answer(index) if self.ranged else self._exactly(index), name)

    def _exactly(self, index: int) -> Answer:
        device = self.model.device
        values, known = (part.to(device) for part in self._row())
        with torch.no_grad():
            features = self.model.features_of(values, known, index).cpu()
            distribution = self.model.heads.distribution(features, index)
        return Answer(self.model.schema.variables[index], self.model.encoding, distribution)

    @answering
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
        wanted = names or self.asked or [schema.names[i] for i in schema.answered if i not in self._known.values]
        if self.ranged or any(schema.asked(name) in self._known.values for name in wanted):
            return {name: self[name] for name in wanted}
        values, known = (part.to(self.model.device) for part in self._row())
        with torch.no_grad():
            features = self.model.features_beside(values, known).cpu()
            laws = {
                name: self.model.heads.distribution(features[:, schema.index(name)], schema.index(name))
                for name in wanted
            }
        return {name: self._told(Answer(schema[name], self.model.encoding, law), name) for name, law in laws.items()}

    def _told(self, answer: Answer, name: str) -> Answer:
        """An answer that knows its evidence, and how to ask the parts of the model if it was fitted in folds."""
        answer.given = shown_evidence(self.model.schema, self.evidence)
        if folds(self.model) > 1:
            answer.parts = lambda: [part[name] for part in self.by_parts()]
        return answer

    @answering
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
        self._check_wanted(wanted)
        drawn, method = self._ranged.particles(), self._ranged.method
        return log_prob_over(self.model, drawn, wanted, orders=orders, seed=seed, method=method)

    def _check_wanted(self, wanted: Mapping[str, Any]) -> None:
        """Refuse to ask for the probability of what is known, or is not asked for."""
        if not wanted:
            raise UserError("log_prob needs values, as in log_prob(price=22.0)")
        for name in wanted:
            index = self.model.schema.asked(name)
            if self._rules is not None and index in self._rules.columns:
                raise UserError(f"{name!r} appears in a rule; ask for the probability of a range of it instead")
            if index in self.given_indices:
                raise UserError(f"{name!r} is already given; to ask about it, leave it out of the evidence")
            if self.asked is not None and name not in self.asked:
                raise UserError(f"{name!r} is not among the asked variables {list(self.asked)}")

    @answering
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
        found = self._ranged.probability(event_of(event, more), self._known.values)
        return self._doubted(found, lambda part: part.prob(event, **more))

    @answering
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

    @answering
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
            raise UserError(
                "the most probable completion cannot obey rules; ask without them, as in given(..., rules=[])"
            )
        schema = self.model.schema
        wanted = names or self.asked or [schema.names[i] for i in schema.answered if not schema.variables[i].indicates]
        asked = [index for index in (schema.asked(name) for name in wanted) if names or index not in self._known.values]
        for index in asked:
            if index in self._known.values:
                raise UserError(f"{schema.names[index]!r} is given; ask for another variable")
        for index in self._known.regions.keys() - set(asked):
            raise UserError(f"{schema.names[index]!r} is given as a range; ask for it too, or give a single value")
        if not asked:
            raise UserError("nothing is left to complete: every variable is given")
        return completion(self.model, *self._row(), asked, self._known.regions)

    @answering
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
            raise UserError("the spread over orders needs exact evidence; this evidence has ranges or rules")
        wanted = {**(values or {}), **more}
        self._check_wanted(wanted)
        return order_spread(self.model, *self._row(), wanted, orders=orders, seed=seed)

    @cached_property
    def _ranged(self) -> Ranged:
        """The machinery of ranges, made for the first question that needs it: most never do."""
        return Ranged(self.model, *self._row(), self._known.regions, self.draws, self.seed, self._rules)

    @property
    def ranged(self) -> bool:
        """Whether some of the evidence is a range or a rule, so that answers are estimates."""
        return bool(self._known.regions) or self._rules is not None

    @property
    def exact(self) -> tuple[Float[Tensor, "1 variables"], Bool[Tensor, "1 variables"]]:
        """The row of exactly known model values, and which they are."""
        return self._row()

    @property
    def given_indices(self) -> frozenset[int]:
        """The variables that the evidence speaks of."""
        return frozenset(self._known.values) | frozenset(self._known.regions)

    def is_exact(self, name: str) -> bool:
        """Whether the evidence says a value of this variable, and no range, set or that it is missing.

        Parameters
        ----------
        name
            The variable's name.

        Returns
        -------
        bool

        Examples
        --------
        >>> known = model.given(rooms=6, price="> 30")
        >>> known.is_exact("rooms"), known.is_exact("price")
        (True, False)
        """
        return isinstance(self._known.statements.get(name), Value)

    @property
    def given_places(self) -> frozenset[int]:
        """An older name of :attr:`given_indices`."""
        warnings.warn("given_places is now called given_indices", DeprecationWarning, stacklevel=2)
        return self.given_indices

    @answering
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

    @answering
    def inside(self, name: str) -> tuple[Distribution, NDArray[np.float64]] | None:
        """The laws of a variable of which a range is given, cut to that range: one for each draw of the other ranges.

        ``conditional[name]`` answers from their mixture; by parts it is of use where many values are asked of it.

        Parameters
        ----------
        name
            The variable's name.

        Returns
        -------
        tuple of a Distribution and an array, or None
            In model units, and the shares of the laws. None where no range of the variable is given, or a rule speaks
            of it.

        Examples
        --------
        >>> laws, shares = model.given(price="20..40").inside("price")
        >>> laws.shape, shares
        (torch.Size([1]), array([1.]))
        """
        index = self.model.schema.asked(name)
        if index not in self._known.regions or index in self._ranged.ruled:
            return None
        cut, weights = self._ranged.inside(index)
        return cut, weights.numpy()

    @answering
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

    @answering
    def sample(self, n: int = 1, seed: int = 0, *, holes: bool = False) -> Any:
        """Draw rows jointly: evidence as given, asked variables drawn, others left out.

        Of one variable, ``conditional[name].sample`` is cheaper. To complete the rows of a table, use
        :meth:`TableModel.fill <anyorder.modalities.tables.model.TableModel.fill>`.

        Parameters
        ----------
        n
            How many.
        seed
            The same seed gives the same rows, so two calls without one do too; for other rows, give another seed.
        holes
            Drawn cells are missing where they would not be recorded; needs a model fitted with ``missingness="joint"``.

        Returns
        -------
        DataFrame
            Of the library of the frame that the model was fitted to.

        Examples
        --------
        >>> drawn = model.given(rooms=6).sample(5, seed=0)
        >>> drawn.shape, set(drawn["rooms"]) == {6}
        ((5, 4), True)
        """
        n, seed = whole("n", n, 0), checked_seed(seed)
        check_room("n", n, self.model.variables)
        rows, known = self._ranged.rows(n, seed) if self.ranged else self._row()
        drawn = self._known.as_given(draw_rows(self.model, rows, known, self.asked, n, seed, holes=holes))
        return as_fitted(drawn, self._library, self.model.schema)

    def _row(self) -> tuple[Float[Tensor, "1 variables"], Bool[Tensor, "1 variables"]]:
        return self._known.row()


def _said(value: Any) -> str:
    """Evidence as it would be typed."""
    if isinstance(value, pd.Timestamp):
        return str(value.date() if value == value.normalize() else value)
    return str(value) if isinstance(value, Between | OneOf | datetime.date) else repr(value)
