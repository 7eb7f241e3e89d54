r"""Delimited text as a table, read piece by piece: comma, semicolon, tab, bar or spaces between the fields.

The text is read twice. The first time says for every column what all of its cells can be read as; the second time turns
piece after piece into that. So there is never more in memory than the table itself and one piece of the text.

In a table of one column a blank line is a missing cell. In wider ones it is skipped.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import BinaryIO

import numpy as np
import pandas as pd

from anyorder.errors import UserError
from anyorder.support.csv_rows import csv_rows
from anyorder.support.filtered_warnings import warnings_set
from anyorder.variables.cells import LEADING_ZERO, NUMBER, Series, all_match, any_match, missing_cells

DELIMITERS = (",", ";", "\t", "|")
SPACES = r"\s+"
ALWAYS_MISSING = ("nan", "NaN", "NAN", "<NA>", "NaT", "NULL", "null", "#N/A")
"""Texts that programs write for "no value", whatever the column. NA and None may be meant as texts."""
HEAD = 1 << 16  # bytes from which delimiter and names are found out, or as many as the first line has
LONGEST_HEAD = 1 << 24
PIECE = 1 << 23  # bytes of text that are taken at a time
COLUMNS_TIMES_PIECES = 20_000  # a piece costs a little for every column: wide tables are taken in fewer, larger pieces

Opener = Callable[[], AbstractContextManager[BinaryIO]]
"""Opens the text, from its beginning, as often as it is called."""


def read_delimited(
    reopen: Opener, source: str, missing: Sequence[object], delimiter: str | None, size: int
) -> pd.DataFrame:
    """The table in that text. ``source`` is its name in messages, ``size`` about how many bytes it has."""
    if delimiter is not None and delimiter != SPACES and (len(delimiter) != 1 or delimiter in '\r\n"\0'):
        raise UserError(f"a delimiter is one character, such as ';', or {SPACES!r} for spaces, got {delimiter!r}")
    text = _Text(reopen, source)
    try:
        delimiter = delimiter or sniff(text.lines)
        names = _header(text.lines, delimiter, source)
    except csv.Error as error:
        raise UserError(f"cannot read {source} as a table: {error}") from None
    size = max(size, len("".join(text.lines)))
    pieces = min(size / PIECE, max(1, COLUMNS_TIMES_PIECES // len(names)))
    rows = max(1, int(text.rows_in(size) / max(pieces, 1)))
    marks = [*ALWAYS_MISSING, *map(str, missing)]
    readings = [_Reading(marks, decimal_comma=delimiter == ";") for _ in names]
    count, short = 0, False
    for piece in _pieces(text, delimiter, names, rows):
        count += len(piece)
        short = short or (len(names) > 1 and bool((piece.iloc[:, -1] == "").any()))
        for index, reading in enumerate(readings):
            reading.see(piece.iloc[:, index])
    if not count:
        raise UserError(f"{source} has column names but no rows")
    if short:
        _refuse_short_lines(text, delimiter, len(names))
    columns: list[list[Series]] = [[] for _ in names]
    try:
        for piece in _pieces(text, delimiter, names, rows):
            for index, (reading, parts) in enumerate(zip(readings, columns, strict=True)):
                parts.append(reading.read(piece.iloc[:, index]))
    except (ValueError, OverflowError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{source} was changed while it was read: read it again") from error
    if sum(map(len, columns[0])) != count:
        raise UserError(f"{source} was changed while it was read: read it again")
    table: dict[str, Series] = {}
    for name in names:  # one after the other, so that only one column is there twice
        table[name] = pd.concat(columns.pop(0), ignore_index=True)
    return pd.DataFrame(table, copy=False)


class _Text:
    """The text and its first lines, decoded: UTF-8, or UTF-16 with a mark in front, as spreadsheets write it."""

    def __init__(self, reopen: Opener, source: str) -> None:
        self.reopen, self.source = reopen, source
        with reopen() as file:
            head = file.read(HEAD)
            self.encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
            if self.encoding != "utf-16" and b"\0" in head:
                raise UserError(f"cannot read {source}: it is not a text file, a CSV table was expected")
            more = file.read(1)
            head += more
            while more and len(head) < LONGEST_HEAD and not any(end in head for end in (b"\n", b"\r")):
                more = file.read(HEAD)
                head += more
        try:  # the head may end in the middle of a character
            decoded = codecs.getincrementaldecoder(self.encoding)().decode(head, final=not more)
        except UnicodeDecodeError as error:
            raise not_text(source, error) from None
        if not decoded.strip():
            raise UserError(f"{source} is empty; expected a line of column names and lines of values")
        lines = io.StringIO(decoded, newline="").readlines()
        if more and len(lines) > 1:
            lines = lines[:-1]  # cut off in the middle
        self.blank = next(number for number, line in enumerate(lines) if line.strip())  # lines before the names
        self.lines = lines[self.blank :]

    def rows_in(self, size: int) -> int:
        """About how many lines so many bytes are."""
        return max(1, int(size * len(self.lines) / sum(map(len, self.lines))))

    @contextmanager
    def opened(self) -> Iterator[io.TextIOWrapper]:
        """The text from its column names on."""
        with self.reopen() as file:
            text = io.TextIOWrapper(file, encoding=self.encoding, newline="")
            for _ in range(self.blank):
                text.readline()
            try:
                yield text
            finally:
                text.detach()


def not_text(source: str, error: UnicodeDecodeError) -> UserError:
    """What is said of bytes that are no text in the encoding that they seem to be in."""
    kind = "UTF-16" if error.encoding.startswith("utf-16") else "UTF-8"
    return UserError(f"cannot read {source}: not {kind} text ({error.reason} at byte {error.start}); save it as UTF-8")


def sniff(lines: Sequence[str]) -> str:
    r"""The delimiter under which the lines have as many fields as the header; ``\s+`` for aligned numbers."""
    best, best_score = ",", (0.0, 0, 0)
    for delimiter in DELIMITERS:
        rows = [row for row in _fields(lines[:200], delimiter) if row]
        width = len(rows[0]) if rows else 0
        agree = sum(len(row) == width for row in rows) / max(len(rows), 1)
        if width <= 1 or (agree, width) < best_score[:2]:
            continue
        score = (agree, width, _numeric_columns(rows[1:], width, delimiter))  # the last one breaks ties
        if score > best_score:
            best, best_score = delimiter, score
    if best_score[1]:
        return best
    rows = [line.split() for line in lines[:200] if line.strip()]
    cells = pd.Series([cell for row in rows[1:] for cell in row], dtype="str")
    aligned = len(rows) > 1 and len({len(row) for row in rows}) == 1 and len(rows[0]) > 1
    return SPACES if aligned and cells.str.fullmatch(NUMBER).mean() >= 0.5 else ","


def _numeric_columns(rows: Sequence[Sequence[str]], width: int, delimiter: str) -> int:
    """How many columns hold only numbers, with a decimal comma where the delimiter leaves room for it."""
    whole = [row for row in rows if len(row) == width]
    pattern = rf"{NUMBER}|[+-]?\d+,\d+" if delimiter == ";" else NUMBER
    columns = (pd.Series([row[index] for row in whole], dtype="str") for index in range(width))
    return sum(all_match(column[column.str.strip() != ""], pattern) for column in columns) if whole else 0


def _header(lines: Sequence[str], delimiter: str, source: str) -> list[str]:
    fields = lines[0].split() if delimiter == SPACES else next(_fields(lines, delimiter))
    names = [name.strip() or f"column {index}" for index, name in enumerate(fields, start=1)]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise UserError(f"{source}: column names must differ; repeated: {', '.join(map(repr, repeated))}")
    decimal = [name for name in names if "." in name and all_match(pd.Series([name], dtype="str"), NUMBER)]
    if decimal:
        raise UserError(f"{source}: the first line should hold the column names, but {decimal[0]!r} looks like a value")
    return names


def _fields(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    return (row for _, row in csv_rows(lines, delimiter, skipinitialspace=True))


def _pieces(text: _Text, delimiter: str, names: list[str], rows: int) -> Iterator[pd.DataFrame]:
    """Every cell as text; lines of another length than the header's are refused, not padded or cut."""
    source = text.source
    try:
        with text.opened() as lines:
            pieces = pd.read_csv(
                lines,
                sep=delimiter,
                header=0,
                names=names,
                dtype="str",
                index_col=False,
                keep_default_na=False,
                na_values=[],
                skipinitialspace=True,
                skip_blank_lines=len(names) > 1,
                chunksize=rows,
            )
            while True:
                with warnings_set("error", pd.errors.ParserWarning):  # "loss of data": a line is too long
                    piece = next(pieces, None)
                if piece is None:
                    return
                yield piece
    except pd.errors.ParserWarning:
        raise UserError(f"{source}: some lines have more fields than the {len(names)} column names") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        reason = str(error).removeprefix("Error tokenizing data. ").removeprefix("C error: ").strip()
        raise UserError(f"cannot read {source} as a table with {len(names)} columns: {reason}") from None
    except UnicodeDecodeError as error:
        raise not_text(source, error) from None


