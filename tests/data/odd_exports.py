"""Columns of shops, clinics, laboratories, banks, offices, surveys, sensors, statistics and web pages.

What each of them means was written down before it was tried. German, French, Spanish, Polish, Indian and American
forms.
"""

from __future__ import annotations

import datetime

import numpy as np
from odd_columns import ROWS, Odd, of, texts


def _days(seed: int, first: int = 2021, last: int = 2024) -> list[datetime.datetime]:
    rng = np.random.default_rng(seed)
    start, width = datetime.datetime(first, 1, 1), 365 * (last - first + 1)
    return [start + datetime.timedelta(days=int(x)) for x in rng.integers(0, width, ROWS)]


def _spaced(value: float, places: int = 2) -> str:
    return f"{value:,.{places}f}".replace(",", " ").replace(".", ",")


def _german(value: float, places: int = 2) -> str:
    return f"{value:,.{places}f}".replace(",", "_").replace(".", ",").replace("_", ".")


FRENCH_MONTHS = (
    *("janvier", "février", "mars", "avril", "mai", "juin"),
    *("juillet", "août", "septembre", "octobre", "novembre", "décembre"),
)
POLISH_MONTHS = (
    *("stycznia", "lutego", "marca", "kwietnia", "maja", "czerwca"),
    *("lipca", "sierpnia", "września", "października", "listopada", "grudnia"),
)
POLISH_SHORT = ("sty", "lut", "mar", "kwi", "maj", "cze", "lip", "sie", "wrz", "paź", "lis", "gru")
FRENCH_DAYS = ["lun.", "mar.", "mer.", "jeu.", "ven.", "sam.", "dim."]


