r"""Texts of a user where they are shown: on a terminal nothing is obeyed, in a drawing nothing is typeset.

A name, a level or a file name may hold the codes by which a terminal is controlled, marks that turn the direction of
writing, or a ``$``, which Matplotlib takes for a formula. All of them are shown as what they are.
"""

from __future__ import annotations

import unicodedata

LONGEST_DRAWN = 40  # characters: a level beside its bar, a name above a panel

# The marks that turn the direction of writing, and those that stand for nothing; joiners are needed by some scripts.
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
_CONTROLS = ("Cc", "Cs", "Zl", "Zp")


def visible(text: str, kept: str = "") -> str:
    """The text on one line: line breaks, a terminal's own codes and turned writing written out, but for ``kept``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(letter if letter in kept else _written(letter) for letter in text)


def drawn(text: str, longest: int = LONGEST_DRAWN) -> str:
    """The text as a label of a drawing: shortened where it is very long, without formulas."""
    shown = visible(text)
    if len(shown) > longest:
        shown = shown[: longest - 1] + "…"
    return shown.replace("$", r"\$")


def _written(letter: str) -> str:
    if letter in _TURNING or unicodedata.category(letter) in _CONTROLS or "\U000e0000" <= letter <= "\U000e007f":
        return letter.encode("unicode_escape", "surrogatepass").decode("ascii")
    return letter
