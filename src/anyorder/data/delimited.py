r"""Delimited text as a table, read piece by piece: comma, semicolon, tab, bar or spaces between the fields.

The text is read three times. The first time finds out its encoding and how it begins and ends; the second says for
every column what all of its cells can be read as; the third turns piece after piece into that. So there is never more
in memory than the table itself and one piece of the text.

In a table of one column a blank line is a missing cell. In wider ones it is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from anyorder.data import column_names
from anyorder.data.digits import PLACES, Grouped, Places
from anyorder.data.layout import Head
from anyorder.data.plain_numbers import PlainNumbers, plain_numbers
from anyorder.data.plain_pieces import release_memory
from anyorder.data.readings import are_lists
from anyorder.data.said import Said
from anyorder.data.table_text import Numbers, Say, Source, TableText
from anyorder.errors import UserError
from anyorder.support.advance import checked
from anyorder.variables.cells import CODE, LEADING_ZERO, NUMBER, Series, all_match, any_match, missing_cells

ALWAYS_MISSING = ("nan", "NaN", "NAN", "<NA>", "NaT", "NULL", "null", "#N/A")
"""Texts that programs write for "no value", whatever the column. NA and None may be meant as texts."""
MOST_HEADERS, HEADER_SHARE = 3, 0.05  # lines that repeat the column names: more of them are rows
MOST_LISTS = 500  # different texts with commas: more of them are fractions
FEW = 20  # texts for a missing cell that pandas is told of
PIECE = 1 << 23  # bytes of text that are taken at a time
COLUMNS_TIMES_PIECES = 20_000  # a piece costs a little for every column: wide tables are taken in fewer, larger pieces


def read_delimited(opened: Source, missing: Sequence[object], said: Said, say: Say) -> pd.DataFrame:
    """The table in that text; ``said`` is what somebody said of how to read it, ``say`` takes notices."""
    text, source = TableText(opened, said, say), opened.title
    names = text.head.names
    size = max(opened.size, text.scan.length)
    pieces = min(size / PIECE, max(1, COLUMNS_TIMES_PIECES // len(names)))
    rows = max(1, int(text.rows_in(size) / max(pieces, 1)))
    text.find_end(rows, say)
    marks = [*ALWAYS_MISSING, *map(str, missing)]
    seen = _seen(text, rows, marks)
    too_often = len(seen.headers) > max(MOST_HEADERS, HEADER_SHARE * seen.count)
    if seen.names_as_cells or too_often:  # the "names" are cells elsewhere too, or come all the time: rows like others
        text.headers = []
        seen = _seen(text, rows, marks)
    if not seen.count:
        raise UserError(f"{source} has column names but no rows")
    width = seen.width(text.head)
    if width > (own := len(names) - text.head.padding):  # a cell behind those that have names
        text.refuse_lines(own, own)
    if width > 1 and seen.empty[width - 1] and not text.has_fields(seen.count + len(seen.headers)):
        text.refuse_lines(width, len(names))
    if seen.headers:
        several = len(seen.headers) > 1
        before = ", ".join(map(str, seen.headers[:5])) + (", ..." if len(seen.headers) > 5 else "")
        say(
            f"{source}: {len(seen.headers)} line{'s' if several else ''} that repeat{'' if several else 's'} the "
            f"column names (before row{'s' if several else ''} {before}) {'were' if several else 'was'} skipped; "
            f"to keep every line as a row, use {text.way('rows=all')}"
        )
    if seen.headers:  # words among the numbers, which are left out only when they have been read
        columns = _columns(text, rows, seen, width, {})
    else:
        text.headers = []
        parsed = {name: reading.parsed for name, reading in zip(names, seen.readings, strict=True) if reading.parsed}
        try:
            columns = text.reading(lambda: _columns(text, rows, seen, width, parsed))
        except _NotReadError:  # numbers that pandas does not know, such as those in other digits
            columns = _columns(text, rows, seen, width, {})
    table: dict[str, Series] = {}
    for name in names[:width]:  # one after the other, so that only one column is there twice
        table[name] = pd.concat(columns.pop(0), ignore_index=True)
    release_memory()
    frame = pd.DataFrame(table, copy=False)
    fixed = {name: reading.places.found for name, reading in zip(names, seen.readings, strict=False)}
    frame.attrs[PLACES] = {name: places for name, places in fixed.items() if places and name in frame.columns}
    commas = any(
        reading.comma and reading.with_commas is not None and not reading.as_texts for reading in seen.readings
    )
    return text.dialect("," if commas else ".", named=opened.named).put_on(frame)


class _NotReadError(UserError):
    """Cells could not be read as what they were seen to be."""


def _columns(text: TableText, rows: int, seen: _Seen, width: int, parsed: Numbers) -> list[list[Series]]:
    """The pieces of every column, read as what they are; those in ``parsed`` by the engine that reads the text."""
    columns: list[list[Series]] = [[] for _ in range(width)]
    try:
        for piece in text.pieces(rows, numbers=parsed):
            for index, (reading, parts) in enumerate(zip(seen.readings[:width], columns, strict=True)):
                checked()
                parts.append(reading.read(piece.iloc[:, index]))
    except (ValueError, OverflowError) as error:
        if isinstance(error, UserError):
            raise
        raise _NotReadError(f"{text.source} was changed while it was read: read it again") from error
    if sum(map(len, columns[0])) != seen.count:
        raise UserError(f"{text.source} was changed while it was read: read it again")
    return columns


@dataclass
class _Seen:
    """What the cells of a text can be read as."""

    readings: list[_Reading]
    empty: list[bool]  # some cell of the column is empty
    full: list[bool]  # some is not
    count: int = 0
    headers: list[int] = field(default_factory=list)  # the rows before which the names are repeated
    names_as_cells: bool = False

    def width(self, head: Head) -> int:
        """How many columns there are, without the last ones that have neither a name nor a cell."""
        width = len(head.names)
        while width > 1 and width - 1 in head.nameless and not self.full[width - 1]:
            width -= 1
        return width


def _seen(text: TableText, rows: int, marks: Sequence[str]) -> _Seen:
    return text.reading(lambda: _seen_in(text, rows, marks))


def _seen_in(text: TableText, rows: int, marks: Sequence[str]) -> _Seen:
    names = text.head.names
    readings = [_Reading(name, marks, decimal_comma=text.delimiter == ";") for name in names]
    seen = _Seen(readings, [False] * len(names), [False] * len(names))
    last = max((index for index in range(len(names)) if index not in text.head.nameless), default=0)
    telling = text.telling
    alike = 0
    for piece in text.pieces(rows, seen.headers):
        seen.count += len(piece)
        for index in range(last, len(names)):
            empty = piece.iloc[:, index] == ""
            seen.empty[index] = seen.empty[index] or bool(empty.any())
            seen.full[index] = seen.full[index] or not empty.all()
        if telling is not None and text.headers:
            alike += int((piece.iloc[:, telling] == text.headers[0][telling]).sum())
        for index, reading in enumerate(seen.readings):
            checked()
            reading.see(piece.iloc[:, index])
    seen.names_as_cells = bool(seen.headers and alike)
    if any(reading.plain.float and not reading.grouped.found for reading in readings):  # points before fractions
        for reading in readings:
            reading.fractions = reading.grouped.doubtful
            reading.with_commas = None  # a file is written with one sign: commas of single columns are left to these
    return seen


class _Reading:
    """What one column is read as: numbers and booleans where that loses nothing in any cell, else texts."""

    def __init__(self, name: str, marks: Sequence[str], *, decimal_comma: bool) -> None:
        self.marks = marks
        self.exact = name in column_names.VERSION or name in column_names.CODE  # 1.10 is not 1.1
        self.complete = self.sure = True  # no cell is missing; none is a word for it either
        self.plain = _Numbers()
        self.with_commas = _Numbers() if decimal_comma else None  # what the numbers are if commas are points
        self.comma = False
        self.truths = 0  # cells that are True or False; -1 if some cell is neither
        self.unknown: set[str] = set()  # the texts of missing cells, as long as they are few
        self.places = Places()
        self.fractions = False  # other columns have points before fractions, and nothing speaks against it here
        self.grouped, self.by_commas = Grouped(".", likely=decimal_comma), Grouped(",", likely=False)
        self.listed: set[str] | None = set() if decimal_comma else None  # texts with commas, as long as they are few

    def see(self, texts: Series) -> None:
        """Take note of some cells more."""
        if self.plain.all:
            self.places.see(texts)
            self.grouped.see(texts)
        if not self.plain.all and self.with_commas is None and self.truths < 0:  # texts, which can only be missing yet
            self.complete = self.complete and not missing_cells(pd.Series(texts.unique()), self.marks).any()
            return
        if self.truths <= 0 and self.plain.all and (plain := plain_numbers(texts, self.marks)) is not None:
            self._see_plain(plain)
            return
        texts = pd.Series(texts.unique())  # what a column can be does not depend on how often a cell is there
        missing = missing_cells(texts, self.marks)
        sure = ~missing_cells(texts, self.marks, words=True)
        self.complete = self.complete and not missing.any()
        self.sure = self.sure and bool(sure.all())
        cells = texts[sure]
        self._note_unknown(texts[~sure])
        if len(cells) and self.with_commas is not None:
            if all_match(cells, r"[+-]?\d+(?:,\d+)?"):
                self.comma = self.comma or any_match(cells, r".*,.*")
                self.by_commas.see(cells)
                self._note_lists(cells)
                self.with_commas.see(cells.str.replace(",", "."))
            else:
                self.with_commas = None
        if len(cells):
            self.plain.see(cells)
        if self.truths >= 0 and not missing.all():
            known = texts[~missing]
            self.truths = self.truths + len(known) if all_match(known, "True|False") else -1

    def _see_plain(self, found: PlainNumbers) -> None:
        self.complete, self.sure = self.complete and not found.unknown, self.sure and not found.unknown
        self.unknown |= found.unknown
        for numbers in filter(None, (self.plain, self.with_commas)):
            numbers.digits, numbers.all_whole = True, numbers.all_whole and found.whole
        if not found.whole:
            self.with_commas = None  # there are points
        self.truths = -1

    def _note_lists(self, cells: Series) -> None:
        if self.listed is not None:
            self.listed |= set(cells)
            self.listed = None if len(self.listed) > MOST_LISTS else self.listed

    @property
    def as_texts(self) -> bool:
        """Whether cells that could be numbers are kept as texts: codes, lists, points between thousands."""
        commas = self.with_commas is not None and self.comma
        if commas and self.listed is not None and are_lists([cell.strip() for cell in self.listed]):
            return True
        if commas and self.by_commas.found and not self.by_commas.doubtful:
            return True
        thousands = self.grouped.found and not self.fractions
        return thousands or (self.exact and not (self.plain.whole or commas))

    def _note_unknown(self, cells: Series) -> None:
        if len(self.unknown) <= FEW:
            self.unknown |= set(cells)

    @property
    def parsed(self) -> tuple[str, list[str]] | None:
        """The dtype that pandas can read the column as by itself, and its texts for a missing cell."""
        if (self.with_commas is not None and self.comma) or self.as_texts:
            return None
        if self.plain.whole and self.sure:
            return "int64", []
        if not self.plain.float or len(self.unknown) > FEW:
            return None
        # pandas takes a mark such as -999 for the number, however it is written.
        return None if any(map(re.compile(NUMBER).fullmatch, self.unknown)) else ("float64", sorted(self.unknown))

    def read(self, texts: Series) -> Series:
        """The cells as what the column is; missing ones as NaN or NA."""
        if texts.dtype.kind in "if":
            return texts  # read as numbers already
        commas = self.with_commas is not None and self.comma
        numbers = self.with_commas if commas and self.with_commas is not None else self.plain
        if (numbers.whole or numbers.float) and not self.as_texts:
            sure = np.full(len(texts), True) if self.sure else ~missing_cells(texts, self.marks, words=True)
            cells = texts[sure].str.replace(",", ".") if commas else texts[sure]
            if numbers.whole:
                whole = cells.astype("int64")
                return whole if self.sure else whole.astype("Int64").reindex(texts.index)
            number = pd.Series(np.nan, index=texts.index)
            number[sure] = cells.to_numpy(dtype=object).astype(np.float64)
            return number
        missing = None if self.complete else missing_cells(texts, self.marks)
        if self.truths > 0:
            truth = (texts == "True").astype("bool" if missing is None else "boolean")
            return truth if missing is None else truth.mask(missing)
        if commas and not self.as_texts:  # numbers, but with a leading zero or too long to be kept as numbers
            texts = texts.str.replace(",", ".")
        return texts if missing is None else texts.mask(missing)


class _Numbers:
    """Whether the cells of a column are all numbers, and of which kind, as far as they were seen."""

    def __init__(self) -> None:
        self.all = self.all_whole = True
        self.digits = self.long = False

    @property
    def whole(self) -> bool:
        return self.all and self.digits and self.all_whole

    @property
    def float(self) -> bool:
        return self.all and self.digits and not self.all_whole and not self.long

    def see(self, cells: Series) -> None:
        """Take note of some cells more; nothing is asked that no longer matters."""
        # A plus, like a leading zero, would not come back.
        self.all = self.all and all_match(cells, NUMBER) and not any_match(cells, rf"\+.*|{LEADING_ZERO}|{CODE}")
        if not self.all:
            return
        self.digits = self.digits or any_match(cells, r".*\d.*")
        self.long = self.long or any_match(cells, r"[+-]?\d{17,}")  # a long id would lose its last digits
        self.all_whole = self.all_whole and _is_whole(cells)


def _is_whole(cells: Series) -> bool:
    """Whether all are whole numbers that fit into int64."""
    if not all_match(cells, r"-?\d{1,19}"):
        return False
    try:
        cells.astype("int64")
    except (OverflowError, ValueError):
        return False
    return True
