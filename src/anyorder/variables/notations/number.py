"""Numbers with signs around them: $1,204.50, 64,3, 12 %, 3.5mm, (1,200), 1.2M."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self, final

from anyorder.errors import UserError
from anyorder.variables.notations.base import Notation
from anyorder.variables.separators import (
    APOSTROPHES,
    SPACES,
    body_pattern,
    find_separators,
    plain_spaces,
    told_separators,
)

CODES = frozenset(
    (
        *("USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD", "NZD", "CNY", "RMB", "INR", "BRL", "MXN", "SEK", "NOK"),
        *("DKK", "PLN", "CZK", "HUF", "RON", "TRY", "RUB", "ZAR", "KRW", "SGD", "HKD", "TWD", "THB", "IDR", "MYR"),
        *("PHP", "VND", "ILS", "AED", "SAR", "EGP", "NGN", "KES", "ARS", "CLP", "COP", "PEN", "UAH", "ISK", "BGN"),
    )
)
"""Codes of currencies, which stand before or after an amount."""
WORDS = frozenset(
    (
        *("US$", "A$", "AU$", "C$", "CA$", "NZ$", "HK$", "S$", "R$", "kr", "Kr", "kr.", "zł", "Kč", "Ft", "lei", "RM"),
        *("Rs", "Rs.", "Fr.", "SFr.", "Fr", "руб.", "руб", "S/", "Rp", "R"),
    )
)
ABOUT = frozenset(("~", "≈", "ca.", "ca", "circa", "approx.", "approx", "about", "etwa", "env.", "aprox."))
"""What stands before all numbers of a column that are not exact."""
SIGNS = "$€£¥₹₽₩₺₴₦₫₱₪฿¢₡₲₵₸₼₾"
MINUS = r"\-" + "\N{MINUS SIGN}\N{EN DASH}"  # for a class of a regular expression
SHORT = {"k": 1e3, "K": 1e3, "M": 1e6, "m": 1e6, "B": 1e9, "bn": 1e9, "Mio": 1e6, "Mio.": 1e6, "Mrd": 1e9, "Mrd.": 1e9}
SAME_LENGTH = 7
"""Groups of digits that are all of this length or longer, and never the same, are phone numbers and not amounts."""
FEWEST_SIGNS = 0.05
"""The share of numbers with a sign for thousands or millions, from which on it is one."""
LETTER_UNITS = "VWKLJNCFTMHY"
"""Capitals that are units (volts, litres, years) even where they stand right behind a small whole number."""
MOST_PLACES = 12
SHOWN = 5  # digits of a computed number, where a column has now more, now fewer

_PARTS = re.compile(
    rf"(?P<open>\()?\s*(?P<minus>[+{MINUS}])?\s*(?P<prefix>[^\d\s.,()+{MINUS}{APOSTROPHES}][^\d()+{MINUS}]{{0,4}}?)??\s*"
    rf"(?P<inner>[{MINUS}])?\s*(?P<body>\d[\d.,{SPACES}{APOSTROPHES}]*\d|\d|[.,]\d+)(?P<exponent>[eE][+-]?\d{{1,3}})?"
    rf"(?P<gap>\s*)(?P<suffix>[^\d\s()+{MINUS}][^\d()]{{0,14}}?)??\s*(?P<trailing>-)?\s*(?P<close>\))?"
)
_MILLIONS = re.compile(
    r"^(?:Millionen|[Mm]illions?|millones|Milliarden|[Bb]illions?|Mill\.?|Mio\.?|Mrd\.?|Tsd\.?|Mds?|mln\.?|[Mm]n\.?|bn|[kKMB])"
    r"\s?(?=\S)"
)
"""Thousands and millions before a currency: Mio. EUR, M€."""
_UNIT = re.compile(
    r"(?:Mio\.?|Mrd\.?|Tsd\.?|Millionen|Milliarden|[mb]illions?(?: of)?) [^\W\d_]{2,8}|"
    r"(?:sq|cu|fl)\.? ?(?:ft|m|km|mi|yd|in|oz)\.?|"
    r"\.|[%‰]\s?(?:p\.\s?a\.|pa|VOL|vol\.?)|°\s?[NSEWO]|[%‰°]|"
    r"[^\W\d_]{1,12}\.?(?:[²³]|/[^\W\d_]{1,6}[²³]?)?|°\s?[CFK]|[\"'″′]|[µμΩ][^\W\d_]{0,3}"
)


@final
@dataclass(frozen=True)
class NumberNotation(Notation):
    """Digits with a sign of money or a unit beside them, separators between them, and a way to write negative ones.

    ``prefix`` and ``suffix`` hold the spaces beside them too. ``places`` are the digits after the ``decimal`` sign, at
    most; with ``fixed`` always so many. ``indian``: lakhs and crores (1,23,456). ``negative`` is "-" before all, "$-"
    after the prefix, "()" around, or "1-" behind, and ``minus`` the sign itself. ``plural``: the unit has an s but
    for 1. ``short``: thousands and millions are written 1.2k, 1.2M; ``exact``: only where that is all of the number.
    ``either``: the one kind of separator could mean the other thing too. ``exponent``: the letter of scientific
    notation, if all numbers are in it. ``plus``: numbers above 0 have a sign, too.
    """

    name: ClassVar[str] = "number"

    prefix: str = ""
    suffix: str = ""
    thousands: str = ""
    decimal: str = "."
    places: int = 0
    fixed: bool = True
    negative: str = "-"
    indian: bool = False
    plural: bool = False
    short: str = ""
    either: bool = False
    exponent: str = ""
    minus: str = "-"
    exact: bool = field(default=False, metadata={"later": True})
    plus: bool = field(default=False, metadata={"later": True})

    def __post_init__(self) -> None:
        if self.decimal not in (".", ",") or len(self.thousands) > 1 or self.thousands == self.decimal:
            raise UserError(
                f"a number cannot have {self.thousands!r} between thousands and {self.decimal!r} before its fraction"
            )
        if not 0 <= self.places <= MOST_PLACES or self.negative not in ("-", "$-", "()", "1-"):
            raise UserError(f"no such way to write numbers: places={self.places!r}, negative={self.negative!r}")

    @classmethod
    def find(
        cls, texts: Sequence[str], *, decimal_comma: bool = False, separators: tuple[str, str] | None = None
    ) -> Self | None:
        """As declared by the base; ``separators`` between thousands and before fractions, if they are known."""
        found = [_PARTS.fullmatch(text) for text in texts]
        parts = [each for each in found if each is not None]
        if not parts or len(parts) < len(texts) or any(bool(each["open"]) != bool(each["close"]) for each in parts):
            return None
        prefix = _one_spelling([each["prefix"] or "" for each in parts])
        unit = _unit([(each["suffix"] or "").strip() for each in parts])
        if prefix is None or unit is None or (prefix and not (_is_money(prefix) or prefix.casefold() in ABOUT)):
            return None
        if prefix.casefold() in ABOUT and not all(each["prefix"] for each in parts):
            return None
        suffix, plural, short = unit
        if short and not _plausibly_short(short, parts):
            return None
        if suffix and (not (_is_money(suffix) or _UNIT.fullmatch(suffix)) or _like_seats(suffix, parts)):
            return None
        bodies = [plain_spaces(each["body"]) for each in parts]
        money = _is_money(prefix) or _is_money(suffix)
        told = None if separators is None else told_separators(bodies, *separators)
        parted = told if separators is not None else find_separators(bodies, decimal_comma=decimal_comma, money=money)
        if (
            parted is None
            or _like_addresses(bodies)
            or (parted[0] == " " and not (prefix or suffix) and _like_phone_numbers(bodies))
        ):
            return None
        thousands, decimal, either = parted
        exponents = {(each["exponent"] or "")[:1] for each in parts}
        if len(exponents) > 1 and "" not in exponents:
            return None
        if any(body.startswith("0") and len(body) > 1 and body[1].isdigit() for body in bodies):
            return None  # a postcode, an article number
        places = [len(body.partition(decimal)[2]) for body in bodies]
        if max(places) > MOST_PLACES:
            return None
        negative = "-"
        for each in parts:
            if each["open"]:
                negative = "()"
            elif each["trailing"]:
                negative = "1-"
            elif each["inner"] and each["prefix"]:
                negative = "$-"
        gap = Counter(each["gap"] for each in parts if each["suffix"]).most_common(1)
        between = Counter(_after(each, "prefix") for each in parts if each["prefix"]).most_common(1)
        return cls(
            prefix + (between[0][0] if between else ""),
            (gap[0][0] if gap else "") + suffix,
            _as_written(thousands, parts),
            decimal,
            max(places),
            min(places) == max(places),
            negative,
            thousands == "," and any(re.match(r"\d{1,2}(,\d\d)+,\d{3}", body) for body in bodies),
            plural,
            short,
            either,
            exponents.pop() if len(exponents) == 1 else "",
            next((sign for each in parts for sign in (each["minus"], each["inner"]) if sign and sign != "+"), "-"),
            bool(short) and any(not each["suffix"] and _large(each, decimal, short) for each in parts),
            _always_plus(parts),
        )

    @cached_property
    def _body(self) -> re.Pattern[str]:
        return body_pattern(plain_spaces(self.thousands), self.decimal)

    def read(self, text: str) -> float | None:
        parts = _PARTS.fullmatch(text.strip())
        if parts is None:
            return _plain(text)
        prefix, suffix = parts["prefix"] or "", (parts["suffix"] or "").strip()
        body, times = plain_spaces(parts["body"]), 1.0
        if self.short and suffix in SHORT:
            times, suffix = SHORT[suffix], ""
        if prefix not in ("", self.prefix.strip()) or not self._is_unit(suffix):
            return None
        if bool(parts["open"]) != bool(parts["close"]):
            return None
        if not self._body.fullmatch(body):
            return None if prefix or suffix else _plain(text)
        digits = body.replace(plain_spaces(self.thousands), "") if self.thousands else body
        value = float(digits.replace(self.decimal, ".") + (parts["exponent"] or "")) * times
        below = bool(parts["open"]) or bool(parts["trailing"]) or bool(parts["inner"])
        below = below or (parts["minus"] is not None and parts["minus"] != "+")
        return (-value if below else value) if math.isfinite(value) else None

    def _is_unit(self, suffix: str) -> bool:
        own = self.suffix.strip()
        return suffix in ("", own) or (self.plural and suffix + "s" == own)

    def write(self, value: float) -> str:
        below, size, ending = value < 0, abs(value), ""
        if self.short:
            signs = [sign for sign in self.short.split() if size >= SHORT[sign]]
            if self.exact:
                rounded = {sign: round(size / SHORT[sign], self.places) * SHORT[sign] for sign in signs}
                signs = [sign for sign in signs if math.isclose(rounded[sign], size)]
            ending = next(iter(signs), "")
            size /= SHORT.get(ending, 1.0)
        digits = f"{size:.{self.places}{self.exponent or 'f'}}"
        if not self.fixed and self.places and not self.exponent:
            digits = digits.rstrip("0").rstrip(".")
        if not digits.strip("0."):
            below = False
        whole, _, fraction = digits.partition(".")
        body = (whole if self.exponent else self._grouped(whole)) + (self.decimal + fraction if fraction else "")
        suffix = self.suffix[:-1] if self.plural and digits == "1" else self.suffix
        suffix = ending + suffix if self.short else suffix
        if not below:
            return f"{'+' if self.plus and digits.strip('0.') else ''}{self.prefix}{body}{suffix}"
        if self.negative == "()":
            return f"({self.prefix}{body}{suffix})"
        if self.negative == "1-":
            return f"{self.prefix}{body}{suffix}-"
        if self.negative == "$-":
            return f"{self.prefix}{self.minus}{body}{suffix}"
        return f"{self.minus}{self.prefix}{body}{suffix}"

    def shown(self, value: float) -> str:
        if not self.fixed:
            return self.write(float(f"{value:.{SHOWN}g}"))
        if self.places or self.exponent or self.short or float(value).is_integer():
            return self.write(value)
        # The mean of whole numbers is none: 2.6 days.
        digits = 2 - math.floor(math.log10(abs(value)))
        return dataclasses.replace(self, places=min(max(digits, 0), 2)).write(value)

    def _grouped(self, whole: str) -> str:
        if not self.thousands:
            return whole
        rest, last = whole[:-3], whole[-3:]
        size = 2 if self.indian else 3
        groups = [rest[max(end - size, 0) : end] for end in range(len(rest), 0, -size)][::-1]
        return self.thousands.join([*groups, last])

    @property
    def plain(self) -> bool:
        signs = (self.prefix, self.suffix, self.thousands, self.short)
        return not any(signs) and not self.plus and self.decimal == "." and self.negative == self.minus == "-"

    @property
    def meaning(self) -> str:
        prefix, suffix = self.prefix.strip(), self.suffix.strip()
        if _is_money(prefix) or _is_money(suffix):
            return f"an amount in {prefix or suffix}"
        if suffix in ("%", "‰"):
            return "a percentage" if suffix == "%" else "a share in ‰"
        sign = " with a decimal comma" if self.decimal == "," and (self.places or not self.thousands) else ""
        return f"a number in {suffix}{sign}" if suffix else f"a number{sign}"

    @property
    def unit(self) -> str:
        prefix = self.prefix.strip()
        return prefix if _is_money(prefix) else self.suffix.strip()

    @property
    def other(self) -> str:
        """The form 1,234.5 of the other reading, where there are two; empty where there is one."""
        if not self.either:
            return ""
        sign = self.thousands or self.decimal
        if self.thousands:
            return f"1234{sign}5"
        return f"1{sign}234{',' if sign == '.' else '.'}5"

    @property
    def doubt(self) -> str:
        if not self.either:
            return ""
        sign = self.thousands or self.decimal
        taken, other = ("thousands", "a fraction") if self.thousands else ("a fraction", "thousands")
        return f"the {sign!r} is taken to mark {taken}; it could mark {other}"


def _plain(text: str) -> float | None:
    """A number as programs write it, which is always understood too."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


