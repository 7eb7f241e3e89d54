"""A picture of filled texts: what was given in ink, what was filled in coloured by how sure the model was of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anyorder.support.plotting import INK, SOFT, new_figure
from anyorder.support.visible import drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from anyorder.modalities.texts.model import Filling

COLUMNS = 84  # characters a line
GREY, SURE = "#f3d9c4", "#1f7a4d"


def plot_fillings(asked: str | Sequence[str], fillings: Sequence[Filling], names: Sequence[str]) -> Figure:
    """The text as it was asked, then each way to fill it, one below the other, in lines of equal length.

    Several texts ``asked`` each stand above their own filling.
    """
    blocks: list[tuple[str, str, dict[int, float]]] = [("asked", asked, {})] if isinstance(asked, str) else []
    for number, (name, one) in enumerate(zip(names, fillings, strict=True)):
        if not isinstance(asked, str):
            blocks.append(("asked", asked[number], {}))
        blocks.append((name, one.text, {position: one.confidence[position] for position in one.holes}))
    lines = -(-max(1, *(len(text) for _, text, _ in blocks)) // COLUMNS)
    height = len(blocks) * (lines + 0.8) + 1.6
    figure = new_figure(0.105 * (COLUMNS + 8) + 0.2, 0.21 * height + 0.1)
    axes = figure.add_subplot()
    axes.set_xlim(-8, COLUMNS)
    axes.set_ylim(height, -0.4)
    axes.axis("off")
    row = 0.6
    for name, text, filled in blocks:
        axes.text(-7.5, row, name, color=SOFT, fontsize=8, va="center")
        for position, character in enumerate(text):
            x, y = position % COLUMNS + 0.5, row + position // COLUMNS
            if position in filled:
                axes.add_patch(_box(x, y, filled[position]))
            colour = "white" if filled.get(position, 0.0) > 0.55 else INK
            weight = "bold" if position in filled else "normal"
            character = character if character.isprintable() else "·"
            where = {"ha": "center", "va": "center", "family": "monospace"}
            axes.text(x, y, drawn(character), fontsize=9, color=colour, weight=weight, **where)  # type: ignore[arg-type]
        row += lines + 0.8
    for step in range(11):
        axes.add_patch(_box(step + 0.5, row, step / 10))
    axes.text(12, row, "how sure the model was of a filled character: 0 to 100 %", color=SOFT, fontsize=8, va="center")
    return figure


def _box(x: float, y: float, sure: float):  # type: ignore[no-untyped-def]  # matplotlib is imported only here
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    colours = LinearSegmentedColormap.from_list("sure", [GREY, "#e8b04a", SURE])
    return Rectangle((x - 0.5, y - 0.42), 1.0, 0.84, facecolor=colours(sure), edgecolor="none")
