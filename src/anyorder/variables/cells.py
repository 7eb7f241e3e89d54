"""Read the cells of one column: which are unknown, and the others as numbers, times or levels.

Both schema inference and encoding read cells only through these functions, so a table is understood in the same
way when a model is fitted and when it is asked. Whatever cannot be read is a :class:`UserError` that names the cell.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyorder.errors import UserError
from anyorder.support.notes import note
from anyorder.variables import hints
from anyorder.variables.notations import Notation
from anyorder.variables.schema import Level
from anyorder.variables.unknown_words import UNKNOWN_WORDS

Series: TypeAlias = "pd.Series[Any]"
Mask: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.float64]

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?i:inf|infinity)"
LEADING_ZERO = r"[+-]?0\d.*"
"""A zip code, a phone number: text, because a number would lose the zero."""
CODE = r"\d{2,}[eE]\d+|\+\d{7,15}"
"""A part number, a phone number: text, though it could be read as a number."""
LARGEST_WHOLE = 2.0**52
"""Above this a float64 cannot tell whole numbers from their halves."""
LARGEST = 1e100
"""Beyond this the variance of a heavy tail is no longer a float64."""

SINGLE = "(single value)"
"""The row label of a value that was given on its own, so that errors do not speak of rows."""


def refuse(name: str, column: Series, position: int, problem: str) -> NoReturn:
    """Raise the :class:`UserError` for the cell at ``position``."""
    label = column.index[position]
    row = "" if isinstance(label, str) and label == SINGLE else f", row {label}"
    raise UserError(f"column {name!r}{row}: {problem}")


def warn_of_fractions(name: str, column: Series, given: Numbers) -> None:
    """Say once that evidence holds fractions where the table that was fitted held whole numbers alone."""
    off = np.flatnonzero(given != np.rint(given))
    if len(off):
        value, label = plain(column.iloc[int(off[0])]), column.index[off[0]]
        alone = isinstance(label, str) and label == SINGLE
        if alone:
            which = f"{value} is not a whole number"
        elif len(off) == 1:
            which = f"1 cell has a fraction ({value}), in row {label}"
        else:
            which = f"{len(off)} cells have fractions, the first ({value}) in row {label}"
        note(
            f"column {name!r}: {which}, but all values in training were whole; it is used as given. "
            f"If the column can have fractions, fit with {hints.kind(name, 'continuous')}",
            stacklevel=6,
        )


def is_text(column: Series) -> bool:
    """Whether the column can hold texts: an object or string dtype."""
    return bool(pd.api.types.is_object_dtype(column.dtype) or pd.api.types.is_string_dtype(column.dtype))


def missing_cells(column: Series, marks: Sequence[str] = (), *, words: bool = False) -> Mask:
    """Which cells are unknown: NaN, None, NaT, empty text, a mark, and with ``words`` such as "N/A" too."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = np.asarray(column.cat.codes)
        unknown = missing_cells(pd.Series(column.cat.categories), marks, words=words)
        spread: Mask = np.append(unknown, True)[codes]  # code -1, a missing cell, reads the appended entry
        return spread
    missing = column.isna().to_numpy(dtype=bool, copy=True)
    if is_text(column):
        texts = {"", *(mark.strip() for mark in marks)}
        stripped = _stripped(column)
        missing |= stripped.isin(list(texts)).to_numpy(dtype=bool)
        if words:
            short = np.flatnonzero((stripped.str.len() <= 5).to_numpy(dtype=bool, na_value=False) & ~missing)
            cells = stripped.iloc[short]
            found = [text for text in cells.unique() if text.casefold() in UNKNOWN_WORDS]
            if found:
                missing[short] |= cells.isin(found).to_numpy(dtype=bool)
    elif marks and pd.api.types.is_numeric_dtype(column.dtype):
        numeric = [float(mark) for mark in marks if _is_number(mark)]
        missing |= column.isin(numeric).to_numpy(dtype=bool)
    return missing


def _stripped(column: Series) -> Series:
    """The texts of a column without surrounding spaces; cells that are not text become missing."""
    if pd.api.types.is_object_dtype(column.dtype):
        texts = [cell.strip() if isinstance(cell, str) else None for cell in column.to_numpy()]
        try:
            return pd.Series(texts, index=column.index, dtype="str")
        except UnicodeEncodeError:
            broken = next(row for row, text in enumerate(texts) if text and not _is_unicode(text))
            refuse(
                str(column.name), column, broken, f"{texts[broken]!a} is not valid text: it has half a surrogate pair"
            )
    return column.str.strip()


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def all_match(column: Series, pattern: str) -> bool:
    """Whether every cell is a text of this form."""
    few = len(column) <= 100 or all_match(column.iloc[:100], pattern)  # most columns that fail do so at once
    return few and bool(_stripped(column).str.fullmatch(pattern).eq(True).all())


