"""How many planted errors are found: twelve wrong cells in a table, which is then fitted with them and searched.

    python benchmarks/planted_errors.py --json benchmarks/results/planted_errors.json    (some minutes)

Twelve cells of a clean table (the rows of ``table_sets.py`` without holes) are spoiled. The rule is fixed: in turn, a
number lies beyond the range of its column by 0.3 to 1.3 of its width (a slipped digit or sign), or takes the value of
the row that is farthest from its own in that column (a swap); rows and columns are drawn. Columns of numbers have more
than 20 values, and a planted number is as precise as its column. Where there are columns of three or more levels, the
last two errors are other levels there; else they are numbers too. The model is fitted to the spoiled table, as a user
would, and its ``anomalies`` are listed: a planted error is found if its row stands among the first 20.

Beside it, on the same tables, the plain alternatives: the largest standard scores of single columns; an isolation
forest (rows); and what a regression of every column on the others, cross-fitted in five folds, finds least probable:
ridge and logistic regression, or LightGBM, with residuals over their median absolute deviation taken for normal. Last,
the scores of the whole model, which has seen the rows, in place of the parts that have not. Errors that no method finds
may not be findable: the greatest value of a column can be usual in the row that it was moved to.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer
from lightgbm import LGBMClassifier, LGBMRegressor
from scipy.stats import norm
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import anyorder as ao
from anyorder.model.leave_out import folds
from anyorder.tasks.anomalies import cell_scores

import smoke_data
import table_sets
from common import Json, Record, Smoke, listed, print_rows

TIMES = ("variables", "heads", "networks", "model", "training", "modalities/tables", "tasks/anomalies.py")
PLANTED, LOOKED_AT = 12, 20
TABLES = ("penguins", "wine", "concrete", "pima")


def table(name: str) -> pd.DataFrame:
    """The rows of a table that have no holes."""
    return table_sets.load(name).frame.dropna().reset_index(drop=True)


def spoiled(frame: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, list[tuple[int, str]]]:
    """The table with twelve wrong cells in as many rows, and where they are."""
    rng = np.random.default_rng(seed)
    out = frame.copy()
    numeric = [name for name in frame.columns if frame[name].dtype.kind in "if" and frame[name].nunique() > 20]
    levels = [name for name in frame.columns if frame[name].dtype.kind not in "if" and frame[name].nunique() > 2]
    rows = rng.choice(len(frame), PLANTED, replace=False).tolist()
    planted = []
    for number, row in enumerate(rows):
        name = str(rng.choice(levels if number >= 10 and levels else numeric))
        column, value = frame[name], frame[name].iloc[row]
        if name in levels:
            others = [level for level in column.unique() if level != value]
            wrong: Any = others[int(rng.integers(len(others)))]
        elif number % 2:
            wrong = column.iloc[int((column - value).abs().argmax())]
        else:
            low, high = column.min(), column.max()
            beyond = (0.3 + rng.random()) * (high - low)
            wrong = high + beyond if rng.random() < 0.5 else low - beyond
            wrong = type(value)(round(float(wrong), decimals(column)))
        out.loc[row, name] = wrong
        planted.append((row, name))
    return out, planted


def decimals(column: pd.Series) -> int:
    """With how many digits after the point the column was recorded, at most six."""
    return next((digits for digits in range(6) if np.allclose(column, column.round(digits), rtol=0, atol=1e-9)), 6)


def found_in(ranked: list[tuple[int, str]], planted: list[tuple[int, str]]) -> tuple[int, int]:
    """Planted rows and planted cells among the first."""
    first = ranked[:LOOKED_AT]
    rows = {row for row, _ in first}
    return sum(row in rows for row, _ in planted), sum(cell in first for cell in planted)


def standard_scores(frame: pd.DataFrame) -> list[tuple[int, str]]:
    """Cells by how many standard deviations they lie from their column's mean; levels by how rare they are."""
    scores: dict[tuple[int, str], float] = {}
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            each = ((column - column.mean()) / column.std()).abs()
        else:
            each = -np.log(column.map(column.value_counts(normalize=True)).astype(float))
        scores |= {(row, name): float(score) for row, score in enumerate(each)}
    return sorted(scores, key=lambda cell: -scores[cell])


def isolation_forest(frame: pd.DataFrame, seed: int) -> list[tuple[int, str]]:
    """Rows by how few random cuts set them apart; no cell is named."""
    inputs = pd.get_dummies(frame).astype(float)
    scores = IsolationForest(n_estimators=300, random_state=seed).fit(inputs).score_samples(inputs)
    return [(int(row), "") for row in np.argsort(scores)]


