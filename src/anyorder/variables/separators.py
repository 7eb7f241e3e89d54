"""What stands between the thousands of numbers and before their fractions, as a whole column has it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from anyorder.errors import UserError

SPACES = " \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}"
APOSTROPHES = "'\N{RIGHT SINGLE QUOTATION MARK}"
SEPARATORS = ((",", "."), (".", ","), (" ", ","), (" ", "."), ("'", "."), ("'", ","))
"""Between thousands, and before the fraction; any kind of space is a space, any apostrophe an apostrophe."""
GROUPED = r"-?(?:0|[1-9]\d{0,2}(?:\.\d{3})*)"
"""A number whose points can all stand between thousands; one without a point is below 1000."""
GROUPED_BY_COMMAS = GROUPED.replace(r"\.", ",")
ENOUGH = 5
"""Numbers with exactly three digits behind the sign, beside others without it, from which on that is no chance."""
UNKNOWN = frozenset(("0", "9", "99", "999"))
"""Numbers below 1000 that may stand for unknown, or for nothing."""
_PLAIN = str.maketrans(dict.fromkeys(SPACES, " ") | dict.fromkeys(APOSTROPHES, "'"))


def plain_spaces(body: str) -> str:
    """The digits with any space as a space, and any apostrophe as an apostrophe."""
    return body if body.isascii() else body.translate(_PLAIN)


@cache
def body_pattern(thousands: str, decimal: str) -> re.Pattern[str]:
    """The digits of a number with these separators."""
    whole = r"\d+"
    if thousands == ",":
        whole = r"\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d\d)+,\d{3}|\d+"
    elif thousands:
        whole = rf"\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+|\d+"
    return re.compile(rf"(?:{whole})(?:{re.escape(decimal)}\d*)?|{re.escape(decimal)}\d+")


def find_separators(bodies: Sequence[str], *, decimal_comma: bool, money: bool) -> tuple[str, str, bool] | None:
    """What stands between thousands and before fractions, and whether it could be the other way round."""
    signs = set().union(*bodies) - set("0123456789")
    if not signs:
        return "", "," if decimal_comma else ".", False
    fits = [
        (thousands, decimal)
        for thousands, decimal in SEPARATORS
        if signs <= {thousands, decimal} and all(body_pattern(thousands, decimal).fullmatch(body) for body in bodies)
    ]
    if not fits:
        return None
    if len(signs) > 1:
        return *fits[0], False
    sign = next(iter(signs))
    as_thousands = [pair for pair in fits if pair[0] == sign and _grouped_once(bodies, sign)]
    as_decimal = [pair for pair in fits if pair[1] == sign and not any(body.count(sign) > 1 for body in bodies)]
    if as_thousands and as_decimal:
        if (sure := _beside_hundreds(bodies, sign)) is not None:
            return *as_thousands[0], not sure
        # 1,234 and 56,789 alone: where all fractions have three digits they most likely are none. A point is left to
        # be one, as programs write it, unless the other columns have decimal commas.
        if money and sign != ".":
            return *as_thousands[0], False  # amounts have no thousandths, but rates (1.459) have
        fraction = (sign == ".") != decimal_comma
        return ("", sign, True) if fraction else (*as_thousands[0], True)
    if as_thousands:
        return *as_thousands[0], False
    return ("", sign, False) if as_decimal else None


def told_separators(bodies: Sequence[str], thousands: str, decimal: str) -> tuple[str, str, bool] | None:
    """These separators, if all numbers can have them."""
    pattern = body_pattern(plain_spaces(thousands), decimal)
    return (plain_spaces(thousands), decimal, False) if all(map(pattern.fullmatch, bodies)) else None


def _grouped_once(bodies: Sequence[str], sign: str) -> bool:
    """Whether the sign can stand between thousands: never behind a 0 alone, always before three digits."""
    return not any(body.startswith(("0" + sign, sign)) for body in bodies)


def _beside_hundreds(bodies: Sequence[str], sign: str) -> bool | None:
    """Whether numbers without the sign, all below 1000, tell that it stands between thousands; None if they do not.

    Fractions of which zeros at the end are left out would have one or two digits now and then.
    """
    bare = {body for body in bodies if sign not in body}
    if not bare or any(len(body) > 3 for body in bare):
        return None
    hundreds = all(len(body) == 3 for body in bare)
    if len(bodies) - len(bare) < ENOUGH and not hundreds:
        return None
    return not bare <= UNKNOWN


def tell_thousands(texts: Sequence[str]) -> bool:
    """Whether plain numbers have points between thousands: 10.804 beside 950."""
    bodies = [text.lstrip("-") for text in texts]
    return _beside_hundreds(bodies, ".") is not None and _grouped_once(bodies, ".")


def separators_of(name: str, form: str) -> tuple[str, str]:
    """What stands between thousands and before fractions in a number that is written like 1,234.5 or 1234,5."""
    found = re.fullmatch(r"1(\D?)234([.,])5", form)
    if found is None or found[1] == found[2]:
        raise UserError(
            f"column {name!r}: expected a form such as 1,234.5 or 1.234,5 or 1234,5 after its kind, got {form!r}"
        )
    return found[1], found[2]
