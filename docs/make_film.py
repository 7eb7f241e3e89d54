"""Record the film of the README: a messy file, three commands, the first answer, as an animated SVG.

    python docs/make_film.py [--out docs/images/first_answer.svg]

The commands are run for real, in a folder of their own, and what they print is what the film shows; only the waiting is
shortened, and the time that the commands took is written beside them.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import typer

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
from messy_files import messy_tables  # noqa: E402 (of the benchmarks)

COLUMNS, LINE, LETTER, MARGIN = 108, 18, 8.0, 16
TYPING, PAUSE, READING, END = 0.035, 0.25, 0.11, 6.0
"""Seconds for a letter, before an answer appears, for a line of it, and before the film begins again."""
STYLE = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:13px;white-space:pre"


def run(command: str, folder: Path) -> tuple[list[str], float]:
    """What a command prints, in lines no wider than the picture, and the seconds it took."""
    began = time.perf_counter()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        f"{sys.executable} -m {command}",
        shell=True,
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    seconds = time.perf_counter() - began
    printed = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in (done.stderr + done.stdout).splitlines()]
    broken = [part for line in printed for part in textwrap.wrap(line, COLUMNS, subsequent_indent="    ") or [""]]
    return broken, seconds


def film(scenes: list[tuple[str, list[str], float]]) -> str:
    """The animated picture: commands are typed, answers appear line by line, and all begins again."""
    lines: list[tuple[str, float, float, bool]] = []  # text, when it appears, how long it is typed, a command or not
    now = 0.5
    for command, printed, seconds in scenes:
        lines.append((f"$ {command}", now, TYPING * len(command), True))
        now += TYPING * len(command) + PAUSE
        for text in printed:
            lines.append((text, now, 0.0, False))
            now += READING
        lines.append((f"({seconds:.0f} s)", now, 0.0, False))
        now += 4 * PAUSE
    total = now + END
    width, height = 2 * MARGIN + LETTER * COLUMNS, 2 * MARGIN + LINE * len(lines)
    rules, shapes = [], []
    for number, (text, start, typed, command) in enumerate(lines):
        begin, done = 100 * start / total, 100 * (start + typed) / total
        y = MARGIN + LINE * (number + 0.75)
        rules.append(f"@keyframes k{number}{{0%,{begin:.3f}%{{opacity:0}}{begin + 0.001:.3f}%,100%{{opacity:1}}}}")
        colour = "#7fc8a9" if command else "#8b98a5" if text.startswith("(") else "#e6edf3"
        words = f'<text x="{MARGIN}" y="{y:.1f}" fill="{colour}" style="{STYLE}">{html.escape(text)}</text>'
        if command:
            span = LETTER * (len(text) + 1)
            rules.append(f"@keyframes t{number}{{0%,{begin:.3f}%{{width:0}}{done:.3f}%,100%{{width:{span:.0f}px}}}}")
            shapes.append(
                f'<clipPath id="c{number}"><rect x="{MARGIN}" y="{y - LINE:.1f}" height="{LINE * 1.4:.1f}" width="0" '
                f'style="animation:t{number} {total:.2f}s steps({len(text)}) infinite"/></clipPath>'
            )
            words = f'<g clip-path="url(#c{number})">{words}</g>'
        shapes.append(f'<g style="opacity:0;animation:k{number} {total:.2f}s infinite">{words}</g>')
    title = "From a messy file to the first answer in three commands"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'role="img" aria-label="{title}"><title>{title}</title><style>{"".join(rules)}</style>'
        f'<rect width="100%" height="100%" rx="8" fill="#161b22"/>{"".join(shapes)}</svg>\n'
    )


def main(out: Path = ROOT / "docs" / "images" / "first_answer.svg") -> None:
    """Run the commands and write the picture."""
    shop = messy_tables(1000)[0]
    scenes = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / shop.name).write_bytes(shop.content)
        for command in (
            f"anyorder look {shop.name}",
            f"anyorder fit {shop.name}",
            "anyorder ask shop.anyorder 'price, rating | discount=\"15%\"'",
        ):
            printed, seconds = run(command, folder)
            scenes.append((command, printed, seconds))
    out.write_text(film(scenes), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
