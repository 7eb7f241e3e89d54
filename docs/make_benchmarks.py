"""Turn ``benchmarks/results/*.json`` into tables on the site.

A hook of MkDocs: it replaces the line ``<!-- results -->`` of a page with what is found, so every number on the site
comes out of a committed file. Results of attacks are on the page about reliability, all others on that of benchmarks.
Run by hand it prints all of them. A missing or damaged file is said, not raised.

A result file is one JSON object. ``title``, ``about``, ``seed`` and ``runs`` (commit, command, date, seconds and
machine of every call of the script) go above the tables, with what has changed since in the code that is timed; every
list of objects and every object of objects becomes a table (``rows`` first), the rest a list of facts. ``partial`` is
what must be said of incomplete data, and stands out; ``picture`` is the path of one, from this folder; ``details``
(figures of every split, say) stay in the file. A ``label`` tells the tables that were looked at while the library was
tuned (``tuning``) from the others (``unseen``). No figure is set in bold: which is best depends on a paired error.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from result_age import changed_since, commits_of

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
MARK = "<!-- results -->"
ATTACKS = "reliability_"  # what the names of their results begin with
ABOVE = ("command", "seed", "date", "machine", "benchmark")
KEPT_BACK = ("details", "runs")
# Files from before scripts recorded their calls that are not, or not all, what one call wrote: the commit that first
# had the figures where the file was mended since, and what is to be known. A file with ``runs`` needs no entry.
NOTES: dict[str, tuple[str | None, str]] = {
    "image_fills_fashion_mnist.json": (
        None,
        "Joined from several calls: the rows of DDPM and MIWAE were made without the classifier, so their agreement is "
        "missing. To be run again.",
    ),
    "acquisition_figure5.json": (
        None,
        "The splits come from several calls and were joined by hand; the script then made the table from them. To be "
        "run again.",
    ),
    "image_modes_fashion_mnist.json": (
        "131a242",
        "As first committed; a later edit of the description by hand is undone. How far two trainings of one row are "
        "apart was not measured, whatever the description says of it.",
    ),
    "image_modes_binarized_mnist.json": (
        "2d2484f",
        "As first committed; a later edit of the description by hand is undone. How far two trainings of one row are "
        "apart was not measured, whatever the description says of it.",
    ),
    "image_nll_binarized_mnist.json": (
        "2d2484f",
        "A row of an earlier run (the chain transformer, 35 minutes) stood in this file; it has been taken out, and "
        "that run has a file of its own. The picture still has its curve.",
    ),
    "image_nll_binarized_mnist_35_minutes.json": (
        None,
        "The file is as the script wrote it; the picture was drawn again later, with rows of another run.",
    ),
}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by MkDocs for every page."""
    attacks = page.file.src_uri == "reliability.md"
    if not attacks and page.file.src_uri != "benchmarks.md":
        return markdown
    return markdown.replace(MARK, render(RESULTS, attacks=attacks))


def render(folder: Path, *, attacks: bool | None = None) -> str:
    """The result files of a folder as one piece of Markdown: of attacks, of benchmarks, or all of them for None."""
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    files = [path for path in files if attacks is None or path.name.startswith(ATTACKS) == attacks]
    if not files:
        return "No results are committed yet; run the scripts in `benchmarks/`."
    return "\n\n".join(section(path) for path in files)


def section(path: Path) -> str:
    """One file: heading, how it was made, tables."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return f"## {path.stem}\n\n`{path.name}` could not be read: {error}"
    if isinstance(content, list):
        content = {"rows": content}
    lines = [f"## {content.get('title', path.stem.replace('_', ' '))}", ""]
    if "about" in content:
        lines += [str(content["about"]), ""]
    if content.get("partial"):
        lines += ['!!! warning "Partial data"', *(f"    {line}" for line in str(content["partial"]).splitlines()), ""]
    if "picture" in content:
        lines += [f"![{content.get('title', path.stem)}]({content['picture']})", ""]
    lines += [*how_made(content), *age(path, content)]
    hidden = (*ABOVE, *KEPT_BACK)
    tables = {name: rows for name, value in content.items() if name not in hidden and (rows := as_rows(value))}
    for name, rows in sorted(tables.items(), key=lambda item: item[0] != "rows"):
        if name != "rows":
            lines += [f"**{name.replace('_', ' ')}**", ""]
        lines += [*table(rows), ""]
    skipped = {"title", "about", "partial", "picture", *hidden, *tables}
    facts = [{"": name.replace("_", " "), "value": value} for name, value in content.items() if name not in skipped]
    if facts:
        lines += [*table(facts), ""]
    lines.append(f"<small>from `benchmarks/results/{path.name}`</small>")
    return "\n".join(lines)


def how_made(content: dict[str, Any]) -> list[str]:
    """Command, seed, date and machine; a line for every call where calls are recorded."""
    calls = content.get("runs", [content])
    lines = []
    for call in calls:
        facts = {"command": call.get("command"), "seed": content.get("seed"), "date": call.get("date")}
        facts |= {"commit": call.get("commit"), "seconds": call.get("seconds"), "machine": call.get("machine")}
        if call.get("uncommitted_changes"):
            facts["commit"] = f"{facts['commit']} with uncommitted changes"
        made = [f"{name}: `{text(value)}`" for name, value in facts.items() if value is not None]
        lines += [" · ".join(made), ""] if made else []
    return lines


def age(path: Path, content: dict[str, Any]) -> list[str]:
    """What has changed since in the code that is timed, and whether the file is what one run wrote."""
    lines = []
    known, note = (None, "") if "runs" in content else NOTES.get(path.name, (None, ""))
    for commit in [known] if known else commits_of(path, content, ROOT):
        said = changed_since(commit, content, ROOT)
        if said is not None:
            since = f"Made at commit `{commit}`." if "runs" in content else f"First committed in `{commit}`."
            lines += [f"<small>{since} {said}</small>", ""]
    if note:
        lines += ['!!! warning "About this file"', f"    {note}", ""]
    return lines


def as_rows(value: Any) -> list[dict[str, Any]]:
    """A list of objects, or an object of objects (its names become the first column), as rows; else nothing."""
    if isinstance(value, dict) and value and all(isinstance(item, dict) for item in value.values()):
        return [{"": name, **flat(item)} for name, item in value.items()]
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return [flat(item) for item in value]
    return []


def flat(item: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Objects inside a row become columns with both names."""
    out: dict[str, Any] = {}
    for name, value in item.items():
        out |= flat(value, f"{before}{name} ") if isinstance(value, dict) else {before + name: value}
    return out


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Markdown lines; columns in the order in which they first appear."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "| " + " | ".join(name.replace("_", " ") for name in names) + " |"
    align = (
        "|" + "|".join("---:" if all(is_number(row.get(name, 0)) for row in rows) else "---" for name in names) + "|"
    )
    return [head, align, *("| " + " | ".join(text(row.get(name)) for name in names) + " |" for row in rows)]


def is_number(value: Any) -> bool:
    """Numbers stand to the right."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def text(value: Any) -> str:
    """One cell: four significant figures, no bars that would end it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        shown = "yes" if value else "no"
    elif isinstance(value, float):
        shown = f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    elif isinstance(value, dict):
        shown = ", ".join(f"{name} {text(item)}" for name, item in value.items())
    elif isinstance(value, list):
        shown = ", ".join(text(item) for item in value)
    else:
        shown = str(value)
    return shown.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    print(render(RESULTS))
