"""The delimiter and the quotes of a delimited text, found out from its first lines."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

import pandas as pd

from anyorder.data.dialect import SPACES, quoted_of
from anyorder.data.layout import Row, first_rows, usual_width
from anyorder.variables.cells import NUMBER, all_match

DELIMITERS = (",", ";", "\t", "|")


def sniff(lines: Sequence[str], said: str | None = None) -> tuple[str, str]:
    r"""The delimiter and the quotes under which most lines have as many fields; ``\s+`` for aligned numbers."""
    best, best_score = (said or ",", '"'), (0.0, 0, 0)
    for delimiter in (said,) if said else DELIMITERS:
        for quote in ('"', "'") if delimiter != SPACES and _has_single_quotes(lines, delimiter) else ('"',):
            try:
                rows = [row for row in first_rows(lines, delimiter, quote) if not row.cells[0].startswith("#")]
            except csv.Error:
                continue
            width = usual_width(rows) if rows else 1
            agree = sum(len(row.cells) == width for row in rows) / max(len(rows), 1)
            if width <= 1 or (agree, width) < best_score[:2]:
                continue
            score = (agree, width, _numeric_columns(rows[1:], width, delimiter))  # the last one breaks ties
            alike = quote == "'" and score >= best_score and _all_quoted(lines, delimiter, quote)
            if score > best_score or alike:
                best, best_score = (delimiter, quote), score
    if best_score[1] or said:
        return best
    words = [line.split() for line in lines[:200] if line.strip() and not line.startswith("#")]
    cells = pd.Series([cell for row in words[1:] for cell in row], dtype="str")
    aligned = len(words) > 1 and len({len(row) for row in words}) == 1 and len(words[0]) > 1
    return (SPACES, '"') if aligned and cells.str.fullmatch(NUMBER).mean() >= 0.5 else (",", '"')


def _all_quoted(lines: Sequence[str], delimiter: str, quote: str) -> bool:
    """Whether all texts are in quotes, the column names or not: a single quote here and there may be part of a cell."""
    return any(quoted_of(some, delimiter, quote) != "needed" for some in (lines[:200], lines[1:200]))


def _has_single_quotes(lines: Sequence[str], delimiter: str) -> bool:
    """Whether cells stand in single quotes: two or more begin with one, as many end with one, and none with two."""
    sign, text = re.escape(delimiter), "".join(lines[:200]).replace("\r\n", "\n").replace("\r", "\n")
    if "'" not in text or re.search(rf"(?:^|{sign})[ ]*\"", text, re.MULTILINE):
        return False
    begin = len(re.findall(rf"(?:^|{sign})[ ]*'", text, re.MULTILINE))
    end = len(re.findall(rf"'[ ]*(?={sign}|\n|\Z)", text))
    return begin >= 2 and begin == end


def _numeric_columns(rows: Sequence[Row], width: int, delimiter: str) -> int:
    """How many columns hold only numbers, with a decimal comma where the delimiter leaves room for it."""
    whole = [row.cells for row in rows if len(row.cells) == width]
    pattern = rf"{NUMBER}|[+-]?\d+,\d+" if delimiter == ";" else NUMBER
    columns = (pd.Series([row[index] for row in whole], dtype="str") for index in range(width))
    return sum(all_match(column[column.str.strip() != ""], pattern) for column in columns) if whole else 0
