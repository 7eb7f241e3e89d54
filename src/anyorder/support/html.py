"""Small pieces of HTML for notebooks and reports: everything escaped, styled in place, legible without a network."""

from __future__ import annotations

import html
from collections.abc import Sequence

INK, SOFT, GRID, BLUE = "#22303c", "#66727d", "#e4e9ed", "#2f6f9f"
# Text that stands on no colour of ours has none: a notebook may be dark.
CELL = f"padding:2px 10px 2px 0;border-bottom:1px solid {GRID};vertical-align:top"


class Markup(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


def escaped(content: object) -> str:
    """Any content as HTML; :class:`Markup` stays as it is."""
    return content if isinstance(content, Markup) else html.escape(str(content))


def table(names: Sequence[str], rows: Sequence[Sequence[object]], numeric: Sequence[int] = ()) -> Markup:
    """A table with these column names; the columns at the positions ``numeric`` are set flush right."""

    def row(cells: Sequence[object], tag: str) -> str:
        shown = (
            f'<{tag} style="{CELL};text-align:{"right" if at in numeric else "left"}">{escaped(cell)}</{tag}>'
            for at, cell in enumerate(cells)
        )
        return f"<tr>{''.join(shown)}</tr>"

    head = f"<thead>{row(names, 'th')}</thead>" if any(names) else ""
    body = "".join(row(cells, "td") for cells in rows)
    return Markup(f'<table style="border-collapse:collapse;font-size:90%">{head}<tbody>{body}</tbody></table>')


def bar(share: float, width: int = 120) -> Markup:
    """A horizontal bar that fills this share of the width."""
    filled = round(width * min(max(share, 0.0), 1.0), 1)
    return Markup(
        f'<svg width="{width}" height="10" role="img" aria-label="{share:.0%}">'
        f'<rect width="{width}" height="10" fill="{GRID}"/><rect width="{filled}" height="10" fill="{BLUE}"/></svg>'
    )


def columns(heights: Sequence[float], width: int = 120, height: int = 24) -> Markup:
    """A small bar chart of heights, for a distribution in one line."""
    top = max(heights, default=0.0) or 1.0
    step = width / max(len(heights), 1)
    bars = "".join(
        f'<rect x="{at * step:.1f}" y="{height * (1 - each / top):.1f}" width="{max(step - 1, 0.5):.1f}" '
        f'height="{height * each / top:.1f}" fill="{BLUE}"/>'
        for at, each in enumerate(heights)
    )
    return Markup(f'<svg width="{width}" height="{height}" role="img" aria-label="distribution">{bars}</svg>')


def titled(title: object, *parts: object) -> Markup:
    """A title in bold and the parts below it."""
    inside = "".join(f"<div>{escaped(part)}</div>" for part in parts)
    return Markup(f'<div><div style="font-weight:600;margin:4px 0">{escaped(title)}</div>{inside}</div>')


def with_remark(text: object, said: object) -> Markup:
    """A text and a remark beside it."""
    return Markup(f"{escaped(text)} {remark(said)}" if said else escaped(text))


def code(text: object) -> Markup:
    """A piece of code."""
    return Markup(f"<code>{escaped(text)}</code>")


def remark(text: object) -> Markup:
    """A line in grey."""
    return Markup(f'<span style="color:{SOFT};font-size:90%">{escaped(text)}</span>')
