"""Draw the two diagrams of the design page: python docs/make_diagrams.py

Each is one SVG file in ``docs/images``, with a background of its own, so that it reads the same on a light and on a
dark page and needs no script.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

IMAGES = Path(__file__).parent / "images"
WIDTH, HEIGHT, GAP, DOWN = 250, 84, 50, 44  # of a box, and between boxes
INK, SOFT, PAPER, LINE = "#1f2d3d", "#4a5a6a", "#f7f9fb", "#2f6f9f"
FILLS = {"user": "#fdebd3", "parts": "#dcebf7", "": "#ffffff"}


@dataclass(frozen=True)
class Box:
    """A step: the package it happens in, what happens there, and its column and row."""

    title: str
    lines: tuple[str, ...]
    column: int
    row: int
    fill: str = ""

    @property
    def left(self) -> int:
        return 30 + self.column * (WIDTH + GAP)

    @property
    def top(self) -> int:
        return 30 + self.row * (HEIGHT + DOWN)

    def draw(self) -> str:
        text = [f'<text x="{self.left + 14}" y="{self.top + 26}" class="title">{escape(self.title)}</text>']
        for number, line in enumerate(self.lines):
            text.append(f'<text x="{self.left + 14}" y="{self.top + 48 + 18 * number}">{escape(line)}</text>')
        frame = (
            f'<rect x="{self.left}" y="{self.top}" width="{WIDTH}" height="{HEIGHT}" rx="8" '
            f'fill="{FILLS[self.fill]}" stroke="{LINE}"/>'
        )
        return frame + "".join(text)


def arrow(start: Box, end: Box) -> str:
    """From one box to a neighbour in the same row or in the same column."""
    if start.row == end.row:
        sign = 1 if end.column > start.column else -1
        x1 = start.left + (WIDTH if sign > 0 else 0)
        x2 = end.left + (0 if sign > 0 else WIDTH)
        y1 = y2 = start.top + HEIGHT // 2
    else:
        sign = 1 if end.row > start.row else -1
        y1 = start.top + (HEIGHT if sign > 0 else 0)
        y2 = end.top + (0 if sign > 0 else HEIGHT)
        x1 = x2 = start.left + WIDTH // 2
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{LINE}" stroke-width="2" marker-end="url(#tip)"/>'


def picture(boxes: list[Box], arrows: list[tuple[int, int]], about: str) -> str:
    """The whole drawing as SVG; an arrow names two boxes by their numbers."""
    width = 60 + (max(box.column for box in boxes) + 1) * (WIDTH + GAP) - GAP
    height = 60 + (max(box.row for box in boxes) + 1) * (HEIGHT + DOWN) - DOWN
    style = (
        f"text {{ font: 14px system-ui, sans-serif; fill: {SOFT}; }} "
        f".title {{ font: bold 15px ui-monospace, monospace; fill: {INK}; }}"
    )
    tip = (
        '<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{LINE}"/></marker>'
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img"><title>{escape(about)}</title><style>{style}</style><defs>{tip}</defs>',
        f'<rect width="{width}" height="{height}" rx="12" fill="{PAPER}"/>',
        *(box.draw() for box in boxes),
        *(arrow(boxes[start], boxes[end]) for start, end in arrows),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def question() -> str:
    """From evidence in the user's units to an answer in the same units."""
    boxes = [
        Box("you", ('model.given(age=40)["bp"]', "or a typed question"), 0, 0, "user"),
        Box("questions", ("grammar, evidence: a value,", "a range, a set or MISSING"), 1, 0),
        Box("variables", ("codecs: user units", "to the model's tensor"), 2, 0),
        Box("query, protocols", ("a Query: known and asked;", "a Chain: in which order"), 2, 1),
        Box("networks", ("values, known -> features,", "a step or a whole chain at once"), 2, 2, "parts"),
        Box("heads", ("features -> one normalised", "distribution for each step"), 1, 2, "parts"),
        Box("model", ("AnyOrderModel: sums the steps", "or draws along the chain"), 1, 1),
        Box("questions, tasks", ("Answer, Estimate: back in", "user units, with an error"), 0, 1),
        Box("distributions", ("cdf, quantile, truncation,", "mixtures of any of them"), 0, 2, "parts"),
    ]
    arrows = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 8), (5, 6), (6, 7), (8, 7), (7, 0)]
    return picture(boxes, arrows, "The flow of a question through the packages")


def fit() -> str:
    """From data to a model file."""
    boxes = [
        Box("you", ("ao.fit(frame, minutes=2)", "a frame, a text, pictures"), 0, 0, "user"),
        Box("data", ("files, frames, corpora and", "pictures become rows"), 1, 0),
        Box("variables", ("a Schema, and an Encoding:", "one tensor row for each row"), 2, 0),
        Box("masking, protocols", ("draw a Query for each row,", "and its order"), 2, 1, "parts"),
        Box("networks, heads", ("-log p of each asked cell", "given the known ones"), 2, 2, "parts"),
        Box("training", ("objectives: which steps count;", "the loop, on training rows"), 1, 2),
        Box("training", ("held-out rows choose: weights,", "when to stop; trees, the blend"), 1, 1),
        Box("modalities", ("race of encodings (tables);", "TableModel and its card"), 0, 1),
        Box("model", ("checkpoint: one .anyorder file,", "safetensors and JSON"), 0, 2),
    ]
    arrows = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (7, 0)]
    return picture(boxes, arrows, "The flow of a fit through the packages")


if __name__ == "__main__":
    for name, drawing in (("flow_question", question()), ("flow_fit", fit())):
        (IMAGES / f"{name}.svg").write_text(drawing, encoding="utf-8")