def regressions(frame: pd.DataFrame, seed: int, *, trees: bool) -> list[tuple[int, str]]:
    """Cells by how probable they are given the rest of their row, by a regression that has not seen it."""
    plain: dict[str, Any] = {
        "n_estimators": 100,
        "learning_rate": 0.08,
        "num_leaves": 15,
        "min_child_samples": 10,
        "verbose": -1,
    }
    plain |= {"n_jobs": 1, "random_state": seed}
    nats: dict[tuple[int, str], float] = {}
    for name in frame.columns:
        inputs = pd.get_dummies(frame.drop(columns=name)).to_numpy(float)
        number = pd.api.types.is_numeric_dtype(frame[name])
        column = frame[name].to_numpy(float) if number else pd.factorize(frame[name])[0]
        found = np.zeros(len(frame))
        for learn, judge in KFold(5, shuffle=True, random_state=seed).split(inputs):
            if number:
                model: Any = LGBMRegressor(**plain) if trees else make_pipeline(StandardScaler(), Ridge())
                found[judge] = column[judge] - model.fit(inputs[learn], column[learn]).predict(inputs[judge])
            else:
                logistic = LogisticRegression(max_iter=1000)
                model = LGBMClassifier(**plain) if trees else make_pipeline(StandardScaler(), logistic)
                probable = model.fit(inputs[learn], column[learn]).predict_proba(inputs[judge])
                # A level that was not learned from has no probability.
                each = np.full((len(judge), column.max() + 1), 1e-12)
                each[:, model.classes_] = probable.clip(1e-12)
                found[judge] = np.log(each[np.arange(len(judge)), column[judge]])
        if number:
            spread = 1.4826 * np.median(np.abs(found - np.median(found))) or found.std() or 1.0
            found = np.log(2) + norm.logsf(np.abs(found) / spread)
        nats |= {(row, str(name)): float(each) for row, each in enumerate(found)}
    return sorted(nats, key=lambda cell: nats[cell])


def run(name: str, frame: pd.DataFrame, minutes: float, seed: int) -> list[dict[str, Any]]:
    """One table, spoiled and searched in every way."""
    wrong, planted = spoiled(frame, seed)
    model = ao.fit(wrong, minutes=minutes, seed=seed)
    unseen = [(one.row, one.column) for one in model.anomalies(wrong, top=LOOKED_AT)]
    nats, tail = cell_scores(model.core, wrong, whole=True)
    order = np.lexsort([-nats.to_numpy().ravel(), tail.to_numpy().ravel()])
    seen = [(int(at) // frame.shape[1], str(frame.columns[int(at) % frame.shape[1]])) for at in order]
    lines = []
    for way, ranked in (
        (f"parts that have not seen the row ({folds(model.core)} folds)", unseen),
        ("the whole model, which has", seen),
        ("standard scores", standard_scores(wrong)),
        ("isolation forest", isolation_forest(wrong, seed)),
        ("linear regressions", regressions(wrong, seed, trees=False)),
        ("LightGBM", regressions(wrong, seed, trees=True)),
    ):
        rows, cells = found_in(ranked, planted)
        line = {"table": name, "seed": seed, "scored by": way, "rows found": rows, "cells found": cells}
        lines.append({**line, "of": len(planted)})
    return lines


def main(
    minutes: Annotated[float, typer.Option(help="training budget per table")] = 0.5,
    tables: Annotated[str, typer.Option(help="comma-separated; all by default")] = "",
    seeds: Annotated[int, typer.Option(help="how many sets of errors a table")] = 1,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Spoil, fit, search, print."""
    torch.set_num_threads(1)
    record, names = Record(json, smoke=smoke), listed(tables, table_sets.at_hand(TABLES))
    frames = {"generated": smoke_data.numbers()} if smoke else {name: table(name) for name in names}
    minutes = smoke_data.MINUTES if smoke else minutes
    rows = [line for name, frame in frames.items() for seed in range(seeds) for line in run(name, frame, minutes, seed)]
    print_rows(rows)
    record.write(
        {
            "title": "Planted errors",
            "about": f"{PLANTED} wrong cells in a table that is fitted with them ({minutes:g} minutes); found: among "
            f"the {LOOKED_AT} least probable cells.",
            "seed": 0,
            "rows": rows,
        }
    )


if __name__ == "__main__":
    typer.run(main)
