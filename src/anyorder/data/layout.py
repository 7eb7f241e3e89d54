"""Which lines of a text hold the column names, and which are rows, found out from its first and last lines.

People's files have titles above the names, units below them, group names over several columns, totals and footnotes at
the end. What is taken for such a line is never dropped without a word, and only on evidence: names are words above
columns of numbers; a total is the last row, begins with a word for it, and its numbers are sums or the other texts of
its row are empty. Where there is none, the line stays what it would be without this module: the first line holds the
names, all others are rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from anyorder.data.dialect import SPACES
from anyorder.data.said import Way
from anyorder.errors import UserError
from anyorder.support.csv_rows import csv_rows
from anyorder.variables.cells import NUMBER
from anyorder.variables.unknown_words import MARKS

SAMPLE = 200  # rows that are looked at
LONGEST_PREAMBLE = 40
MOST_HEADER_ROWS = 3

# A number as people write it (a currency, thousands, percent, a decimal comma) or the beginning of a date or time.
VALUE = re.compile(
    rf"(?:{NUMBER})|[-+(]*\s*(?:[$€£¥]|[A-Z]{{3}} )?\s*[-+]?\d[\d.,'\u00a0\u202f ]*\s*(?:%|[$€£¥]| ?[A-Z]{{3}})?\)?"
    r"|\d{1,4}[-/.:]\d{1,2}(?:[-/.:]\d{1,4})?(?:[T ].*)?"
)
DECIMAL = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?|[+-]?\d+\.(?:\d*)(?:[eE][+-]?\d+)?")
UNKNOWN = MARKS | {"", "x"}


@dataclass(frozen=True)
class Row:
    """The cells of one row, and its first and last line, counted from 1."""

    cells: list[str]
    first: int
    last: int

    @property
    def filled(self) -> int:
        """How many cells are not empty."""
        return sum(cell.strip() != "" for cell in self.cells)

    def __str__(self) -> str:
        return " ".join(cell.strip() for cell in self.cells if cell.strip())


@dataclass(frozen=True)
class Head:
    """The column names and where the rows begin."""

    names: list[str]
    nameless: frozenset[int]  # columns whose name was made up
    padding: int  # so many of the last columns have no field in the line of names
    headers: list[list[str]]  # the lines of names as they stand
    line: int  # of the last header line: rows begin behind it
    notices: list[str]


def fields(lines: Iterable[str], delimiter: str, quote: str = '"') -> Iterator[tuple[int, list[str]]]:
    """The cells of every row and the number of its last line."""
    if delimiter == SPACES:
        return ((number, line.split()) for number, line in enumerate(lines, start=1))
    return csv_rows(lines, delimiter, quote=quote, skipinitialspace=True)


def first_rows(lines: Sequence[str], delimiter: str, quote: str, *, cut: bool = False) -> list[Row]:
    """The rows among the first lines that are not blank; ``cut``: the lines go on."""
    rows: list[Row] = []
    before = 0
    for last, cells in fields(lines, delimiter, quote):
        if any(cell.strip() for cell in cells):
            rows.append(Row(cells, before + 1, last))
        before = last
        if len(rows) >= SAMPLE:
            return rows
    return rows[:-1] if cut and len(rows) > 1 else rows


def usual_width(rows: Sequence[Row]) -> int:
    """How many cells most rows have, of those that have several; the first row decides a tie."""
    widths = Counter(len(row.cells) for row in rows if len(row.cells) > 1)
    if not widths:
        return 1
    return max(widths, key=lambda width: (widths[width], width == len(rows[0].cells), width))


def find_head(rows: Sequence[Row], said: tuple[int, int] | None, source: str, way: Way) -> Head:
    """Where the names are; ``way`` writes the file's name with something said of it."""
    if said is not None:
        return _said_head(rows, said, source, way)
    width = usual_width(rows)
    notices: list[str] = []
    begin = _first_header(rows, width)
    extra = _more_headers(rows, begin, width)
    headers = [row.cells for row in rows[begin : begin + 1 + extra]]
    if begin:
        skipped = _quoted(rows[:begin])
        lines = _lines(rows[0].first, rows[begin].first - 1)
        notices.append(
            f"{source}: {lines} ({skipped}) {_were(lines)} skipped, and the column names were taken from line "
            f"{rows[begin].first}; if they are on another line, give it, as in {way(f'header={rows[0].first}')}"
        )
    names = [cell.strip() for cell in headers[0]]
    last = rows[begin + extra].last
    if extra:
        lower = rows[begin + 1 : begin + 1 + extra]
        lines = _lines(lower[0].first, lower[-1].last)
        told = f"if it is a row, use {way(f'header={rows[begin].first}')}"
        if "" in names or len(set(names)) < len(names):
            names = joined(headers)
            notices.append(
                f"{source}: the column names were put together from lines {rows[begin].first}-{last}, "
                f"such as {next(filter(None, names))!r}; {told}"
            )
        else:
            notices.append(
                f"{source}: {lines} ({_quoted(lower)}) {_were(lines)} taken for units or remarks below the column "
                f"names and skipped; {told}"
            )
    below = rows[begin + 1 + extra :]
    if not extra:
        _check_names(names, below, source, way, rows[begin].first, notices)
    names, padding = _as_wide_as_rows(names, below, source, notices)
    return _head(names, padding, headers, last, source, notices)


