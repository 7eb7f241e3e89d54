"""Draw the picture of the page on texts: python docs/text_example.py MODEL

MODEL is the default engine, counts and a chain network of text8, that benchmarks/text_table.py leaves in build/texts.
The text is from the test part, which it has not seen: 30 % of the first line hidden, character by character, and a run
of the second.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from anyorder.cli import main
from anyorder.data.text import text8

PICTURE = Path(__file__).parent / "images" / "text_fill.png"
PLACE, LINE = 1000, 84


def holes(text: str) -> str:
    """The text with its holes marked."""
    hidden = np.random.default_rng(1).random(LINE) < 0.3
    first = "".join("_" if hole else character for character, hole in zip(text, hidden, strict=False))
    return first + text[LINE : LINE + 36] + "_" * 12 + text[LINE + 48 : 2 * LINE]


if __name__ == "__main__":
    asked = holes(text8().test[PLACE : PLACE + 2 * LINE])
    sys.exit(main(["fill", sys.argv[1], "--text", asked, "--draws", "3", "--plot", str(PICTURE)]))
