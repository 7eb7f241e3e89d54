"""What to measure next: candidates ranked by what their answers are expected to tell about a target.

Greedy by default: the best single measurement now. ``at_once`` chooses several whose answers come together;
``look_ahead=2`` also counts the best measurement that may follow, so it finds a variable that tells nothing by itself
but says what to ask for. Costs divide gains, a budget rules out what it cannot pay for, and a rule says when to stop.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.questions.conditional import Conditional
from anyorder.questions.estimate import EXACT, Estimate
from anyorder.questions.gains import Gain, Goal, answered, expected_gains, paired_error, ranged_gains, uncertainty_now
from anyorder.questions.information import joint_entropy
from anyorder.questions.particles import Particles
from anyorder.questions.uncertainty import uncertainty_named
from anyorder.support import html
from anyorder.support.checks import inside, whole
from anyorder.tasks.acquisition.measurements import DRAWS, Measurements
from anyorder.variables.schema import Group

FIRST_DRAWS = 32  # behind every candidate; those that may still be the best are asked again,
MORE = 4  # with so many times as many
FIRST_IN_RANGES, DRAWS_IN_RANGES = 16, 64  # the same where rows stand for ranges,
ROWS_OF_RANGES = 32  # and how many of them at most
DRAWS_NOW = 64  # behind the uncertainty now, under ranges
SETTLED = 2.0  # standard errors by which the best candidate leads when draws end
LEAST_NATS = 0.01  # a gain of less is not worth a question, if the user sets no other threshold
LEAST_SHARE = 0.01  # the same for the other rewards, of the uncertainty now
OUTER_DRAWS, INNER_DRAWS = 16, 16  # of a look two steps ahead


@dataclass(frozen=True, repr=False)
class Candidate:
    """One measurement: the columns it tells, what it costs, and what it is expected to tell.

    ``value`` is what candidates are ranked by: the gain per unit of cost. With a look two steps ahead, ``ahead`` is
    this gain and that of the best measurement after it, where one is worth its cost, and ``cost_ahead`` what both cost;
    the value is then their sum, or with costs the better of both rates. ``contradiction``: how far what is believed
    of the target now is from the mean of what would be believed after the answers; 0 if a model agrees with itself.
    """

    name: str
    columns: tuple[str, ...]
    gain: Estimate
    cost: float
    value: float
    worth: bool = True
    contradiction: float = 0.0
    ahead: Estimate | None = None
    cost_ahead: float | None = None

    def __repr__(self) -> str:
        worth = "" if self.worth else ", not worth it"
        return f"Candidate({self.name}: gain {float(self.gain):.3g} ± {self.gain.error:.2g}, cost {self.cost:g}{worth})"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        facts: dict[str, Any] = {"name": self.name, "columns": list(self.columns), "gain": self.gain.to_json()}
        if self.ahead is not None:
            facts |= {"ahead": self.ahead.to_json(), "cost_ahead": self.cost_ahead}
        facts |= {"cost": self.cost, "value": self.value, "worth": self.worth}
        return {**facts, "contradiction": self.contradiction}


@dataclass(frozen=True)
class NextQuestion:
    """The candidates, best first, and what to ask for: ``chosen``, or nothing, and then ``stop`` says why.

    Made by :meth:`TableModel.next_question <anyorder.modalities.tables.model.TableModel.next_question>`.

    Parameters
    ----------
    about
        The columns to learn about.
    reward
        What candidates are ranked by.
    unit
        What gains are counted in.
    now
        The uncertainty about the target before any further answer.
    candidates
        The measurements, best first.
    chosen
        The names of those to make now.
    together
        What the chosen ones are expected to tell together, if there are several.
    stop
        Why nothing should be asked, if so.

    Examples
    --------
    >>> question = model.next_question({"door": 0.5}, about="price", draws=64)
    >>> question.best, question.stop
    ('rooms', None)
    >>> question.candidates[0].gain > 0
    True
    """

    about: tuple[str, ...]
    reward: str
    unit: str
    now: Estimate
    candidates: tuple[Candidate, ...] = ()
    chosen: tuple[str, ...] = ()
    together: Estimate | None = None
    """What the chosen ones are expected to tell together, if there are several."""
    stop: str | None = None

    @property
    def best(self) -> str | None:
        """The name of the measurement to make now."""
        return self.chosen[0] if self.chosen else None

    @property
    def contradiction(self) -> float:
        """The largest contradiction over all candidates, in the unit of the gains.

        A true distribution is the mean of what it will be once something is known. A learned one need not be: so far
        apart are the model's answers to different questions here. Gains are free of it.
        """
        return max([0.0, *(one.contradiction for one in self.candidates)])

    def __repr__(self) -> str:
        if not self.chosen:
            return f"NextQuestion(stop: {self.stop})"
        gain = float(self.candidates[0].gain if self.together is None else self.together)
        return f"NextQuestion({' and '.join(self.chosen)}: {gain:.3g} {self.unit} about {', '.join(self.about)})"

    def _repr_html_(self) -> str:
        top = max((float(one.gain) for one in self.candidates), default=0.0) or 1.0
        lines = [
            [
                one.name,
                html.bar(float(one.gain) / top),
                f"{float(one.gain):.3g} ± {one.gain.error:.2g}",
                f"{one.cost:g}",
            ]
            for one in self.candidates
        ]
        advice = f"Ask next: {' and '.join(self.chosen)}" if self.chosen else f"Ask nothing more: {self.stop}"
        names = ["", f"tells about {', '.join(self.about)}", self.unit, "cost"]
        return html.titled(advice, html.table(names, lines, [2, 3]) if lines else "")

    def table(self) -> pd.DataFrame:
        """The candidates as a frame, best first.

        Returns
        -------
        DataFrame
            Name, gain with its standard error and its error with the model's doubt, cost, value (what they are
            ranked by) and whether they are worth asking.

        Examples
        --------
        >>> sorted(model.next_question({"door": 0.5}, about="price", draws=64).table()["name"])
        ['river', 'rooms']
        """
        rows = []
        for one in self.candidates:
            ahead = {} if one.ahead is None else {"ahead": float(one.ahead)}
            facts = {"name": one.name, "gain": float(one.gain), "standard_error": one.gain.standard_error, **ahead}
            facts["error"] = one.gain.error
            rows.append({**facts, "cost": one.cost, "value": one.value, "worth": one.worth})
        return pd.DataFrame(rows)

    def to_json(self) -> dict[str, Any]:
        """Plain values, as the command line prints them.

        Returns
        -------
        dict

        Examples
        --------
        >>> model.next_question({"door": 0.5}, about="price", draws=64).to_json()["best"]
        'rooms'
        """
        facts: dict[str, Any] = {"about": list(self.about), "reward": self.reward, "unit": self.unit}
        facts |= {"now": self.now.to_json(), "best": self.best, "chosen": list(self.chosen), "stop": self.stop}
        facts["contradiction"] = self.contradiction
        if self.together is not None:
            facts["together"] = self.together.to_json()
        return {**facts, "candidates": [one.to_json() for one in self.candidates]}


@dataclass(frozen=True)
class Case:
    """One row of exactly known model values, what is to be learned of it, and when a gain is worth a question.

    ``particles``: weighted draws that stand for ranges, if the evidence has any.
    """

    model: AnyOrderModel
    row: Float[Tensor, "1 variables"]
    known: Bool[Tensor, "1 variables"]
    goal: Goal
    measurements: Measurements
    floor: float = 0.0
    price: float = 0.0
    seed: int = 0
    particles: Particles | None = None

    def gains(self, candidates: Sequence[Group], draws: int, seed: int, most: int | None = None) -> list[Gain]:
        """What each is expected to tell; answers are listed where there are no more than ``most``."""
        if self.particles is not None:
            rows, drawn = min(draws, ROWS_OF_RANGES), min(draws, DRAWS_IN_RANGES)
            return ranged_gains(self.model, self.particles, self.goal, candidates, rows, drawn, seed, list_up_to=most)
        return expected_gains(self.model, self.row, self.known, self.goal, candidates, draws, seed, list_up_to=most)

    def threshold(self, cost: float) -> float:
        """What a gain at that cost must exceed."""
        return max(self.floor, self.price * cost)


def next_question(
    conditional: Conditional,
    about: Sequence[str],
    measurements: Measurements,
    *,
    budget: float | None = None,
    price: float = 0.0,
    least: float | None = None,
    reward: str = "information",
    at_once: int = 1,
    look_ahead: int = 1,
    draws: int = DRAWS,
    seed: int = 0,
    never: Sequence[str] = (),
) -> NextQuestion:
    """Rank what is open for a case, and say what to ask for next, or why to stop.

    ``price``: what one unit of cost is worth in units of the reward; a gain below price times cost is not worth it.
    ``least``: the smallest gain worth a question whatever it costs. ``never``: what is not to be asked for (any more).
    """
    goal = _goal(conditional, about, reward)
    check_rules(budget, price, least, at_once, look_ahead, draws)
    model = conditional.model
    row, known = conditional.exact
    if conditional.ranged and (reward != "information" or at_once > 1 or look_ahead > 1):
        raise UserError(
            "with ranges as evidence, only the reward 'information' and one question at a time work; give values"
        )
    using = conditional.using(draws=draws, seed=seed)
    draws, seed = using.draws, using.seed
    chained = goal.uncertainty.chained
    if not chained:
        now = Estimate(float(uncertainty_now(model, row, known, goal)))
    else:
        now = joint_entropy(using.using(draws=min(draws, DRAWS_NOW)) if conditional.ranged else using, about)
    unit = goal.uncertainty.unit(model.schema.variables[goal.targets[0]])
    floor = least if least is not None else LEAST_NATS if chained else LEAST_SHARE * float(now)
    particles = using.particles() if conditional.ranged else None
    case = Case(model, row, known, goal, measurements, floor, price, seed, particles)
    result = NextQuestion(tuple(about), reward, unit, now)
    settled = set(conditional.given_indices) | _not_there(case)
    left = {name: group for name, group in measurements.open_for(settled).items() if name not in never}
    if not left:
        return dataclasses.replace(result, stop="nothing is left to ask for")
    paid = {name: group for name, group in left.items() if measurements.within(budget, name)}
    if not paid:
        cheapest = min(measurements.cost(name) for name in left)
        reason = f"the budget that is left, {budget:g}, pays for nothing: the cheapest question costs {cheapest:g}"
        return dataclasses.replace(result, stop=reason)
    gains = settled_gains(case, paid, draws)
    found = [_candidate(case, name, _columns(model, paid[name]), gain) for name, gain in gains.items()]
    if look_ahead == 2:
        alone = max(float(one.gain) for one in found)
        found = [_looked_ahead(case, one, paid, budget, alone) for one in found]
    found.sort(key=lambda one: (not one.worth, -one.value))
    if look_ahead == 2 and found[0].worth:
        found.insert(0, found.pop(_sooner(found, measurements.priced)))
    result = dataclasses.replace(result, candidates=tuple(found))
    if not found[0].worth:
        best = max(found, key=lambda one: one.gain)
        reason = f"nothing left is worth its cost: at most {float(best.gain):.3g} {unit} (by {best.name})"
        reason += f", and {case.threshold(best.cost):.3g} are asked for"
        return dataclasses.replace(result, stop=reason)
    result = dataclasses.replace(result, chosen=(found[0].name,))
    if at_once == 1:
        return result
    chosen, together = _several(case, found[0].name, paid, budget, at_once, draws)
    return dataclasses.replace(result, chosen=chosen, together=together)


def settled_gains(case: Case, candidates: Mapping[str, Group], draws: int) -> dict[str, Gain]:
    """The gains of one case, with more draws for those that may still be best until the ranking is settled."""
    ranged = case.particles is not None
    used, most = (FIRST_IN_RANGES, min(draws, DRAWS_IN_RANGES)) if ranged else (FIRST_DRAWS, draws)
    used, seed = min(used, most), case.seed
    gains = dict(zip(candidates, case.gains(list(candidates.values()), used, seed, draws), strict=True))
    while used < most and (names := _contenders(case, gains)):
        used, seed = min(MORE * used, most), seed + 1
        groups = [candidates[name] for name in names]
        gains |= zip(names, case.gains(groups, used, seed, draws), strict=True)
    return gains


def _contenders(case: Case, gains: Mapping[str, Gain]) -> list[str]:
    """Whose draws are worth adding to: none once it is clear who leads, and that the leader is worth a question."""
    cost = {name: case.measurements.cost(name) for name in gains}
    value = {name: float(gain.mean[0]) / cost[name] for name, gain in gains.items()}
    above = {name: float(gain.mean[0]) - case.threshold(cost[name]) for name, gain in gains.items()}
    doubtful = {name for name, gain in gains.items() if abs(above[name]) < SETTLED * float(gain.error[0])}
    leader = max(gains, key=lambda name: (above[name] > 0, value[name]))
    close = {leader} if leader in doubtful else set()
    if above[leader] <= 0:  # nothing seems worth its cost: only what may be after all
        close |= doubtful
    else:
        first = gains[leader].terms / cost[leader]
        for name in gains:
            if name == leader or (above[name] <= 0 and name not in doubtful):
                continue
            terms = gains[name].terms / cost[name]
            further = float(
                (gains[name].further / cost[name]).square() + (gains[leader].further / cost[leader]).square()
            )
            if terms.shape == first.shape:  # common random numbers: the error of the difference
                error = (float(paired_error(terms - first)[0].square()) + further) ** 0.5
            else:
                error = (float((paired_error(terms).square() + paired_error(first).square())[0]) + further) ** 0.5
            if value[leader] - value[name] < SETTLED * error:
                close |= {leader, name}
    return [name for name in gains if name in close and float(gains[name].error[0]) > 0]


def _candidate(case: Case, name: str, columns: Sequence[str], found: Gain) -> Candidate:
    cost, gain = case.measurements.cost(name), found.estimate()
    worth, contradiction = float(gain) > case.threshold(cost), float(found.contradiction[0])
    return Candidate(name, tuple(columns), gain, cost, float(gain) / cost, worth, contradiction)


def _sooner(found: Sequence[Candidate], priced: bool) -> int:
    """The index of the candidate that tells most at once, among those whose two steps are as good as the best.

    Two measurements tell the same in either order, so their sums differ by noise only.
    """

    def error(one: Candidate) -> float:
        cost = (one.cost_ahead or one.cost) if priced else 1.0  # values are then rates
        return 0.0 if one.ahead is None else one.ahead.standard_error / cost

    top = found[0]
    slack = [SETTLED * (error(one) ** 2 + error(top) ** 2) ** 0.5 + 1e-9 * abs(top.value) for one in found]
    close = [n for n, one in enumerate(found) if one.worth and top.value - one.value <= slack[n]]
    return max(close, key=lambda number: float(found[number].gain) / found[number].cost)


def _looked_ahead(
    case: Case, first: Candidate, candidates: Mapping[str, Group], budget: float | None, alone: float
) -> Candidate:
    """A candidate with the expected gain of the best measurement that may follow it, and what both cost.

    What is not worth its cost by itself must make both together worth more than the best single one, whose gain is
    ``alone``, by as much as it costs: noise before a good question adds nothing to it.

    The best of noisy numbers looks better than it is: what follows, and whether anything does, is chosen by one half of
    the draws, and its gain is read from the other half, and the other way round.
    """
    left = None if budget is None else budget - first.cost
    others = [name for name in candidates if name != first.name and case.measurements.within(left, name)]
    if not others:
        return dataclasses.replace(first, ahead=first.gain, cost_ahead=first.cost)
    futures = answered(case.model, case.row, case.known, candidates[first.name], OUTER_DRAWS, case.seed)
    weight, groups = futures.weight[:, 0], [candidates[name] for name in others]
    costs = torch.tensor([case.measurements.cost(name) for name in others], dtype=torch.float64)
    least = torch.tensor([case.threshold(float(cost)) for cost in costs], dtype=torch.float64)
    halves = [
        expected_gains(case.model, futures.values[:, 0], futures.known, case.goal, groups, INNER_DRAWS, seed)
        for seed in (case.seed + 1, case.seed + 2)
    ]
    means = [torch.stack([gain.mean for gain in half]) for half in halves]
    errors = [torch.stack([gain.error for gain in half]) for half in halves]
    follows = torch.zeros(len(futures.case), dtype=torch.float64)
    spent, noise = torch.zeros_like(follows), torch.zeros_like(follows)
    for chooser, scorer in ((0, 1), (1, 0)):
        worthy = means[chooser] > least[:, None]
        best = (means[chooser] / costs[:, None]).masked_fill(~worthy, -torch.inf).argmax(dim=0)
        bought = worthy.any(dim=0).double()
        follows += bought * means[scorer].gather(0, best[None])[0] / 2
        spent += bought * costs[best] / 2
        noise += (bought * errors[scorer].gather(0, best[None])[0]).square() / 4
    # Draws of the answers carry the noise of what follows them; a list of them does not.
    listed = float((weight.square() * noise).sum().sqrt())
    error = listed if futures.listed else float(paired_error(follows[None])[0])
    error = (first.gain.standard_error**2 + error**2) ** 0.5
    total = float(first.gain) + float((weight * follows).sum())
    ahead = Estimate(total, error, f"two steps, {len(follows)} answers" if error else EXACT)
    both = first.cost + float((weight * spent).sum())
    # Without costs the sum of two gains counts; with costs a first step that is better alone may stand alone.
    value = max(first.value, total / both) if case.measurements.priced else total
    worth = first.worth or (total > case.threshold(both) and total - alone > case.threshold(first.cost))
    return dataclasses.replace(first, ahead=ahead, cost_ahead=both, value=value, worth=worth)


def _several(
    case: Case, first: str, candidates: Mapping[str, Group], budget: float | None, at_once: int, draws: int
) -> tuple[tuple[str, ...], Estimate]:
    """Measurements whose answers come together: one after the other, each the best beside those chosen."""
    measurements, chosen = case.measurements, [first]
    together = case.gains([candidates[first]], draws, case.seed)[0].estimate()
    while len(chosen) < at_once:
        rest = None if budget is None else budget - sum(measurements.cost(name) for name in chosen)
        left = [name for name in candidates if name not in chosen and measurements.within(rest, name)]
        if not left:
            break
        # A group may share columns with another.
        groups = [tuple(dict.fromkeys(index for one in (*chosen, name) for index in candidates[one])) for name in left]
        gains = [gain.estimate() for gain in case.gains(groups, draws, case.seed)]
        added = [float(gain) - float(together) for gain in gains]
        worthy = [index for index, name in enumerate(left) if added[index] > case.threshold(measurements.cost(name))]
        if not worthy:
            break
        best = max(worthy, key=lambda index: added[index] / measurements.cost(left[index]))
        chosen.append(left[best])
        together = gains[best]
    return tuple(chosen), together


def _goal(conditional: Conditional, about: Sequence[str], reward: str) -> Goal:
    if not about or len(set(about)) < len(about):
        raise UserError(f"about must name one or more different columns, got {list(about)}")
    targets = tuple(conditional.model.schema.index(name) for name in about)
    for name, index in zip(about, targets, strict=True):
        if index in conditional.given_indices:
            raise UserError(f"{name!r} is already known, so it cannot also be what you want to know about")
    goal = Goal(targets, uncertainty_named(reward))
    if len(targets) > 1 and not goal.uncertainty.chained:
        raise UserError(
            f"the reward {reward!r} works with one target, got {len(targets)}; use 'information' for several"
        )
    return goal


def _not_there(case: Case) -> set[int]:
    """Columns that are known to be missing: nobody can tell them."""
    pairs = case.model.schema.pairs.items()
    return {column for column, mark in pairs if bool(case.known[0, mark]) and float(case.row[0, mark]) == 1}


def _columns(model: AnyOrderModel, group: Group) -> list[str]:
    return [model.schema.names[index] for index in group]


def check_rules(
    budget: float | None, price: float, least: float | None, at_once: int, look_ahead: int, draws: int
) -> None:
    """Refuse rules of asking that make no sense."""
    if budget is not None and not inside(budget, "[0, inf]"):
        raise UserError(f"budget must be 0 or more, got {budget!r}")
    if not inside(price, "[0, inf]") or (least is not None and not inside(least, "[0, inf]")):
        raise UserError(f"price and least must be 0 or more, got {price!r} and {least!r}")
    if whole("at_once", at_once) and whole("look_ahead", look_ahead) > 2:
        raise UserError(f"look_ahead must be 1 or 2, got {look_ahead}")
    if at_once > 1 and look_ahead > 1:
        raise UserError("choose either several questions at once or look_ahead=2, not both")
    whole("draws", draws, 2)
