"""What every CSV of the library needs: rows with fields of any length, and cells that no spreadsheet calculates."""

from __future__ import annotations

import csv
import unicodedata
from collections.abc import Iterable, Iterator

LONGEST_FIELD = 2**31 - 1  # characters; Python's csv module refuses fields above 131,072
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_rows(
    lines: Iterable[str], delimiter: str = ",", *, quote: str = '"', skipinitialspace: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """The fields of every row and the number of its last line, counted from 1; raises ``csv.Error``."""
    # The limit belongs to the process, not to a reader. Setting it back would stop other threads in the middle of their
    # files, so it stays where it is.
    csv.field_size_limit(LONGEST_FIELD)
    reader = csv.reader(lines, delimiter=delimiter, quotechar=quote, skipinitialspace=skipinitialspace)
    for row in reader:
        yield reader.line_num, row


def without_formula(cell: str) -> str:
    """The cell with a quote in front if a spreadsheet would take it for a formula; numbers stay as they are.

    See OWASP, "CSV injection". Full-width signs count too: some programs read them as the plain ones. Some programs
    also drop the spaces in front.
    """
    first = unicodedata.normalize("NFKC", cell.lstrip()[:1])
    if not first.startswith(FORMULA_STARTS) and not cell.startswith(FORMULA_STARTS):
        return cell
    try:
        float(cell)
    except ValueError:
        return "'" + cell
    return cell
