"""What stands below the rows of a table: totals, footnotes, a count of rows.

Only the last lines are looked at, from the end upwards, until one is a row. A footnote is a line that cannot be a row
(too few cells) and reads like a footnote. A total is a whole row that begins with a word for it; it is left out if its
numbers are the sums of their columns, or if the row has no other text although other rows do.
"""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from anyorder.data.layout import Row, fields

MOST = 20  # lines that can stand below the rows

TOTAL = re.compile(
    r"(?:(?:grand|sub|over-?all|column|table)[\s-]*)?(?:totals?|sums?|sum\s+total)"
    r"|(?:gesamt|zwischen|end)?summen?|(?:ins)?gesamt(?:ergebnis)?|total\s+g[eé]n[eé]ral|totaux|somme"
    r"|(?:sub)?total(?:es)?(?:\s+general)?|suma(?:\s+total)?|totale(?:\s+complessivo)?|somma|soma|totaal|i\s?alt|yhteens[aä]"
    r"|total\s*\(\d+\)|razem|ogółem|celkem|итого|всего|toplam|合计|总计|合計|總計|Σ|∑",
    re.IGNORECASE,
)
FOOTNOTE = re.compile(
    r"(?:sources?|notes?|footnotes?|remarks?|comments?|disclaimer|copyright|legend|quellen?|anmerkung(?:en)?|hinweise?|"
    r"fu(?:ß|ss)noten?|fuentes?|notas?|fonti?|remarques?|(?:data|last|date)\s+(?:source|updated?|extracted)|"
    r"(?:report\s+)?(?:generated|exported|printed|downloaded|created)(?:\s+(?:on|by|at))?|stand|page|seite)\b\s*[:.\-–(\d].*"
    r"|(?:report\s+)?(?:generated|exported|printed|downloaded|created)\s+(?:on|by|at|from|with)\b.*"
    r"|[*†‡§©#]+\s*[^\W\d].*|[¹²³].*|\[?\(?\d\d?[\])]\s.*[^\W\d].*|(?:end\s+of\s+(?:file|report|table|data)|fin|ende|eof)\W*",
    re.IGNORECASE | re.DOTALL,
)
COUNT = re.compile(
    r"\(?\s*\d[\d.,' ]*\s+(?:rows?|records?|zeilen?|datens[aä]tze?|lignes?|filas?|righe)\b"
    r"(?:\s+(?:affected|selected|returned|in set|fetched|betroffen|\(.*\)))*\s*\.?\)?(?:\s*\(.*\))?",
    re.IGNORECASE,
)


@dataclass
class Ending:
    """The last lines of a text that are no rows, or may be none."""

    footnotes: list[Row] = field(default_factory=list)
    totals: list[Row] = field(default_factory=list)  # above the footnotes; the first one first
    start: dict[int, int] = field(default_factory=dict)  # of each of them: characters from its beginning to the end


def find_ending(tail: str, delimiter: str, quote: str, width: int) -> Ending:
    """The lines at the end that are no rows, and those that may be totals; lines are counted from the tail's first."""
    found = Ending()
    if width < 2:
        return found
    lines = _split(tail)
    length, blank = 0, False
    looked = 0
    for number in range(len(lines) - 1, 0, -1):  # never the first line, which may be that of the names
        line = lines[number]
        length += len(line)
        if _is_blank(line, delimiter):
            blank = True
            continue
        looked += 1
        if looked > MOST or line.count(quote) % 2:  # within a cell of several lines
            break
        try:
            cells = next(cells for _, cells in fields([line], delimiter, quote))
        except (csv.Error, StopIteration):
            break
        row = Row(cells, number + 1, number + 1)
        gap = list(itertools.takewhile(lambda line: _is_blank(line, delimiter), reversed(lines[1:number])))
        spaced = bool(gap)
        if not found.totals and _is_footnote(row, line, width, spaced=spaced or blank):
            found.footnotes.insert(0, row)
        elif len(cells) == width and row.filled >= 2 and TOTAL.fullmatch(_first_text(row).rstrip(" :")):
            found.totals.insert(0, row)
        else:
            break
        found.start[row.first] = length + sum(map(len, gap))  # empty lines above it are no rows either
        blank = spaced
    return found


def _is_blank(line: str, delimiter: str) -> bool:
    return not line.strip().strip(delimiter).strip()


def _split(text: str) -> list[str]:
    return re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$", text)


def _first_text(row: Row) -> str:
    return next(cell.strip() for cell in row.cells if cell.strip())


def _is_footnote(row: Row, line: str, width: int, *, spaced: bool) -> bool:
    alone = row.filled == 1 and row.cells[0].strip() != ""
    text = row.cells[0].strip() if alone else line.strip().strip('"').strip()
    if alone and COUNT.fullmatch(text):
        return True
    if FOOTNOTE.fullmatch(text):
        return len(row.cells) != width or (alone and width > 2) or spaced
    # A sentence below an empty line: nothing that a row could be that was cut off.
    return spaced and len(row.cells) == 1 and len(re.findall(r"[^\W\d_]{2,}", text)) >= 3


def is_total(row: Row, texts: Sequence[int], sums: Callable[[Sequence[int]], Mapping[int, float]]) -> bool:
    """Whether a row that begins with a word for it is one.

    ``texts`` are the columns of texts; ``sums`` gives the sums of the columns of numbers above it.
    """
    first = next(column for column, cell in enumerate(row.cells) if cell.strip())
    others = [column for column in texts if column != first]
    if any(row.cells[column].strip() for column in others):
        return False
    amounts = {column: amount(cell) for column, cell in enumerate(row.cells) if column != first and cell.strip()}
    known = {column: number for column, number in amounts.items() if number is not None}
    if not known:
        return False
    if others:
        return True
    above = sums(list(known))
    return any(
        column in above and number != 0 and math.isclose(above[column], number, rel_tol=1e-6, abs_tol=0.011)
        for column, number in known.items()
    )


def amount(text: str) -> float | None:
    """A number as people write it: with a currency, thousands, a decimal comma; None for anything else."""
    bare = re.sub(r"[\s\u00a0\u202f'$€£¥%]|\b[A-Z]{3}\b", "", text.strip())
    if bare.startswith("(") and bare.endswith(")"):
        bare = "-" + bare[1:-1]
    if re.fullmatch(r"[+-]?\d{1,3}(?:\.\d{3})+,\d+|[+-]?\d{1,3}(?:\.\d{3}){2,}|[+-]?\d+,(?:\d{1,2}|\d{4,})", bare):
        bare = bare.replace(".", "").replace(",", ".")
    else:
        bare = bare.replace(",", "")
    try:
        return float(bare)
    except ValueError:
        return None
