"""What is believed of a column, as one line of a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anyorder.cli import show

if TYPE_CHECKING:
    from anyorder.questions.answer import Answer

CELLS = 32  # of the line that shows a distribution
BLOCKS = " ▁▂▃▄▅▆▇█"
MOST_LEVELS = 4


def axis_of(answer: Answer) -> list[float]:
    """The places between which a number is shown; they stay where they are while it narrows."""
    if answer.variable.levels:
        return []
    low, high = (float(value) for value in answer.spread(199, 0.005)[[0, -1]])
    return [low + (high - low) * place / CELLS for place in range(1, CELLS)]


def in_a_line(answer: Answer, axis: list[float]) -> str:
    """Levels with their probabilities, or the shape of a number on an axis, its median and where 90 % of it lies."""
    if answer.variable.levels:
        likely = sorted(answer.probs().items(), key=lambda pair: -pair[1])[:MOST_LEVELS]
        bars = (f"{level} {probability:.0%} {'━' * round(12 * probability)}" for level, probability in likely)
        return "  ".join(bars).rstrip()
    # The outermost cells hold all that lies beyond them.
    heights = np.diff(answer.cumulative(np.array(axis)), prepend=0.0, append=1.0)
    low, middle, high = (show.number(value) for value in answer.quantile([0.05, 0.5, 0.95]))
    return f"|{spark(heights.tolist())}| {middle} (90 % in {low} .. {high})"


def spark(heights: list[float]) -> str:
    """Heights as a line of blocks; what is there at all is never blank."""
    top = max(heights, default=0.0)
    steps = [0 if top <= 0 or height < 0.002 * top else max(1, round(8 * height / top)) for height in heights]
    return "".join(BLOCKS[step] for step in steps)
