"""Words and signs that people and programs write where a cell is unknown."""

from __future__ import annotations

from collections.abc import Sequence

UNKNOWN_WORDS = frozenset({"nan", "<na>", "nat", "null", "na", "n/a", "none", "#n/a"})
"""Words that mean "no value" among numbers or times, whatever a model was fitted on; others are noted with the
column in which they were found. Among texts they may be a level ("none", Namibia's NA)."""
MARKS = frozenset(
    (
        *("?", "??", "-", "--", "---", ".", "..", "...", "/", "\\n", "\N{EN DASH}", "\N{EM DASH}", "*"),
        *("n/a", "na", "n.a.", "n.a", "n/d", "n.d.", "nd", "#n/a", "#na", "nan", "null", "none", "nil", "<na>", "nat"),
        *("unknown", "unk", "missing", "not available", "not applicable", "not known", "no data", "no answer"),
        *("tbd", "tba", "tbc", "(blank)", "blank", "empty", "(null)", "(none)", "undefined", "pending", "withheld"),
        *("0000-00-00", "00/00/0000", "00.00.0000", "0000-00-00 00:00:00"),
        *("#value!", "#ref!", "#div/0!", "#name?", "#num!", "#null!", "error", "err"),
        *(
            "unbekannt",
            "k.a.",
            "k. a.",
            "keine angabe",
            "fehlt",
            "inconnu",
            "desconocido",
            "s/d",
            "sin dato",
            "onbekend",
        ),
    )
)
"""Words and signs that people put where a number or a time is unknown."""
AMBIGUOUS = frozenset(("none", "nil", "-", "error", "pending"))
"""Those among them that may mean zero, or something of their own."""
LEVEL_MARKS = frozenset(
    ("?", "??", "n/a", "n.a.", "n.a", "#n/a", "#na", "nan", "null", "<na>", "(blank)", "(null)", "\\n", "--", "---")
) | {"#value!", "#ref!", "#div/0!", "#name?", "#num!", "#null!"}
"""Those among them that are no level in a column of names either."""

NO_ANSWERS = frozenset(
    (
        *("prefer not to say", "prefer not to answer", "prefer not to disclose", "rather not say", "decline to answer"),
        *("declined to answer", "declined", "refused", "refuse to answer", "no response", "no opinion", "not stated"),
        *("don't know", "dont know", "do not know", "don't know/refused", "dk", "not sure", "can't say", "cannot say"),
        *("not asked", "not answered", "skipped", "n/a", "not applicable", "does not apply"),
        *("weiß nicht", "weiss nicht", "möchte ich nicht sagen", "keine antwort", "trifft nicht auf mich zu"),
        *("ne sait pas", "nsp", "ne se prononce pas", "sans réponse", "no sabe", "no contesta", "ns/nc", "non so"),
    )
)
"""Answers beside a scale: they have no place in its order."""


def no_answers(different: Sequence[str]) -> tuple[str, ...]:
    """Texts that are no step of a scale but words for no answer."""
    found = []
    for text in different:
        word = " ".join(text.casefold().split()).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
        if word.strip("().") in NO_ANSWERS or word in MARKS - AMBIGUOUS:
            found.append(text)
    return tuple(found)


def level_marks(different: Sequence[str], *, names: bool = False) -> tuple[str, ...]:
    """Texts that mean unknown whatever the column; NA too, unless other levels are such short codes.

    ``names``: they are names of people, of whom some are called Null or Nan, which programs write in another way.
    """
    short = [text for text in different if len(text) <= 8 and not (names and text.istitle() and text.isalpha())]
    found = [text for text in short if text.casefold() in LEVEL_MARKS]
    if not any(len(text) == 2 and text.isupper() and text != "NA" for text in short):
        found += [text for text in short if text in ("NA", "na")]
    if "+" not in short:
        found += [text for text in short if text == "-"]
    return tuple(found) if len(found) < len(different) else ()