def export_columns() -> list[Odd]:
    """All of them, the same each time."""
    rng = np.random.default_rng(29)
    money = np.round(np.exp(rng.uniform(np.log(2), np.log(9000), ROWS)), 2)
    signed = np.round(rng.normal(0, 400, ROWS), 2)
    change = np.where(np.abs(signed) < 5, 7.0, signed / 50)
    share = np.round(rng.uniform(0, 100, ROWS), 1)
    whole = rng.integers(1, 90, ROWS)
    large = rng.integers(1_000, 9_000_000, ROWS)
    seconds = rng.integers(5, 5_000, ROWS)
    days = _days(1)
    number, day = "continuous", "datetime"
    return [
        # Shops
        Odd("Prix TTC", texts(lambda x: f"{_spaced(x)} €", money), number, {"1 204,50 €": 1204.5}),
        Odd("Precio", texts(lambda x: f"{_german(x)} €", money), number, {"1.204,50 €": 1204.5}),
        Odd("Menge", texts(lambda x: f"{x} Stk.", whole), "integer", {"12 Stk.": 12}),
        Odd("discount", texts(lambda x: f"-{x}%", whole), "integer", {"-12%": -12}),
        Odd("order total", texts(lambda x: f"US${x:,.2f}", money), number, {"US$1,204.50": 1204.5}),
        Odd("items", texts(lambda x: "1 item" if x == 1 else f"{x} items", whole), "integer", {"12 items": 12}),
        Odd("quantity", texts(lambda x: f"x{x}", whole % 9 + 1), "categorical"),
        Odd(
            "gtin14", [f"0{x}" for x in rng.choice([4006381333931, 4006381333948, 4006381333955], ROWS)], "categorical"
        ),
        Odd("weight g", texts(lambda x: f"{x:.0f}g", money), "integer", {"250g": 250}),
        Odd(
            "Bewertung",
            of(["4,5 von 5", "3,0 von 5", "5,0 von 5", "2,5 von 5", "1,0 von 5"]),
            "integer",
            {"4,5 von 5": 4.5},
        ),
        Odd("in stock", of(["In stock", "Out of stock", "Backorder"]), "categorical"),
        # Banks
        Odd("Betrag", texts(lambda x: f"{_german(x)}", signed), number, {"-1.204,50": -1204.5}),
        Odd(
            "Saldo",
            texts(lambda x: f"{_german(abs(x))} {'H' if x > 0 else 'S'}", signed),
            number,
            {"204,50 S": -204.5, "204,50 H": 204.5},
        ),
        Odd("Débit", texts(lambda x: f"-{_spaced(x)}", money), number, {"-1 204,50": -1204.5}),
        Odd("IBAN", [f"DE{x:020d}" for x in rng.integers(10**18, 9 * 10**18, ROWS)], None),
        Odd("Buchungstag", [f"{x:%d.%m.}{x:%y}" for x in days], day, {"16.07.24": 19920}),
        Odd("Valuta", [f"{x:%d.%m.%Y}" for x in days], day, {"16.07.2024": 19920}),
        Odd("exchange rate", texts(lambda x: f"{1 + x / 1000:.4f}", share), number, {"1.0850": 1.085}),
        Odd("interest", texts(lambda x: f"{x / 20:.2f} % p.a.", share), number, {"2.35 % p.a.": 2.35}),
        Odd("basis points", texts(lambda x: f"{x} bps", whole), "integer", {"25 bps": 25}),
        # People
        Odd("Eintritt", [f"{x:%m/%Y}" for x in days], "integer", {"07/2024": 24294}),
        Odd(
            "salary band",
            of(["$50,000 - $74,999", "$75,000 - $99,999", "Under $50,000", "$100,000 or more"]),
            "ordinal",
            {"Under $50,000": 0, "$100,000 or more": 3},
        ),
        Odd(
            "tenure",
            texts(lambda x: f"{x // 12} years {x % 12} months", whole + 12),
            "integer",
            {"2 years 3 months": 27},
        ),
        Odd("Alter", texts(lambda x: f"{x} Jahre", whole), "integer", {"42 Jahre": 42}),
        Odd("âge", texts(lambda x: f"{x} ans", whole), "integer", {"42 ans": 42}),
        Odd("FTE", of(["100%", "80%", "50%", "60%"]), "integer", {"80%": 80}),
        Odd("Steuerklasse", of(["I", "II", "III", "IV", "V", "VI"]), "ordinal", {"I": 0, "VI": 5}),
        Odd(
            "SSN",
            [f"{x // 10**6:03d}-{x // 10**4 % 100:02d}-{x % 10**4:04d}" for x in rng.integers(10**8, 8 * 10**8, ROWS)],
            None,
        ),
        Odd("sexe", of(["H", "F"]), "categorical"),
        Odd("marital", of(["ledig", "verheiratet", "geschieden", "verwitwet"]), "categorical"),
        # Clinics and laboratories
        Odd("blood pressure", [f"{110 + x % 50}/{60 + x % 35}" for x in whole], None, says="two numbers in one cell"),
        Odd("temp", texts(lambda x: f"{36 + x / 40:.1f}°C".replace(".", ","), share), number, {"37,2°C": 37.2}),
        Odd("dose", texts(lambda x: f"{x * 5} mg", whole), "integer", {"250 mg": 250}),
        Odd("HbA1c", texts(lambda x: f"{5 + x / 20:.1f} %", share), number, {"6.5 %": 6.5}),
        Odd("titer", of(["1:40", "1:80", "1:160", "1:320", "<1:40"]), "categorical"),
        Odd("culture", of(["+", "++", "+++", "-"]), "ordinal", {"-": 0, "+++": 3}),
        Odd("glucose", texts(lambda x: f"{60 + x} mg/dL", whole), "integer", {"126 mg/dL": 126}),
        Odd("cells", texts(lambda x: f"{x / 10:.1f} x10^9/L", share), None),
        Odd("gestation", texts(lambda x: f"{24 + x // 7 % 17}w{x % 7}d", whole), "integer", {"39w2d": 275}),
        Odd("APGAR", of(["9/10", "8/10", "10/10", "7/10"]), "integer", {"9/10": 9}),
        Odd("allele", of(["A/G", "G/G", "A/A"]), "categorical"),
        Odd("visus", of(["20/20", "20/40", "20/25", "20/200"]), "categorical"),
        # Surveys
        Odd("NPS", of([str(x) for x in range(11)]), "integer", {"7": 7}),
        Odd(
            "zufriedenheit",
            of(["sehr zufrieden", "zufrieden", "teils/teils", "unzufrieden", "sehr unzufrieden"]),
            "ordinal",
            {"sehr unzufrieden": 0, "sehr zufrieden": 4},
        ),
        Odd(
            "satisfaction",
            of(["Très satisfait", "Satisfait", "Insatisfait", "Très insatisfait"]),
            "ordinal",
            {"Très insatisfait": 0, "Très satisfait": 3},
        ),
        Odd(
            "satisfacción",
            of(["Muy satisfecho", "Satisfecho", "Insatisfecho", "Muy insatisfecho"]),
            "ordinal",
            {"Muy insatisfecho": 0, "Muy satisfecho": 3},
        ),
        Odd("Schulnote", of(["1 - sehr gut", "2 - gut", "3 - befriedigend", "4 - ausreichend"]), "ordinal"),
        Odd(
            "household",
            of(["1 Person", "2 Personen", "3 Personen", "4 Personen", "5+ Personen"]),
            "ordinal",
            {"1 Person": 0, "5+ Personen": 4},
        ),
        Odd(
            "age group",
            of(["18 bis 24", "25 bis 34", "35 bis 49", "50 und älter"]),
            "ordinal",
            {"18 bis 24": 0, "50 und älter": 3},
        ),
        Odd(
            "tranche",
            of(["moins de 18 ans", "18-24 ans", "25-49 ans", "50 ans et plus"]),
            "ordinal",
            {"moins de 18 ans": 0, "50 ans et plus": 3},
        ),
        Odd("sí", of(["Sí", "No"]), "boolean", {"No": 0, "Sí": 1}),
        # Sensors
        Odd("lat", texts(lambda x: f"{x / 3:.4f}° N", share), number, {"23.4500° N": 23.45}),
        Odd("dms", [f"{x % 60}°{x % 50}'{x % 47}\"N" for x in whole * 7], None),
        Odd("rssi", texts(lambda x: f"-{x} dBm", whole), "integer", {"-67 dBm": -67}),
        Odd("stamp", [f"{x:%Y-%m-%d}T12:30:{i % 60:02d}.123Z" for i, x in enumerate(days)], day),
        Odd("wind", of(["N", "NE", "E", "SW", "WNW"]), "categorical"),
        Odd("battery", texts(lambda x: f"{x} %", whole), "integer", {"80 %": 80}),
        Odd("state", of(["ON", "OFF"]), "boolean", {"OFF": 0, "ON": 1}),
        Odd("reading", texts(lambda x: f"{x:.3E}", money), number, {"1.205E+03": 1205}),
        # Statistics
        Odd("Bevölkerung", texts(lambda x: f"{x:,}".replace(",", " "), large), "integer", {"83 240": 83240}),
        Odd("population", texts(lambda x: f"{x:,}".replace(",", "'"), large), "integer", {"8'324": 8324}),
        Odd("Jahr", texts(lambda x: f"{1990 + x % 30}/{(1991 + x % 30) % 100:02d}", whole), "ordinal"),
        Odd("change", texts(lambda x: f"{x:+.1f} %".replace(".", ","), change), number, {"+2,3 %": 2.3}),
        Odd("points", texts(lambda x: f"{x:+.1f} pp", change), number, {"+2.3 pp": 2.3}),
        Odd("rank", texts(lambda x: f"{x}.", whole), "integer", {"12.": 12}),
        Odd("place in race", of(["1st", "2nd", "3rd", "4th", "10th"]), "ordinal", {"1st": 0, "10th": 4}),
        Odd("quartal", of(["2023 Q1", "2023 Q2", "2023 Q3", "2024 Q1"]), "integer", {"2024 Q1": 8096}),
        Odd("trimestre", of(["T1 2023", "T2 2023", "T3 2023", "T4 2022"]), "integer", {"T1 2023": 8092}),
        Odd("halbjahr", of(["1. Hj. 2023", "2. Hj. 2023", "1. Hj. 2024"]), "categorical"),
        Odd("KW", of(["KW 01/2024", "KW 02/2024", "KW 13/2024"]), "integer", says="a week of a year"),
        # Web pages and calls
        Odd(
            "Avg. Session Duration",
            [f"{x // 3600:02d}:{x // 60 % 60:02d}:{x % 60:02d}" for x in seconds],
            "integer",
            {"00:02:13": 133},
            says="a length of time",
        ),
        Odd("bounce rate", texts(lambda x: f"{x:.2f}%", share), number, {"43.50%": 43.5}),
        Odd(
            "views",
            texts(lambda x: f"{x / 1000:.1f}K" if x < 1e6 else f"{x / 1e6:.1f}M", large),
            number,
            {"1.2M": 1.2e6},
        ),
        Odd("size on disk", texts(lambda x: f"{x} KB", whole), "integer", {"12 KB": 12}),
        Odd("page", [f"/shop/{x}/item?id={i}" for i, x in enumerate(whole)], None),
        Odd("user agent", of(["Mozilla/5.0 (X11; Linux)", "Mozilla/5.0 (Windows NT 10.0)"]), "categorical"),
        Odd(
            "last seen",
            of(["3 days ago", "1 day ago", "2 hours ago", "5 minutes ago"]),
            "categorical",
        ),
        Odd("http", [int(x) for x in rng.choice([200, 404, 500, 301], ROWS)], "integer"),
        Odd("status_code", [int(x) for x in rng.choice([200, 404, 500, 301], ROWS)], "categorical"),
        Odd("geoip", [f"{x % 90}.{x:04d}|{x % 50}.{x:04d}" for x in whole * 9], None),
        # And a few more, met on the way
        Odd("location_id", [int(x) for x in rng.integers(1000, 1040, ROWS)], "categorical"),
        Odd("cost of a meal", of(["$", "$$", "$$$", "$$$$"]), "ordinal", {"$": 0, "$$$$": 3}),
        Odd("Kellgren", of(["Grade 0", "Grade 1", "Grade 3", "Grade 2"]), "ordinal", {"Grade 0": 0, "Grade 3": 3}),
        Odd(
            "heure",
            [f"{x // 60:02d}h{x % 60:02d}" for x in seconds % 1440],
            "integer",
            {"02h05": 125},
            says="time of day",
        ),
        Odd("area", texts(lambda x: f"{x * 7} sq ft", whole), "integer", {"850 sq ft": 850}),
        Odd("consumption", texts(lambda x: f"{x / 7:.1f} L/100km", money), None, says="keep the numbers alone"),
        Odd(
            "box",
            [f"{x} x {y} x {x + y} cm" for x, y in zip(whole, whole[::-1], strict=True)],
            None,
            says="several numbers",
        ),
        Odd(
            "device",
            [f"00:1b:{x % 97:02x}:{x % 89:02x}:{x // 7:02x}:{i:02x}" for i, x in enumerate(whole)],
            None,
            says="MAC",
        ),
        Odd(
            "query time",
            [f"{x:%Y-%m-%d} 08:{i % 60:02d}:11 UTC" for i, x in enumerate(days)],
            day,
            {"2024-07-16 12:00:00 UTC": 19920.5},
        ),
        Odd("mail date", [f"{x:%a, %d %b %Y} 08:{i % 60:02d}:11 GMT" for i, x in enumerate(days)], day),
        Odd("access", [f"{x:%d/%b/%Y}:08:{i % 60:02d}:11 +0000" for i, x in enumerate(days)], day),
        Odd("motor", of(["2.0 TSI", "1.6 TDI", "1.4 TSI"]), "categorical"),
        *_times_with_zones(days),
        *_periods(whole),
        *_more_scales(),
        *_more_ids(rng),
        *_padded(rng),
        Odd("American odds", texts(lambda x: f"{x + 100:+d}" if x % 2 else f"{-100 - x:+d}", whole), "integer"),
    ]


