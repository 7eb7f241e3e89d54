"""Fourteen real tables for benchmarks, each labelled: seen while the library was tuned, or not.

``TUNING`` tables may be looked at while defaults are chosen. ``UNSEEN`` tables are only for the benchmark itself: their
scores are not looked at before the code is final, so they say how well the defaults travel. Files come from the folder
ANYORDER_DATA, three tables from scikit-learn. A table is what a user would load: units as recorded, cells that are
really missing as NaN, levels as texts, no noise added. ``targets`` are the columns that are asked given all the others
(``single_columns.py``): one class or one number, or one of each, fixed here before anything was measured.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

TUNING = ("concrete", "energy", "yacht", "penguins", "pima", "wine", "hepatitis")
UNSEEN = ("titanic", "adult", "kidney", "diabetes", "breast_cancer", "miniboone", "power")
NAMES = (*TUNING, *UNSEEN)
ROWS = 3000
"""Longer tables are cut to so many rows, drawn once, so that every method can be run on them."""


@dataclass(frozen=True)
class Source:
    """Where a table is, which of its columns hold levels, and which of its columns are asked for."""

    file: str | None
    targets: tuple[str, ...]
    categorical: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    zero_is_missing: tuple[str, ...] = ()


# Everything else is a number, also grades such as specific gravity, albumin and sugar, which have an order.
SOURCES = {
    "concrete": Source("uci_concrete.csv.gz", ("compressive_strength_mpa",)),
    "energy": Source("uci_energy.csv.gz", ("heating_load_Y1",)),
    "yacht": Source("uci_yacht.csv.gz", ("residuary_resistance",)),
    "penguins": Source("palmer_penguins.csv.gz", ("sex", "body_mass_g"), ("species", "island", "sex")),
    "pima": Source(
        "pima_diabetes.csv.gz",
        ("diabetes", "bmi"),
        ("diabetes",),
        zero_is_missing=("glucose", "blood_pressure", "skin_thickness", "insulin", "bmi"),
    ),
    "wine": Source(None, ("class", "alcohol"), ("class",)),
    "hepatitis": Source(
        "hepatitis.csv.gz",
        ("class", "albumin"),
        (
            *("class", "sex", "steroid", "antivirals", "fatigue", "malaise", "anorexia", "liver_big", "liver_firm"),
            *("spleen_palpable", "spiders", "ascites", "varices", "histology"),
        ),
    ),
    "titanic": Source(
        "titanic.csv.gz",
        ("survived", "fare"),
        ("survived", "pclass", "sex", "embarked"),
        dropped=("name", "ticket", "cabin"),
    ),
    "adult": Source(
        "adult_train.csv.gz",
        ("income", "age"),
        (
            *("workclass", "education", "marital_status", "occupation"),
            *("relationship", "race", "sex", "native_country", "income"),
        ),
    ),
    "kidney": Source(
        "chronic_kidney_disease.csv.gz",
        ("htn", "hemo"),
        ("rbc", "pc", "pcc", "ba", "htn", "dm", "cad", "appet", "pe", "ane", "class"),
    ),
    "diabetes": Source(None, ("sex", "progression"), ("sex",)),
    "breast_cancer": Source(None, ("class", "mean smoothness"), ("class",)),
    "miniboone": Source("miniboone_maf_first1523.npz", ("x42",)),
    "power": Source("power_household_raw_2006-12_2007-06.npz", ("voltage",)),
}


@dataclass(frozen=True)
class TableSet:
    """A whole table with what its columns are."""

    name: str
    frame: pd.DataFrame
    kinds: dict[str, str]
    targets: tuple[str, ...]

    @property
    def label(self) -> str:
        """``tuning`` or ``unseen``."""
        return label(self.name)

    @property
    def levels(self) -> dict[str, list[str]]:
        """The levels of each categorical column, in all rows, sorted."""
        return {
            name: sorted(self.frame[name].dropna().unique())
            for name, kind in self.kinds.items()
            if kind == "categorical"
        }


def label(name: str) -> str:
    """Whether the table was there to be looked at while the library was tuned."""
    return "tuning" if name in TUNING else "unseen"


def at_hand(names: Sequence[str] = NAMES) -> list[str]:
    """Those of the tables that can be loaded here."""
    return [name for name in names if SOURCES[name].file is None or _path(name).exists()]


def load(name: str, widest: int | None = None) -> TableSet:
    """The named table.

    Parameters
    ----------
    name
        One of ``NAMES``.
    widest
        Wider tables are thinned to so many columns, evenly spaced, targets always among them.

    """
    source = SOURCES[name]
    frame = _read(name)
    for column in source.zero_is_missing:
        frame[column] = frame[column].replace(0, np.nan)
    frame = frame.drop(columns=list(source.dropped))
    if len(frame) > ROWS:
        kept = np.sort(np.random.default_rng(0).choice(len(frame), ROWS, replace=False))
        frame = frame.iloc[kept].reset_index(drop=True)
    if widest is not None and frame.shape[1] > widest:
        others = [column for column in frame.columns if column not in source.targets]
        spaced = np.linspace(0, len(others) - 1, widest - len(source.targets)).round().astype(int)
        chosen = {*source.targets, *(others[place] for place in spaced)}
        frame = frame[[column for column in frame.columns if column in chosen]]
    kinds = {column: "categorical" if column in source.categorical else "numeric" for column in frame.columns}
    for column, kind in kinds.items():
        frame[column] = frame[column].astype("float64") if kind == "numeric" else _texts(frame[column])
    return TableSet(name, frame, kinds, source.targets)


def _texts(column: pd.Series) -> pd.Series:
    """Levels as Python texts with None for unknown; whole numbers (0, 1) without a decimal point."""

    def text(cell: Any) -> str | None:
        if pd.isna(cell):
            return None
        return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)

    return pd.Series([text(cell) for cell in column], index=column.index, dtype="object")


def _read(name: str) -> pd.DataFrame:
    if name == "wine":
        return load_wine(as_frame=True).frame.rename(columns={"target": "class"})
    if name == "breast_cancer":
        return load_breast_cancer(as_frame=True).frame.rename(columns={"target": "class"})
    if name == "diabetes":
        return load_diabetes(as_frame=True, scaled=False).frame.rename(columns={"target": "progression"})
    path = _path(name)
    if not path.exists():
        raise FileNotFoundError(f"{SOURCES[name].file} is not at hand; set ANYORDER_DATA to the folder that has it")
    if name == "miniboone":
        with np.load(path) as file:
            return pd.DataFrame(file["x"], columns=[f"x{column}" for column in range(file["x"].shape[1])])
    if name == "power":
        with np.load(path) as file:
            names = ("active_power", "reactive_power", "voltage", "intensity", "kitchen", "laundry", "heating")
            readings = pd.DataFrame(file["values"] * file["scale"], columns=list(names)).round(3)
            readings["minute_of_day"] = file["minute_of_day"]
            return readings[~file["missing"]].reset_index(drop=True)
    return pd.read_csv(path, na_values=["?", ""], keep_default_na=True)


def _path(name: str) -> Path:
    return Path(os.environ.get("ANYORDER_DATA", "no-folder-of-data")) / str(SOURCES[name].file)
