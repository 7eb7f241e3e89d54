"""The calibration report as one picture: where hidden cells fell, and how often intervals held.

Top left, coverage against nominal level, as the difference that matters (a calibrated model is flat at zero); top
right, the same against the number of known cells. Below, one histogram of PIT values a variable. Grey bands hold 95 %
of what chance alone would show for a calibrated model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from anyorder.support.plotting import BLUE, GRID, INK, ORANGE, RED, SOFT, new_figure, style
from anyorder.support.visible import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from anyorder.tasks.calibration import Calibration

MOST_PANELS = 24
COLUMNS = 4
BAND = "#d5dce2"
SHADES = (SOFT, BLUE, ORANGE, RED)


def plot_calibration(calibration: Calibration) -> Figure:
    """Two panels of coverage over a grid of PIT histograms, the worst variables first where there are many."""
    shown = [name for name in calibration.names if len(calibration.of_variable(name))]
    if len(shown) > MOST_PANELS:
        off = {name: abs(calibration.share(0.9, calibration.of_variable(name))[0] - 0.9) for name in shown}
        shown = sorted(shown, key=lambda name: -off[name])[:MOST_PANELS]
    rows = math.ceil(len(shown) / COLUMNS)
    figure = new_figure(11.0, 4.0 + 1.75 * rows)
    parts: Any = figure.subfigures(2, 1, height_ratios=[3.6, 0.4 + 1.75 * rows], hspace=0.04)
    upper, lower = parts
    left, right = upper.subplots(1, 2)
    plot_coverage(left, calibration, shown)
    plot_by_known(right, calibration)
    lower.suptitle(
        "Where hidden cells fell in their own distributions: flat if the model is right, orange beyond chance",
        x=0.004,
        ha="left",
        color=INK,
        fontsize=11,
        fontweight="bold",
    )
    axes = np.atleast_1d(lower.subplots(rows, COLUMNS, squeeze=False)).ravel()
    for index, name in enumerate(shown):
        plot_pit(axes[index], calibration, name)
    for empty in axes[len(shown) :]:
        empty.set_axis_off()
    return figure


def plot_coverage(axes: Axes, calibration: Calibration, names: list[str]) -> None:
    """Observed against nominal coverage: faint for each variable, bold for all cells."""
    style(axes)
    levels = np.linspace(0, 1, 201)
    axes.plot([0, 1], [0, 1], color=SOFT, linewidth=1, linestyle=(0, (4, 3)))
    rows = len(np.unique(calibration.cells.row))
    reach = 1.96 * np.sqrt(levels * (1 - levels) / rows)
    axes.fill_between(levels, levels - reach, levels + reach, color=BAND, alpha=0.7, linewidth=0)
    for name in names:
        depth = np.sort(calibration.depth[calibration.of_variable(name)])
        axes.plot(levels, np.searchsorted(depth, levels, side="right") / len(depth), color=BLUE, alpha=0.3, linewidth=1)
    depth = np.sort(calibration.depth)
    axes.plot(levels, np.searchsorted(depth, levels, side="right") / len(depth), color=INK, linewidth=2)
    _title(axes, "How often intervals hold the truth", "level of the interval", "share of cells inside")
    axes.set(xlim=(0, 1), ylim=(0, 1), xticks=np.linspace(0, 1, 6), yticks=np.linspace(0, 1, 6))
    for at, (text, colour) in enumerate((("all cells", INK), ("each variable", BLUE), ("chance, one variable", SOFT))):
        axes.text(0.02, 0.97 - 0.075 * at, text, color=colour, fontsize=8.5, va="top", transform=axes.transAxes)


def plot_by_known(axes: Axes, calibration: Calibration) -> None:
    """Coverage of each level against how many cells of the row were known, with two standard errors."""
    style(axes)
    counts = np.unique(calibration.cells.known)
    bins = np.array_split(counts, min(len(counts), 12))  # wide tables: neighbouring counts together
    for level, colour in zip(calibration.levels, SHADES * len(calibration.levels), strict=False):
        found = [calibration.share(level, np.isin(calibration.cells.known, some)) for some in bins]
        share, error = np.array(found).T
        centres = np.array([some.mean() for some in bins])
        axes.axhline(level, color=colour, linewidth=1, linestyle=(0, (4, 3)), alpha=0.7)
        axes.errorbar(centres, share, yerr=2 * error, color=colour, linewidth=1.6, marker="o", markersize=4, capsize=0)
        axes.annotate(
            f"{level:.0%}", (1.01, level), xycoords=("axes fraction", "data"), color=colour, fontsize=8.5, va="center"
        )
    _title(axes, "The same, by what is known", "number of known cells", "")
    axes.set_ylim(min(0.4, axes.get_ylim()[0]), 1.01)
    axes.locator_params(axis="x", integer=True)


def plot_pit(axes: Axes, calibration: Calibration, name: str) -> None:
    """Where the cells of one variable fell: flat within the band if the model is right."""
    style(axes)
    some = calibration.of_variable(name)
    pits = calibration.pit[some]
    rows = len(np.unique(calibration.cells.row[some]))  # a row that was shown several times tells little more than once
    bins = int(np.clip(rows // 12, 4, 20))
    heights, edges = np.histogram(pits, bins=bins, range=(0, 1))
    scale = bins / len(pits)
    reach = 1.96 * math.sqrt((bins - 1) / rows)
    axes.axhspan(max(0.0, 1 - reach), 1 + reach, color=BAND, alpha=0.7, linewidth=0)
    beyond = np.abs(heights * scale - 1) > reach
    colours = [ORANGE if out else BLUE for out in beyond]
    axes.bar(edges[:-1], heights * scale, width=0.9 / bins, align="edge", color=colours, alpha=0.6)
    for end in (max(0.0, 1 - reach), 1 + reach):
        axes.axhline(end, color=SOFT, linewidth=0.6, alpha=0.6)
    axes.axhline(1, color=SOFT, linewidth=1, linestyle=(0, (4, 3)))
    share, _ = calibration.share(0.9, some)
    title = name if len(name) <= 20 else name[:19] + "…"
    axes.set_title(drawn(title), color=INK, fontsize=9.5, loc="left", fontweight="bold")
    axes.set_title(f"90% holds {share:.0%}", color=SOFT, fontsize=8, loc="right")
    axes.set_xticks([0, 0.5, 1], ["0", "½", "1"])
    axes.set(xlim=(-0.01, 1.01), yticks=[], ylim=(0, max(2.0, 1.1 * float((heights * scale).max()))))
    axes.tick_params(labelsize=8)
    axes.grid(visible=False)


def _title(axes: Axes, title: str, across: str, up: str) -> None:
    axes.set_title(title, color=INK, fontsize=11, loc="left", fontweight="bold")
    axes.set_xlabel(across, color=SOFT, fontsize=8.5)
    axes.set_ylabel(up, color=SOFT, fontsize=8.5)
    axes.grid(color=GRID)