def _times_with_zones(days: list[datetime.datetime]) -> list[Odd]:
    french = [f"{x.day}{'er' if x.day == 1 else ''} {FRENCH_MONTHS[x.month - 1]} {x.year}" for x in days]
    return [
        Odd("Created at", [f"{x:%Y-%m-%d} 08:{i % 60:02d}:11 -0500" for i, x in enumerate(days)], "datetime"),
        Odd(
            "form sent",
            [f"{x:%Y/%m/%d} {1 + i % 12}:{i % 60:02d}:11 PM GMT+1" for i, x in enumerate(days)],
            "datetime",
            {"2024/07/16 6:00:00 PM GMT+1": 19920.75},
        ),
        Odd("meeting", [f"{x:%d %b %Y} 08:{i % 60:02d} CET" for i, x in enumerate(days)], "datetime"),
        Odd("web log", [f"{x:%d/%b/%Y}:08:{i % 60:02d}:11 -0700" for i, x in enumerate(days)], "datetime"),
        Odd("relevé", french, "datetime", {"16 juillet 2024": 19920, "1er juillet 2024": 19905}),
        Odd(
            "data nadania",
            [f"{x.day} {POLISH_MONTHS[x.month - 1]} {x.year}" for x in days],
            "datetime",
            {"16 lipca 2024": 19920},
        ),
        Odd(
            "nights",
            [f"{x:%d/%m/%Y} - {x + datetime.timedelta(30):%d/%m/%Y}" for x in days],
            None,
            says="two dates in one cell",
        ),
    ]


