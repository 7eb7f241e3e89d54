"""An interview: the model asks, someone answers, and the posterior of the target narrows.

The state is the list of turns alone, so that undoing is forgetting the last one and resuming is reading the list. A
transcript also holds what the interview is about and its rules, so that it goes on as it began.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np

from anyorder.distributions.region import Region
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.questions.answer import Answer
from anyorder.questions.conditional import Conditional
from anyorder.questions.events import understand
from anyorder.support.atomic import atomic_path
from anyorder.support.boundary import field as named
from anyorder.support.boundary import reading
from anyorder.support.strict_json import read_json
from anyorder.tasks.acquisition.measurements import DRAWS, Measurements
from anyorder.tasks.acquisition.next_question import NextQuestion, check_rules, next_question
from anyorder.variables.schema import Variable

FORMAT = "anyorder interview 1"
LONGEST_TRANSCRIPT = 10_000_000  # bytes of a transcript
STRANGE = 1e-4  # a number with less probability beyond it, nothing else being known, is asked for twice

Outcome = Literal["told", "answered", "skipped", "unknown"]


@dataclass(frozen=True)
class Turn:
    """What came of one question, or was volunteered without one. ``answers`` are as they were typed, by column."""

    name: str
    outcome: Outcome
    answers: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values, by the names that transcripts use."""
        return {"name": self.name, "outcome": self.outcome, "told": dict(self.answers)}


@dataclass(frozen=True)
class Setup:
    """What an interview is about and its rules: the options of ``TableModel.next_question``."""

    about: tuple[str, ...] = ()
    candidates: tuple[str, ...] | None = None
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    costs: Mapping[str, float] | None = None
    budget: float | None = None
    price: float = 0.0
    least: float | None = None
    reward: str = "information"
    look_ahead: int = 1

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return plain

    def agreeing_with(self, kept: Mapping[str, Any]) -> Setup:
        """The setup that a transcript kept; what is said here besides must not be something else."""
        if set(kept) != {one.name for one in dataclasses.fields(Setup)}:
            raise UserError("the transcript is damaged: its setup is not that of an interview")
        plain, usual = self.to_json(), Setup().to_json()
        for name, value in plain.items():
            if value not in (usual[name], kept[name]):
                raise UserError(f"the transcript was made with {name} {kept[name]}, not {value}: leave the option out")
        tuples = {name: None if kept[name] is None else tuple(kept[name]) for name in ("about", "candidates")}
        return Setup(**{**kept, **tuples})


