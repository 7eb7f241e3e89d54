"""Columns whose name, or a habit of their trade, tells what the cells mean: what a careful reader takes them for."""

from __future__ import annotations

import datetime

import numpy as np
from odd_columns import ROWS, Odd, of, texts


def _births(seed: int, first: int, last: int) -> list[datetime.date]:
    rng = np.random.default_rng(seed)
    low, high = datetime.date(first, 1, 1).toordinal(), datetime.date(last, 12, 31).toordinal()
    return [datetime.date.fromordinal(int(day)) for day in rng.integers(low, high, ROWS)]


def _check_digit(body: int) -> int:
    """A number of a trade item with its check digit behind it (GTIN)."""
    weights = [3 if place % 2 == 0 else 1 for place in range(len(str(body)))]
    total = sum(weight * int(digit) for weight, digit in zip(weights, reversed(str(body)), strict=True))
    return 10 * body + -total % 10


def named_columns() -> list[Odd]:
    """All of them, the same each time."""
    rng = np.random.default_rng(11)
    whole = rng.integers(1, 90, ROWS)
    thousands = rng.integers(200, 60_000, ROWS)
    clock = rng.integers(1, 59 * 60, ROWS)
    results = np.round(np.exp(rng.uniform(np.log(0.02), np.log(30), ROWS)), 2)
    number, day = "continuous", "datetime"
    months = [f"{2019 + x // 12}{1 + x % 12:02d}" for x in rng.integers(0, 60, ROWS)]
    days = [int(x) for x in rng.integers(44_000, 45_700, ROWS)]
    select = ["1,2", "1,3,4", "2", "1,2,3", "3,4", "2,4", "4"]
    return [
        # Years of two digits: a date of birth is never in the future.
        Odd(
            "dob",
            [f"{x:%m/%d/%y}" for x in _births(1, 1931, 2005)],
            day,
            {"03/05/58": -4320, "03/05/04": 12482},
            says="nobody is born in the future",
        ),
        Odd(
            "geburtsdatum",
            [f"{x:%d.%m.%y}" for x in _births(2, 1940, 1968)],
            day,
            {"05.03.58": -4320},
            says="nobody is born in the future",
        ),
        Odd("birth_date", [f"{x:%d-%b-%y}" for x in _births(3, 1935, 1999)], day, {"05-Mar-58": -4320}),
        Odd(
            "since",
            [f"{x:%m/%d/%y}" for x in _births(4, 1950, 2020)],
            day,
            {"03/05/58": -4320},
            doubtful=True,
            says="would lie in the future",
        ),
        Odd("expiry date", [f"{x:%d/%m/%y}" for x in _births(5, 2027, 2045)], day, {"05/03/40": 25631}),
        # Points between thousands, without any other sign.
        Odd(
            "Einwohner",
            texts(lambda x: f"{x:,}".replace(",", "."), thousands),
            "integer",
            {"10.804": 10804, "999": 999},
        ),
        Odd(
            "only points",
            texts(lambda x: f"{x:,}".replace(",", "."), thousands + 1000),
            number,
            {"10.804": 10.804},
            doubtful=True,
            says="could mark thousands",
        ),
        Odd("beside hundreds", texts(lambda x: f"{x:,}", thousands), "integer", {"10,804": 10804}),
        # Digits that are no amounts.
        Odd(
            "server", [f"192.168.{100 + x}.{100 + 2 * i % 150}" for i, x in enumerate(whole)], None, says="IP addresses"
        ),
        Odd("gateway", of(["192.168.100.101", "192.168.100.102", "172.116.200.254"]), "categorical"),
        Odd("app_version", of(["1.9", "1.10", "1.11", "2.0"]), "categorical"),
        Odd("icd9", of(["250.00", "401.9", "428.0", "250.02", "414.01"]), "categorical"),
        Odd("diag_1", of(["250.00", "V45.81", "428", "E888"]), "categorical"),
        Odd("part", of(["451E1", "452E1", "451E2", "460E3"]), "categorical"),
        Odd("isbn13", [_check_digit(978_316_148_000 + 7 * i) for i in range(ROWS)], None, says="codes"),
        Odd(
            "article",
            [_check_digit(400_638_133_000 + int(x)) for x in whole % 12],
            "categorical",
            says="by their check digits",
        ),
        Odd("upc", [int(x) for x in 10_000_000_000 + rng.integers(0, 9, ROWS) * 77], "categorical"),
        Odd("phone10", [int(x) for x in rng.integers(2_010_000_000, 9_899_999_999, ROWS)], None, says="by name an id"),
        Odd("contact", [f"+49171{x}" for x in rng.integers(1_000_000, 9_999_999, ROWS)], None, says="phone numbers"),
        Odd("fips", [int(x) for x in rng.choice([6037, 17031, 48201, 4013, 36061], ROWS)], "categorical"),
        Odd("naics", [int(x) for x in rng.choice([541511, 722511, 238220, 236118], ROWS)], "categorical"),
        Odd("zip5", [int(x) for x in rng.choice([94110, 60601, 10001, 73301], ROWS)], "categorical"),
        Odd("deliveries", [int(x) for x in rng.integers(10_000, 99_999, ROWS)], "integer"),
        Odd("age at diagnosis", [int(x) for x in whole], "integer", {"42": 42}),
        Odd("phone_calls", [int(x) for x in rng.permutation(5000)[:ROWS]], "integer", {"42": 42}),
        Odd("emission class", of(["Euro 4", "Euro 5", "Euro 6"]), "categorical"),
        Odd("cup", of(["75 C", "80 D", "75 D", "80 C"]), "categorical"),
        # A list of answers is no fraction.
        Odd("channels", of(select), "categorical"),
        Odd(
            "used_for",
            of(["1,2", "1,3", "2,3", "1,4", "2,4", "3,4", "1", "3"]),
            "categorical",
            doubtful=True,
            says="could be fractions",
        ),
        Odd("note", of(["1,0", "1,3", "1,7", "2,0", "2,3", "2,7", "3,3", "4,0"]), "integer", {"2,3": 2.3}),
        Odd("half stars", of(["1,5", "2,5", "3,5", "4,5", "5", "1", "2", "3"]), "integer", {"2,5": 2.5}),
        # Lengths of time.
        Odd(
            "pace",
            [f"{4 + x // 60 % 4}:{x % 60:02d}" for x in clock],
            "integer",
            {"6:52": 412},
            says="a length of time, in seconds",
        ),
        Odd(
            "Laufzeit",
            [f"{x // 60:02d}:{x % 60:02d}" for x in clock % 1400],
            "integer",
            {"01:58": 118},
            says="a length of time, in minutes",
        ),
        Odd(
            "Abfahrt",
            [f"{x // 60:02d}:{x % 60:02d} Uhr" for x in clock % 1440],
            "integer",
            {"01:58 Uhr": 118},
            says="a time of day",
        ),
        # Months and days in digits.
        Odd("yyyymm", [int(x) for x in months], "integer", {"202404": 24291}, says="a month of a year"),
        Odd("Monat", months, "integer", {"202404": 24291}),
        Odd("invoice_date", days, day, {"45321": 19752}, doubtful=True, says="as spreadsheets count"),
        Odd("Rechnungsdatum", [str(x) for x in days], day, {"45321": 19752}, doubtful=True),
        Odd("mileage", days, "integer"),
        # Words for unknown that are none.
        Odd("surname", of(["Null", "Smith", "Jones", "Garcia", "Miller", "Nan"]), "categorical"),
        Odd(
            "growth",
            [*map(str, results[3:]), "inf", "-inf", "Infinity"],
            number,
            doubtful=True,
            unknown=("inf", "-inf", "Infinity"),
        ),
        Odd(
            "rate of change",
            [*results[1:].tolist(), float("inf")],
            number,
            doubtful=True,
            unknown=(float("inf"),),
            says="taken for unknown",
        ),
        # What people put beside a number.
        Odd(
            "nitrate",
            [f"{x}" if x >= 0.05 else "<0.05" for x in results],
            number,
            {"<0.05": 0.025},
            doubtful=True,
            says="is read as 0.025",
        ),
        Odd(
            "turbidity",
            [f"{x:.1f}" if x < 25 else ">25.0" for x in results],
            number,
            {">25.0": 37.5},
            doubtful=True,
            says="'>25.0' is read as 37.5",
        ),
        Odd("about", texts(lambda x: f"~{x}", whole), "integer", {"~292": 292}),
        Odd(
            "body weight",
            [f"{x} kg" if i % 3 else f"{2 * x} lb" for i, x in enumerate(thousands)],
            None,
            says="several units (kg, lb)",
        ),
        Odd("some about", [f"~{x}" if i % 3 else f"{x}" for i, x in enumerate(thousands)], None, says="not exact"),
        Odd(
            "Umsatz",
            texts(lambda x: f"{x:.1f} Mio. EUR".replace(".", ",", 1), results + 1),
            number,
            {"29,2 Mio. EUR": 29.2},
            says="an amount in Mio. EUR",
        ),
        # An order that everybody knows.
        Odd("stars", of(["★★★", "★", "★★★★★", "★★", "★★★★"]), "ordinal", {"★": 0, "★★★★★": 4}),
        Odd("five stars", of(["★★★☆☆", "★☆☆☆☆", "★★★★★", "★★☆☆☆"]), "ordinal", {"★☆☆☆☆": 0, "★★★★★": 3}),
        Odd("rating in stars", of(["4 stars", "1 star", "5 stars", "2 stars"]), "integer", {"1 star": 1, "4 stars": 4}),
        Odd("out of five", of(["4/5", "1/5", "5/5", "2/5", "3/5"]), "integer", {"4/5": 4}, says="a score out of 5"),
        Odd("out of ten", [f"{x / 9:.1f}/10" for x in whole], number, {"8.5/10": 8.5}),
        Odd(
            "height", [f"{5 + x // 40} ft {x % 12} in" for x in whole], "integer", {"5 ft 11 in": 71}, says="in inches"
        ),
        Odd("tall", [f"{5 + x // 40}'{x % 12}\"" for x in whole], "integer", {"5'11\"": 71}),
        Odd(
            "birth weight",
            [f"{6 + x // 40} lb {x % 16} oz" for x in whole],
            "integer",
            {"7 lb 3 oz": 115},
            says="in ounces",
        ),
        Odd("stage", of(["II", "I", "IV", "III"]), "ordinal", {"I": 0, "IV": 3}),
        Odd(
            "tumour stage",
            of(["Stage IIA", "Stage I", "Stage IV", "Stage IIB", "Stage III"]),
            "ordinal",
            {"Stage IIB": 2},
        ),
        Odd("English", of(["B1", "A2", "C1", "B2", "A1", "C2"]), "ordinal", {"A1": 0, "C2": 5}),
    ]
