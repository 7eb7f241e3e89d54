"""A policy: p(action | state) of a table of demonstrations, where a person may give any part of the action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from anyorder.data.frames import in_kind_of, is_frame
from anyorder.errors import UserError, nearest
from anyorder.model import AnyOrderModel
from anyorder.query import Query
from anyorder.support.checks import checked_seed, whole
from anyorder.tasks.policies.bounds import Bounds
from anyorder.tasks.policies.choosing import WAYS, Chains, mean, most_probable, sample
from anyorder.tasks.policies.reading import Reader, Rows
from anyorder.variables.missingness import with_indicators_along

MOST_PLANS = 4096  # that are kept
DRAWS = 16  # among which the most probable one is found


@dataclass(frozen=True)
class _Plan:
    """One question: what is known and asked, which of the actions that is, and of one state the chains made so far."""

    query: Query
    asked: tuple[str, ...]
    chains: Chains | None


class Policy:
    """Acts on a state as in the demonstrations that a model was fitted to, given any part of the action.

    The law is p(the other actions | state, given), whichever actions are given: a robot whose arm is moved by a person
    adds the gripper, and the next moment the other way round. A policy holds no randomness: the same state, given
    actions and seed lead to the same action, from however many threads it is asked.

    Parameters
    ----------
    model
        A model of a table, as :func:`anyorder.fit` makes it. Fit it with ``context=`` the state: nothing is then spent
        on learning the state itself. Without, the state is evidence like any other. A model with rules is refused.
    state
        Its columns, in the order in which arrays have them; by default the model's context, or all columns that are no
        action.
    action
        Its columns, in order; by default all columns that are no state. What is neither is marginalised out.
    bounds
        Pairs of the least and the greatest value by action, such as ``{"joint_2": (-1, 1)}``, or one pair for all
        actions that are numbers. To give an action outside of them is an error. What is drawn beyond a bound is moved
        to it, before the next action is drawn given it.

    Examples
    --------
    >>> policy = ao.Policy(model, state=["rooms", "river"], action=["door", "price"], bounds={"price": (0, 90)})
    >>> policy.act({"rooms": 6, "river": "no"}, given={"price": 36.0}, seed=1)["price"]
    36.0
    >>> policy.act(held_out, how="mean").columns.tolist()
    ['door', 'price']
    """

    def __init__(
        self,
        model: Any,
        state: Sequence[str] | None = None,
        action: Sequence[str] | None = None,
        *,
        bounds: Mapping[str, tuple[float, float]] | tuple[float, float] | None = None,
    ) -> None:
        self._model, self._core = model, (core := _core_of(model))
        self.state, self.action = _columns(core, state, action)
        self._reader = Reader(core.encoding, self.state, self.action)
        self._bounds = Bounds.read(bounds, self.action, core.encoding)
        numbers = all(core.schema[name].numeric for name in self.action)
        self._dtype: type = np.float64 if numbers else object  # of arrays
        # By which of the columns are known. Threads may share a plan: what it says never changes, and a chain that one
        # of them adds is the one that any other would have made.
        self._plans: dict[bytes, _Plan] = {}

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The bounds of the actions that have some."""
        return dict(self._bounds.by_name)

    def __repr__(self) -> str:
        return f"Policy(p({_listed(self.action)} | {_listed(self.state)}))"

    def __reduce__(self) -> tuple[Any, ...]:
        # For simulators in other processes: the model goes there as the bytes of its file, and never as code.
        return _made, (type(self), self._model, self.state, self.action, self.bounds or None)

    def act(
        self,
        state: Any,
        given: Any = None,
        *,
        how: str = "sample",
        draws: int = DRAWS,
        seed: int = 0,
        as_array: bool = False,
    ) -> Any:
        """The whole action: what is given of it, and what the model adds.

        Parameters
        ----------
        state
            One state: a mapping, a row of a frame, or an array in the order of ``policy.state``. Or many: a frame, or
            an array of two dimensions, a state a row. Of frames and their rows other columns are not read. All of the
            state must be known, but for context that had holes when the model was fitted.
        given
            The actions that are decided, by name; NaN is not decided. For many states a frame with a row for each, a
            mapping to a column for each, or one mapping for all states. Rows of pandas are found by their labels where
            both have some, else by their place.
        how
            ``"sample"``: one joint draw, the same as ``model.given({**state, **given}).sample(1, seed=seed)`` for a
            single state without bounds. ``"mean"``: E[action | state, given] of every other action by itself, clipped
            to its own bounds, without draws; rounded as the column is, and the most probable level within bounds where
            it has levels. Where there are two ways to act, their mean may be neither. ``"most probable"``: of
            ``draws`` along the model's own order the one near which most of the probability lies, the mass behind a
            bound or on a frequent value included.
        draws
            Among how many draws the most probable one is found.
        seed
            Decides the draws. In a loop, give each step a seed of its own, or draws repeat: the same ones of the same
            law. The states of a frame share one stream: each has a draw of its own, and not the one that it would have
            alone.
        as_array
            Whether to return arrays in the order of ``policy.action``, as a simulator takes them.

        Returns
        -------
        dict, or DataFrame for many states
            Values by action, in the order of ``policy.action``; or an array with one dimension, or with two: of float64
            where all actions are numbers, else of objects. What is given comes back as the model read it, "0.5" as 0.5.

        Examples
        --------
        >>> policy = ao.Policy(model, state=["rooms"], action=["river", "price"])
        >>> sorted(policy.act({"rooms": 6}, how="most probable", seed=0))
        ['price', 'river']
        >>> mean = policy.act([6], given={"river": "yes"}, how="mean")["price"]
        >>> abs(mean - model.given(rooms=6, river="yes")["price"].mean()) <= 0.005  # prices have two decimals
        True
        """
        if how not in WAYS:
            raise UserError(f"unknown how={how!r}; {nearest(how, WAYS, noun='choices')}")
        count, seed = whole("draws", draws), checked_seed(seed)
        if self._is_one(state):
            return self._one(state, given, how, count, seed, as_array)
        return self._many(state, given, how, count, seed, as_array)

    def _one(self, state: Any, given: Any, how: str, count: int, seed: int, as_array: bool) -> Any:
        command = self._reader.command(given)
        rows = self._reader.one(state, command)
        for name in command:
            self._check(name, rows)
        plan = self._plan(rows.known)
        index = self._core.schema.index
        action = {name: self._reader.as_read(name, said, rows.values[0, index(name)]) for name, said in command.items()}
        if plan.asked:
            chosen, encoding = self._chosen(rows, plan, how, count, seed)[0], self._core.encoding
            action |= {
                name: self._bounds.clip(name, encoding.codec(name).decode_one(float(chosen[index(name)])))
                for name in plan.asked
            }
        if as_array:
            return np.array([action[name] for name in self.action], dtype=self._dtype)
        return {name: action[name] for name in self.action}

    def _many(self, state: Any, given: Any, how: str, count: int, seed: int, as_array: bool) -> Any:
        table = self._reader.table(state)
        command = self._reader.commands(given, table.index, labelled=isinstance(state, pd.DataFrame))
        rows = self._reader.many(table, command)
        for name in command.columns.tolist():
            self._check(name, rows)
        plan = self._plan(rows.known)
        query, chosen = plan.query, self._chosen(rows, plan, how, count, seed) if plan.asked else rows.values
        columns: dict[str, Any] = {}
        for name in self.action:
            index = self._core.schema.index(name)
            drawn, asked = self._core.encoding.codec(name).decode(chosen[:, index]), query.asked[:, index].numpy()
            column = self._bounds.clip(name, drawn).set_axis(table.index)
            if name in command and not asked.all():
                column = self._reader.column_as_read(name, command[name], rows.values[:, index]).where(~asked, column)
            columns[name] = column
        action = pd.DataFrame(columns, index=table.index)
        if as_array:
            return action.to_numpy(dtype=self._dtype)
        return in_kind_of(action, state) if is_frame(state) else action

    def _chosen(self, rows: Rows, plan: _Plan, how: str, count: int, seed: int) -> NDArray[np.float64]:
        core, values, query, limits = self._core, torch.from_numpy(rows.values), plan.query, self._bounds.limits
        if how == "mean":
            return mean(core, values, query, limits)
        if how == "most probable":
            return most_probable(core, values, query, seed, limits, count=count)
        return sample(core, values, query, seed, limits, plan.chains)

    def _check(self, name: str, rows: Rows) -> None:
        """Refuse a given action outside its bounds."""
        if name in self._bounds.by_name:
            index = self._core.schema.index(name)
            units = self._core.encoding.measure(name, rows.values[:, index])
            self._bounds.check(name, np.where(rows.known[:, index], units, np.nan))

    def _plan(self, known: NDArray[np.bool_]) -> _Plan:
        """The question of rows that know these columns; that of a single row is kept."""
        key = known.tobytes()
        found = self._plans.get(key) if len(known) == 1 else None
        if found is not None:
            return found
        schema, evidence = self._core.schema, torch.from_numpy(known)
        asked = torch.zeros_like(evidence)
        asked[:, [schema.index(name) for name in self.action]] = True
        asked &= ~evidence
        names = tuple(name for name in self.action if bool(asked[:, schema.index(name)].any()))
        if names:
            asked, _ = with_indicators_along(schema, evidence, asked, named=True)
        plan = _Plan(Query(evidence, asked), names, {} if len(known) == 1 else None)
        if len(known) == 1:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def _is_one(self, state: Any) -> bool:
        if isinstance(state, Mapping | pd.Series):
            return True
        if not isinstance(state, np.ndarray | list | tuple) and is_frame(state):
            return False
        try:
            dimensions = np.ndim(state)
        except ValueError:  # lists of several lengths
            dimensions = 0
        several = isinstance(state, list | tuple) and any(isinstance(one, Mapping | pd.Series) for one in state)
        if dimensions not in (1, 2) or isinstance(state, str) or several:
            raise UserError(
                "the state must be a mapping, a row, an array of one dimension, or for many states a frame or an array "
                f"of two dimensions; got {state!r:.80}"
            )
        return dimensions == 1