def _plausibly_short(short: str, parts: Sequence[re.Match[str]]) -> bool:
    """Whether the numbers without a sign come near those with one: 204B among rooms 101 to 499 is no billion."""
    often = Counter(each["suffix"] for each in parts if each["suffix"])
    if "m" in often and min(often.values()) < FEWEST_SIGNS * len(parts):
        return False  # metres, and one slip
    bare = [re.sub(r"\D", "", each["body"]) for each in parts if not each["suffix"]]
    signed = len(parts) - len(bare)
    least = min(SHORT[sign] for sign in short.split())
    return not bare or (signed >= FEWEST_SIGNS * len(parts) and max(map(int, bare)) >= least / 1e3)


def _always_plus(parts: Sequence[re.Match[str]]) -> bool:
    """Whether all numbers above 0 are written with a sign."""
    bare = [each["body"] for each in parts if not (each["minus"] or each["inner"] or each["open"] or each["trailing"])]
    return any(each["minus"] == "+" for each in parts) and not any(body.strip("0.,") for body in bare)


def _large(parts: re.Match[str], decimal: str, short: str) -> bool:
    """Whether a number without a sign for thousands could have one."""
    digits = re.sub(r"\D", "", parts["body"].partition(decimal)[0])
    return int(digits or 0) >= min(SHORT[sign] for sign in short.split())


