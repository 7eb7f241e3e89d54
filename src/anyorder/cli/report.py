"""One self-contained HTML page: headings, text, tables and pictures, nothing fetched from elsewhere.

The page's own policy says so too: a browser fetches nothing for it, and runs no scripts but those that belong to it.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyorder.cli.show import number
from anyorder.explorer.module import in_script
from anyorder.support.atomic import atomic_path
from anyorder.support.html import Markup

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A figure and its caption."""

    figure: Figure
    caption: str


@dataclass(frozen=True)
class Section:
    """A heading, then text, a table, parts that are HTML already, pictures and code, each only if given.

    ``script`` is a module of JavaScript that the parts need; sections with the same one share it.
    ``table`` is one mapping per row. Nothing in it is bold: one split of one table has no error to say who is ahead.
    """

    heading: str
    text: str = ""
    table: Sequence[Mapping[str, Any]] = ()
    pictures: Sequence[Picture] = ()
    code: str = ""
    parts: Sequence[Markup] = ()
    script: str = ""


def write_report(path: Path, title: str, sections: Sequence[Section], *, subtitle: str = "") -> None:
    """Write the page; an earlier report is replaced whole or not at all."""
    body = "\n".join(_section(section) for section in sections)
    scripts = [in_script(text) for text in dict.fromkeys(section.script for section in sections if section.script)]
    page = _PAGE.format(
        title=html.escape(title),
        subtitle=html.escape(subtitle),
        style=_STYLE,
        policy=_policy(scripts),
        body="\n".join([body, *(f'<script type="module">{text}</script>' for text in scripts)]),
    )
    with atomic_path(path) as target:
        target.write_text(page, encoding="utf-8")


def _policy(scripts: Sequence[str]) -> str:
    """What a browser may do for the page: show what is in it, and run these scripts."""
    digests = (base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii") for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"


def _section(section: Section) -> str:
    parts = [f"<h2>{html.escape(section.heading)}</h2>"]
    parts += [f"<p>{html.escape(paragraph)}</p>" for paragraph in section.text.split("\n\n") if paragraph.strip()]
    if section.table:
        parts.append(_table(section.table))
    parts += section.parts
    parts += [_picture(picture) for picture in section.pictures]
    if section.code:
        parts.append(f"<pre><code>{html.escape(section.code)}</code></pre>")
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    lines = []
    for row in rows:
        cells = []
        for name in names:
            value = row.get(name)
            kind = "number" if isinstance(value, int | float) or value is None else "text"
            cells.append(f'<td class="{kind}">{html.escape(_cell(value))}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) and abs(value) < 1000 else number(value)


def _picture(picture: Picture) -> str:
    buffer = io.BytesIO()
    picture.figure.savefig(buffer, format="png", dpi=144)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    caption = html.escape(picture.caption)
    return (
        f'<figure><img alt="{caption}" src="data:image/png;base64,{data}"><figcaption>{caption}</figcaption></figure>'
    )


_STYLE = """
:root { color-scheme: light; --ink: #22303c; --soft: #5d6b78; --line: #e4e9ed; --accent: #2f6f9f; }
* { box-sizing: border-box; }
body { margin: 0; background: #f6f8f9; color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
header { border-left: 4px solid var(--accent); padding-left: 1rem; margin-bottom: 2rem; }
h1 { margin: 0; font-size: 1.9rem; line-height: 1.2; }
header p { margin: .4rem 0 0; color: var(--soft); }
section { background: white; border: 1px solid var(--line); border-radius: 10px;
  padding: 1.2rem 1.6rem; margin: 1.2rem 0; overflow-x: auto; }
h2 { margin: .2rem 0 .6rem; font-size: 1.2rem; }
p { max-width: 46rem; }
table { border-collapse: collapse; margin: .8rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .9rem .4rem 0; border-bottom: 1px solid var(--line); text-align: left; }
th { font-weight: 600; font-size: .85rem; color: var(--soft); vertical-align: bottom; max-width: 11rem; }
td.number { text-align: right; padding-right: 1.6rem; }
svg[viewBox] { max-width: 100%; height: auto; }
figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; display: block; }
figcaption { color: var(--soft); font-size: .88rem; margin-top: .3rem; max-width: 46rem; }
any-order-explorer { display: block; max-height: 46rem; overflow: auto; color-scheme: light;
  border: 1px solid var(--line); border-radius: 8px; }
any-order-explorer:not(:defined) { padding: 0 1rem; }
@media print { any-order-explorer { max-height: none; overflow: visible; } section { break-inside: avoid-page; } }
pre { background: #f1f4f6; border-radius: 8px; padding: .9rem 1.1rem; overflow-x: auto; font-size: .86rem; }
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<header><h1>{title}</h1><p>{subtitle}</p></header>
{body}
</main>
</body>
</html>
"""