def _made(kind: type[Policy], model: Any, state: list[str], action: list[str], bounds: Any) -> Policy:
    return kind(model, state, action, bounds=bounds)


def _core_of(model: Any) -> AnyOrderModel:
    core = getattr(model, "core", None)
    if not isinstance(core, AnyOrderModel):
        raise UserError(f"a policy needs a fitted model of a table, as anyorder.fit makes it; got {model!r:.80}")
    if core.schema.alike:
        noun = getattr(model, "noun", "characters or pixels")
        raise UserError(f"a policy needs a model of a table, this is one of {noun}; fit a table with anyorder.fit")
    if rules := getattr(model, "card", {}).get("arguments", {}).get("rules"):
        raise UserError(
            f"a policy does not keep to rules, and this model was fitted with rules=[{str(rules[0])!r:.80}, ...]; fit "
            "without rules=, or ask model.given({**state, **given}).sample(1)"
        )
    return core


def _columns(core: AnyOrderModel, state: Any, action: Any) -> tuple[list[str], list[str]]:
    """The columns of the state and of the action, as given or as the model has them."""
    schema = core.schema
    usual = [variable.name for variable in schema.variables if not variable.indicates]
    said = [None if names is None else _names(word, names) for word, names in (("state", state), ("action", action))]
    states, actions = said
    for name in [*(states or []), *(actions or [])]:
        schema.index(name)
    for name in actions or []:
        schema.asked(name)
    if states is None:
        states = list(schema.context_names)
        if not states and actions is None:
            raise UserError(
                "which columns are the state? The model was fitted without context: say state=[...], or fit with "
                "context=[...]"
            )
        states = states or [name for name in usual if name not in (actions or [])]
    if actions is None:
        actions = [name for name in usual if name not in states and not schema[name].context]
    if both := [name for name in actions if name in states]:
        raise UserError(f"{both[0]!r} is both state and action; leave it out of one of them")
    for name in schema.context_names:
        if name not in states and not schema[name].optional:
            raise UserError(f"{name!r} is context of the model, which every question must know; add it to state=")
    if not actions or not states:
        raise UserError(f"a policy needs a state and an action; got state={states!r:.80}, action={actions!r:.80}")
    return states, actions


def _names(word: str, said: Any) -> list[str]:
    if isinstance(said, str) or not isinstance(said, Sequence | pd.Index | np.ndarray):
        raise UserError(f"{word} must be a list of columns, got {said!r:.80}")
    names = [str(name) for name in said]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise UserError(f"{word} names {repeated[0]!r} more than once")
    return names


def _listed(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f", ... {len(names)} in all" if len(names) > most else "")
