r"""Does the model know how much it knows? Hidden cells of rows it has not seen, against its own conditionals.

In every row a random number of cells is shown (uniform on 0 .. observed - 1) and each of the others is scored by its
exact one-dimensional conditional (:mod:`anyorder.tasks.hidden_cells`). If the conditionals are right, the PIT values of
the cells are uniform on (0, 1) and an interval of level c holds a share c of them. Coverage is counted with the
randomised PIT, so the nominal level can be met exactly by discrete variables too. Indicators of missing cells are
neither shown nor scored: the report is about the columns of the table.

Cells of one row are dependent, so standard errors are over rows: for a mean over cells, the root of the sum over
rows of (the sum of the row's deviations)^2, divided by the number of cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.support import html
from anyorder.support.checks import check_level, checked_seed, whole
from anyorder.support.memory import check_room
from anyorder.tasks.hidden_cells import HiddenCellScores, random_known, score_hidden_cells
from anyorder.tasks.unseen_rows import Judge
from anyorder.variables.encoding import Unseen
from anyorder.variables.missingness import of_columns

LEVELS = (0.5, 0.8, 0.9, 0.95)
MOST_SHOWN = 30  # columns that are listed in a notebook
KEPT = 8  # numbers for each hidden cell, of which a row has one at least


@dataclass(frozen=True)
class Calibration:
    """Hidden cells of held-out rows, scored by their own conditionals.

    Made by :meth:`TableModel.calibration <anyorder.modalities.tables.model.TableModel.calibration>`. On rows that were
    used in training it means nothing.

    Parameters
    ----------
    names
        The variables of the model.
    cells
        The scores of the hidden cells.
    levels
        The levels whose coverage is reported.
    seed
        Of the uniform numbers that spread cells with mass over their PIT interval.

    Examples
    --------
    >>> report = model.calibration(held_out, seed=0)
    >>> bool(((report.pit >= 0) & (report.pit <= 1)).all())
    True
    >>> sorted(report.coverage["group"].unique())
    ['all', 'known', 'variable']
    """

    names: tuple[str, ...]
    cells: HiddenCellScores
    levels: tuple[float, ...] = LEVELS
    seed: int = 0

    def __repr__(self) -> str:
        shown = ", ".join(f"{level:.0%}: {self.share(level)[0]:.3f}" for level in self.levels)
        return f"Calibration({len(self.cells.row)} hidden cells; coverage {shown})"

    def _repr_html_(self) -> str:
        overall: list[list[object]] = []
        for level in self.levels:
            share, error = self.share(level)
            overall.append([f"{level:.0%}", f"{share:.1%} ± {error:.1%}", html.bar(share)])
        lines = [
            [name, len(some), f"{self.share(0.9, some)[0]:.0%}", f"{self.cells.log_prob[some].mean():.3f}"]
            for group, name, some in self._groups()
            if group == "variable"
        ]
        more = html.remark(f"and {len(lines) - MOST_SHOWN} columns more: .table()") if len(lines) > MOST_SHOWN else ""
        return html.titled(
            f"How often intervals hold the truth, over {len(self.cells.row)} hidden cells",
            html.table(["interval of", "holds", ""], overall, [0, 1]),
            html.table(["column", "cells", "90 % holds", "mean log p"], lines[:MOST_SHOWN], [1, 2, 3]),
            more,
            html.remark("A calibrated model holds as often as it says; ± is one standard error over rows."),
        )

    @cached_property
    def pit(self) -> Float[np.ndarray, " cells"]:
        """The PIT value of every hidden cell: uniform on (0, 1) if the model is right."""
        return self.cells.pit(self.seed)

    @cached_property
    def depth(self) -> Float[np.ndarray, " cells"]:
        """The least level whose interval holds the cell: uniform too."""
        return self.cells.depth(self.seed)

    def share(self, level: float, some: Any = slice(None)) -> tuple[float, float]:
        """The share of cells inside their central interval of a level. A calibrated model has the level itself.

        Parameters
        ----------
        level
            Between 0 and 1.
        some
            Which cells, as from :meth:`of_variable`; all by default.

        Returns
        -------
        tuple of float
            The share and its standard error over rows.

        Examples
        --------
        >>> report = model.calibration(held_out, seed=0)
        >>> share, error = report.share(0.8, report.of_variable("price"))
        >>> 0 < share <= 1
        True
        """
        check_level(level, "[0, 1]")
        return mean_over_rows((self.depth[some] <= level).astype(np.float64), self.cells.row[some])

    @cached_property
    def coverage(self) -> pd.DataFrame:
        """Share and standard error for each level: of all cells, of each variable, of each number of known cells."""
        lines = []
        for group, which, some in self._groups():
            for level in self.levels:
                share, error = self.share(level, some)
                entry = {"group": group, "which": which, "cells": len(some), "level": level}
                lines.append({**entry, "coverage": share, "standard_error": error})
        return pd.DataFrame(lines)

    def table(self) -> pd.DataFrame:
        """One line for all cells, for each variable and for each number of known cells.

        Returns
        -------
        DataFrame
            ``log_score``: mean log p in nats, higher is better. ``crps``: mean continuous ranked probability score in
            the units of the column (half the Brier score for levels without an order), lower is better. ``ks``: the
            greatest distance of the PIT values from uniform, and ``ks_p`` how often chance alone makes it that great.

        Examples
        --------
        >>> bool((model.calibration(held_out, seed=0).table()["cells"] > 0).all())
        True
        """
        lines = []
        for group, which, some in self._groups():
            line: dict[str, Any] = {"group": group, "which": which, "cells": len(some)}
            for level in self.levels:
                line[f"{100 * level:g}%"], line[f"{100 * level:g}% ±"] = self.share(level, some)
            line["ks"], line["ks_p"] = kolmogorov_smirnov(self.pit[some], self._independent(some))
            line["log_score"], line["log_score ±"] = mean_over_rows(self.cells.log_prob[some], self.cells.row[some])
            # Units differ from column to column: only within one is there a mean.
            line["crps"] = float(self.cells.crps[some].mean()) if group == "variable" else math.nan
            lines.append(line)
        return pd.DataFrame(lines)

    def _independent(self, some: Int[np.ndarray, " some"]) -> float:
        """How many independent cells these are worth: as many as give the share below the middle its error."""
        share, error = mean_over_rows((self.pit[some] < 0.5).astype(np.float64), self.cells.row[some])
        worth = share * (1 - share) / error**2 if error > 0 else len(some)
        return float(np.clip(worth, 1, len(some)))

    def plot(self, path: str | Path) -> None:
        """Draw PIT histograms with the band that chance allows, and coverage by level and by number of known cells.

        Parameters
        ----------
        path
            The file to write; its suffix says the format.

        Examples
        --------
        >>> model.calibration(held_out, seed=0).plot(folder / "calibration.png")
        """
        from anyorder.support import plotting
        from anyorder.tasks import calibration_plots

        plotting.check_format(Path(path))
        plotting.save_figure(calibration_plots.plot_calibration(self), Path(path))

    def of_variable(self, name: str) -> Int[np.ndarray, " some"]:
        """Which cells belong to a variable.

        Parameters
        ----------
        name
            The variable.

        Returns
        -------
        array
            Indices of cells.

        Examples
        --------
        >>> report = model.calibration(held_out, seed=0)
        >>> len(report.of_variable("price")) < len(report.pit)
        True
        """
        return np.flatnonzero(self.cells.variable == self.names.index(name))

    def of_known(self, count: int) -> Int[np.ndarray, " some"]:
        """Which cells were scored given so many known ones.

        Parameters
        ----------
        count
            How many cells of the row were known.

        Returns
        -------
        array
            Indices of cells.

        Examples
        --------
        >>> report = model.calibration(held_out, seed=0)
        >>> sum(len(report.of_known(count)) for count in range(4)) == len(report.pit)
        True
        """
        return np.flatnonzero(self.cells.known == whole("count", count, 0))

    def _groups(self) -> list[tuple[str, Any, Int[np.ndarray, " some"]]]:
        groups: list[tuple[str, Any, Any]] = [("all", "all", np.arange(len(self.cells.row)))]
        groups += [("variable", name, self.of_variable(name)) for name in self.names]
        groups += [("known", int(count), self.of_known(count)) for count in np.unique(self.cells.known)]
        return [group for group in groups if len(group[2])]


def calibrate(
    model: AnyOrderModel,
    frame: pd.DataFrame,
    *,
    seed: int = 0,
    repeats: int = 1,
    levels: tuple[float, ...] = LEVELS,
    unseen: Unseen = "refuse",
    by: Iterable[Judge] | None = None,
) -> Calibration:
    """Hide cells of rows that were not used in training and see where they fall; ``repeats`` masks for every row.

    ``by``: parts of the model, and the rows that each of them has not learned from; the whole model and all rows, if
    it is not given.
    """
    seed, repeats = checked_seed(seed), whole("repeats", repeats)
    check_room("repeats", repeats, KEPT * len(frame), "hide the cells of each row less often")
    for level in levels:
        check_level(level)
    values, observed = model.encoding.encode(frame, unseen)
    observed = of_columns(model.schema, observed)
    if not observed.any():
        raise UserError("the table has no known cell to score the model on")
    rng = np.random.default_rng(seed)
    judges = [(model, np.arange(len(values)))] if by is None else list(by)
    parts = []
    for _ in range(repeats):
        known = random_known(observed, rng, model.schema.context)
        for judge, rows in judges:
            asked = observed[rows] & ~known[rows]
            cells = score_hidden_cells(judge, values[rows], known[rows], asked, crps=True)
            parts.append(replace(cells, row=rows[cells.row]))
    scores = {name: np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])}
    return Calibration(model.schema.names, HiddenCellScores(**scores), tuple(levels), seed)


def mean_over_rows(numbers: Float[np.ndarray, " cells"], row: Int[np.ndarray, " cells"]) -> tuple[float, float]:
    """The mean over cells and its standard error over rows (one row: NaN)."""
    mean = float(numbers.mean())
    _, where = np.unique(row, return_inverse=True)
    sums = np.bincount(where, weights=numbers - mean)
    rows = len(sums)
    if rows < 2:
        return mean, math.nan
    return mean, float(np.sqrt(rows / (rows - 1) * (sums**2).sum()) / len(numbers))


def kolmogorov_smirnov(pit: Float[np.ndarray, " cells"], independent: float | None = None) -> tuple[float, float]:
    """The greatest distance between the PIT values' cdf and the uniform one, and its p-value.

    ``independent``: how many independent cells they are worth, fewer where cells share rows (all of them by default).
    """
    from scipy import stats  # slow to import, and every table command loads this module

    distance = float(stats.kstest(pit, "uniform", method="asymp").statistic)
    worth = round(len(pit) if independent is None else independent)
    return distance, float(stats.kstwo.sf(distance, worth))
