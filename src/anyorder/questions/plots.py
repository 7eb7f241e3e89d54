"""Pictures of answers: a density as a filled curve with its median and central 90 %, levels as bars.

Matplotlib is an extra and is imported only when a picture is asked for.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from anyorder.errors import UserError
from anyorder.questions.outline import outline
from anyorder.support.plotting import BLUE, INK, ORANGE, SOFT, new_figure, style
from anyorder.support.visible import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from anyorder.questions.answer import Answer
    from anyorder.questions.conditional import Conditional


MOST_BARS = 12
LINE, LINES = 58, 2  # characters in a line of evidence, and lines of it
POINTS = 400
STEM = 20  # an atom is as high as if its probability filled so small a part of the axis,
HIGHEST_STEM = 1.5  # but not much higher than the density


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
    return figure


def plot_answer(axes: Axes, answer: Answer, name: str, colour: str = BLUE, *, ranked: bool = True) -> None:
    """Draw one answer into ``axes``; with ``ranked`` the likeliest level of a category comes first."""
    style(axes)
    _title(axes, name, answer.given)
    if answer.variable.levels:
        _bars(axes, answer, colour, ranked=ranked and answer.kind not in ("atoms", "ordinal"))
    else:
        _curve(axes, answer, colour)


def _title(axes: Axes, name: str, given: str) -> None:
    """The name, and below it what is known."""
    lines = textwrap.wrap(f"given {given}", LINE, max_lines=LINES, placeholder=" …") if given else []
    axes.set_title(drawn(name), color=INK, fontsize=11, loc="left", fontweight="bold", pad=6 + 12 * len(lines))
    if lines:
        said = axes.annotate(
            "\n".join(drawn(line, LINE) for line in lines),
            (0, 1),
            xytext=(0, 5),
            xycoords="axes fraction",
            textcoords="offset points",
            color=SOFT,
            fontsize=8.5,
            linespacing=1.2,
        )
        said.set_in_layout(False)  # long evidence does not make the panel narrow


def _curve(axes: Axes, answer: Answer, colour: str) -> None:
    left, middle, right = answer.quantile([0.05, 0.5, 0.95])
    ends = f"{answer.written(left)} .. {answer.written(right)}"
    axes.set_xlabel(drawn(f"median {answer.written(middle)}   90 % in {ends}", LINE), color=SOFT, fontsize=8.5)
    axes.set_yticks([])
    found = outline(answer)
    if not found.high > found.low:
        # All probability sits on one value: a spike is the honest picture.
        axes.axvline(_drawn_at(answer, np.array([found.low]))[0], color=colour, linewidth=2)
        return
    # Panels that share an axis share its scale.
    alone = len(axes.get_shared_x_axes().get_siblings(axes)) == 1
    logarithmic = found.logarithmic if alone else axes.get_xscale() == "log" and found.low > 0
    grid = _grid(answer, found.low, found.high, logarithmic=logarithmic)
    where = _drawn_at(answer, grid)
    density = np.nan_to_num(np.asarray(answer.pdf(_as_values(answer, grid)), dtype=float))
    atoms = {atom: float(share) for atom, share in answer.probs().items()} if answer.kind == "spiked" else {}
    density[np.isin(grid, list(atoms))] = np.nan  # the probability of an atom is no density
    if logarithmic:
        axes.set_xscale("log")
        density = density * grid  # per unit of the logarithm, so that equal areas are equal probabilities
    low, high = answer.measured_quantiles(np.array([0.05, 0.95]))
    inside = (grid >= low) & (grid <= high)
    # A few whole numbers are drawn as steps, many of them as a curve like any other.
    step: Any = "mid" if answer.discrete and len(grid) <= 60 else None
    axes.fill_between(where, density, color=colour, alpha=0.15, linewidth=0, step=step)
    axes.fill_between(where, density, where=list(inside), color=colour, alpha=0.30, linewidth=0, step=step)
    axes.plot(where, density, color=colour, linewidth=1.6, drawstyle="steps-mid" if step else "default")
    axes.axvline(_drawn_at(answer, np.array([found.middle]))[0], color=ORANGE, linewidth=1.4)
    _stems(axes, answer, atoms, (found.low, found.high), float(np.nanmax(density)), colour)
    axes.set_ylim(bottom=0)
    _ticks(axes, answer, logarithmic=logarithmic)


def _stems(
    axes: Axes, answer: Answer, atoms: dict[float, float], ends: tuple[float, float], top: float, colour: str
) -> None:
    """Values with a probability of their own, each with a label that says so."""
    low, high = ends
    for atom, share in atoms.items():
        if not low <= atom <= high or not share > 0:
            continue
        height = min(share * STEM / (high - low), HIGHEST_STEM * top)
        axes.vlines(atom, 0, height, color=colour, linewidth=2.4)
        axes.plot([atom], [height], marker="o", markersize=5, color=colour)
        right = atom > (low + high) / 2  # the label goes to the side where there is room
        axes.annotate(
            drawn(f"exactly {answer.written(atom)}: {share:.1%}"),
            (atom, height),
            xytext=(-7 if right else 7, 0),
            textcoords="offset points",
            color=INK,
            fontsize=8.5,
            ha="right" if right else "left",
            va="center",
        )
    if atoms:
        axes.margins(y=0.12)


def _ticks(axes: Axes, answer: Answer, *, logarithmic: bool) -> None:
    """Marks on the axis as the column writes its values."""
    from matplotlib import dates, ticker

    if answer.kind == "datetime":
        untyped: Any = dates
        locator = untyped.AutoDateLocator(minticks=3, maxticks=6)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(untyped.ConciseDateFormatter(locator))
        return
    notation = answer.variable.notation
    fractions = notation is None or notation.read(notation.write(0.5)) == 0.5
    if logarithmic:
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0), numticks=7))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    else:
        axes.xaxis.set_major_locator(ticker.MaxNLocator(5, integer=answer.discrete or not fractions))
    if logarithmic or notation is not None:
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: drawn(answer.written(value))))


def _grid(answer: Answer, low: float, high: float, *, logarithmic: bool) -> Any:
    """Points that the variable can take: whole numbers and whole days only, where it is discrete."""
    if answer.discrete:
        return np.unique(np.rint(np.linspace(low - 1, high + 1, POINTS)))
    if logarithmic:
        return np.geomspace(low, high, POINTS)
    points = np.linspace(low, high, POINTS)
    return np.unique(np.concatenate([points, [at for at in answer.variable.atoms if low <= at <= high]]))


def _as_values(answer: Answer, grid: Any) -> Any:
    """Numbers as values of the variable: days since 1970 as times."""
    from anyorder.questions.answer import as_times

    return pd.Series(as_times(grid, answer.variable)) if answer.kind == "datetime" else grid


def _drawn_at(answer: Answer, grid: Any) -> Any:
    """Where Matplotlib draws them: times on their own wall clock."""
    if answer.kind != "datetime":
        return grid
    return pd.DatetimeIndex(_as_values(answer, grid)).tz_localize(None)


def _bars(axes: Axes, answer: Answer, colour: str, *, ranked: bool) -> None:
    pairs = list(answer.probs().items())
    if ranked or len(pairs) > MOST_BARS:
        pairs.sort(key=lambda pair: -pair[1])
    labels = [drawn(answer.written(level)) for level, _ in pairs[:MOST_BARS]]
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
