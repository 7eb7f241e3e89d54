"""Twenty tables as people export them, written as files: the same each time, with relations that can be learned.

Each file comes with the column to ask for, evidence in the file's own form, and the columns that must be left out.
"""

from __future__ import annotations

import datetime
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Cells = list[str]
AGREE = ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"]


@dataclass(frozen=True)
class Messy:
    """One file: its name, its content, and what to ask of it."""

    name: str
    content: bytes
    target: str
    given: tuple[str, str]
    left_out: tuple[str, ...] = ()


class Columns:
    """Columns that all depend on one hidden number, with holes here and there."""

    def __init__(self, seed: int, rows: int) -> None:
        self.rng, self.rows = np.random.default_rng(seed), rows
        self.hidden = self.rng.normal(size=rows)

    def number(self, mean: float, spread: float, noise: float = 0.3) -> Any:
        """Numbers that follow the hidden one."""
        return mean + spread * (self.hidden + noise * self.rng.normal(size=self.rows))

    def money(self, mean: float = 200.0) -> Any:
        """Amounts, skewed as amounts are."""
        return mean * np.exp(0.7 * self.number(0.0, 1.0))

    def levels(self, names: list[str]) -> Cells:
        """Ordered names that follow the hidden number."""
        step = np.clip(np.round((self.number(0.0, 1.0) + 2) / 4 * (len(names) - 1)), 0, len(names) - 1)
        return [names[int(at)] for at in step]

    def days(self, form: str) -> Cells:
        """Dates that follow the hidden number."""
        start = datetime.datetime(2021, 1, 1)
        return [
            f"{start + datetime.timedelta(days=int(np.clip(500 + 150 * x, 0, 1200))):{form}}"
            for x in self.number(0.0, 1.0)
        ]

    def holes(self, cells: Cells, marks: tuple[str, ...] = ("",), share: float = 0.06) -> Cells:
        """The cells, some of them unknown."""
        return [str(self.rng.choice(marks)) if self.rng.random() < share else cell for cell in cells]

    def written(self, values: Any, write: Callable[[Any], str], marks: tuple[str, ...] = ("",)) -> Cells:
        """Numbers as texts, with holes."""
        return self.holes([write(value) for value in values], marks)


def german(value: float, places: int = 2) -> str:
    """1.204,50"""
    return f"{value:,.{places}f}".translate(str.maketrans(",.", ".,"))


def lines(columns: dict[str, Cells], delimiter: str = ",", ending: str = "\n") -> str:
    """A delimited text; cells that need quotes get them."""

    def cell(text: str) -> str:
        odd = delimiter in text or '"' in text or "\n" in text
        return '"' + text.replace('"', '""') + '"' if odd else text

    rows = [list(columns), *map(list, zip(*columns.values(), strict=True))]
    return ending.join(delimiter.join(map(cell, row)) for row in rows) + ending


