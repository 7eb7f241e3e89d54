"""What one column is taken for, and why: the first reading that fits all of its cells.

Texts are tried as true and false, plain numbers, times, numbers as people write them, dates as people write them, words
with an order, and names, in this order. A column that nothing can be learned from (an id, free text) is left out.
A kind that the user declares is taken literally.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from anyorder.data import column_names
from anyorder.data.almost_numbers import almost_numbers, around_numbers
from anyorder.data.doubts import about_levels, as_unknown, cells_in_words, like_days, other_offsets, other_order
from anyorder.data.level_columns import MOST_LEVELS, boolean_variable, in_words, level_variable, unlearnable
from anyorder.data.number_columns import number_variable
from anyorder.data.readings import all_like, are_pairs, reading_of
from anyorder.data.strays import few_strays, stray_numbers, stray_times, without_numbers
from anyorder.data.time_columns import time_variable
from anyorder.data.two_digit_years import find_century
from anyorder.data.whole_numbers import FEW, Role, role_of, role_of_long
from anyorder.errors import UserError
from anyorder.variables import hints
from anyorder.variables.cells import (
    LARGEST_WHOLE,
    NUMBER,
    Mask,
    Series,
    is_text,
    missing_cells,
    numbers,
)
from anyorder.variables.notations import Notation, find_notation
from anyorder.variables.notations.number import NumberNotation
from anyorder.variables.scales import by_day, in_known_order, loosely
from anyorder.variables.schema import EMPTY, Kind, Variable
from anyorder.variables.separators import separators_of
from anyorder.variables.time_forms import TimeForm, find_time_form, write_times
from anyorder.variables.times import EXAMPLE, ISO_TIME
from anyorder.variables.unknown_words import AMBIGUOUS, MARKS, UNKNOWN_WORDS, level_marks, no_answers

MOST_ODD, ODD_SHARE = 5, 0.05
"""So many different words, and such a share of cells, may stand among numbers or times and be taken for unknown."""
MOST_SPELLINGS = 10
INFINITE = re.compile(r"[+-]?(?i:inf|infinity|∞)")
"""Texts that stand for a number beyond all others, with which nothing can be computed."""
_DIGIT = re.compile(r"\d")
_ODD_SIGN = re.compile(r"^[<>~≤≥]|[*?†]$|^ca\.? |^approx")
"""What people put beside a number that is not quite one: <0.1, 12*."""


@dataclass(frozen=True)
class Understood:
    """One column: its variable (None if it is left out), what it was taken for or why it is left out.

    ``doubts`` are things that the user should know: what else the cells could mean, words taken for unknown. ``remedy``
    says how to have it otherwise, in Python and at the command line.
    """

    name: str
    variable: Variable | None
    why: str
    doubts: tuple[str, ...] = ()
    remedy: str = ""


def understand(
    name: str,
    column: Series,
    forced: Kind | None = None,
    marks: Sequence[str] = (),
    order: Sequence[object] = (),
    *,
    form: str = "",
    decimal_comma: bool = False,
    decimal_point: bool = False,
) -> Understood:
    """What this column is, or is declared to be.

    ``form`` is how its times (%d/%m/%Y) or numbers (1.234,5) are declared to be written; ``decimal_comma`` and
    ``decimal_point`` say that other columns of the table have them.
    """
    missing = missing_cells(column, marks)
    if missing.all():
        return Understood(name, None, EMPTY)
    if order and forced not in (None, Kind.ORDINAL, Kind.CATEGORICAL):
        raise UserError(
            f"levels were given for {name!r}, so its kind must be ordinal or categorical, not {forced.value}"
        )
    if order:
        variable = level_variable(name, column, missing, forced or Kind.ORDINAL, order, declared=True)
        return Understood(name, variable, "levels in the order given")
    reader = _Reader(name, column, missing, marks, decimal_comma=decimal_comma, decimal_point=decimal_point)
    return reader.declared(forced, form) if forced is not None else reader.found()


class _Reader:
    """The readings of one column, tried in turn."""

    def __init__(
        self,
        name: str,
        column: Series,
        missing: Mask,
        marks: Sequence[str],
        *,
        decimal_comma: bool,
        decimal_point: bool,
    ) -> None:
        self.name, self.column, self.missing, self.marks = name, column, missing, tuple(marks)
        self.decimal_comma, self.decimal_point = decimal_comma, decimal_point
        self.texts = self._holds_texts()

    def _holds_texts(self) -> bool:
        column = self.column
        if isinstance(column.dtype, pd.CategoricalDtype) or not is_text(column):
            return False
        if not pd.api.types.is_object_dtype(column.dtype):
            return True
        return pd.api.types.infer_dtype(column[~self.missing]) == "string"

    def found(self) -> Understood:
        """The first reading that fits."""
        if self.texts:
            return self._text_column()
        column, dtype = self.column, self.column.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            kind = Kind.ORDINAL if column.cat.ordered else Kind.CATEGORICAL
            return self._as_levels(kind, "a pandas category" + (" with an order" if column.cat.ordered else ""))
        if dtype.kind == "b":
            return Understood(self.name, boolean_variable(self.name, column, self.missing), "true or false")
        if dtype.kind == "M":
            return self._times("times")
        if dtype.kind in "iuf":
            return self._number_column()
        if not is_text(column):
            raise UserError(
                f"column {self.name!r} has the dtype {dtype}; expected numbers, texts, booleans or times. "
                f"Convert it, or leave it out with {hints.drop(self.name)}"
            )
        known = column[~self.missing]
        words = [cell for cell in known if isinstance(cell, str)]
        own = tuple(dict.fromkeys(word.strip() for word in words))
        strange = {text: count for text, count in self._counts.items() if text.casefold() not in MARKS} if words else {}
        if words and len(words) < len(known) and few_strays(strange, len(known)):
            # Numbers or times of a spreadsheet, and words for unknown (or a date that does not exist) among them.
            missing = missing_cells(column, (*self.marks, *own))
            inside = pd.api.types.infer_dtype(column[~missing])
            if inside in ("integer", "floating", "mixed-integer-float", "decimal"):
                return self._numbers("numbers", missing, own)
            if inside in ("date", "datetime", "datetime64"):
                return self._times("times", missing, own)
        inside = pd.api.types.infer_dtype(known)
        if inside in ("integer", "floating", "mixed-integer-float", "decimal"):
            return self._numbers("numbers")
        if inside == "boolean":
            return Understood(self.name, boolean_variable(self.name, column, self.missing), "true or false")
        if inside in ("date", "datetime", "datetime64"):
            return self._times("times")
        return self._as_levels(Kind.CATEGORICAL, "values of several types, taken for categories")

    def declared(self, kind: Kind, form: str = "") -> Understood:
        """The column as the user says it is."""
        name, column = self.name, self.column
        if kind is Kind.BOOLEAN:
            return Understood(name, boolean_variable(name, column, self.missing), "declared")
        if kind in (Kind.CATEGORICAL, Kind.ORDINAL):
            return self._as_levels(kind, "declared", declared=True)
        endless = [text for text in self._counts if INFINITE.fullmatch(text)] if self.texts else self._endless()
        own = (*endless, *self._odd(list(self._counts))) if self.texts else tuple(endless)
        own = tuple(dict.fromkeys(own))
        missing = self._unknown(own)
        if missing.all():
            raise UserError(f"column {name!r} cannot be read as {kind}: none of its cells is a number or a time")
        texts = [text for text in self._counts if text not in set(own)] if self.texts else []
        if kind is Kind.DATETIME and not form and (strays := stray_times({text: self._counts[text] for text in texts})):
            texts, own = [text for text in texts if text not in {*strays[0], *strays[1]}], (*own, *strays[0])
            missing = self._unknown(own)
        if kind is Kind.DATETIME:
            found = find_time_form(texts) if texts and not form and not all_like(ISO_TIME, texts) else None
            found = find_century(name, found, texts).form if found else None
            pattern = form or (found.pattern if found else "")
            variable = time_variable(name, column, missing, declared=True, form=pattern)
            return self._with(variable, "declared", own, other_order(found))
        plain = not texts or all_like(NUMBER, texts)
        notation = None if plain else find_notation(texts, decimal_comma=self.decimal_comma)
        if form:
            notation = NumberNotation.find(texts, separators=separators_of(name, form)) if texts else None
            if texts and notation is None:
                raise UserError(f"column {name!r}: not all of its cells are numbers written like {form}")
        return self._with(number_variable(name, column, missing, kind, notation), "declared", own)

    # Columns of texts. They are looked at by their different texts alone, since most columns repeat a few of them.

    @cached_property
    def _counts(self) -> dict[str, int]:
        """How often each text occurs among the cells that are not plainly missing."""
        if self.column.dtype.kind in "iuf":
            seen = self.column[~self.missing].value_counts(sort=False)
            return {f"{value:.0f}": int(count) for value, count in seen.items()}
        codes, different = pd.factorize(self.column[~self.missing].str.strip())  # cells that are no texts have code -1
        counts = np.bincount(codes[codes >= 0], minlength=len(different))
        return dict(zip(np.asarray(different, dtype=object).tolist(), counts.tolist(), strict=True))

    def _unknown(self, own: Sequence[str] = ()) -> Mask:
        """Which cells are unknown among numbers or times; ``own`` are words that stand for it in this column."""
        return missing_cells(self.column, (*self.marks, *own), words=True)

    def _text_column(self) -> Understood:
        different = list(self._counts)
        if 1 <= len(different) <= MOST_SPELLINGS and {text.casefold() for text in different} <= {"true", "false"}:
            return Understood(self.name, boolean_variable(self.name, self.column, self.missing), "true or false")
        sure = [text for text in different if text.casefold() not in UNKNOWN_WORDS]
        endless = tuple(text for text in sure if INFINITE.fullmatch(text))
        sure = [text for text in sure if text not in endless] if len(endless) < len(sure) else []
        read = self._as_numbers_or_times(sure, endless) if sure else None
        if read is None and sure:
            own = (*endless, *self._odd(sure))
            rest = [text for text in sure if text not in set(own)] if own else []
            read = self._as_numbers_or_times(rest, own) if rest else None
            read = read or self._but_for_strays([text for text in sure if text not in set(own)], own)
        return read if read is not None else self._words(different)

    def _but_for_strays(self, sure: Sequence[str], own: tuple[str, ...]) -> Understood | None:
        """The reading of all but the few texts that do not exist (31/02/2024) or were mistyped (1O3)."""
        counts = {text: self._counts[text] for text in sure}
        if times := stray_times(counts):
            strays, beside = times
            rest = [text for text in sure if text not in {*strays, *beside}]
            read = self._as_numbers_or_times(rest, (*own, *strays))
            if read is not None and read.variable is not None and read.variable.kind is Kind.DATETIME:
                cells = sum(counts[text] for text in beside)
                also = f"{cells_in_words(cells)} in another form, such as {beside[0]!r}, read as well" if beside else ""
                return replace(read, doubts=(*read.doubts, also)) if also else read
        if strays := stray_numbers(counts, decimal_comma=self.decimal_comma):
            rest = [text for text in sure if text not in set(strays)]
            read = self._as_numbers_or_times(rest, (*own, *strays))
            if read is not None and read.variable is not None and read.variable.numeric:
                return read
        return None

    def _odd(self, sure: Sequence[str]) -> tuple[str, ...]:
        """Words that people put for unknown among numbers, and a few others if they are rare."""
        beside = {text for text in sure if _ODD_SIGN.search(text)} if len(sure) >= FEW else set()
        if beside:
            shapes = Counter(without_numbers(text) for text in sure)
            rare = {shape for shape, count in shapes.items() if count <= max(MOST_ODD, ODD_SHARE * len(sure))}
            beside = {text for text in beside if without_numbers(text) in rare} if len(rare) < len(shapes) else set()
        odd = [text for text in sure if text.casefold() in MARKS or not _DIGIT.search(text) or text in beside]
        strange = {text for text in odd if text.casefold() not in MARKS}
        cells = sum(self._counts.values())
        if len(strange) > MOST_ODD or sum(self._counts[text] for text in strange) > ODD_SHARE * cells:
            odd = [text for text in odd if text not in strange]
        return tuple(odd)

    def _as_numbers_or_times(self, texts: Sequence[str], own: tuple[str, ...]) -> Understood | None:
        """The reading of these different texts, if there is one; ``own`` are the words beside them."""
        read = reading_of(self.name, texts, decimal_comma=self.decimal_comma, decimal_point=self.decimal_point)
        if read is None:
            return None
        missing = self._unknown(own)
        if read.whole:
            return self._whole_numbers(missing, own)
        if read.times:
            return self._times(read.said, missing, own, read.form, texts)
        return self._numbers(read.said, missing, own, read.notation)

    def _words(self, different: Sequence[str]) -> Understood:
        """Yes and no, words with an order, names, or nothing to learn from."""
        own = level_marks(different, names=self.name in column_names.PERSON)
        if own:
            different = [text for text in different if text not in set(own)]
        if not different:
            return Understood(self.name, None, "nothing but marks for unknown cells")
        if len(different) > FEW and by_day(different) is None:
            reason = unlearnable(different, sum(self._counts[text] for text in different))
            if reason:
                vague = reason.startswith(("a different text", "free text"))
                reason = almost_numbers(different) or (around_numbers(different) if vague else "") or reason
                return Understood(self.name, None, reason, remedy=hints.kind(self.name, "categorical"))
        missing = missing_cells(self.column, (*self.marks, *own)) if own else self.missing
        if in_words(different):
            return self._with(boolean_variable(self.name, self.column, missing), "yes or no", own)
        if len(different) <= MOST_LEVELS and (beside := self._beside_a_scale(different)) is not None:
            own = (*own, *beside)
            missing = missing_cells(self.column, (*self.marks, *own))
            variable = level_variable(self.name, self.column, missing, Kind.ORDINAL)
            said = f"levels from {variable.levels[0]!r} to {variable.levels[-1]!r}"
            doubts = (*((as_unknown(beside, self._counts),) if beside else ()), *like_days(variable))
            read = replace(self._with(variable, said, own), doubts=doubts)
            return replace(read, remedy=hints.kind(self.name, "categorical"))
        said = "one text only: there is nothing to learn" if len(different) == 1 else f"{len(different)} levels"
        variable = level_variable(self.name, self.column, missing)
        read = self._with(variable, said, own, (*like_days(variable), *about_levels(different)))
        return replace(read, remedy=hints.kind(self.name, "continuous 1234,5")) if are_pairs(different) else read

    def _beside_a_scale(self, different: Sequence[str]) -> tuple[str, ...] | None:
        """The words for no answer, if all other texts are steps of a known scale; None if they are not."""
        for beside in dict.fromkeys(((), no_answers(different))):
            alike = {loosely(text): text for text in different if text not in beside}
            cells = sum(self._counts[text] for text in beside)
            if beside and (len(alike) < 3 or 2 * cells > sum(self._counts.values())):
                continue  # yes, no and "don't know" are three answers
            if in_known_order(list(alike.values())) is not None:
                return beside
        return None

    # Columns of numbers.

    def _number_column(self) -> Understood:
        own = self._endless()
        missing = self._unknown(own)
        if missing.all():
            return Understood(self.name, None, "no finite number")
        values = numbers(self.column, missing, self.name)[~missing]
        if bool((values == np.rint(values)).all()):
            return self._whole_numbers(missing, own)
        if (self.name in column_names.VERSION or self.name in column_names.CODE) and values.min() >= 0:
            different = list(map(str, np.unique(values)))
            if reason := unlearnable(different, len(values)):
                return Understood(self.name, None, reason, remedy=hints.kind(self.name, "continuous"))
            return replace(
                self._as_levels(Kind.CATEGORICAL, "codes, by the name of the column, taken for categories"),
                remedy=hints.kind(self.name, "continuous"),
            )
        return self._numbers("numbers", missing, own)

    def _endless(self) -> tuple[str, ...]:
        """The infinite numbers of a column of numbers, which are as good as unknown."""
        if self.column.dtype.kind != "f":
            return ()
        values = self.column.to_numpy(dtype=float, na_value=np.nan)
        return tuple(str(value) for value in np.unique(values[np.isinf(values)]))

    def _whole_numbers(self, missing: Mask, own: tuple[str, ...]) -> Understood:
        """Ids, phone numbers, postcodes, dates in digits, or numbers."""
        values = numbers(self.column, missing, self.name)[~missing]
        role = role_of(self.name, values)
        exact = self.column.dtype.kind != "f"
        if exact and role == Role():
            role = role_of_long(self.column[~missing], values)
        if role.form:
            own = (*own, *role.strays)
            read = self._times("", self._unknown(own), own, TimeForm(role.form))
            if role.doubt:
                return replace(read, doubts=(*read.doubts, role.doubt), remedy=hints.kind(self.name, role.otherwise))
            return read
        if role.notation is not None:
            return self._numbers(role.notation.meaning, missing, own, role.notation)
        if role.names:
            return replace(self._as_levels(Kind.CATEGORICAL, role.why), remedy=hints.kind(self.name, role.otherwise))
        if role.why:
            return Understood(self.name, None, role.why, remedy=hints.kind(self.name, role.otherwise))
        long = self.texts and bool(np.abs(values).max() > LARGEST_WHOLE)
        return self._numbers("numbers", missing, own, NumberNotation() if long else None)

    # What was found.

    def _numbers(
        self, said: str, missing: Mask | None = None, own: tuple[str, ...] = (), notation: Notation | None = None
    ) -> Understood:
        missing = self._unknown() if missing is None else missing
        variable = number_variable(self.name, self.column, missing, None, notation)
        if variable is None:
            return self._as_levels(Kind.CATEGORICAL, "long numbers that repeat, taken for categories")
        doubts = (notation.doubt,) if notation is not None and notation.doubt else ()
        read = self._with(variable, said, own, doubts)
        other = notation.other if notation is not None else ""
        return replace(read, remedy=hints.kind(self.name, f"continuous {other}")) if other else read

    def _times(
        self,
        said: str,
        missing: Mask | None = None,
        own: tuple[str, ...] = (),
        form: TimeForm | None = None,
        texts: Sequence[str] = (),
    ) -> Understood:
        missing = self._unknown() if missing is None else missing
        century = find_century(self.name, form, texts) if form else None
        form = century.form if century else None
        pattern = form.pattern if form else ""
        variable = time_variable(self.name, self.column, missing, declared=False, form=pattern)
        if variable is None:
            return self._as_levels(Kind.CATEGORICAL, "one time only: there is nothing to learn")
        said = said or f"times written like {write_times(EXAMPLE, pattern)[0]}"
        if century and century.said:
            said = f"{said}; {century.said}"
        doubts = (*other_order(form), *((century.doubt,) if century and century.doubt else ()))
        read = self._with(variable, said, own, doubts)
        other = (form.other if form else "") or (century.other if century else "")
        return replace(read, remedy=hints.kind(self.name, f"datetime {other}")) if other else read

    def _as_levels(self, kind: Kind, said: str, *, declared: bool = False) -> Understood:
        variable = level_variable(self.name, self.column, self.missing, kind, declared=declared)
        return Understood(self.name, variable, said)

    def _with(self, variable: Variable | None, said: str, own: Sequence[str], doubts: Sequence[str] = ()) -> Understood:
        """The reading, with the words that it takes for unknown."""
        if variable is None:
            raise AssertionError("a declared kind always has a variable")
        own = tuple(text for text in own if text)
        line = variable.numeric or variable.kind is Kind.DATETIME
        counts = self._counts if line and self.texts else {}
        most = ODD_SHARE * sum(counts.values())
        often = [text for text, count in counts.items() if text.casefold() in AMBIGUOUS and count > most]
        strange = [text for text in own if text.casefold() not in MARKS] + often
        if strange:
            doubts = (*doubts, as_unknown(strange, self._counts))
        doubts = (*doubts, *other_offsets(variable, counts))
        return Understood(self.name, replace(variable, missing=own) if own else variable, said, tuple(doubts))
