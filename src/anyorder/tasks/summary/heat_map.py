"""The matrix of mutual information as a drawing in a page: the darker, the more two columns tell of each other."""

from __future__ import annotations

from anyorder.support.html import BLUE, GRID, INK, SOFT, Markup, escaped
from anyorder.support.visible import visible
from anyorder.tasks.summary.dependence import Dependence, like_correlation

CELL = 26
LETTER = 6.6  # pixels, about
LONGEST = 22


def heat_map(depends: Dependence) -> Markup:
    """One square for each pair; pointing at it shows the number."""
    names = [_short(name) for name in depends.columns]
    told, count = depends.told(), len(names)
    margin = round(LETTER * max(map(len, names))) + 12
    size = margin + CELL * count + 4
    parts = []
    for at, name in enumerate(names):
        middle = margin + CELL * at + CELL / 2
        parts.append(_label(name, margin - 6, middle + 4, "end"))
        parts.append(
            _label(name, middle + 4, margin - 6, "start", f' transform="rotate(-90 {middle + 4} {margin - 6})"')
        )
    for row, first in enumerate(depends.columns):
        for column, second in enumerate(depends.columns):
            x, y = margin + CELL * column, margin + CELL * row
            if row == column:
                parts.append(f'<rect x="{x}" y="{y}" width="{CELL - 2}" height="{CELL - 2}" fill="{GRID}"/>')
                continue
            nats = float(told[row, column])
            tip = escaped(visible(f"{first} and {second}: {nats:.2f} nats"))
            parts.append(
                f'<rect x="{x}" y="{y}" width="{CELL - 2}" height="{CELL - 2}" fill="{BLUE}" '
                f'fill-opacity="{like_correlation(nats):.2f}" stroke="{GRID}"><title>{tip}</title></rect>'
            )
            if nats >= 0.095:
                colour = "white" if like_correlation(nats) > 0.6 else INK
                parts.append(
                    _label(f"{nats:.1f}", x + CELL / 2 - 1, y + CELL / 2 + 3, "middle", f' fill="{colour}"', 9)
                )
    return Markup(
        f'<svg width="{size}" height="{size}" viewBox="0 0 {size} {size}" role="img" '
        f'aria-label="mutual information of all pairs of columns">{"".join(parts)}</svg>'
    )


def _label(text: str, x: float, y: float, anchor: str, more: str = "", size: int = 11) -> str:
    fill = "" if "fill=" in more else f' fill="{SOFT}"'
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}"{fill}{more}>{escaped(text)}</text>'


def _short(name: str) -> str:
    shown = visible(name)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"