def _said_head(rows: Sequence[Row], said: tuple[int, int], source: str, way: Way) -> Head:
    first, last = said
    if first == 0:
        width = max(usual_width(rows), len(rows[0].cells))
        return _head([""] * width, 0, [], rows[0].first - 1, source, [])
    headers = [row for row in rows if first <= row.last and row.first <= last]
    if not headers:
        raise UserError(
            f"{source}: there are no column names on line {first}; give another line, as in {way('header=1')}"
        )
    cells = [row.cells for row in headers]
    names = joined(cells) if len(cells) > 1 else [cell.strip() for cell in cells[0]]
    notices: list[str] = []
    below = [row for row in rows if row.first > headers[-1].last]
    names, padding = _as_wide_as_rows(names, below, source, notices)
    return _head(names, padding, cells, headers[-1].last, source, notices)


def _head(
    names: Sequence[str], padding: int, headers: list[list[str]], line: int, source: str, notices: list[str]
) -> Head:
    nameless = frozenset(index for index, name in enumerate(names) if not name)
    filled = [name or f"column {index}" for index, name in enumerate(names, start=1)]
    unique = distinct_names(filled)
    changed = [f"{new!r}" for old, new in zip(filled, unique, strict=True) if old != new]
    if changed:
        shown = ", ".join(changed[:5]) + (", ..." if len(changed) > 5 else "")
        notices.append(f"{source}: some column names occur more than once; the later ones are called {shown}")
    return Head(unique, nameless, padding, headers, line, notices)


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names, with a number behind each that was there before."""
    taken, found = set(names), list[str]()
    seen: set[str] = set()
    for name in names:
        number, new = 2, name
        while new in seen or (new != name and new in taken):
            new = f"{name} ({number})"
            number += 1
        seen.add(new)
        found.append(new)
    return found


def joined(headers: Sequence[Sequence[str]]) -> list[str]:
    """The names of several lines put together; in all but the last an empty cell belongs to the name on its left."""
    width = max(map(len, headers))
    parts: list[list[str]] = [[] for _ in range(width)]
    for depth, cells in enumerate(headers):
        left = ""
        for column in range(width):
            cell = cells[column].strip() if column < len(cells) else ""
            left = cell or left
            part = left if depth < len(headers) - 1 else cell
            if part and part not in parts[column]:
                parts[column].append(part)
    return [" ".join(part) for part in parts]


def _first_header(rows: Sequence[Row], width: int) -> int:
    """Which row holds the names: the first, unless it is a title and there is evidence for a later one."""
    if width == 1 or len(rows) < 2:
        return 0
    plausible = (
        index
        for index, row in enumerate(rows[:LONGEST_PREAMBLE])
        if len(row.cells) == width and row.filled >= max(2, (width + 1) // 2)
    )
    first = next(plausible, 0)
    if _is_comment(rows[first]) and first + 1 < len(rows) and _above_values(rows, first + 1, width):
        first += 1  # a remark with as many commas as the rows have
    if first and _names_but_one(rows[first - 1], width) and not _above_values(rows, first, width):
        first -= 1  # the first column is that of row names
    if first == 0:
        return 0
    above, below = rows[:first], rows[first + 1 :]
    group = above[-1]
    if len(group.cells) == width and group.filled >= 2 and not _is_comment(group):
        several = _above_values(rows, first, width) and _are_titles(above[:-1], width)
        return first - 1 if several else 0
    if not _are_titles(above, width):
        return 0
    if _above_values(rows, first, width):
        return first
    alike = sum(len(row.cells) == width for row in below)
    loose = all(len(row.cells) == 1 and (_is_comment(row) or re.search(r"[\s:]", str(row))) for row in above)
    return first if loose and below and alike >= 0.8 * len(below) else 0


def _names_but_one(row: Row, width: int) -> bool:
    return len(row.cells) == row.filled == width - 1 and not _is_comment(row)


def _are_titles(rows: Sequence[Row], width: int) -> bool:
    """Whether none of these can be a row of so many cells."""
    few = 2 if width >= 4 else 1
    return all(row.filled <= few or len(row.cells) != width or _is_comment(row) for row in rows)


def _is_comment(row: Row) -> bool:
    return row.cells[0].lstrip().startswith("#")


def _above_values(rows: Sequence[Row], index: int, width: int) -> bool:
    """Whether a row has words, no values, above columns of values alone; units may be between them."""
    shift = width - len(rows[index].cells)  # row names have no name of their own
    for begin in range(index + 1, index + 1 + MOST_HEADER_ROWS):
        columns = [column for column in _value_columns(rows[begin:], width) if column >= shift]
        names = [rows[index].cells[column - shift].strip() for column in columns]
        if any(not _is_value(name) and name for name in names) and not any(map(_is_decimal, names)):
            return True
        if begin >= len(rows) or len(rows[begin].cells) != width or any(map(_is_value, rows[begin].cells)):
            return False
    return False


def _value_columns(rows: Sequence[Row], width: int) -> list[int]:
    """The columns that hold values alone, in two rows or more (in one, where there are no more)."""
    whole = [row.cells for row in rows if len(row.cells) == width]
    found = []
    for column in range(width):
        cells = [cells[column].strip() for cells in whole]
        known = [cell for cell in cells if cell.casefold() not in UNKNOWN]
        sure = known[:-1] if len(known) > 2 else known  # the last row may be a total or a remark
        if known and all(map(_is_value, sure)) and len(known) >= min(2, len(whole)):
            found.append(column)
    return found


def text_columns(rows: Sequence[Row], width: int) -> list[int]:
    """The columns in which some cell is a text and no value."""
    whole = [row.cells for row in rows if len(row.cells) == width]
    return [
        column
        for column in range(width)
        if any(cells[column].strip().casefold() not in UNKNOWN and not _is_value(cells[column]) for cells in whole)
    ]


def _is_value(cell: str) -> bool:
    return VALUE.fullmatch(cell.strip()) is not None


def _is_decimal(cell: str) -> bool:
    return DECIMAL.fullmatch(cell.strip()) is not None


def _more_headers(rows: Sequence[Row], begin: int, width: int) -> int:
    """How many rows below the names belong to them: words in all columns that hold only values from then on."""
    if any(map(_is_decimal, rows[begin].cells)):
        return 0
    for extra in range(MOST_HEADER_ROWS - 1, 0, -1):
        below = rows[begin + 1 + extra :]
        columns = _value_columns(below, width)
        between = rows[begin + 1 : begin + 1 + extra]
        if len(below) < 3 or not columns or any(len(row.cells) != width for row in between):
            continue
        if all(_is_header_below(row, columns, below) for row in between):
            return extra
    return 0


def _is_header_below(row: Row, columns: Sequence[int], below: Sequence[Row]) -> bool:
    cells = [row.cells[column].strip() for column in columns]
    words = [cell for cell in cells if cell.casefold() not in UNKNOWN]
    if len(words) < len(cells) or any(re.match(r"[-+(]?[$€£¥]?\s*\d", word) for word in words):
        return False
    if any(map(_is_value, row.cells)):
        return False
    if len(words) >= 2:
        return True
    others = [cell.strip() for column, cell in enumerate(row.cells) if column not in columns]
    return bool(_UNIT.fullmatch(words[0])) and all(not cell or _UNIT.fullmatch(cell) or cell == "-" for cell in others)


_UNIT = re.compile(
    r"[\[(].*[\])]|%|‰|°[CF]?|[$€£¥]|[A-Z]{3}|(?:[kcmµnMGd]?(?:m|g|l|L|s|W|V|A|Hz|Pa|J|N|bar|mol|eur|EUR|t|h))[²³23]?"
    r"|min|sec|yr|years?|days?|hours?|inch|in|ft|lbs?|oz|mi|mph|[a-zµ]{1,4}/[a-zµ]{1,4}[²³23]?"
)


def _check_names(
    names: Sequence[str], below: Sequence[Row], source: str, way: Way, line: int, notices: list[str]
) -> None:
    """Refuse names that are surely values; say so where they may be."""
    filled = [name for name in names if name]
    values = [name for name in filled if _is_value(name)]
    words = [(column, name) for column, name in enumerate(names) if name and not _is_value(name)]
    again = [
        any(len(row.cells) > column and row.cells[column].strip() == name for row in below) for column, name in words
    ]
    if not values or not all(again):
        return
    how = f"if there are no column names, use {way('header=0')}, or add a line of names above it"
    decimals = [name for name in filled if _is_decimal(name)]
    if decimals and not _ascend(filled):
        raise UserError(
            f"{source}: the first line should hold the column names, but {decimals[0]!r} looks like a value; {how}"
        )
    if len(values) == len(filled) and _counts_up(filled):
        return  # 0, 1, 2, ... as programs name columns
    notices.append(f"{source}: line {line} is taken for the column names, but looks like values ({names[0]!r}); {how}")


def _ascend(names: Sequence[str]) -> bool:
    """Whether the names are numbers in ascending order, such as wavelengths."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    return len(numbers) >= 4 and all(one < other for one, other in pairwise(numbers))