def _refuse_short_lines(text: _Text, delimiter: str, width: int) -> None:
    """pandas fills a short line with empty cells; it is more likely a damaged file."""
    with text.opened() as lines:
        rows = (line.split() for line in lines) if delimiter == SPACES else _fields(lines, delimiter)
        try:
            for number, row in enumerate(row for row in rows if row):
                if len(row) < width:  # rows are counted as everywhere, by the labels of the table, from 0
                    raise UserError(f"{text.source}: row {number - 1} has {len(row)} fields, the header has {width}")
        except csv.Error as error:
            raise UserError(f"cannot read {text.source} as a table with {width} columns: {error}") from None


class _Reading:
    """What one column is read as: numbers and booleans where that loses nothing in any cell, else texts."""

    def __init__(self, marks: Sequence[str], *, decimal_comma: bool) -> None:
        self.marks = marks
        self.complete = self.sure = True  # no cell is missing; none is a word for it either
        self.plain = _Numbers()
        self.with_commas = _Numbers() if decimal_comma else None  # what the numbers are if commas are points
        self.comma = False
        self.truths = 0  # cells that are True or False; -1 if some cell is neither

    def see(self, texts: Series) -> None:
        """Take note of some cells more."""
        missing = missing_cells(texts, self.marks)
        sure = ~missing_cells(texts, self.marks, words=True)
        self.complete = self.complete and not missing.any()
        self.sure = self.sure and bool(sure.all())
        cells = texts[sure]
        if len(cells) and self.with_commas is not None:
            if all_match(cells, r"[+-]?\d+(?:,\d+)?"):
                self.comma = self.comma or any_match(cells, r".*,.*")
                self.with_commas.see(cells.str.replace(",", "."))
            else:
                self.with_commas = None
        if len(cells):
            self.plain.see(cells)
        if self.truths >= 0 and not missing.all():
            known = texts[~missing]
            self.truths = self.truths + len(known) if all_match(known, "True|False") else -1

    def read(self, texts: Series) -> Series:
        """The cells as what the column is; missing ones as NaN or NA."""
        commas = self.with_commas is not None and self.comma
        numbers = self.with_commas if commas and self.with_commas is not None else self.plain
        if numbers.whole or numbers.float:
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
        if commas:  # numbers, but with a leading zero or too long to be kept as numbers
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
        self.all = self.all and all_match(cells, NUMBER) and not any_match(cells, LEADING_ZERO)
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
