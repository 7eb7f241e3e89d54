"""What is odd about a column: numbers far outside, marks that stand for unknown, spellings of one word, copies.

Each finding is a sentence for people. Nothing here changes how a column is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyorder.variables import hints
from anyorder.variables.cells import Mask, Numbers, Series
from anyorder.variables.schema import Kind, Variable
from anyorder.variables.unknown_words import MARKS

CODES = frozenset((-1.0, -9.0, -99.0, -999.0, -9999.0, -99999.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0))
"""Numbers that people write for "unknown"."""
FAR = 10.0
"""So many times the distance between the quartiles, from the nearer one, is far outside."""
FEWEST = 20
MOST_MISSING = 0.5
NEARLY_ALL = 0.995
PLACEHOLDERS = ("1900-01-01", "1970-01-01", "9999-12-31", "1899-12-30")
ROWS_COMPARED = 20_000
MOST_COMPARED = 300
"""Columns beyond these are not compared with each other."""


def about_numbers(variable: Variable, values: Numbers, seen: Numbers, counts: NDArray[np.intp]) -> Iterator[str]:
    """What is odd about the known numbers of a column; ``seen`` are the different ones, and how often each occurs."""
    if len(values) < FEWEST:
        return
    said = _codes(seen, counts)
    if said:
        yield said
        return
    least, low, middle, high, most = np.quantile(values, [0.01, 0.25, 0.5, 0.75, 0.99])
    spread = max(high - low, (most - least) / 4)  # the quartiles may be next to each other
    if spread <= 0:
        return
    far = (values > high + FAR * spread) | (values < low - FAR * spread)
    if seen[0] > 0 and far.any():
        # Skewed columns have long tails that are no mistakes: on the scale of logarithms they are ordinary.
        logs = np.log(values)
        low, high = np.quantile(logs, [0.25, 0.75])
        far &= (logs > high + FAR / 3 * (high - low)) | (logs < low - FAR / 3 * (high - low))
    if 0 < far.sum() <= 0.01 * len(values):
        worst = values[far][np.argmax(np.abs(values[far] - middle))]
        count, example = int(far.sum()), written(variable, float(worst))
        one = f"one number lies far outside the rest: {example}"
        yield one if count == 1 else f"{count} numbers lie far outside the rest, such as {example}"


def _codes(seen: Numbers, counts: NDArray[np.intp]) -> str:
    """A number such as -999 that lies apart from all others."""
    for end, rest in ((seen[0], seen[1:]), (seen[-1], seen[:-1])):
        count = int(counts[0] if end == seen[0] else counts[-1])
        if float(end) not in CODES or len(rest) < 3 or count < 2:
            continue
        gap = float(np.abs(rest - end).min())
        negative = end < 0 and rest.min() >= 0
        if negative or gap > 0.5 * float(rest.max() - rest.min()):
            remedy = hints.missing(f"{end:g}")
            return f"{end:g} occurs {count} times, far from all other numbers: if it means unknown, use {remedy}"
    return ""


def about_levels(variable: Variable, counts: Mapping[object, int]) -> Iterator[str]:
    """What is odd about the levels of a column, given how often each occurs."""
    texts = [level for level in counts if isinstance(level, str)]
    alike: dict[str, list[str]] = {}
    for text in texts:
        alike.setdefault(re.sub(r"[\s_]+", " ", text).strip(" .").casefold(), []).append(text)
    doubled = [group for key, group in alike.items() if key and len(group) > 1]
    if doubled:
        some = doubled[0][:3]
        which = f"{' and '.join(map(repr, some))} ({', '.join(f'{counts[text]:,}' for text in some)} cells)"
        one = sum(text in variable.levels for text in some) == 1
        more = f", and {len(doubled) - 1} more such" if len(doubled) > 1 else ""
        yield f"{which} {'are taken for' if one else 'look like'} one level in different spellings{more}"
    unknown = [text for text in texts if text.strip().casefold() in MARKS]
    if unknown and variable.kind is not Kind.ORDINAL:
        yield f"{unknown[0]!r} is kept as a level: if it means unknown, use {hints.missing(unknown[0])}"
    once = sum(count == 1 for count in counts.values())
    if variable.kind is Kind.CATEGORICAL and len(counts) > 20 and once > 0.5 * len(counts):
        yield f"{once} of its {len(counts)} levels occur only once"
    total = sum(counts.values())
    if total >= FEWEST and len(counts) > 1 and max(counts.values()) > NEARLY_ALL * total:
        yield "nearly all cells are the same"


def about_times(days: Numbers) -> Iterator[str]:
    """Dates that stand for "no date"."""
    if len(days) < FEWEST:
        return
    for text in PLACEHOLDERS:
        day = float(pd.Timestamp(text).toordinal() - pd.Timestamp(0).toordinal()) if text[0] != "9" else 2_932_896.0
        count = int((np.floor(days) == day).sum())
        if count >= 2 and count < 0.5 * len(days):
            yield f"{text} occurs {count} times: is it a placeholder for a missing date?"


class Repeats:
    """How many rows equal an earlier one, found column by column.

    A row that no other equals in the columns seen so far is of no interest in the others. So the rows are soon few.
    """

    def __init__(self, rows: int) -> None:
        self._rows = np.arange(rows)
        self._hashes = np.zeros(rows, dtype=np.uint64)
        self._columns = 0

    def see(self, values: Numbers) -> None:
        """Take one column more, NaN where it is unknown."""
        self._columns += 1
        self._hashes = self._hashes * np.uint64(1_000_003) ^ pd.util.hash_array(values[self._rows])
        if self._columns.bit_count() == 1:  # after 1, 2, 4, 8 columns: not each time, where all rows are alike
            alike = pd.Series(self._hashes).duplicated(keep=False).to_numpy()
            self._rows, self._hashes = self._rows[alike], self._hashes[alike]

    @property
    def count(self) -> int:
        """The number of rows that are the same as an earlier one in all columns that were seen."""
        return int(pd.Series(self._hashes).duplicated().sum()) if self._columns else 0


def copies(cells: Mapping[str, tuple[Variable, Numbers, Mask]]) -> Iterator[tuple[str, str]]:
    """Columns that say what another one says already: pairs of the later one and a sentence about it."""
    names = list(cells)[:MOST_COMPARED]
    keys: dict[bytes, str] = {}
    lines: list[tuple[str, Numbers, Mask]] = []
    for name in names:
        variable, values, known = cells[name]
        values, known = values[:ROWS_COMPARED], known[:ROWS_COMPARED]
        different = len(np.unique(values[known]))
        if known.sum() < FEWEST or different < 2:
            continue
        # Two columns in which hardly a value repeats are the same in the same rows by chance.
        repeats = 2 * different <= known.sum()
        key = _pattern(values, known) if repeats else name.encode()
        if key in keys:
            yield name, _relation(variable, values[known], keys[key], *cells[keys[key]][:2], known)
            continue
        keys[key] = name
        if variable.numeric and not variable.kind.has_levels:
            for other, theirs, seen in lines:
                both = known & seen
                if both.sum() < FEWEST:
                    continue
                if np.array_equal(values[both], theirs[both]):
                    yield name, f"repeats {other!r}"
                    break
                if abs(_correlation(values[both], theirs[both])) > 1 - 1e-6:
                    yield name, f"is {other!r} in another unit"
                    break
            lines.append((name, values, known))


def _relation(variable: Variable, values: Numbers, name: str, other: Variable, theirs: Numbers, known: Mask) -> str:
    """What a column is to another one that is the same in the same rows."""
    if variable.numeric and other.numeric:
        same = theirs[: len(known)][known]
        if np.array_equal(values, same):
            return f"repeats {name!r}"
        if abs(_correlation(values, same)) > 1 - 1e-6:
            return f"is {name!r} in another unit"
    return f"carries the same information as {name!r}"


def _pattern(values: Numbers, known: Mask) -> bytes:
    """Which rows hold the same value: equal for columns that are one to one."""
    codes = np.where(known, pd.factorize(np.where(known, values, np.nan))[0], -1)
    return codes.astype(np.int32).tobytes()


def _correlation(one: Numbers, other: Numbers) -> float:
    a, b = one - one.mean(), other - other.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else 0.0


def written(variable: Variable, value: float) -> str:
    """A number as its column writes it."""
    if variable.notation is not None:
        return variable.notation.write(value)
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def missing_share(column: Series, missing: Mask) -> str:
    """A sentence about the holes of a column, where there are many."""
    share = float(missing.mean()) if len(column) else 0.0
    return f"{share:.0%} of its cells are missing" if share > MOST_MISSING else ""