def _counts_up(names: Sequence[str]) -> bool:
    return [*names] in ([str(number + start) for number in range(len(names))] for start in (0, 1))


def _as_wide_as_rows(names: list[str], below: Sequence[Row], source: str, notices: list[str]) -> tuple[list[str], int]:
    """The names, and empty ones where all rows have more cells; and how many of these there are at the end.

    Rows may end with delimiters, or begin with a name of their own, as R writes them.
    """
    rows = [row.cells for row in below]
    width = len(names)
    more = min((len(cells) for cells in rows), default=0) - width
    if more > 0 and all(not any(cell.strip() for cell in cells[width:]) for cells in rows):
        return names + [""] * more, more
    if more != 1 or len(rows) < 2 or any(len(cells) != width + 1 for cells in rows):
        return names, 0
    if len({cells[0] for cells in rows}) < len(rows):
        return names, 0  # no names of rows: simply wrong
    notices.append(
        f"{source}: there are {width} column names for {width + 1} columns; the first column is assumed to be row "
        "names and called 'column 1'"
    )
    return ["", *names], 0


def _lines(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _were(lines: str) -> str:
    return "were" if lines.startswith("lines") else "was"


def _quoted(rows: Sequence[Row]) -> str:
    text = str(rows[0])
    return repr(text if len(text) <= 60 else text[:57] + "...") + (", ..." if len(rows) > 1 else "")
