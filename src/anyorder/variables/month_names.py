"""Names of months in other languages than English: a text with one is read as its English twin, and written back.

A style is one way to name all twelve: a language, and whether its short names have points ("fr."). Names that a
language writes small have a twin with capitals ("Fr"). "fr 1er" writes the first of a month as 1er, "pl alone" has the
names of months without a day.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

LONG = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
SHORT = tuple(name[:3] for name in LONG)
_NAMES = {
    "de": (
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    ),
    "de.": ("", "Jan. Feb. März Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez."),
    "de..": ("", "Jan. Feb. Mär. Apr. Mai. Jun. Jul. Aug. Sep. Okt. Nov. Dez."),
    "de mrz": ("", "Jan Feb Mrz Apr Mai Jun Jul Aug Sep Okt Nov Dez"),
    "de at": ("Jänner Februar März April Mai Juni Juli August September Oktober November Dezember", ""),
    "fr": (
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "janv févr mars avr mai juin juil août sept oct nov déc",
    ),
    "fr 1er": ("janvier février mars avril mai juin juillet août septembre octobre novembre décembre", ""),
    "fr.": ("", "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc."),
    "es": (
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "ene feb mar abr may jun jul ago sep oct nov dic",
    ),
    "es.": ("", "ene. feb. mar. abr. may. jun. jul. ago. sep. oct. nov. dic."),
    "es sept": ("", "ene feb mar abr may jun jul ago sept oct nov dic"),
    "it": (
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "gen feb mar apr mag giu lug ago set ott nov dic",
    ),
    "nl": (
        "januari februari maart april mei juni juli augustus september oktober november december",
        "jan feb mrt apr mei jun jul aug sep okt nov dec",
    ),
    "pt": (
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
        "jan fev mar abr mai jun jul ago set out nov dez",
    ),
    "pl": (
        "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
        "sty lut mar kwi maj cze lip sie wrz paź lis gru",
    ),
    "pl alone": (
        "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień",
        "",
    ),
    "en": (" ".join(LONG).lower(), " ".join(SHORT).lower()),
    "en.": ("", "Jan. Feb. March April May June July Aug. Sept. Oct. Nov. Dec."),
    "en..": ("", "Jan. Feb. Mar. Apr. May. Jun. Jul. Aug. Sep. Oct. Nov. Dec."),
    "en sept": ("", "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec"),
}
_WORD = re.compile(r"[^\W\d_]{3,}")
_DOTTED = re.compile(r"[^\W\d_]{3,}\.?")
_FIRST = re.compile(r"\b1er\b")


@cache
def _styles() -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """The long and the short names of every style; those that a style lacks are empty."""
    found: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for style, (long, short) in _NAMES.items():
        found[style] = tuple(long.split()), tuple(short.split())
        if (long or short).islower():
            found[style.capitalize()] = tuple(long.title().split()), tuple(short.title().split())
    return found


@cache
def _any_language() -> dict[str, int]:
    names = {_key(name): month for month, name in enumerate(LONG)} | {_key(name): at for at, name in enumerate(SHORT)}
    return {key: month for style in _styles() for key, month in _meanings(style).items()} | names


def month_of(word: str) -> int | None:
    """The month, from 1, that a word names in one of the languages; None if it names none."""
    month = _any_language().get(_key(word))
    return None if month is None else month + 1


def is_style(style: str) -> bool:
    """Whether there is such a style."""
    return style in _styles()


def styles_of(texts: Sequence[str]) -> list[tuple[str, bool]]:
    """The styles in which all words of these texts are names of months, and whether they are the long names."""
    found = []
    words = {False: _words(texts, _WORD), True: _words(texts, _DOTTED)}
    first = any(map(_FIRST.search, texts))
    for style, both in _styles().items():
        if first != style.endswith(" 1er"):
            continue
        for names, long in zip(both, (True, False), strict=True):
            own = words["." in style]
            if names and own and any(own <= {case(name) for name in names} for case in (str, str.upper, str.lower)):
                found.append((style, long))
    return found


def _words(texts: Sequence[str], pattern: re.Pattern[str]) -> set[str]:
    return {word for text in texts for word in pattern.findall(text)}


def to_english(text: str, style: str, *, long: bool) -> str:
    """The text with the English name for that of a month, in capitals or small letters as it was."""
    months, english = _meanings(style), LONG if long else SHORT
    own = {name for names in _styles()[style] for name in names}

    def translated(word: re.Match[str]) -> str:
        month = months.get(_key(word[0]))
        if month is None:
            return word[0]
        name = english[month]
        # A point that is no part of the name separates it from what follows.
        point = "." if word[0].endswith(".") and "." not in style else ""
        bare = word[0].rstrip(".")
        if word[0] in own or bare in own:
            return name + point
        return (name.upper() if bare.isupper() else name.lower() if bare.islower() else name) + point

    return _DOTTED.sub(translated, _FIRST.sub("1", text) if style[:2].casefold() == "fr" else text)


@cache
def _meanings(style: str) -> dict[str, int]:
    """The month that each name in the language of the style stands for, however it is written."""
    language = style[:2].casefold()
    return {
        _key(name): month
        for own, both in _styles().items()
        if own[:2].casefold() == language
        for names in both
        for month, name in enumerate(names)
    }


def _key(name: str) -> str:
    """Without a point, capitals and accents."""
    parts = unicodedata.normalize("NFKD", name.rstrip(".").casefold())
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


def from_english(text: str, style: str, *, long: bool) -> str:
    """The text with the name of the style for the English one of a month."""
    both = _styles()[style]
    names = both[0] if long else both[1]
    english = [name.casefold() for name in (LONG if long else SHORT)]

    def translated(word: re.Match[str]) -> str:
        if word[0].casefold() not in english:
            return word[0]
        name = names[english.index(word[0].casefold())]
        return name.upper() if word[0].isupper() else name.lower() if word[0].islower() else name

    own = _WORD.sub(translated, text)
    return re.sub(r"\b1\b(?= )", "1er", own) if style.endswith(" 1er") else own
