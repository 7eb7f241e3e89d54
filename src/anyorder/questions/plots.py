"""Pictures of answers: a density as a filled curve with its mean and 90% interval, a discrete one as bars.

A curve shows the central 99 % of its distribution. Positive numbers with a long tail have a logarithmic axis, and there
the density is that of the logarithm, x p(x), so that areas are probabilities as everywhere.

Matplotlib is an extra and is imported only when a picture is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from anyorder.errors import UserError
from anyorder.questions.grammar import write_evidence
from anyorder.support.plotting import BLUE, INK, ORANGE, SOFT, new_figure, style
from anyorder.support.visible import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from anyorder.questions.answer import Answer
    from anyorder.questions.conditional import Conditional


MOST_BARS = 12
SHOWN = (0.005, 0.995)  # the levels between which a curve is drawn
SKEWED = 4.0  # how many times as long as the lower half the upper half of what is shown is, for a logarithmic axis,
WIDE = 20.0  # and how many times as large its greatest value is as its least
TITLE = 55  # characters of evidence for each panel in a row


def plot_answers(conditional: Conditional, names: Sequence[str]) -> Figure:
    """One panel per name: p(name | evidence), each with everything else marginalised out."""
    if not names:
        raise UserError("nothing to plot: name at least one variable")
    columns = min(3, len(names))
    rows = math.ceil(len(names) / columns)
    figure = new_figure(4.2 * columns, 3.0 * rows)
    for index, name in enumerate(names):
        axes = figure.add_subplot(rows, columns, index + 1)
        plot_answer(axes, conditional[name], name)
    if conditional.evidence:
        given = write_evidence({name: str(said) for name, said in conditional.evidence.items()})
        figure.suptitle(drawn(f"given {given}", TITLE * columns), x=0.01, ha="left", color=SOFT, fontsize=10)
    return figure


def plot_answer(axes: Axes, answer: Answer, name: str, colour: str = BLUE, *, ranked: bool = True) -> None:
    """Draw one answer into ``axes``; with ``ranked`` the likeliest level of a category comes first."""
    style(axes)
    axes.set_title(drawn(name), color=INK, fontsize=11, loc="left", fontweight="bold")
    if answer.variable.levels:
        _bars(axes, answer.probs(), colour, ranked=ranked and answer.kind not in ("atoms", "ordinal"))
    else:
        _curve(axes, answer, colour)


def _curve(axes: Axes, answer: Answer, colour: str) -> None:
    time = answer.kind == "datetime"
    read: Any = _moment if time else float
    low, left, middle, right, high = (read(value) for value in answer.quantile([SHOWN[0], 0.05, 0.5, 0.95, SHOWN[1]]))
    mean = read(answer.mean())
    axes.set_yticks([])
    axes.set_xlabel(f"mean {_short(mean)}   90% in [{_short(left)}, {_short(right)}]", color=SOFT, fontsize=8.5)
    if not high > low:
        # All probability sits on one value: a spike is the honest picture.
        axes.axvline(low, color=colour, linewidth=2)
        return
    skewed = not time and low > 0 and high > WIDE * low and high - middle > SKEWED * (middle - low)
    grid = _grid(answer, low, high, skewed=skewed)
    density = np.nan_to_num(np.asarray(answer.pdf(list(grid)), dtype=float)) * (grid if skewed else 1.0)
    if skewed:
        axes.set_xscale("log")
    where = grid.tz_localize(None) if isinstance(grid, pd.DatetimeIndex) else grid
    inside = [bool(left <= at <= right) for at in grid]
    # A few whole numbers are drawn as steps, many of them as a curve like any other.
    step: Any = "mid" if answer.discrete and len(grid) <= 60 else None
    axes.fill_between(where, density, color=colour, alpha=0.15, linewidth=0, step=step)
    axes.fill_between(where, density, where=inside, color=colour, alpha=0.30, linewidth=0, step=step)
    axes.plot(where, density, color=colour, linewidth=1.6, drawstyle="steps-mid" if step else "default")
    axes.axvline(mean.tz_localize(None) if time else mean, color=ORANGE, linewidth=1.4)
    axes.set_ylim(bottom=0)
    for atom, probability in answer.probs().items() if answer.kind == "spiked" else ():
        axes.axvline(atom, color=colour, linewidth=2)
        axes.text(atom, axes.get_ylim()[1], f" P({atom:g}) = {probability:.3f}", color=INK, fontsize=8.5, va="top")
    if time:
        axes.tick_params(axis="x", rotation=20)


def _grid(answer: Answer, low: Any, high: Any, *, skewed: bool) -> Any:
    """Points that the variable can take: whole numbers and whole days only, where it is discrete."""
    if skewed:
        points = np.geomspace(low, high, 400)
        return np.unique(np.rint(points)) if answer.discrete else points
    if answer.kind == "datetime":
        times = pd.date_range(low, high, periods=400)
        return times.normalize().unique() if answer.discrete else times
    if answer.discrete:
        return np.unique(np.rint(np.linspace(low - 1, high + 1, 400)))
    margin = 0.04 * (high - low)
    return np.linspace(low - margin, high + margin, 400)


def _moment(value: Any) -> pd.Timestamp:
    return pd.Timestamp(value)


def _short(value: Any) -> str:
    return str(value.date()) if isinstance(value, pd.Timestamp) else f"{value:.4g}"


def _bars(axes: Axes, probabilities: dict[Any, float], colour: str, *, ranked: bool) -> None:
    pairs = list(probabilities.items())
    if ranked or len(pairs) > MOST_BARS:
        pairs.sort(key=lambda pair: -pair[1])
    labels = [drawn(str(level)) for level, _ in pairs[:MOST_BARS]]
    heights = [float(probability) for _, probability in pairs[:MOST_BARS]]
    if len(pairs) > MOST_BARS:
        labels.append(f"{len(pairs) - MOST_BARS} others")
        heights.append(sum(float(probability) for _, probability in pairs[MOST_BARS:]))
    positions = np.arange(len(labels))
    axes.barh(positions, heights, color=colour, alpha=0.75, height=0.65)
    for position, height in zip(positions, heights, strict=True):
        axes.text(height + 0.015, float(position), f"{height:.3f}", va="center", color=INK, fontsize=8.5)
    axes.set_yticks(positions, labels)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.14)
    axes.set_xticks([0, 0.5, 1])
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("probability", color=SOFT, fontsize=8.5)
