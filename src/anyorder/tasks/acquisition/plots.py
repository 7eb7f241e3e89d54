"""The ranking of what could be asked for as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyorder.support.plotting import BLUE, INK, ORANGE, SOFT, new_figure, style
from anyorder.support.visible import drawn
from anyorder.tasks.acquisition.next_question import NextQuestion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 20


def plot_ranking(found: NextQuestion) -> Figure:
    """A bar for each candidate, the best on top; what is not worth asking for is grey."""
    shown = found.candidates[:MOST]
    figure = new_figure(6.4, max(2.0, 0.32 * len(shown) + 1.2))
    axes = figure.add_subplot()
    style(axes)
    title = drawn(f"what to ask for next, about {', '.join(found.about)}", 80)
    axes.set_title(title, color=INK, loc="left", fontweight="bold")
    if not shown:
        axes.text(0.5, 0.5, drawn(found.stop or "", 80), ha="center", va="center", color=SOFT, transform=axes.transAxes)
        axes.set_axis_off()
        return figure
    heights = range(len(shown))
    colours = [ORANGE if one.name in found.chosen else BLUE if one.worth else SOFT for one in shown]
    errors = [1.96 * one.gain.error for one in shown]
    if any(one.ahead is not None for one in shown):  # behind each gain, with that of the best question after it
        both = [float(one.gain if one.ahead is None else one.ahead) for one in shown]
        axes.barh(heights, both, color=colours, alpha=0.3, height=0.7)
    axes.barh(heights, [float(one.gain) for one in shown], xerr=errors, color=colours, height=0.7, ecolor=INK)
    priced = any(one.cost != 1 for one in shown)
    axes.set_yticks(heights, [drawn(one.name) + (f" ({one.cost:g})" if priced else "") for one in shown])
    axes.invert_yaxis()
    remarks = [f"expected gain in {found.unit}"]
    remarks += ["pale: with the best question after it"] * any(one.ahead is not None for one in shown)
    remarks += ["in brackets: cost"] * priced
    axes.set_xlabel(drawn("; ".join(remarks), 200), color=INK, fontsize=9)
    return figure