@dataclass(repr=False)
class Interview:
    """Questions to one case about some target, with costs, a budget and a rule when to stop.

    For one case and one person at a time: to rank questions for a row of a table, ask
    :meth:`TableModel.next_question <anyorder.modalities.tables.model.TableModel.next_question>`.

    Parameters
    ----------
    model
        The ``core`` of a table model.
    setup
        What the interview is about, and its rules.
    draws, seed
        How many draws stand for a candidate's answers, and what decides them.
    turns
        What came of the questions so far.

    Examples
    --------
    >>> from anyorder.tasks.acquisition.interview import Interview, Setup
    >>> session = Interview(model.core, Setup(about=("price",)), draws=64)
    >>> session.next().best
    'rooms'
    >>> session.answer("rooms", {"rooms": "6"})
    >>> session.posterior()["price"].std() < session.prior("price").std()
    True
    """

    model: AnyOrderModel
    setup: Setup
    draws: int = DRAWS
    seed: int = 0
    turns: list[Turn] = field(default_factory=list)

    def __repr__(self) -> str:
        turns = f"{len(self.turns)} turn{'' if len(self.turns) == 1 else 's'} so far"
        return f"Interview(about {', '.join(self.setup.about)}: {turns})"

    @cached_property
    def measurements(self) -> Measurements:
        """What can be asked for."""
        setup = self.setup
        return Measurements.of(
            self.model.schema, setup.about, candidates=setup.candidates, groups=setup.groups, costs=setup.costs
        )

    @property
    def known(self) -> dict[str, str]:
        """All answers so far, by column."""
        return {column: said for turn in self.turns for column, said in turn.answers.items()}

    @property
    def spent(self) -> float:
        """The cost of what was asked and answered, each measurement once; anything else costs nothing."""
        return sum(self.measurements.cost(name) for name in {t.name for t in self.turns if t.outcome == "answered"})

    @property
    def left(self) -> float | None:
        """What may still be spent."""
        return None if self.setup.budget is None else max(0.0, self.setup.budget - self.spent)

    def next(self) -> NextQuestion:
        """What to ask now. What was skipped comes back once, when nothing else is worth asking.

        Returns
        -------
        NextQuestion
            The candidates in order, with a reason to stop if there is one.

        Examples
        --------
        >>> from anyorder.tasks.acquisition.interview import Interview, Setup
        >>> session = Interview(model.core, Setup(about=("price",)), draws=64)
        >>> session.unknown("rooms")
        >>> "rooms" in session.next().table()["name"].tolist()
        False
        """
        names = [turn.name for turn in self.turns if turn.outcome in ("unknown", "skipped")]
        later = [turn.name for turn in self.turns if turn.outcome == "skipped" and names.count(turn.name) == 1]
        question = self._without(names)
        return self._without([name for name in names if name not in later]) if question.stop and later else question

    def _without(self, names: Sequence[str]) -> NextQuestion:
        setup = self.setup
        return next_question(
            Conditional(self.model, self.known),
            setup.about,
            self.measurements,
            budget=self.left,
            price=setup.price,
            least=setup.least,
            reward=setup.reward,
            look_ahead=setup.look_ahead,
            draws=self.draws,
            seed=self.seed,
            never=names,
        )

    def prior(self, column: str) -> Answer:
        """The distribution of a column before any answer, given what is known of the context alone.

        Parameters
        ----------
        column
            The column.

        Returns
        -------
        Answer
        """
        context = self.model.schema.context_names
        return Conditional(self.model, {name: said for name, said in self.known.items() if name in context})[column]

    def columns(self, name: str) -> list[str]:
        """The columns that a measurement tells and that are not known yet.

        Parameters
        ----------
        name
            The measurement: a column, or a group of them.

        Returns
        -------
        list of str
        """
        known = self.known
        names = [self.model.schema.names[index] for index in self.measurements.groups[name]]
        return [column for column in names if column not in known]

    def check(self, answers: Mapping[str, str]) -> dict[str, str]:
        """Check answers without keeping them: they must be values of their columns and agree with what is known.

        Parameters
        ----------
        answers
            What was typed, by column: a value, a range or a set.

        Returns
        -------
        dict
            The answers as they would be kept.
        """
        kept = {column: said.strip() for column, said in answers.items()}
        for column, said in kept.items():
            if column in self.setup.about:
                raise UserError(f"{column!r} is what this interview is about; it cannot also be an answer")
            _, value = understand(self.model.encoding, column, said, evidence=True)
            if isinstance(value, Region) and (self.setup.reward != "information" or self.setup.look_ahead > 1):
                raise UserError(
                    f"{said!r} is a range: this interview (reward {self.setup.reward}, look_ahead "
                    f"{self.setup.look_ahead}) needs exact values; give one, or skip"
                )
        given = Conditional(self.model, {**self.known, **kept})
        if given.ranged:
            given.particles()  # a range that cannot be is refused here, not after it was kept
        return kept

    def strange(self, column: str, said: str) -> str | None:
        """A remark, if the model has seen next to nothing as far out as this number.

        Parameters
        ----------
        column
            The column.
        said
            The answer as it was typed.

        Returns
        -------
        str or None
        """
        index, value = understand(self.model.encoding, column, said, evidence=True)
        variable = self.model.schema.variables[index]
        if isinstance(value, Region) or variable.levels or variable.context:  # of context no distribution is known
            return None
        answer = self.prior(column)
        below = float(answer.cumulative(np.array([value]))[0])
        if below > STRANGE and 1 - below + answer.mass(value) > STRANGE:
            return None
        ends = answer.quantile([STRANGE, 1 - STRANGE])
        low, high = (f"{end:.4g}" if isinstance(end, float) else str(end) for end in ends)
        return f"{said} lies outside of nearly all that the model has seen of {column} ({low} .. {high})"

    def answer(self, name: str, answers: Mapping[str, str]) -> None:
        """Keep what a measurement gave. It costs what it costs.

        Parameters
        ----------
        name
            The measurement.
        answers
            Its answers as they were typed, by column.
        """
        self.turns.append(Turn(name, "answered", self.check(answers)))

    def tell(self, answers: Mapping[str, str]) -> None:
        """Keep what is known without having been asked for. It costs nothing.

        Parameters
        ----------
        answers
            What is known as it was typed, by column.
        """
        if answers:
            self.turns.append(Turn("", "told", self.check(answers)))

    def skip(self, name: str) -> None:
        """Put a question off: it comes back once, when nothing else is worth asking.

        Parameters
        ----------
        name
            The measurement.
        """
        self.turns.append(Turn(name, "skipped"))

    def unknown(self, name: str) -> None:
        """Never ask this again: nobody knows the answer.

        Parameters
        ----------
        name
            The measurement.
        """
        self.turns.append(Turn(name, "unknown"))

    def undo(self) -> Turn | None:
        """Forget the last turn; but not if the model would no longer know the context that it must know.

        Returns
        -------
        Turn or None
            What was forgotten.
        """
        if not self.turns:
            return None
        last = self.turns.pop()
        if any(_always_known(self.model.schema[name]) for name in last.answers.keys() - self.known.keys()):
            self.turns.append(last)
            return None
        return last

    def posterior(self) -> dict[str, Answer]:
        """The distribution of each target given all answers.

        Returns
        -------
        dict
            An :class:`~anyorder.questions.answer.Answer` by column.
        """
        conditional = Conditional(self.model, self.known)
        return {name: conditional[name] for name in self.setup.about}

    def to_json(self) -> dict[str, Any]:
        """The transcript as plain values.

        Returns
        -------
        dict
        """
        turns = [turn.to_json() for turn in self.turns]
        names = list(self.model.schema.names)
        return {"format": FORMAT, "variables": names, "setup": self.setup.to_json(), "turns": turns}

    def save(self, path: Path) -> None:
        """Write the transcript to a file, which is replaced as a whole or not at all.

        Parameters
        ----------
        path
            The file, in JSON.
        """
        with atomic_path(path) as beside:
            beside.write_text(json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _always_known(variable: Variable) -> bool:
    return variable.context and not variable.optional


def resumed(path: Path, model: AnyOrderModel, setup: Setup, *, draws: int = DRAWS, seed: int = 0) -> Interview:
    """The interview of a transcript, by its own setup; what ``setup`` says besides must agree with it."""
    with reading(repr(str(path))):
        return _resumed(path, model, setup, draws, seed)


def _resumed(path: Path, model: AnyOrderModel, setup: Setup, draws: int, seed: int) -> Interview:
    if path.stat().st_size > LONGEST_TRANSCRIPT:
        raise UserError(f"it is longer than {LONGEST_TRANSCRIPT} bytes, and no transcript")
    facts = read_json(path.read_text(encoding="utf-8"), finite=False)  # a budget may be infinite
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise UserError(f"it is no transcript of an interview ({FORMAT!r} is expected)")
    if facts.get("variables") != list(model.schema.names):
        raise UserError("it belongs to an interview of another model: its variables are not the same")
    if not isinstance(facts.get("setup"), dict) or not isinstance(facts.get("turns"), list):
        raise UserError("it is damaged: it has no setup or no turns")
    with named("setup"):
        kept = setup.agreeing_with(facts["setup"])
        interview = Interview(model, kept, draws, seed)
        check_rules(kept.budget, kept.price, kept.least, 1, kept.look_ahead, draws)
        known = interview.measurements.groups
    for number, one in enumerate(facts["turns"]):
        with named(f"turns.{number}"):
            turn = _turn(one)
            if turn.name not in ("", *known):
                raise UserError(f"{turn.name!r:.80} cannot be measured")
            interview.turns.append(dataclasses.replace(turn, answers=interview.check(turn.answers)))
    return interview


def _turn(facts: Any) -> Turn:
    answers = facts.get("told") if isinstance(facts, dict) else None
    if (
        not isinstance(answers, dict)
        or not isinstance(facts.get("name"), str)
        or facts.get("outcome") not in get_args(Outcome)
        or not all(isinstance(word, str) for pair in answers.items() for word in pair)
    ):
        raise UserError(f"the transcript is damaged: {str(facts)[:60]!r} is no turn of an interview")
    return Turn(facts["name"], cast(Outcome, facts["outcome"]), answers)
