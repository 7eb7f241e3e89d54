r"""Rules between columns: ``end > start``, ``total = a + b``, ``a + b + c = 100``, ``x <= 2*y``.

    rule    = sum compare sum { compare sum }       a < b < c is two rules
    sum     = [ "-" ] term { ( "+" | "-" ) term }
    term    = factor { ( "*" | "/" ) factor }       at most one column in each term
    factor  = number | column | quoted
    compare = "<" | "<=" | "=" | "==" | ">=" | ">"

A column is written as it is, or between quotes where its name holds a mark or is a number; a quoted date stands for
itself. Every rule is linear, $\sum_k c_k x_k \le b$ or $= b$, in the units of the data; times count days. So given
bounds $[l_k, u_k]$ of the other columns (known values, or whatever they can be), each has an interval of its own,

$$c_i x_i \le b - \sum_{k \ne i} \min(c_k l_k, c_k u_k),$$

and once all others are known an equality leaves a single point.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.errors import UserError
from anyorder.support.words import QUOTES, mistake, quoted_word
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema
from anyorder.variables.times import days, times

NUMBERS = (Kind.CONTINUOUS, Kind.SPIKED, Kind.INTEGER, Kind.ATOMS, Kind.DATETIME)
ROUNDING = 1e-10  # of the size of the terms: what sums of decimals differ by
MOST_RULES, MOST_LETTERS = 100, 2_000

_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(?![\w.])")
_WORD = re.compile(r"[^-+*/<>=\"']+")
_COMPARE = re.compile(r"<=|>=|==|<|>|=")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([ T].*)?")


@dataclass(frozen=True)
class Rule:
    """sum of coefficient times column, below ``bound``, at most ``bound``, or equal to it."""

    text: str
    coefficients: Mapping[str, float]
    compare: str  # "<", "<=" or "="
    bound: float

    def __str__(self) -> str:
        return self.text


def parse_rules(texts: str | Iterable[str], schema: Schema) -> list[Rule]:
    """The rules that these texts state about the columns of a schema."""
    listed = [texts] if isinstance(texts, str) else list(texts) if isinstance(texts, Iterable) else [texts]
    if len(listed) > MOST_RULES:
        raise UserError(f"there can be at most {MOST_RULES} rules, got {len(listed)}")
    return [rule for text in listed for rule in parse_rule(text, schema)]


def parse_rule(text: Any, schema: Schema) -> list[Rule]:
    """One text; comparisons in a row are several rules."""
    if not isinstance(text, str) or not text.strip() or len(text) > MOST_LETTERS:
        raise UserError(f"a rule must be a text such as 'end > start' or 'total = a + b', got {text!r:.80}")
    sides, marks = _Reader(text, schema).read()
    rules = []
    for left, mark, right in zip(sides[:-1], marks, sides[1:], strict=True):
        sign = -1.0 if mark[0] == ">" else 1.0
        names = [*left.names, *(name for name in right.names if name not in left.names)]
        each = {name: sign * (left.names.get(name, 0.0) - right.names.get(name, 0.0)) for name in names}
        coefficients = {name: value for name, value in each.items() if value != 0}
        if not coefficients:
            raise UserError(f"the rule {text!r} says nothing about any column")
        bound = sign * (right.constant - left.constant)
        if not all(math.isfinite(number) for number in (bound, *coefficients.values())):
            raise UserError(f"the numbers of the rule {text!r} are too large")
        compare = "=" if mark in ("=", "==") else "<=" if "=" in mark else "<"
        rules.append(Rule(text.strip(), coefficients, compare, bound))
    return rules


@dataclass
class _Sum:
    names: dict[str, float]
    constant: float = 0.0


class _Reader:
    """Reads a rule from left to right."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.text, self.schema, self.at = text, schema, 0

    def read(self) -> tuple[list[_Sum], list[str]]:
        sides, marks = [self._sum()], []
        while found := self._take(_COMPARE):
            marks.append(found)
            sides.append(self._sum())
        self._blank()
        if self.at < len(self.text):
            raise mistake(self.text, self.at, "expected +, -, *, / or a comparison")
        if not marks:
            raise mistake(self.text, self.at, "a rule needs a comparison: <, <=, =, >= or >")
        return sides, marks

    def _sum(self) -> _Sum:
        total = _Sum({})
        sign = -1.0 if self._mark("-") else 1.0
        while True:
            self._term(total, sign)
            if self._mark("+"):
                sign = 1.0
            elif self._mark("-"):
                sign = -1.0
            else:
                return total

    def _term(self, total: _Sum, number: float) -> None:
        column: str | None = None
        divide = False
        while True:
            began = self.at
            factor = self._factor()
            if isinstance(factor, float):
                if divide and factor == 0:
                    raise mistake(self.text, began, "division by zero")
                number = number / factor if divide else number * factor
            elif divide or column is not None:
                raise mistake(self.text, began, "rules are linear: numbers times columns, added up")
            else:
                column = factor
            if self._mark("*"):
                divide = False
            elif self._mark("/"):
                divide = True
            else:
                break
        if column is None:
            total.constant += number
        else:
            total.names[column] = total.names.get(column, 0.0) + number

    def _factor(self) -> float | str:
        self._blank()
        began = self.at
        if began < len(self.text) and self.text[began] in QUOTES:
            word, self.at = quoted_word(self.text, began)
            if word not in self.schema and _DATE.fullmatch(word):
                return _days(word)
            return self._column(word)
        if found := self._take(_NUMBER):
            return float(found)
        if found := self._take(_WORD):
            return self._column(found.strip())
        raise mistake(self.text, began, "expected a column or a number")

    def _column(self, name: str) -> str:
        kind = self.schema.variables[self.schema.index(name)].kind
        if kind not in NUMBERS:
            raise UserError(f"rules are about numbers and times, and {name!r} in {self.text!r} is {kind.value}")
        return name

    def _mark(self, mark: str) -> bool:
        self._blank()
        if not self.text.startswith(mark, self.at):
            return False
        self.at += len(mark)
        return True

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        self._blank()
        found = pattern.match(self.text, self.at)
        if found is None or not found[0].strip():
            return None
        self.at = found.end()
        return found[0]

    def _blank(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1


def _days(text: str) -> float:
    return float(days(times(pd.Series([text], dtype=object), np.zeros(1, dtype=bool), "a rule", ""))[0])


class Rules:
    """Rules bound to the columns of a model: which values each column may have, row by row, given the others."""

    def __init__(self, rules: Sequence[Rule], encoding: Encoding) -> None:
        self.rules = list(rules)
        self.encoding = encoding
        schema = encoding.schema
        named = dict.fromkeys(name for rule in self.rules for name in rule.coefficients)
        self.columns = [schema.index(name) for name in named]
        self.position = {column: number for number, column in enumerate(self.columns)}
        self.matrix = np.zeros((len(self.rules), len(self.columns)))
        for number, rule in enumerate(self.rules):
            for name, value in rule.coefficients.items():
                self.matrix[number, self.position[schema.index(name)]] = value
        self.bounds = np.array([rule.bound for rule in self.rules])

    def __bool__(self) -> bool:
        return bool(self.rules)

    def check_context(self, known: Bool[Tensor, "rows variables"]) -> None:
        """Refuse rules about context that some row does not know: it cannot be drawn."""
        schema = self.encoding.schema
        for column in self.columns:
            if schema.variables[column].context and not bool(known[:, column].all()):
                raise UserError(
                    f"a rule speaks of {schema.names[column]!r}, which is context and unknown here, so it cannot be "
                    "drawn; give its value, or leave the rule out"
                )

    def fixes(self, column: int) -> bool:
        """Whether a column stands in an equality."""
        index = self.position[column]
        return any(rule.compare == "=" and row[index] != 0 for rule, row in zip(self.rules, self.matrix, strict=True))

    def step(self, column: int) -> float:
        """The distance between two values as they are recorded; 0 where it is not known."""
        return self.encoding.schema.variables[column].step

    def value(self, column: int, model: float) -> float:
        """A model value in the units of the data, with the digits that were recorded."""
        codec = self.encoding.codecs[column]
        return float(codec.as_recorded(codec.measure(np.array([model])))[0])

    def allowed(
        self, low: Float[np.ndarray, "rows columns"], high: Float[np.ndarray, "rows columns"], column: int
    ) -> tuple[Float[np.ndarray, " rows"], Float[np.ndarray, " rows"], Bool[np.ndarray, " rows"]]:
        """The least and greatest value of a column that all rules allow, and whether an end is left out (strict).

        ``low`` and ``high`` say what each column of the rules can be; a known one can be one value only.
        """
        index = self.position[column]
        least, most = low[:, index].copy(), high[:, index].copy()
        strict = np.zeros((2, len(low)), dtype=bool)
        for row, rule in zip(self.matrix, self.rules, strict=True):
            own = row[index]
            if own == 0:
                continue
            others = np.flatnonzero(row)
            others = others[others != index]
            ends = row[others] * low[:, others], row[others] * high[:, others]
            smallest, largest = np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)
            sides = [(smallest, True)] if rule.compare != "=" else [(smallest, True), (largest, False)]
            for rest, upper in sides:
                end = (rule.bound - rest) / own
                if upper == (own > 0):
                    closer = end < most
                    strict[1] = np.where(closer | (end == most), rule.compare == "<", strict[1])
                    most = np.minimum(most, end)
                else:
                    closer = end > least
                    strict[0] = np.where(closer | (end == least), rule.compare == "<", strict[0])
                    least = np.maximum(least, end)
        return least, most, strict

    def computed(self, known: Bool[np.ndarray, "rows columns"], column: int) -> tuple[np.ndarray, np.ndarray]:
        """The rule by which a column follows from the others where one does, and -1 where none; its coefficient."""
        index = self.position[column]
        which, factor = np.full(len(known), -1), np.ones(len(known))
        for number, (row, rule) in enumerate(zip(self.matrix, self.rules, strict=True)):
            if rule.compare == "=" and row[index] != 0:
                others = (row != 0) & (np.arange(len(row)) != index)
                here = known[:, others].all(axis=1) & (which < 0)
                which[here], factor[here] = number, row[index]
        return which, factor

    def tightened(
        self, low: Float[np.ndarray, "rows columns"], high: Float[np.ndarray, "rows columns"]
    ) -> tuple[Float[np.ndarray, "rows columns"], Float[np.ndarray, "rows columns"]]:
        """The ends of all columns after the rules have told each other what they know, a few times over."""
        for _ in range(2 if len(self.rules) > 1 else 1):
            for column, index in self.position.items():
                least, most, _ = self.allowed(low, high, column)
                open_ = low[:, index] < high[:, index]
                low[:, index] = np.where(open_, least, low[:, index])
                high[:, index] = np.where(open_, most, high[:, index])
        return low, high

    def broken(
        self, units: Float[np.ndarray, "rows columns"], known: Bool[np.ndarray, "rows columns"]
    ) -> Bool[np.ndarray, "rules rows"]:
        """Which rules each row breaks, up to the rounding of its numbers; a rule about unknown cells holds."""
        out = np.zeros((len(self.rules), len(units)), dtype=bool)
        for number, (row, rule) in enumerate(zip(self.matrix, self.rules, strict=True)):
            used = np.flatnonzero(row)
            terms = row[used] * np.where(known[:, used], units[:, used], 0.0)
            # Sums of recorded numbers are off by half a digit of each, where an equality is meant.
            off = ROUNDING * (np.abs(terms).sum(axis=1) + abs(rule.bound))
            digits = sum(abs(row[index]) * self.step(self.columns[index]) / 2 for index in used)
            excess = terms.sum(axis=1) - rule.bound
            if rule.compare == "=":
                wrong = np.abs(excess) > off + digits * (1 + ROUNDING)
            elif rule.compare == "<":
                wrong = excess >= -off
            else:
                wrong = excess > off
            out[number] = wrong & known[:, used].all(axis=1)
        return out
