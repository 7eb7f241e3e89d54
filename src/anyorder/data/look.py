"""A look at a table before any model: what every column is taken for, why, and what is odd about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from anyorder.data import oddities
from anyorder.data.columns import Understood
from anyorder.data.files import frame_or_file
from anyorder.data.tables import understand_table
from anyorder.support import html
from anyorder.support.budgets import FEW_CELLS, MINUTES, QUICK_MINUTES
from anyorder.variables import hints
from anyorder.variables.cells import Mask, Numbers, Series, distinct, missing_cells, numbers
from anyorder.variables.codecs.base import unknown_cells
from anyorder.variables.schema import Kind, Variable
from anyorder.variables.time_forms import write_times
from anyorder.variables.times import days, times

BINS = 16
SHOWN_LEVELS = 3
"""The most frequent ones are shown."""
WORDS = {
    Kind.CONTINUOUS: "number",
    Kind.SPIKED: "number with frequent values",
    Kind.INTEGER: "whole number",
    Kind.ATOMS: "a few numbers",
    Kind.BOOLEAN: "yes or no",
    Kind.CATEGORICAL: "category",
    Kind.ORDINAL: "ordered levels",
    Kind.DATETIME: "time",
}
GROUP = ("number", "numbers")
GROUPS = {
    Kind.BOOLEAN: ("category", "categories"),
    Kind.CATEGORICAL: ("category", "categories"),
    Kind.ORDINAL: ("ordered", "ordered"),
    Kind.DATETIME: ("date", "dates"),
}
"""How columns are counted in one line, as ``fit`` counts them."""
PLAIN = ("numbers", "times", "yes or no", "true or false")
"""Reasons that say no more than the kind."""
SECONDS_A_CELL = 2e-6
"""About what it takes to encode one cell before training begins."""


@dataclass(frozen=True)
class ColumnLook:
    """One column: what it is taken for (``kind`` is empty where it is left out), and what is odd about it.

    ``shown`` are a few values as the column writes them, ``heights`` the shape of its distribution; ``doubtful`` says
    that another reading is as possible, or that the column could be spared.
    """

    name: str
    kind: str
    why: str
    missing: int
    distinct: int
    shown: str
    odd: tuple[str, ...] = ()
    remedy: str = ""
    heights: tuple[float, ...] = field(default=(), repr=False)
    doubtful: bool = False

    @property
    def taken(self) -> str:
        """What the column is taken for, in words."""
        word = WORDS[Kind(self.kind)] if self.kind else "left out"
        return word if self.why in PLAIN else f"{word} ({self.why})"


@dataclass(frozen=True)
class Look:
    """What :func:`look` found: prints as a table, shows itself in a notebook, gives plain values by :meth:`to_json`."""

    rows: int
    columns: tuple[ColumnLook, ...]
    repeated_rows: int = 0

    @property
    def left_out(self) -> tuple[ColumnLook, ...]:
        """The columns that nothing can be learned from."""
        return tuple(column for column in self.columns if not column.kind)

    @property
    def odd(self) -> tuple[ColumnLook, ...]:
        """The columns with something to look at."""
        return tuple(column for column in self.columns if column.odd)

    def to_json(self, *, command_line: bool = False) -> dict[str, Any]:
        """Plain values; with ``command_line`` for what the commands do."""
        return {
            "rows": self.rows,
            "repeated_rows": self.repeated_rows,
            "time": self._time(command_line=command_line),
            "columns": [
                {
                    "name": column.name,
                    "kind": column.kind or None,
                    "why": column.why,
                    "missing": column.missing,
                    "distinct": column.distinct,
                    "values": column.shown,
                    "odd": list(column.odd),
                    "change": column.remedy,
                }
                for column in self.columns
            ],
        }

    def to_frame(self) -> pd.DataFrame:
        """One row for each column of the table."""
        return pd.DataFrame(
            {
                "column": [column.name for column in self.columns],
                "kind": [column.kind or "left out" for column in self.columns],
                "why": [column.why for column in self.columns],
                "missing": [column.missing for column in self.columns],
                "distinct": [column.distinct for column in self.columns],
                "values": [column.shown for column in self.columns],
                "odd": ["; ".join(column.odd) for column in self.columns],
            }
        )

    @property
    def time(self) -> str:
        """How long fitting will take, in words."""
        return self._time(command_line=False)

    def _time(self, *, command_line: bool) -> str:
        kept = len(self.columns) - len(self.left_out)
        seconds = SECONDS_A_CELL * self.rows * kept
        first = "within seconds" if seconds < 10 else f"after about {seconds:.0f} s"
        minutes = QUICK_MINUTES if command_line and self.rows * len(self.columns) < FEW_CELLS else MINUTES
        limit = f"{minutes:g} minutes" if minutes > 1 else f"{60 * minutes:g} seconds"
        return f"a first model {first}, then better ones until the time is up (at most {limit} by default)"

    def summary(self) -> str:
        """One line: how many rows, and how many columns of which kind."""
        kinds = Counter(GROUPS.get(Kind(column.kind), GROUP) for column in self.columns if column.kind)
        said = ", ".join(f"{count} {one if count == 1 else more}" for (one, more), count in kinds.most_common())
        noun = "column" if len(self.columns) == 1 else "columns"
        out = f"; {len(self.left_out)} left out" if self.left_out else ""
        return f"{self.rows:,} rows, {len(self.columns)} {noun}: {said or 'none to learn from'}{out}"

    def __str__(self) -> str:
        return self.text()

    def text(self, *, command_line: bool = False) -> str:
        """The table as text; with ``command_line`` in the words of the commands alone."""
        width = min(28, max((len(column.name) for column in self.columns), default=6))
        lines = [self.summary()]
        for column in self.columns:
            holes = f", {_share(column.missing / self.rows)} missing" if column.missing else ""
            taken = column.taken if column.kind else f"LEFT OUT: {column.why}"
            values = f": {column.shown}" if column.kind and column.shown else ""
            lines.append(f"  {column.name:<{width}}  {taken}{values}{holes}")
            below = [f"! {finding}" for finding in column.odd]
            if column.remedy and (column.doubtful or not column.kind):
                below.append(f"to change it: {column.remedy}")
            below = [hints.for_commands(line) for line in below] if command_line else below
            lines += [f"  {'':<{width}}    {line}" for line in below]
        if any(column.kind and " .. " in column.shown for column in self.columns):
            lines.append("(numbers and times are shown as minimum .. median .. maximum)")
        if self.repeated_rows:
            lines.append(f"{self.repeated_rows:,} rows repeat an earlier one in every column that is kept")
        lines.append(f"to fit: {self._time(command_line=command_line)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (
                html.Markup(f"<b>{html.escaped(column.name)}</b>"),
                column.taken,
                html.columns(column.heights) if column.heights else "",
                column.shown,
                _share(column.missing / self.rows) if column.missing else "",
                html.Markup("<br>".join(html.escaped(finding) for finding in column.odd)),
            )
            for column in self.columns
        ]
        names = ("column", "taken for", "", "values", "missing", "look at")
        parts = [html.table(names, rows, numeric=(4,)), html.remark(f"To fit: {self.time}.")]
        if self.repeated_rows:
            said = f"{self.repeated_rows:,} rows repeat an earlier one in every column that is kept."
            parts.insert(1, html.remark(said))
        return html.titled(self.summary(), *parts)


def look(
    frame: Any,
    *,
    kinds: Mapping[str, str] | None = None,
    missing: Sequence[object] = (),
    drop: Sequence[str] = (),
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Sequence[object]] | None = None,
) -> Look:
    """What every column of a table would be taken for, and what is odd about it. No model is needed.

    Parameters
    ----------
    frame
        pandas or polars, a mapping of columns, or the name of a file.
    kinds, missing, drop, bounds, levels
        As for :func:`anyorder.fit`.

    Returns
    -------
    Look

    Examples
    --------
    >>> found = ao.look({"price": ["$1,204.50", "$12.00", "$7.25"] * 10, "id": [f"A-{i}" for i in range(30)]})
    >>> [(column.name, column.kind or "left out", column.why) for column in found.columns]
    [('price', 'atoms', 'an amount in $'), ('id', 'left out', 'ids')]
    """
    table, found = understand_table(frame_or_file(frame, missing), kinds, missing, drop, bounds, levels)
    marks = tuple(str(mark) for mark in missing)
    looks: list[ColumnLook] = []
    beginnings: dict[str, tuple[Variable, Numbers, Mask]] = {}
    repeats = oddities.Repeats(len(table))
    for each in found:
        column, values, known = _looked_at(each, table[each.name], marks)
        looks.append(column)
        if each.variable is not None:
            # Not all cells, which would be the table in memory once more.
            first = oddities.ROWS_COMPARED
            beginnings[each.name] = each.variable, values[:first].copy(), known[:first].copy()
            repeats.see(values)
    said: dict[str, str] = dict(oddities.copies(beginnings))
    looks = [
        column if column.name not in said else _with(column, said[column.name], hints.drop(column.name))
        for column in looks
    ]
    return Look(len(table), tuple(looks), repeats.count)


def _looked_at(read: Understood, column: Series, marks: Sequence[str]) -> tuple[ColumnLook, Numbers, Mask]:
    variable = read.variable
    if variable is None:
        missing = missing_cells(column, marks)
        some = [str(cell)[:20] for cell in column[~missing].iloc[:2]]
        look_at = ColumnLook(read.name, "", read.why, int(missing.sum()), 0, ", ".join(some), read.doubts, read.remedy)
        return look_at, np.empty(0), ~missing
    missing = unknown_cells(column, variable, marks)
    odd = list(read.doubts)
    if holes := oddities.missing_share(column, missing):
        odd.append(holes)
    values = np.full(len(column), np.nan)
    if variable.kind.has_levels and variable.kind is not Kind.ATOMS:
        different, codes = distinct(column, missing, read.name)
        values[~missing] = codes
        counts = np.bincount(codes, minlength=len(different))
        order = np.argsort(-counts, kind="stable")
        top = [f"{different[at]} {counts[at] / len(codes):.0%}" for at in order[:SHOWN_LEVELS]]
        shown = ", ".join(top) + (f", ... ({len(different)} in all)" if len(different) > SHOWN_LEVELS else "")
        odd += oddities.about_levels(variable, dict(zip(different, counts.tolist(), strict=True)))
        heights = tuple(float(counts[at]) for at in order[:BINS])
        count = len(different)
    else:
        known = _numbers(variable, column, missing)
        values[~missing] = known
        known.sort()  # all that follows is quick then
        low, middle, high = (float(np.quantile(known, level, method="nearest")) for level in (0, 0.5, 1))
        shown = " .. ".join(_written(variable, value) for value in (low, middle, high))
        heights = tuple(np.histogram(known, BINS)[0].astype(float).tolist()) if high > low else ()
        first = np.flatnonzero(np.append(True, known[1:] != known[:-1]))
        seen, counts = known[first], np.diff(np.append(first, len(known)))
        count = len(seen)
        if variable.kind is Kind.DATETIME:
            odd += oddities.about_times(known)
        else:
            odd += oddities.about_numbers(variable, known, seen, counts)
    remedy = read.remedy or _other_kind(variable)
    taken = ColumnLook(
        read.name,
        variable.kind.value,
        read.why,
        int(missing.sum()),
        count,
        shown,
        tuple(odd),
        remedy,
        heights,
        bool(read.doubts),
    )
    return taken, values, ~missing


def _numbers(variable: Variable, column: Series, missing: Mask) -> Numbers:
    """The known cells as numbers in the units of the data; days since 1970 for times."""
    if variable.kind is Kind.DATETIME:
        return days(times(column, missing, variable.name, variable.zone, variable.form))[~missing]
    return numbers(column, missing, variable.name, variable.notation)[~missing]


def _written(variable: Variable, value: float) -> str:
    if variable.kind is not Kind.DATETIME:
        return oddities.written(variable, value)
    # To the microsecond, in which a year like 9999 fits too, and days as fractions are not a moment too early.
    moment = pd.DatetimeIndex(np.array([round(value * 86_400e6)], dtype="datetime64[us]"))
    form = variable.form if variable.form and variable.form != "date" else "%Y-%m-%d"
    return str(write_times(moment, form)[0])


def _other_kind(variable: Variable) -> str:
    """The kind that a user would most likely want in its place, as an option."""
    others = {Kind.ATOMS: "categorical", Kind.CATEGORICAL: "ordinal", Kind.ORDINAL: "categorical"}
    return hints.kind(variable.name, others.get(variable.kind, "categorical"))


def _with(column: ColumnLook, finding: str, remedy: str) -> ColumnLook:
    return replace(column, odd=(*column.odd, finding), remedy=remedy, doubtful=True)


def _share(share: float) -> str:
    return "under 1%" if share < 0.005 else f"{share:.0%}"