def _is_money(sign: str) -> bool:
    sign = _MILLIONS.sub("", sign.strip())
    return bool(sign) and (sign in CODES or sign in WORDS or (len(sign) == 1 and sign in SIGNS))


def _as_written(separator: str, parts: Sequence[re.Match[str]]) -> str:
    """The separator as the texts have it: which kind of space, which apostrophe."""
    if separator in ("", ",", "."):
        return separator
    own = Counter(sign for each in parts for sign in each["body"] if plain_spaces(sign) == separator)
    return own.most_common(1)[0][0] if own else separator


def _after(parts: re.Match[str], group: str) -> str:
    """The spaces behind a group."""
    rest = parts.string[parts.end(group) :]
    return rest[: len(rest) - len(rest.lstrip())]


def _one_spelling(signs: Sequence[str]) -> str | None:
    """The one sign that most cells have and others lack; None where there are several."""
    counts = Counter(sign.strip() for sign in signs)
    different = [sign for sign in counts if sign]
    if len(different) > 1:
        return None
    return different[0] if different and counts[different[0]] * 2 > len(signs) else None if different else ""


def _unit(suffixes: Sequence[str]) -> tuple[str, bool, str] | None:
    """The unit behind the numbers, whether it has an s in the plural, and the signs for thousands and millions."""
    different = sorted({suffix for suffix in suffixes if suffix}, key=len)
    if len(different) >= 2 and all(suffix in SHORT for suffix in different):
        often = Counter(suffixes)
        return "", False, " ".join(sorted(different, key=lambda sign: (-SHORT[sign], -often[sign])))
    if len(different) == 2 and different[0] + "s" == different[1]:
        return different[1], True, ""
    if len(different) == 1 and different[0] in SHORT and different[0] != "m" and "" in suffixes:
        return "", False, different[0]
    spelling = _one_spelling(suffixes)
    return None if spelling is None else (spelling, False, "")


def _like_seats(suffix: str, parts: Sequence[re.Match[str]]) -> bool:
    """Whether these are seats, sizes, flats: 12A, 40R. Amperes have a fraction or a space somewhere."""
    letter = len(suffix) == 1 and suffix.isupper() and suffix not in LETTER_UNITS
    return letter and all(not each["gap"] and each["body"].isdigit() and len(each["body"]) <= 3 for each in parts)


def _like_addresses(bodies: Sequence[str]) -> bool:
    """Whether these are addresses of computers, 192.168.100.101: four numbers, all below 256."""
    parts = [body.split(".") for body in bodies]
    return all(len(each) == 4 and all(part.isdigit() and int(part) < 256 for part in each) for each in parts)


def _like_phone_numbers(bodies: Sequence[str]) -> bool:
    lengths = {sum(sign.isdigit() for sign in body) for body in bodies}
    return len(bodies) > 1 and len(lengths) == 1 and min(lengths) >= SAME_LENGTH