def _periods(whole: np.ndarray) -> list[Odd]:
    return [
        Odd("1T", texts(lambda x: f"{1 + x % 4}T{2018 + x % 6}", whole), "integer", {"3T2024": 8098}),
        Odd("earnings", texts(lambda x: f"{1 + x % 4}Q {2018 + x % 6}", whole), "integer", {"3Q 2024": 8098}),
        Odd("half", texts(lambda x: f"H{1 + x % 2} {1998 + x // 2 % 26}", whole), "integer", {"H2 2023": 4047}),
        Odd("week", texts(lambda x: f"2024-KW{1 + x % 52:02d}", whole), "integer", says="a week of a year"),
        Odd("miesiąc", texts(lambda x: f"{POLISH_SHORT[x % 12]} {2018 + x % 6}", whole), "integer"),
        Odd("FY", texts(lambda x: f"{2008 + x % 14}-{(2009 + x % 14) % 100:02d}", whole), "ordinal"),
    ]


def _more_scales() -> list[Odd]:
    return [
        Odd(
            "how satisfied",
            of(["1 - Very dissatisfied", "2", "3", "4", "5 - Very satisfied"]),
            "ordinal",
            {"1 - Very dissatisfied": 0, "2": 1, "5 - Very satisfied": 4},
        ),
        Odd("how likely", of(["0 (not at all)", *map(str, range(1, 10)), "10 (certainly)"]), "ordinal", {"9": 9}),
        Odd("department", of(["1 - Sales", "2 - Finance", "4 - Legal"]), "categorical"),
        Odd(
            "review",
            of(["Below expectations", "Meets expectations", "Exceeds expectations", "Outstanding"]),
            "ordinal",
            {"Below expectations": 0, "Outstanding": 3},
        ),
        Odd("seniority", of(["Junior", "Mid", "Senior", "Lead", "Principal"]), "ordinal", {"Principal": 4}),
        Odd("urine protein", of(["neg", "trace", "1+", "2+", "3+"]), "ordinal", {"neg": 0, "trace": 1, "3+": 4}),
        Odd("energy", of(["A+++", "A++", "A+", "A", "B", "C", "D"]), "ordinal", {"D": 0, "A+++": 6}),
        Odd(
            "Altersgruppe",
            of(["unter 6 Jahre", "6 bis unter 18 Jahre", "18 bis unter 65 Jahre", "65 Jahre und mehr"]),
            "ordinal",
            {"unter 6 Jahre": 0, "65 Jahre und mehr": 3},
        ),
        Odd(
            "ocena",
            of(["zdecydowanie nie", "raczej nie", "trudno powiedzieć", "raczej tak", "zdecydowanie tak"]),
            "ordinal",
            {"zdecydowanie nie": 0, "zdecydowanie tak": 4},
        ),
    ]


