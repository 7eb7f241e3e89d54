"""A delimited text of which is known how it is written and which of its lines are rows; its cells, piece by piece."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from anyorder.data.dialect import SPACES, Dialect, newline_of, quoted_of
from anyorder.data.encodings import BLOCK, Opener, not_text, scan
from anyorder.data.endings import amount, find_ending, is_total
from anyorder.data.layout import Row, fields, find_head, first_rows, text_columns
from anyorder.data.plain_pieces import NotPlainError, can_be_plain, plain_pieces
from anyorder.data.said import Said, Way
from anyorder.data.sniffing import sniff
from anyorder.errors import UserError
from anyorder.support.filtered_warnings import warnings_set
from anyorder.variables.cells import NUMBER

Say = Callable[[str], None]
"""Takes a notice."""
Result = TypeVar("Result")
Numbers = Mapping[str, tuple[str, list[str]]]
"""The columns that are read as numbers, the dtype of each and its texts for missing cells."""


@dataclass(frozen=True)
class Source:
    """A text that can be opened again and again."""

    reopen: Opener
    title: str  # what it is called in messages
    way: Way
    size: int  # in bytes, about
    named: bool = False  # the delimiter is that of the file's ending


class TableText:
    """A text that was scanned, and what it was found to be: delimiter, quotes, the lines of names and of rows."""

    def __init__(self, opened: Source, said: Said, say: Say) -> None:
        self.reopen, self.source, self.way, self.said = opened.reopen, opened.title, opened.way, said
        source = self.source
        self.scan = scan(self.reopen, source, said.encoding)
        if not self.scan.head.strip():
            raise UserError(f"{source} is empty; expected a line of column names and lines of values")
        self.lines = io.StringIO(self.scan.head, newline="").readlines()
        cut = len(self.scan.head) < self.scan.length
        if self.scan.notice:
            say(f"{self.scan.notice}give the encoding, as in {self.way('encoding=cp1250')}")
        # What was skipped before the lines that are looked at: Excel's own line, and lines that somebody said to skip.
        self.skipped = self._skip()
        lines = self.lines[self.skipped :]
        if not any(line.strip() for line in lines):
            raise UserError(f"{source} ends before its column names, which were expected on line {self.skipped + 1}")
        try:
            self.delimiter, self.quote = self._signs or sniff(lines, said.delimiter)
            rows = first_rows(lines, self.delimiter, self.quote, cut=cut)
            rows = [Row(row.cells, row.first + self.skipped, row.last + self.skipped) for row in rows]
            if not rows:
                raise UserError(
                    f"{source} has nothing in any cell; expected a line of column names and lines of values"
                )
            self.head = find_head(rows, said.header, source, self.way)
        except csv.Error as error:
            raise UserError(f"cannot read {source} as a table: {error}") from None
        for notice in self.head.notices:
            say(notice)
        self.rows = [row for row in rows if row.first > self.head.line]
        self.begin = sum(map(len, self.lines[: self.head.line]))
        self.end = self.scan.length
        self.headers = [] if said.every_row else self._repeatable()
        self.plain = can_be_plain(self.head.names, self.delimiter, self.quote)  # until it proves not to be
        self.plain_until = self.begin  # so far it has proved to be

    def _skip(self) -> int:
        self._signs: tuple[str, str] | None = None
        first = next(number for number, line in enumerate(self.lines) if line.strip())
        sign = re.fullmatch(r"\s*\"?sep=(.)\"?[\s,;]*", self.lines[first], re.IGNORECASE)
        if sign and len(self.lines) > first + 1:  # how Excel is told the delimiter
            rest = self.lines[first + 1 :]
            self._signs = (self.said.delimiter or sign[1], sniff(rest, sign[1])[1])
            first += 1
        if self.said.header is not None and self.said.header[0]:
            first = max(first, self.said.header[0] - 1)
        return first

    @property
    def telling(self) -> int | None:
        """The first column whose name is a word, so that a row with it may be a line of names."""
        cells = self.headers[0] if self.headers else []
        words = (index for index, cell in enumerate(cells) if cell and not re.fullmatch(NUMBER, cell))
        return next(words, None)

    def _repeatable(self) -> list[list[str]]:
        """The lines of names that are no rows where they come again: two words or more."""
        width = len(self.head.names)
        headers = [[cell.strip() for cell in cells] for cells in self.head.headers[:1]]
        return [cells for cells in headers if len(cells) == width > 1 and sum(map(bool, cells)) > 1]

    def rows_in(self, size: int) -> int:
        """About how many lines so many bytes are."""
        return max(1, int(size * len(self.lines) / sum(map(len, self.lines))))

    def dialect(self, decimal: str, *, named: bool) -> Dialect:
        """How the text is written."""
        lines = self.lines[self.skipped : self.skipped + 100]
        return Dialect(
            delimiter=self.delimiter,
            named=named,
            quote=self.quote,
            quoted=quoted_of(lines, self.delimiter, self.quote),
            decimal=decimal,
            encoding=self.scan.encoding,
            mark=self.scan.mark,
            newline=newline_of(self.scan.head),
        )

    def find_end(self, rows: int, say: Say) -> None:
        """Find footnotes and totals below the rows, and leave them out."""
        width = len(self.head.names)
        tail = self.scan.tail[max(0, len(self.scan.tail) - (self.scan.length - self.begin)) :]
        if self.said.every_row or not tail:
            return
        found = find_ending("above\n" + tail, self.delimiter, self.quote, width)
        shift = self.scan.lines - len(re.findall(r"\r\n|\n|\r", tail)) - (not tail.endswith(("\n", "\r"))) - 1
        if found.footnotes:
            self.end = self.scan.length - found.start[found.footnotes[0].first]
        if found.totals:
            top = found.totals[0]
            kept, self.end = self.end, self.scan.length - found.start[top.first]
            texts = text_columns([row for row in self.rows if row.first < top.first + shift], width)
            sums: dict[int, float] = {}

            def summed(columns: Sequence[int]) -> Mapping[int, float]:
                more = [column for column in columns if column not in sums]
                sums.update(self.reading(lambda: self._sums(rows, more)))
                return sums

            if self.end <= self.begin or not all(is_total(row, texts, summed) for row in found.totals):
                self.end = kept
                say(
                    f"{self.source}: line {top.first + shift} ({str(top)[:60]!r}) was kept as a row, though it reads "
                    "like a total; if it is one, delete it"
                )
                found.totals = []
        for rows_out, what in ((found.totals, "totals"), (found.footnotes, "a remark")):
            if rows_out:
                first, last = rows_out[0].first + shift, rows_out[-1].first + shift
                lines = f"line {first}" if first == last else f"lines {first}-{last}"
                say(
                    f"{self.source}: {lines} at the end ({str(rows_out[0])[:60]!r}) "
                    f"{'was' if first == last else 'were'} taken for {what} and skipped; "
                    f"to keep every line as a row, use {self.way('rows=all')}"
                )

    def reading(self, work: Callable[[], Result]) -> Result:
        """What ``work`` makes of the pieces; done once more, with pandas, where the text proves not to be plain."""
        try:
            return work()
        except NotPlainError:
            self.plain = False
            return work()

    def _sums(self, rows: int, columns: Sequence[int]) -> dict[int, float]:
        found = dict.fromkeys(columns, 0.0)
        for piece in self.pieces(rows):
            for column in columns:
                cells = piece.iloc[:, column]
                plain = pd.to_numeric(cells, errors="coerce")
                others = (amount(cell) for cell in cells[plain.isna()])
                found[column] += float(plain.sum()) + sum(number for number in others if number is not None)
        return found

    @contextmanager
    def opened(self) -> Iterator[_Part]:
        """The text from its first row to its last."""
        with self.reopen() as file:
            text = io.TextIOWrapper(file, encoding=self.scan.codec, newline="")
            text.read(self.begin)
            try:
                yield _Part(text, self.end - self.begin)
            finally:
                text.detach()

    def pieces(
        self,
        rows: int,
        headers: list[int] | None = None,
        numbers: Numbers | None = None,
    ) -> Iterator[pd.DataFrame]:
        """Every cell as text; lines of another length than the names' are refused, not padded or cut.

        ``headers``: takes the numbers of the rows before which the names are repeated. ``numbers``: columns that are
        read as numbers, the dtype of each and its texts for missing cells.
        """
        done = 0
        with self.opened() as lines:
            for piece in (self._quickly if self.plain else self._parsed)(lines, rows, numbers or {}):
                repeated = self._repeated(piece)
                if len(repeated):
                    piece = piece.drop(index=piece.index[repeated])
                    if headers is not None:
                        headers += (done + repeated - np.arange(len(repeated))).tolist()
                done += len(piece)
                yield piece

    def _quickly(self, lines: _Part, rows: int, numbers: Numbers) -> Iterator[pd.DataFrame]:
        names, checked = self.head.names, self.plain_until >= self.end
        yield from plain_pieces(lines, names, self.delimiter, self.quote, rows, numbers, checked=checked)
        self.plain_until = max(self.plain_until, self.end)

    def _parsed(self, lines: _Part, rows: int, numbers: Numbers) -> Iterator[pd.DataFrame]:
        names = self.head.names
        try:
            pieces = pd.read_csv(
                lines,
                sep=self.delimiter,
                quotechar=self.quote,
                header=None,
                names=names,
                dtype={name: numbers[name][0] if name in numbers else "str" for name in names},
                index_col=False,
                keep_default_na=False,
                na_values={name: texts for name, (_, texts) in numbers.items()},
                **_EXACT,
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
        except pd.errors.EmptyDataError:
            return
        except pd.errors.ParserWarning:
            self.refuse_lines(len(names), len(names))
            raise UserError(f"{self.source}: some lines have more fields than the {len(names)} column names") from None
        except pd.errors.ParserError as error:
            self.refuse_lines(len(names), len(names))
            reason = str(error).removeprefix("Error tokenizing data. ").removeprefix("C error: ").strip()
            raise UserError(f"cannot read {self.source} as a table with {len(names)} columns: {reason}") from None
        except UnicodeDecodeError as error:
            raise not_text(self.source, error) from None

    def _repeated(self, piece: pd.DataFrame) -> np.ndarray:
        """The rows of a piece that are the line of names once more."""
        telling = self.telling
        if telling is None:
            return np.empty(0, dtype=np.int64)
        found = np.flatnonzero((piece.iloc[:, telling] == self.headers[0][telling]).to_numpy(dtype=bool))
        same = [[cell.strip() for cell in piece.iloc[row]] == self.headers[0] for row in found[:1000].tolist()]
        return np.asarray(found[:1000][np.array(same, dtype=bool)])

    def _advice(self, why: str) -> str:
        if len(self.head.names) == 1:
            sign = "semicolon" if self.delimiter == "," else "comma"
            return (
                f"if {self.delimiter!r} is not the delimiter, give the right one, as in "
                f"{self.way(f'delimiter={sign}')}; "
                f"if the names are on another line, give it, as in {self.way('header=2')}"
            )
        return f"correct it ({why}); if the names are on another line, give it, as in {self.way('header=2')}"

    def has_fields(self, rows: int) -> bool:
        """Whether so many rows surely have all their fields: no line has more, so it is enough to count delimiters."""
        if self.delimiter == SPACES:
            return False
        count = 0
        with self.opened() as text:
            while block := text.read(BLOCK):
                if self.quote in block:  # a delimiter may be part of a cell
                    return False
                count += block.count(self.delimiter)
        return count == rows * (len(self.head.names) - 1)

    def refuse_lines(self, least: int, most: int) -> None:
        """Refuse the first line with too few or too many fields.

        pandas fills a short line with empty cells; it is more likely a damaged file.
        """
        width = len(self.head.names)
        with self.opened() as lines:
            try:
                for number, cells in fields(lines, self.delimiter, self.quote):
                    if not cells or least <= len(cells) <= most or (len(cells) > most and not any(cells[most:])):
                        continue
                    why = _REASONS["fewer" if len(cells) < least else "more"]
                    raise UserError(
                        f"{self.source}: line {number + self.head.line} has {_count(len(cells), 'field')}, but there "
                        f"{'is' if width == 1 else 'are'} {_count(width, 'column name')}: {self._advice(why)}"
                    )
            except csv.Error as error:
                raise UserError(f"cannot read {self.source} as a table with {width} columns: {error}") from None


# Numbers to the last bit: from 3.1 on pandas reads them so without being asked.
_EXACT: dict[str, Any] = (
    {"float_precision": "round_trip"} if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else {}
)

_REASONS = {
    "fewer": "is it cut off?",
    "more": "a cell with the delimiter in it belongs in quotes",
}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number != 1 else "")


class _Part(io.TextIOBase):
    """So many characters more of a text."""

    def __init__(self, text: io.TextIOWrapper, length: int) -> None:
        self.text, self.left = text, length

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> str:
        piece = self.text.read(self.left if size is None or size < 0 else min(size, self.left))
        self.left -= len(piece)
        return piece

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        line = self.text.readline(self.left if size < 0 else min(size, self.left))
        self.left -= len(line)
        return line