def messy_tables(rows: int = 300) -> list[Messy]:
    """All twenty."""
    made: list[Messy] = []

    def add(
        name: str, content: str | bytes, target: str, given: tuple[str, str], left_out: tuple[str, ...] = ()
    ) -> None:
        made.append(Messy(name, content.encode() if isinstance(content, str) else content, target, given, left_out))

    def number(of: Columns) -> Cells:
        return of.written(of.number(64.0, 8.0), lambda x: f"{x:.1f}")

    # 1: the table of the first complaint.
    c = Columns(1, rows)
    shop = {
        "id": [f"C{1000 + i}" for i in range(rows)],
        "price": c.written(c.money(), lambda x: f"${x:,.2f}", ("", "n/a")),
        "discount": c.written(np.clip(c.number(12, 5), 0, 60), lambda x: f"{x:.0f}%"),
        "joined": c.holes(c.days("%d/%m/%Y")),
        "rating": c.holes(c.levels(AGREE), ("", "-")),
        "comment": [f"parcel number {i} came late and the box was open {i * 7 % 11}" for i in range(rows)],
        "weight": c.written(c.number(64.0, 8.0), lambda x: german(x, 1)),
    }
    add("shop.csv", lines(shop), "price", ("rating", "Agree"), ("id", "comment"))
    # 2: a German export.
    c = Columns(2, rows)
    hotel = {
        "Kundennummer": [f"{100000 + 7 * i}" for i in range(rows)],
        "Preis": c.written(c.money(), lambda x: f"{german(x)} €", ("", "k.A.")),
        "Anreise": c.holes(c.days("%d.%m.%Y")),
        "Zufrieden": c.holes(c.levels(["nie", "selten", "manchmal", "oft", "immer"])),
        "Stammgast": c.holes(["Ja" if x > 0 else "Nein" for x in c.number(0, 1)]),
        "Nächte": c.written(np.clip(c.number(4, 2), 1, None), lambda x: f"{x:.0f}"),
    }
    add("hotel.csv", lines(hotel, ";", "\r\n").encode("cp1252"), "Preis", ("Zufrieden", "oft"), ())
    # 3: a lab sheet with units and a preamble.
    c = Columns(3, rows)
    lab = {
        "sample": [f"S-{i:05d}" for i in range(rows)],
        "mass": c.written(c.number(12, 2), lambda x: f"{x:.2f} mg", ("", "n.d.")),
        "length": c.written(c.number(3.5, 0.5), lambda x: f"{x:.1f}mm"),
        "temperature": c.written(c.number(20, 8), lambda x: f"{x:.1f} °C"),
        "grade": c.holes(c.levels(["F", "D", "C", "C+", "B", "B+", "A", "A+"])),
    }
    add(
        "lab.csv",
        "Report of the laboratory\nGenerated 2024-05-01\n\n" + lines(lab),
        "mass",
        ("grade", "B"),
        ("sample",),
    )
    # 4: tabs, American dates with a clock.
    c = Columns(4, rows)
    calls = {
        "started": c.holes(c.days("%m/%d/%Y %I:%M %p")),
        "duration": c.written(
            np.clip(c.number(9, 4), 1, None), lambda x: f"{int(x) // 60}:{int(x) % 60:02d}:{int(60 * x) % 60:02d}"
        ),
        "cost": c.written(c.money(5), lambda x: f"${x:.2f}"),
        "agent": c.holes(c.levels(["Ann", "Bob", "Cid"])),
    }
    add("calls.tsv", lines(calls, "\t"), "cost", ("agent", "Bob"))
    # 5: UTF-16 of a spreadsheet.
    c = Columns(5, rows)
    staff = {
        "Name": [f"Person {i} {i * 17 % 101}" for i in range(rows)],
        "Salary": c.written(c.money(40000), lambda x: f"£{x:,.0f}"),
        "Education": c.holes(c.levels(["High school", "Bachelor's degree", "Master's degree", "PhD"])),
        "Age": c.holes(c.levels(["<18", "18-24", "25-34", "35-44", "45-64", "65+"])),
        "Full time": c.holes(["yes" if x > 0 else "no" for x in c.number(0, 1)]),
    }
    add("staff.csv", lines(staff, "\t").encode("utf-16"), "Salary", ("Education", "PhD"), ("Name",))
    # 6: accounting.
    c = Columns(6, rows)
    books = {
        "voucher": [f"INV-{10000 + i}" for i in range(rows)],
        "booked": c.holes(c.days("%d-%b-%Y")),
        "amount": c.written(c.number(100, 800), lambda x: f"({-x:,.2f})" if x < 0 else f"{x:,.2f}"),
        "account": c.holes(c.levels(["4000", "4100", "4200"])),
        "quarter": [f"{day[:4]}-Q{(int(day[5:7]) + 2) // 3}" for day in c.days("%Y-%m-%d")],
    }
    total = "Total," + ",".join(["", "1,234.00".join('""'), "", ""]) + "\n"
    add("books.csv", lines(books) + total, "amount", ("quarter", "2022-Q2"), ("voucher",))
    # 7: question marks for unknown, everywhere.
    c = Columns(7, rows)
    heart = {
        "age": c.written(c.number(54, 9), lambda x: f"{x:.0f}", ("?",)),
        "chol": c.written(c.number(240, 40), lambda x: f"{x:.0f}", ("?",)),
        "sex": c.holes(["male" if x > 0 else "female" for x in c.rng.normal(size=rows)], ("?",)),
        "pain": c.holes(c.levels(["none", "mild", "moderate", "severe"]), ("?",)),
        "sick": c.holes(["Y" if x > 0.5 else "N" for x in c.number(0, 1)], ("?",)),
    }
    add("heart.csv", lines(heart), "chol", ("sick", "Y"))
    # 8: months, weeks and percentages with a comma.
    c = Columns(8, rows)
    sales = {
        "month": c.days("%Y-%m"),
        "week": c.days("%G-W%V"),
        "share": c.written(np.clip(c.number(40, 10), 0, 100), lambda x: f"{german(x, 1)} %"),
        "units": c.written(c.money(3000), lambda x: f"{x:,.0f}".replace(",", ".")),
        "region": c.holes(c.levels(["Nord", "Süd", "West"])),
    }
    add("sales.csv", lines(sales, ";"), "units", ("region", "Süd"))
    # 9: bars, epoch seconds, versions, addresses.
    c = Columns(9, rows)
    log = {
        "created_at": [str(int(datetime.datetime.fromisoformat(d).timestamp())) for d in c.days("%Y-%m-%d")],
        "ip": [f"10.{i % 200}.{i // 200}.{i * 7 % 250}" for i in range(rows)],
        "version": c.levels(["1.2.3", "1.10.0", "2.0.1"]),
        "latency": c.written(c.money(80), lambda x: f"{x:.0f} ms"),
        "size": c.written(c.money(900), lambda x: f"{x:.1f}K" if x < 1000 else f"{x / 1000:.1f}M"),
        "level": c.holes(c.levels(["low", "medium", "high", "critical"])),
    }
    add("log.psv", lines(log, "|"), "latency", ("level", "high"), ("ip",))
    # 10: gzipped, compact dates, postcodes with leading zeros.
    c = Columns(10, rows)
    homes = {
        "sold": c.days("%Y%m%d"),
        "postcode": c.levels(["01067", "01069", "04109", "04103"]),
        "price": c.written(c.money(300000), lambda x: f"{x:,.0f} EUR".replace(",", " ")),
        "area": c.written(c.number(90, 20), lambda x: f"{x:.0f} m²"),
        "condition": c.holes(c.levels(["Po", "Fa", "TA", "Gd", "Ex"])),
    }
    add("homes.csv.gz", gzip.compress(lines(homes).encode(), mtime=0), "price", ("condition", "Gd"))
    # 11: an empty last column by trailing delimiters, spaces around cells.
    c = Columns(11, rows)
    plants = {
        "height": number(c),
        "leaves": c.written(c.number(20, 5), lambda x: f" {x:.0f} "),
        "kind": c.levels(["a", "b"]),
    }
    add("plants.csv", lines(plants).replace("\n", ",\n"), "height", ("kind", "b"))
    # 12: every mark for unknown that people use.
    c = Columns(12, rows)
    marks = ("", "NA", "n/a", "-", "unknown", "NULL", "#N/A", "?")
    survey = {f"q{i}": c.written(c.number(50, 10), lambda x: f"{x:.0f}", marks) for i in range(4)}
    survey["answer"] = c.holes(c.levels(AGREE), ("", "n/a"))
    add("survey.csv", lines(survey), "q0", ("answer", "Agree"))
    # 13: names with blanks, quotes, commas and umlauts; quoted line breaks.
    c = Columns(13, rows)
    names = {
        'Total, "net"': number(c),
        "größe (cm)": c.written(c.number(170, 9), lambda x: f"{x:.0f}"),
        "note": [f'said "so {i}"\nand left {i * 13 % 97}' for i in range(rows)],
        "Ok?": c.levels(["no", "yes"]),
    }
    add("names.csv", lines(names), "größe (cm)", ("Ok?", "yes"), ("note",))
    # 14: wide and short.
    c = Columns(14, 60)
    add(
        "wide.csv",
        lines({f"v{i}": c.written(c.number(i, 1), lambda x: f"{x:.3f}") for i in range(40)}),
        "v3",
        ("v7", "7.5"),
    )
    # 15: constants, copies and empty columns.
    c = Columns(15, rows)
    celsius = c.number(20, 5)
    weather = {
        "station": ["Berlin"] * rows,
        "celsius": [f"{x:.1f}" for x in celsius],
        "fahrenheit": [f"{x * 1.8 + 32:.2f}" for x in np.round(celsius, 1)],
        "rain": c.written(np.clip(c.number(0, 3), 0, None), lambda x: f"{x:.1f}"),
        "remark": [""] * rows,
    }
    add("weather.csv", lines(weather), "rain", ("celsius", "25"), ("remark",))
    # 16: booleans in French, sizes, hashes.
    c = Columns(16, rows)
    colis = {
        "cle": [f"{hash_of(i)}" for i in range(rows)],
        "fragile": c.holes(["oui" if x > 0 else "non" for x in c.number(0, 1)]),
        "taille": c.holes(c.levels(["XS", "S", "M", "L", "XL"])),
        "poids": c.written(np.clip(c.number(5, 2), 0.1, None), lambda x: f"{german(x, 1)} kg"),
    }
    add("colis.csv", lines(colis, ";"), "poids", ("taille", "L"), ("cle",))
    # 17: times of day, durations in words.
    c = Columns(17, rows)
    trips = {
        "left": c.written(np.clip(c.number(720, 200), 0, 1439), lambda x: f"{int(x) // 60:02d}:{int(x) % 60:02d}"),
        "took": c.written(np.clip(c.number(150, 40), 61, None), lambda x: f"{int(x) // 60}h {int(x) % 60 or 1}m"),
        "line": c.levels(["U1", "U2", "U7"]),
    }
    add("trips.csv", lines(trips), "took", ("left", "08:30"))
    # 18: a sep= line, numbers in scientific notation.
    c = Columns(18, rows)
    physics = {
        "energy": c.written(c.money(1e6), lambda x: f"{x:.3e}"),
        "charge": c.levels(["-1", "0", "1"]),
        "p": number(c),
    }
    add("physics.csv", "sep=;\n" + lines(physics, ";"), "p", ("charge", "1"))
    # 19: dates that could be either way round, few rows.
    c = Columns(19, 80)
    visits = {
        "visit": [f"{1 + i * 5 % 12:02d}/{1 + i * 7 % 11:02d}/2023" for i in range(80)],
        "x": number(c),
        "y": number(c),
    }
    add("visits.csv", lines(visits), "x", ("y", "70"))
    # 20: many rows.
    c = Columns(20, 10 * rows)
    big = {
        "user_id": [str(i) for i in range(1, 10 * rows + 1)],
        "spend": c.written(c.money(), lambda x: f"{x:.2f}"),
        "plan": c.levels(["free", "basic", "premium"]),
        "since": c.days("%B %d, %Y"),
        "churned": ["true" if x > 1 else "false" for x in c.number(0, 1)],
    }
    add("users.csv", lines(big), "spend", ("plan", "premium"), ("user_id",))
    return made


def hash_of(number: int) -> str:
    """A text like a hash, the same each time."""
    rng = np.random.default_rng(number)
    return "".join(rng.choice(list("0123456789abcdef"), 32))


def write_all(folder: Path, rows: int = 300) -> list[Messy]:
    """Write all files into the folder."""
    tables = messy_tables(rows)
    for table in tables:
        (folder / table.name).write_bytes(table.content)
    return tables