def any_match(column: Series, pattern: str) -> bool:
    """Whether some cell is a text of this form."""
    return bool(_stripped(column).str.fullmatch(pattern).eq(True).any())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def numbers(column: Series, missing: Mask, name: str, notation: Notation | None = None) -> Numbers:
    """The column as float64, 0 where missing; texts are read in the ``notation`` of the column."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    out, known = np.zeros(len(column)), np.flatnonzero(~missing)
    if pd.api.types.is_numeric_dtype(column.dtype) and column.dtype.kind != "c":
        out = column.to_numpy(dtype="float64", na_value=np.nan, copy=True)
        out[missing] = 0.0
        if notation is not None and notation.digits:
            out[known] = _in_notation(column.iloc[known], notation)
    elif is_text(column):
        other = None if notation is None or notation.plain else notation
        try:
            if other is None:
                out[known] = column.to_numpy(dtype=object)[known].astype(np.float64)
            else:
                out[known] = _in_notation(column.iloc[known], other)
        except (TypeError, ValueError, OverflowError):
            for position, cell in zip(known.tolist(), column.to_numpy(dtype=object)[known], strict=True):
                if not _can_be_read(cell, other):
                    form = "" if notation is None else f" such as {notation.write(1234.0)}"
                    refuse(name, column, position, f"expected a number{form}, got {plain(cell)!r}")
            raise UserError(f"column {name!r} contains a number that is too large to read") from None
    elif len(known):
        refuse(name, column, known[0], f"expected a number, got {plain(column.iloc[known[0]])!r}")
    wild = np.flatnonzero(~(np.abs(out) < LARGEST))
    if len(wild):
        too_large = f"numbers from {LARGEST:g} on are too large to compute with: use another unit"
        way_out = too_large if np.isfinite(out[wild[0]]) else "clear the cell if it is unknown"
        refuse(name, column, wild[0], f"expected a finite number, got {out[wild[0]]}; {way_out}")
    return out


def _in_notation(cells: Series, notation: Notation) -> Numbers:
    """The numbers that the texts mean; a text that is not written in the notation is read as a plain number."""
    codes, different = pd.factorize(cells)
    texts = [f"{cell:.0f}" if notation.digits and not isinstance(cell, str) else cell for cell in different]
    read = [notation.read(cell.strip()) if isinstance(cell, str) else cell for cell in texts]
    meant = np.empty(len(different), dtype=object)
    meant[:] = [cell if number is None else number for cell, number in zip(different, read, strict=True)]
    return np.asarray(meant.astype(np.float64)[codes])


def _can_be_read(cell: object, notation: Notation | None) -> bool:
    if not isinstance(cell, str):
        return isinstance(cell, int | float | decimal.Decimal)
    return _is_number(cell) or (notation is not None and notation.read(cell.strip()) is not None)


def plain_number(value: object, marks: Sequence[str], notation: Notation | None = None) -> float | None:
    """An ordinary finite number or the text of one; None where only :func:`numbers` can tell what it is."""
    if notation is not None and (notation.digits or type(value) is str):
        return None
    if type(value) is str:
        if any(value.strip() == mark.strip() for mark in marks):
            return None
        try:
            number = float(value)
        except ValueError:
            return None
    elif type(value) is int or type(value) is float:
        if not abs(value) < LARGEST:
            return None
        number = float(value)
    else:
        return None
    return number if abs(number) < LARGEST else None


def plain(value: Any) -> Level:
    """A cell as a value that survives JSON: times as ISO text, anything unusual as its text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | bool | int | float):
        return value
    return str(value.isoformat()) if isinstance(value, datetime.date) else str(value)


def key(level: Level) -> Hashable:
    """Tells 1, True and "1" apart, which Python's ``==`` and pandas do not always do."""
    return (isinstance(level, bool), isinstance(level, str), level)


def distinct(column: Series, missing: Mask, name: str) -> tuple[list[Level], NDArray[np.int64]]:
    """The distinct values among the known cells, and for every known cell which of them it holds."""
    known = column.iloc[np.flatnonzero(~missing)]
    if isinstance(known.dtype, pd.CategoricalDtype):
        used = known.cat.remove_unused_categories()
        return [plain(level) for level in used.cat.categories], np.asarray(used.cat.codes, dtype=np.int64)
    if pd.api.types.is_object_dtype(known.dtype) and pd.api.types.infer_dtype(known) != "string":
        found: dict[Hashable, int] = {}
        values: list[Level] = []
        codes = np.empty(len(known), dtype=np.int64)
        for row, cell in enumerate(known.to_numpy()):
            if isinstance(cell, list | dict | set | np.ndarray):
                refuse(name, known, row, f"expected one value, got a {type(cell).__name__}; leave the column out")
            level = plain(cell)
            code = found.setdefault(key(level), len(found))
            if code == len(values):
                values.append(level)
            codes[row] = code
        return values, codes
    indices, uniques = pd.factorize(known)
    return [plain(level) for level in uniques], np.asarray(indices, dtype=np.int64)


def in_order(levels: Iterable[Level]) -> list[Level]:
    """Numbers by size, then texts by alphabet."""
    return sorted(levels, key=lambda level: (isinstance(level, str), level))  # a bool sorts as 0 or 1
