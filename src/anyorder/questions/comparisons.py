"""One column against another: ``price > cost``, ``first = second``.

Numbers and times are compared by a rule (:mod:`.rules`): P(price > cost) is the mean weight of draws that obey it, and
as evidence it is a rule of its question. Columns with the same levels are compared by a sum over the levels,

$$P(a = b \\mid e) = \\sum_l P(a = l, b = l \\mid e).$$
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anyorder.errors import UserError
from anyorder.questions.grammar import read_value
from anyorder.questions.rules import NUMBERS, Rule, Rules, parse_rule
from anyorder.variables.codecs import Space
from anyorder.variables.encoding import Encoding
from anyorder.variables.ranges import Between
from anyorder.variables.schema import Kind, Variable

_SIMPLE = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Comparison:
    """Column ``name`` against column ``other``; ``mark`` is one of ``< <= = != >= >``."""

    name: str
    mark: str
    other: str

    def __str__(self) -> str:
        return f"{_quoted(self.name)} {self.mark} {_quoted(self.other)}"


def separated(encoding: Encoding, said: Mapping[str, Any]) -> tuple[dict[str, Any], list[Comparison]]:
    """What is said of columns by themselves, and how columns compare with each other."""
    alone: dict[str, Any] = {}
    compared: list[Comparison] = []
    for name, value in said.items():
        found, rest = _compared(encoding, name, value) if isinstance(value, str) else ([], value)
        compared += found
        if rest is not None:
            alone[name] = rest
    return alone, compared


def _compared(encoding: Encoding, name: str, said: str) -> tuple[list[Comparison], Any]:
    """The comparisons with other columns in one text, and what else it says; None where that is all."""
    schema = encoding.schema
    looks = read_value(said)
    words = [said.strip()] if looks is None else [*looks.excluded, looks.low, looks.high]
    if not any(word in schema for word in words if word is not None) or encoding.codec(name).is_value(said):
        return [], said

    def is_column(word: str | None) -> bool:
        return word is not None and word in schema and word != name and not _is_value(encoding, name, word)

    if looks is None:
        return ([Comparison(name, "=", said.strip())], None) if is_column(said.strip()) else ([], said)
    if looks.excluded:
        found = [Comparison(name, "!=", word) for word in looks.excluded if is_column(word)]
        if found and len(found) < len(looks.excluded):
            raise UserError(f"{name!r} is compared by != with both a column and a value; ask about one of them")
        return found, None if found else said
    found = []
    if is_column(looks.low):
        found.append(Comparison(name, ">" if looks.low_open else ">=", str(looks.low)))
    if is_column(looks.high):
        found.append(Comparison(name, "<" if looks.high_open else "<=", str(looks.high)))
    low, high = (None if is_column(end) else end for end in (looks.low, looks.high))
    rest = Between(low, high, looks.low_open, looks.high_open) if low is not None or high is not None else None
    return (found, rest) if found else ([], said)


def _is_value(encoding: Encoding, name: str, word: str) -> bool:
    """Whether a word that is the name of a column is also a value of ``name``, which then is meant."""
    try:
        encoding.encode_value(name, word, evidence=True)
    except UserError:
        return False
    return True


def by_levels(encoding: Encoding, comparison: Comparison) -> bool:
    """Whether the two columns are compared level by level; refuses two that cannot be compared."""
    kinds = [encoding.schema[name].kind for name in (comparison.name, comparison.other)]
    if all(kind in NUMBERS for kind in kinds):
        if (kinds[0] is Kind.DATETIME) != (kinds[1] is Kind.DATETIME):
            raise UserError(f"{str(comparison)!r} compares a time with a number")
        units = [_unit(encoding.schema[name]) for name in (comparison.name, comparison.other)]
        if all(units) and units[0] != units[1]:
            raise UserError(f"{str(comparison)!r} compares {units[0]} with {units[1]}")
        spaces = [encoding.codec(name).space for name in (comparison.name, comparison.other)]
        if comparison.mark in ("=", "!=") and Space.LINE in spaces:
            raise UserError(
                f"{str(comparison)!r}: numbers on a continuous scale are never exactly equal, so the probability is 0; "
                "ask whether one is greater"
            )
        return False
    if any(kind in NUMBERS for kind in kinds):
        raise UserError(f"{str(comparison)!r} compares a number or time with a text")
    if comparison.mark not in ("=", "!="):
        raise UserError(f"{str(comparison)!r}: levels of two columns can only be equal (=) or not (!=)")
    return True


def common_levels(encoding: Encoding, comparison: Comparison) -> list[tuple[Any, Any]]:
    """The levels that two columns share, each as both write it."""
    mine, theirs = (encoding.schema[name].levels for name in (comparison.name, comparison.other))
    there = {str(level): level for level in theirs}
    found = [(level, there[str(level)]) for level in mine if str(level) in there]
    if not found:
        raise UserError(f"{str(comparison)!r}: the two columns have no level in common, so they are never equal")
    return found


def as_rules(encoding: Encoding, compared: Sequence[Comparison]) -> list[Rule]:
    """Comparisons of numbers or times as rules."""
    return [rule for one in compared for rule in parse_rule(str(one), encoding.schema)]


def _unit(variable: Variable) -> str:
    return "" if variable.notation is None else variable.notation.unit


def with_evidence(encoding: Encoding, rules: Rules | None, compared: Sequence[Comparison]) -> Rules | None:
    """The rules of a question whose evidence compares columns."""
    for one in compared:
        if by_levels(encoding, one) or one.mark == "!=":
            raise UserError(
                f"{str(one)!r} cannot be evidence: only numbers and times can be compared there, by <, <=, =, >= or >"
            )
    return Rules([*(rules.rules if rules else ()), *as_rules(encoding, compared)], encoding) if compared else rules


def _quoted(name: str) -> str:
    """A name as rules read it."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return name if _SIMPLE.fullmatch(name) else f'"{escaped}"'
