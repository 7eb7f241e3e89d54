"""Columns as exports have them, with what they mean: the kind, a few cells as numbers, and words of the reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ROWS = 120


@dataclass(frozen=True)
class Odd:
    """A column and what a careful reader would take it for; ``kind`` is None where nothing can be learned from it."""

    name: str
    cells: list[Any]
    kind: str | None
    reads: dict[str, float] = field(default_factory=dict)
    """Some texts, and the numbers that they stand for (days since 1970 for times, positions for levels)."""
    doubtful: bool = False
    """Whether the reader has to say that the cells could mean something else."""
    unknown: tuple[Any, ...] = ()
    """The texts that stand for nothing known."""
    says: str = ""
    """Words of what is said about the column: of the reason, or of what could be otherwise."""


def _amounts(seed: int, low: float = 1.0, high: float = 5000.0, digits: int = 2) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.round(np.exp(rng.uniform(np.log(low), np.log(high), ROWS)), digits)


def _days(seed: int) -> list[Any]:
    import datetime

    rng = np.random.default_rng(seed)
    return [datetime.datetime(2021, 1, 1) + datetime.timedelta(days=int(day)) for day in rng.integers(0, 1200, ROWS)]


def of(levels: list[str], seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [*levels, *(str(level) for level in rng.choice(levels, ROWS - len(levels)))]


def texts(write: Callable[[Any], str], values: Any) -> list[str]:
    return [write(value) for value in values]


def _german(value: float) -> str:
    return f"{value:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")


GERMAN = [
    *["Januar", "Februar", "März", "April", "Mai", "Juni"],
    *["Juli", "August", "September", "Oktober", "November", "Dezember"],
]
FRENCH = ["janv.", "févr.", "mars", "avr.", "mai", "juin", "juil.", "août", "sept.", "oct.", "nov.", "déc."]
SPANISH = [
    *["enero", "febrero", "marzo", "abril", "mayo", "junio"],
    *["julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"],
]
ITALIAN = ["gen", "feb", "mar", "apr", "mag", "giu", "lug", "ago", "set", "ott", "nov", "dic"]


def _named(months: list[str], write: str, days: list[Any]) -> list[str]:
    """Dates with names of months: ``write`` is filled with the day, the month and the year."""
    return [write.format(day.day, months[day.month - 1], day.year) for day in days]


def odd_columns() -> list[Odd]:
    """All of them, the same each time."""
    rng = np.random.default_rng(7)
    money, small, whole = _amounts(1), _amounts(2, 0.5, 99, 1), rng.integers(1, 90, ROWS)
    days = _days(3)
    clock = rng.integers(0, 24 * 60, ROWS)
    signed = np.round(rng.normal(0, 900, ROWS), 2)
    hexes = ["".join(rng.choice(list("0123456789abcdef"), 32)) for _ in range(ROWS)]
    count = range(ROWS)
    number = "continuous"
    return [
        Odd("dollars", texts(lambda x: f"${x:,.2f}", money), number, {"$1,204.50": 1204.5}),
        Odd("euros", texts(lambda x: f"{_german(x)} €", money), number, {"1.204,50 €": 1204.5}),
        Odd("pounds", texts(lambda x: f"£{x:.2f}", money), number, {"£12.50": 12.5}),
        Odd("francs", texts(lambda x: f"CHF {x:,.2f}".replace(",", "'"), money), number, {"CHF 1'204.50": 1204.5}),
        Odd("yen", texts(lambda x: f"¥{round(100 * x):,}", money), "integer", {"¥12,045": 12045}),
        Odd(
            "rupees",
            [*texts(lambda x: f"₹{x:,.2f}", money[5:]), *["₹1,23,456.00"] * 5],
            number,
            {"₹1,23,456.00": 123456},
        ),
        Odd("code behind", texts(lambda x: f"{x:.2f} USD", money), number, {"12.50 USD": 12.5}),
        Odd("thousands", texts(lambda x: f"{round(1000 * x):,}", money), "integer", {"1,204,500": 1204500}),
        Odd(
            "thin spaces",
            texts(lambda x: f"{round(100 * x):,}".replace(",", "\u202f"), money),
            "integer",
            {"12\u202f045": 12045},
        ),
        Odd("decimal comma", texts(lambda x: f"{x:.1f}".replace(".", ","), small), number, {"64,3": 64.3}),
        Odd("percent", texts(lambda x: f"{x}%", whole), "integer", {"12%": 12}),
        Odd("percent with a space", texts(lambda x: f"{x:.1f} %".replace(".", ","), small), number, {"12,5 %": 12.5}),
        Odd("weight", texts(lambda x: f"{x} kg", small), number, {"64.3 kg": 64.3}),
        Odd("length", texts(lambda x: f"{x}mm", small), number, {"3.5mm": 3.5}),
        Odd("temperature", texts(lambda x: f"{x / 10:.1f} °C", signed), number, {"-3.5 °C": -3.5}),
        Odd("stay", texts(lambda x: "1 day" if x == 1 else f"{x} days", whole), "integer", {"1 day": 1, "3 days": 3}),
        Odd(
            "accounting",
            texts(lambda x: f"({-x:,.2f})" if x < 0 else f"{x:,.2f}", signed),
            number,
            {"(1,204.50)": -1204.5},
        ),
        Odd(
            "trailing minus", texts(lambda x: f"{-x:.2f}-" if x < 0 else f"{x:.2f}", signed), number, {"12.50-": -12.5}
        ),
        Odd("scientific", texts(lambda x: f"{x:.3e}", signed), number, {"1.205e+03": 1205}),
        Odd(
            "shortened", texts(lambda x: f"{x:.1f}K" if x < 100 else f"{x / 100:.1f}M", money), number, {"1.2M": 1.2e6}
        ),
        Odd("shortened if exact", [*["1234", "12k", "1.5k", "900", "3.2M"] * 24], "integer", {"1.5k": 1500}),
        Odd(
            "with marks",
            [*map(str, small[:-6]), *["n/a", "-", "unknown", "?", "TBD", ""]],
            number,
            {"64.3": 64.3},
            unknown=("n/a", "-", "unknown", "?", "TBD", ""),
        ),
        Odd(
            "a date that does not exist",
            ["31/02/2024", *[f"{day:%d/%m/%Y}" for day in days[1:]]],
            "datetime",
            {"16/07/2024": 19920},
            doubtful=True,
            unknown=("31/02/2024",),
        ),
        Odd(
            "an ISO date that does not exist",
            [*[f"{day:%Y-%m-%d}" for day in days[2:]], "2023-02-29", "soon"],
            "datetime",
            {"2024-07-16": 19920},
            doubtful=True,
            unknown=("2023-02-29", "soon"),
        ),
        Odd(
            "numbers but for slips",
            [*[f"{x:.2f}" for x in money[2:]], "1O3", "12.5.1"],
            number,
            {"64.30": 64.3},
            doubtful=True,
            unknown=("1O3", "12.5.1"),
        ),
        Odd("ISO date", [f"{day:%Y-%m-%d}" for day in days], "datetime", {"2024-07-16": 19920}),
        Odd("day first", [f"{day:%d/%m/%Y}" for day in days], "datetime", {"16/07/2024": 19920}),
        Odd("month first", [f"{day:%m/%d/%Y}" for day in days], "datetime", {"07/16/2024": 19920}),
        Odd("American", [f"{day.month}/{day.day}/{day:%Y}" for day in days], "datetime", {"7/16/2024": 19920}),
        Odd("German", [f"{day:%d.%m.%Y}" for day in days], "datetime", {"16.07.2024": 19920}),
        Odd("two digits", [f"{day:%d-%b-%y}" for day in days], "datetime", {"16-Jul-24": 19920}),
        Odd("capitals", [f"{day:%d-%b-%Y}".upper() for day in days], "datetime", {"16-JUL-2024": 19920}),
        Odd("long", [f"{day:%B} {day.day}, {day:%Y}" for day in days], "datetime", {"July 16, 2024": 19920}),
        Odd("small letters", [f"{day:%d %b %Y}".lower() for day in days], "datetime", {"16 jul 2024": 19920}),
        Odd("German names", _named(GERMAN, "{}. {} {}", days), "datetime", {"16. Juli 2024": 19920}),
        Odd("German short", _named([m[:3] for m in GERMAN], "{:02d}-{}-{}", days), "datetime", {"16-Jul-2024": 19920}),
        Odd("German capitals", _named([m.upper() for m in GERMAN], "{} {} {}", days), "datetime"),
        Odd("French names", _named(FRENCH, "{} {} {}", days), "datetime", {"16 juil. 2024": 19920}),
        Odd("Spanish names", _named(SPANISH, "{} de {} de {}", days), "datetime", {"16 de julio de 2024": 19920}),
        Odd("Italian names", _named(ITALIAN, "{:02d}/{}/{}", days), "datetime", {"16/lug/2024": 19920}),
        Odd("two digits of ISO", [f"{day:%y-%m-%d}" for day in days], "datetime", {"24-07-16": 19920}),
        Odd("compact", [int(f"{day:%Y%m%d}") for day in days], "datetime", {"20240716": 19920}),
        Odd(
            "digits with a slip",
            [20240231, *(int(f"{day:%Y%m%d}") for day in days[1:])],
            "datetime",
            doubtful=True,
            unknown=(20240231,),
        ),
        Odd(
            "with a clock",
            [f"{day:%m/%d/%Y} {1 + i % 12}:{i % 60:02d} PM" for i, day in enumerate(days)],
            "datetime",
            {"07/16/2024 12:00 PM": 19920.5},
        ),
        Odd("created_at", [int(day.timestamp()) + i for i, day in enumerate(days)], "datetime", {"1721088000": 19920}),
        Odd("unclear", [f"{1 + i * 5 % 11:02d}/{1 + i * 7 % 12:02d}/2023" for i in count], "datetime", doubtful=True),
        Odd("ISO week", [f"{day.isocalendar()[0]}-W{day.isocalendar()[1]:02d}" for day in days], "integer"),
        Odd("month", [f"{day:%b %Y}" for day in days], "integer"),
        Odd("month in German", [f"{GERMAN[day.month - 1]} {day:%Y}" for day in days], "integer"),
        Odd("month in small letters", [f"{day:%b %Y}".lower() for day in days], "integer"),
        Odd("month with a point", [f"{FRENCH[day.month - 1]} {day:%Y}" for day in days], "integer"),
        Odd("quarter", [f"{day:%Y}-Q{(day.month + 2) // 3}" for day in days], "integer"),
        Odd("time of day", [f"{x // 60:02d}:{x % 60:02d}" for x in clock], "integer", {"14:30": 870}),
        Odd(
            "time with a slip",
            [*(f"{x // 60:02d}:{x % 60:02d}" for x in clock[1:]), "24:61"],
            "integer",
            {"14:30": 870},
            doubtful=True,
            unknown=("24:61",),
        ),
        Odd("duration", [f"{x // 60}h {x % 60 or 1}m" for x in clock + 60], "integer", {"2h 30m": 150}),
        Odd("padded duration", [f"{x // 60}h{x % 60:02d}m" for x in clock], "integer", {"2h05m": 125, "0h09m": 9}),
        Odd("French duration", [f"{x // 60}h{x % 60:02d}" for x in clock], "integer", {"2h05": 125}),
        Odd("duration with zeros", [f"{x // 60}m {x % 60}s" for x in clock], "integer", {"2m 0s": 120}),
        Odd("5-Mar", [f"{day.day}-{day:%b}" for day in days], "ordinal", doubtful=True),
        Odd(
            "agreement",
            of(["Strongly agree", "Agree", "Neutral", "Disagree", "Strongly disagree"]),
            "ordinal",
            {"Strongly disagree": 0, "Strongly agree": 4},
        ),
        Odd("how often", of(["Never", "Rarely", "Sometimes", "Often", "Always"]), "ordinal", {"Never": 0, "Always": 4}),
        Odd("level", of(["low", "medium", "high"]), "ordinal", {"low": 0, "high": 2}),
        Odd("grade", of(["A", "A-", "B+", "B", "C", "D", "F"]), "ordinal", {"F": 0, "A": 6}),
        Odd("age band", of(["18-24", "25-34", "35-44", "65+", "<18", "45-64"]), "ordinal", {"<18": 0, "65+": 5}),
        Odd("size", of(["S", "M", "L", "XL", "XS"]), "ordinal", {"XS": 0, "XL": 4}),
        Odd(
            "education",
            of(["High school", "Bachelor's degree", "Master's degree", "PhD"]),
            "ordinal",
            {"High school": 0, "PhD": 3},
        ),
        Odd("income band", of(["100k+", "0-50k", "50-100k"]), "ordinal", {"0-50k": 0, "100k+": 2}),
        Odd("price band", of(["500k-1M", "<500k", "1M-2M", ">2M"]), "ordinal", {"<500k": 0, "1M-2M": 2, ">2M": 3}),
        Odd("children", of(["3+", "0", "1", "2"]), "ordinal", {"0": 0, "3+": 3}),
        Odd("visits", of(["None", "1-2", "3-5", "6 or more"]), "ordinal", {"None": 0, "6 or more": 3}),
        Odd(
            "with no answer",
            [*of(["Never", "Rarely", "Often", "Always"])[:-3], "Prefer not to say", "Don’t know", "unknown"],
            "ordinal",
            {"Never": 0, "Always": 3},
            doubtful=True,
            unknown=("Prefer not to say", "Don’t know", "unknown"),
        ),
        Odd("ordinal word", of(["third", "first", "second"]), "ordinal", {"first": 0, "third": 2}),
        Odd("Wochentag", of(["Montag", "Freitag", "Dienstag"]), "ordinal", {"Montag": 0, "Dienstag": 1}),
        Odd("answer", of(["yes", "no", "don't know"]), "categorical"),
        Odd("yes", of(["yes", "no"]), "boolean", {"no": 0, "yes": 1}),
        Odd("ja", of(["Ja", "Nein"]), "boolean", {"Nein": 0, "Ja": 1}),
        Odd("oui", of(["oui", "non"]), "boolean", {"non": 0, "oui": 1}),
        Odd("Y", of(["Y", "N"]), "boolean", {"N": 0, "Y": 1}),
        Odd("customer_id", list(range(1, ROWS + 1)), None),
        Odd("long number", [int(x) for x in rng.integers(10**17, 9 * 10**17, ROWS)], None),
        Odd("long digits", [str(x) for x in rng.integers(10**17, 9 * 10**17, ROWS)], None),
        Odd("author", [int(x) for x in rng.choice(rng.integers(10**17, 9 * 10**17, 9), ROWS)], "categorical"),
        Odd("order", [f"ORD-{100000 + 7 * i}" for i in count], None),
        Odd("hash", hexes, None),
        Odd("UUID", [f"{x[:8]}-{x[8:12]}-{x[12:16]}-{x[16:20]}-{x[20:]}" for x in hexes], None),
        Odd("zip", [f"{x:05d}" for x in rng.choice([1010, 2139, 94110, 60601], ROWS)], "categorical"),
        Odd("postcode", of(["SW1A 1AA", "EC1A 1BB", "W1A 0AX", "M1 1AE"]), "categorical"),
        Odd("phone", [f"+44 20 7946 {x:04d}" for x in rng.permutation(ROWS)], None),
        Odd("mobile", [f"612 {x // 1000:03d} {x % 1000:03d}" for x in rng.permutation(900_000)[:ROWS] + 100_000], None),
        Odd("year", rng.integers(1990, 2024, ROWS).tolist(), "integer", {"2001": 2001}),
        Odd("version", of(["1.2.3", "1.10.0", "2.0.1", "2.0.10"]), "categorical"),
        Odd("address", [f"10.{i % 7}.{i % 5}.{i}" for i in count], None),
        Odd("latitude", np.round(rng.uniform(-90, 90, ROWS), 5).tolist(), number),
        Odd("place", [f"{a:.4f}, {b:.4f}" for a, b in rng.uniform(-80, 80, (ROWS, 2))], None),
        Odd(
            "comment",
            [
                f"The {x} came late again and the box was {y}"
                for x, y in zip(rng.choice(["van", "post", "driver"], ROWS), rng.integers(0, 999, ROWS), strict=True)
            ],
            None,
        ),
        Odd("colour", of(["red", "green", "blue"]), "categorical"),
        Odd("blood", of(["A+", "A-", "B+", "O-", "AB+"]), "categorical"),
        Odd("damaged range", of(["1-4", "5-Sep", "14-Oct", "15-19"]), "categorical", doubtful=True),
        Odd("seat", of([f"{x}A" for x in range(1, 31)]), "categorical"),
        Odd("jacket", of(["38R", "40R", "42R", "44R"]), "categorical"),
        Odd("screen", of(["16:9", "4:3", "21:9", "16:10"]), "categorical"),
        Odd("aspect_ratio", of(["16:10", "4:30", "21:20"]), "categorical"),
        Odd("born", rng.integers(40, 99, ROWS).tolist(), "integer", {"64": 64}),
        Odd("score", of(["3-1", "0-0", "2-2", "1-4"]), "categorical"),
        Odd("pressure", of(["120/80", "130/85", "110/70"]), "categorical"),
    ]