def _more_ids(rng: np.random.Generator) -> list[Odd]:
    channels = ["TV", "Radio", "Web", "Print", "Friends", "Post"]
    chosen = ["; ".join(rng.permutation(channels)[: rng.integers(1, 5)]) for _ in range(ROWS)]
    return [
        Odd("MRN", [int(x) for x in rng.integers(10**6, 10**7, ROWS)], None),
        Odd("Invoice Number", [int(x) for x in 400_000 + 7 * rng.permutation(9_000)[:ROWS]], None),
        Odd("PIN code", [int(x) for x in rng.choice([560001, 110001, 400001, 600001], ROWS)], "categorical"),
        Odd("tracking", [f"1Z999AA1{x}" for x in rng.integers(10**9, 10**10, ROWS)], None, says="a different text"),
        Odd("heard of us by", chosen, None, says="lists of answers"),
        Odd("turnover", [f"{x / 7:.1f} {'Cr' if x % 2 else 'Lakh'}" for x in range(ROWS)], None, says="several units"),
    ]


def _padded(rng: np.random.Generator) -> list[Odd]:
    regions = [f"{x:02d}" for x in rng.integers(1, 17, ROWS)]
    expiry = [f"{month:02d}/{rng.integers(25, 32)}" for month in rng.integers(1, 13, ROWS)]
    return [
        Odd("Hour of day", [f"{x:02d}" for x in rng.integers(0, 24, ROWS)], "integer", {"07": 7, "00": 0}),
        Odd("Monat der Lieferung", [f"{x:02d}" for x in rng.integers(1, 13, ROWS)], "integer", {"07": 7, "12": 12}),
        Odd("Bundesland", regions, "categorical"),
        Odd("card_exp", expiry, "integer", {"06/29": 12 * 2029 + 5}),
    ]
