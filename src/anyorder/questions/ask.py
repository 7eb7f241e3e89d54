"""A typed question to an answer: every form of :mod:`anyorder.questions.grammar`, asked of a conditional.

price, tax | rooms=6          the distribution of each
price=22 | rooms=6            log p of the values, jointly
P(price > 30 | rooms=6)       the probability of an event; without P( ) where the values are ranges
P(price > cost | rooms=6)     one column against another
E[price | rooms=6]            the mean; median(...) and mode(...) likewise
H(price, tax | rooms=6)       the joint entropy
I(price; tax | rooms=6)       the mutual information
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from anyorder.errors import UserError
from anyorder.questions.grammar import Question, read_value
from anyorder.variables.schema import Schema

if TYPE_CHECKING:
    from anyorder.questions.answer import Answer
    from anyorder.questions.conditional import Conditional


@dataclass(frozen=True)
class Reply:
    """What there is to say: distributions by name, and numbers by what they are ("probability", "log_prob", ...)."""

    question: Question
    answers: Mapping[str, Answer] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    means: Mapping[str, Any] = field(default_factory=dict)
    medians: Mapping[str, Any] = field(default_factory=dict)
    modes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def only(self) -> Any:
        """The one thing that was asked for, or all answers by name."""
        found = {**self.answers, **self.means, **self.medians, **self.modes, **self.numbers}
        return next(iter(found.values())) if len(found) == 1 else found


def reply_to(
    question: Question, schema: Schema, given: Callable[[Mapping[str, Any]], Conditional], shown: str = ""
) -> Reply:
    """Answer a question; ``given`` makes the conditional of its evidence."""
    for name in (*question.asked, *question.beside, *question.evidence):
        schema.index(name)  # refuses a name it does not have, with the nearest one it has
    if not question.asked:
        raise UserError(f"nothing is asked in {shown!r}: name a variable before the '|'")
    conditional = given(question.evidence)
    match question.form:
        case "P":
            return Reply(question, numbers={"probability": conditional.prob(question.values)})
        case "E":
            return Reply(question, means={name: conditional[name].mean() for name in question.asked})
        case "median":
            return Reply(question, medians={name: conditional[name].median() for name in question.asked})
        case "mode":
            return Reply(question, modes={name: conditional[name].mode() for name in question.asked})
        case "H":
            return Reply(question, numbers={"entropy": conditional.entropy(*question.asked)})
        case "I":
            from anyorder.questions.information import mutual_information

            found = mutual_information(conditional, question.asked, question.beside)
            return Reply(question, numbers={"mutual_information": found})
    numbers: dict[str, float] = {}
    if question.values:
        if any(_is_partial(conditional, schema, name, value) for name, value in question.values.items()):
            numbers["probability"] = conditional.prob(question.values)
        else:
            numbers["log_prob"] = conditional.log_prob(question.values)
    return Reply(
        question,
        answers={name: conditional[name] for name in question.asked if name not in question.values},
        numbers=numbers,
    )


def _is_partial(conditional: Conditional, schema: Schema, name: str, value: str) -> bool:
    """Whether a typed value is a range, a set, "missing" or another column."""
    if read_value(value) is None and value not in schema:
        return False
    # Imported here: codecs need pandas and torch, and the command line's --help does without them.
    from anyorder.questions.comparisons import separated
    from anyorder.questions.evidence import Value, read_statement

    if separated(conditional.model.encoding, {name: value})[1]:
        return True

    return not isinstance(read_statement(conditional.model.encoding.codec(name), value), Value)
