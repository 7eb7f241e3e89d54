"""The distribution of a column in one line of a terminal: |▁▃█▅▂| 12.3 (90 % in 9.1 .. 15.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anyorder.cli import show

if TYPE_CHECKING:
    from anyorder.questions.answer import Answer

CELLS = 32  # characters of the bar that shows a distribution
BLOCKS = " ▁▂▃▄▅▆▇█"
MOST_LEVELS = 4  # the likeliest are shown


def axis_of(answer: Answer) -> list[float]:
    """The edges between the cells of the bar; kept while the distribution narrows, so that lines can be compared."""
    if answer.variable.levels:
        return []
    low, high = (float(value) for value in answer.spread(199, 0.005)[[0, -1]])
    return [low + (high - low) * cell / CELLS for cell in range(1, CELLS)]


def in_a_line(answer: Answer, axis: list[float]) -> str:
    """The likeliest levels with their probabilities; of a number the bar, the median and the central 90 % interval."""
    if answer.variable.levels:
        likely = sorted(answer.probs().items(), key=lambda pair: -pair[1])[:MOST_LEVELS]
        bars = (f"{level} {probability:.0%} {'━' * round(12 * probability)}" for level, probability in likely)
        return "  ".join(bars).rstrip()
    low, middle, high = (show.number(value) for value in answer.quantile([0.05, 0.5, 0.95]))
    return f"|{spark(heights(answer, axis))}| {middle} (90 % in {low} .. {high})"


def heights(answer: Answer, axis: list[float]) -> list[float]:
    """The probability in each cell between the edges; the outermost cells hold all that lies beyond them."""
    found: list[float] = np.diff(answer.cumulative(np.array(axis)), prepend=0.0, append=1.0).tolist()
    return found


def spark(shown: list[float]) -> str:
    """Heights as a line of blocks; only a height of almost nothing is blank."""
    top = max(shown, default=0.0)
    steps = [0 if top <= 0 or height < 0.002 * top else max(1, round(8 * height / top)) for height in shown]
    return "".join(BLOCKS[step] for step in steps)
