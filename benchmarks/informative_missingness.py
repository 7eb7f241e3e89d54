"""Does it help to model which cells are missing? ``missingness="joint"`` against ``"ignore"``, equal training steps.

    python benchmarks/informative_missingness.py --json benchmarks/results/informative_missingness.json    (minutes)

Generated: z is 0 or 1 and recorded half of the time at random, y = 2 z + noise, missing in 90 % of rows with z = 1
and in 10 % of those with z = 0, w = y + 2 noise, always recorded. The truth of every hole is known, and so is the best
possible answer given what is recorded (Bayes). Scores on holes of new rows: log-score of z, RMSE of y.

Real: log p(class | rest) of chronic kidney disease and hepatitis, whose holes are as they came, over 3 folds; the class
itself is never missing. The difference is paired over rows.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console
from rich.table import Table

import anyorder as ao
from anyorder.data.tables import prepare

from common import Json, Record, Smoke

TIMES = ("variables", "networks", "model", "training", "modalities/tables")
RATE = np.array([0.1, 0.9])  # how often y is missing, by z
FOLDS = 3
REAL = {"chronic kidney disease": "chronic_kidney_disease", "hepatitis": "hepatitis"}
MODES = ("ignore", "joint")


def generated(rows: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The truth, and what is recorded of it."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, rows)
    y = 2 * z + rng.standard_normal(rows)
    truth = pd.DataFrame({"z": np.where(z == 1, "b", "a"), "y": y, "w": y + 2 * rng.standard_normal(rows)})
    recorded = truth.copy()
    recorded.loc[rng.random(rows) < 0.5, "z"] = None
    recorded.loc[rng.random(rows) < RATE[z], "y"] = np.nan
    return truth, recorded


def bayes(recorded: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """p(z = b | the recorded row) and E(y | the recorded row), exactly."""
    z, y, w = (recorded[name].to_numpy() for name in "zyw")
    gone = np.isnan(y.astype(float))
    log_odds = np.where(gone, np.log(RATE[1] / RATE[0]), np.log((1 - RATE[1]) / (1 - RATE[0])))
    # log N(v; 2, s^2) - log N(v; 0, s^2) = 2 (v - 1) / s^2, for y itself or, without it, for w = 2 z + sqrt(5) noise.
    log_odds = log_odds + np.where(gone, 2 * (w - 1) / 5, 2 * (np.where(gone, 0.0, y) - 1))
    chance = np.where(pd.isna(z), 1 / (1 + np.exp(-log_odds)), z == "b")
    return chance, 2 * chance + (w - 2 * chance) / 5


def log_prob_of(model: ao.TableModel, rows: pd.DataFrame, column: str, truth: pd.Series) -> np.ndarray:
    """log p(column = truth | the rest of the row), for a column with levels."""
    others = [name for name in rows.columns if name != column]
    # A level is scored together with "it is there", which is the same for all levels and falls out.
    scores = {
        level: model.log_prob(rows.assign(**{column: level}), given=others, unseen="missing").to_numpy()
        for level in model.schema[column].levels
    }
    total = np.logaddexp.reduce(list(scores.values()), axis=0)
    return np.array([scores[level][row] - total[row] for row, level in enumerate(truth)])


def on_generated(config: dict[str, Any], seed: int, rows: int = 3000) -> dict[str, Any]:
    _, training = generated(rows, seed)
    truth, recorded = generated(2 * rows // 3, seed + 1)
    no_z, no_y = recorded["z"].isna(), recorded["y"].isna()
    chance, mean = bayes(recorded)
    right = np.where(truth["z"] == "b", chance, 1 - chance)[no_z]
    result: dict[str, Any] = {
        "best possible": {"log_score_z": np.log(right).mean(), "rmse_y": rmse(mean[no_y], truth["y"][no_y])}
    }
    for mode in MODES:
        model = ao.fit(training, seed=seed, missingness=mode, config=config)
        nats = log_prob_of(model, recorded[no_z], "z", truth["z"][no_z])
        filled = model.fill(recorded)["y"]
        result[mode] = {"log_score_z": nats.mean(), "rmse_y": rmse(filled[no_y], truth["y"][no_y])}
    return {name: {key: round(float(value), 4) for key, value in row.items()} for name, row in result.items()}


def on_real(file: Path, config: dict[str, Any], seed: int) -> dict[str, Any]:
    table = pd.read_csv(file, na_values=["?"])
    table["class"] = table["class"].astype(str)
    # What a column is (whole numbers or not) is read from all rows: one fold may have none of the odd ones.
    kinds = {v.name: str(v.kind) for v in prepare(table, kinds={"class": "categorical"})[0].variables}
    fold = np.random.default_rng(seed).permutation(len(table)) % FOLDS
    nats = {mode: np.zeros(len(table)) for mode in MODES}
    for held_out in range(FOLDS):
        training, test = table[fold != held_out], table[fold == held_out]
        for mode in MODES:
            model = ao.fit(training, seed=seed, missingness=mode, kinds=kinds, config=config)
            nats[mode][fold == held_out] = log_prob_of(
                model, test.reset_index(drop=True), "class", test["class"].reset_index(drop=True)
            )
    gain = nats["joint"] - nats["ignore"]
    return {
        "rows": len(table),
        "missing": round(float(table.isna().mean(axis=None)), 4),
        **{mode: round(float(nats[mode].mean()), 4) for mode in MODES},
        "gain": round(float(gain.mean()), 4),
        "standard_error": round(float(gain.std(ddof=1) / np.sqrt(len(gain))), 4),
    }


def rmse(answer: Any, truth: Any) -> float:
    return float(np.sqrt(np.mean((np.asarray(answer) - np.asarray(truth)) ** 2)))


def main(
    steps: Annotated[int, typer.Option(help="training steps of each fit")] = 300,
    seed: int = 0,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Fit both ways, and score what is missing."""
    record = Record(json, smoke=smoke)
    if smoke:
        steps = 2
    warnings.filterwarnings("ignore", message="values never seen")  # a level that one fold alone has
    config = {"training": {"minutes": 10, "steps": steps}}
    made = on_generated(config, seed, 120 if smoke else 3000)
    table = Table("generated", "log-score of missing z", "RMSE of missing y")
    for name, row in made.items():
        table.add_row(name, f"{row['log_score_z']:.3f}", f"{row['rmse_y']:.3f}")
    Console().print(table)
    real = {}
    folder = None if smoke else os.environ.get("ANYORDER_DATA")
    for name, file in REAL.items():
        if folder is not None and (Path(folder) / f"{file}.csv.gz").exists():
            real[name] = on_real(Path(folder) / f"{file}.csv.gz", config, seed)
    table = Table("log p(class | rest), nats", "cells missing", *MODES, "gain")
    for name, row in real.items():
        gain = f"{row['gain']:+.3f} ± {row['standard_error']:.3f}"
        table.add_row(name, f"{row['missing']:.0%}", *(f"{row[mode]:.3f}" for mode in MODES), gain)
    Console().print(table)
    about = (
        "Holes of a generated table: log-score (nats) of the missing level z and RMSE of the missing number y, beside "
        "the best possible answer; then log p(class | rest) of two real tables, paired over rows. ``ignore`` is the "
        "plain baseline: the same model that does not look at which cells are missing."
    )
    settings = {"steps": steps, "folds": FOLDS}
    payload = {"title": "Informative missingness", "about": about, "seed": seed, "settings": settings}
    record.write(payload | {"generated": made, "real": real})


if __name__ == "__main__":
    typer.run(main)
