"""Which trees? Four ways to make p(x_i | x_e) out of trees, compared on held-out *training* rows of three tables.

    python benchmarks/tree_design.py --json benchmarks/results/tree_design.json    (about ten minutes)

Every design sees the same cells beside the same random subsets of their rows, 30 % of all cells hidden, and answers
with probabilities of the same bins: a *forest* by the histograms in its leaves; a *hierarchy* of boosted yes/no
classifiers, halving the bins again and again; one boosted *classifier* over all bins; *either* of the two last, the
classifier where every value of the column has its own bin. Judged by CRPS of hidden cells (in standard deviations) and
by the log-probability of their bins; the forest is the plain baseline. The standard test rows are not touched.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import lightgbm
import numpy as np
import pandas as pd
import typer
from rich.console import Console
from sklearn.ensemble import RandomForestRegressor

from anyorder.training.trees.growing import random_subsets

import smoke_data
from common import Json, Record, Smoke, print_rows

TIMES = ("training/trees",)
TREES = 100
BINS, HIDDEN, DRAWS = 24, 0.3, 50
BASE = {"verbose": -1, "num_threads": 1, "learning_rate": 0.15, "num_leaves": 15, "lambda_l2": 1.0, "seed": 0}
Design = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int, int], np.ndarray]


def forest(
    inputs: np.ndarray, codes: np.ndarray, values: np.ndarray, asked: np.ndarray, bins: int, repeats: int
) -> Any:
    trees = RandomForestRegressor(TREES, min_samples_leaf=repeats // 2, max_features=0.5, random_state=0, n_jobs=1)
    trees.fit(inputs, values)
    here, there = trees.apply(inputs), trees.apply(asked)
    total = np.zeros((len(asked), bins))
    for tree in range(here.shape[1]):
        leaves = np.zeros((here[:, tree].max() + 1, bins))
        np.add.at(leaves, (here[:, tree], codes), 1.0)
        total += (leaves / leaves.sum(axis=1, keepdims=True).clip(1))[there[:, tree]]
    return total / here.shape[1]


def hierarchy(
    inputs: np.ndarray, codes: np.ndarray, values: np.ndarray, asked: np.ndarray, bins: int, repeats: int
) -> Any:
    probs = np.zeros((len(asked), bins))

    def split(rows: np.ndarray, low: int, high: int, mass: np.ndarray) -> None:
        counts = np.bincount(codes[rows], minlength=bins)[low:high]
        if high - low == 1 or not counts.sum():
            probs[:, low:high] += mass[:, None] / (high - low)
            return
        middle = low + 1 + int(np.argmin(np.abs(np.cumsum(counts)[:-1] - counts.sum() / 2)))
        upper = codes[rows] >= middle
        share = np.full(len(asked), upper.mean())
        if 0 < upper.sum() < len(upper):
            options = {**BASE, "objective": "binary", "min_data_in_leaf": repeats}
            data = lightgbm.Dataset(inputs[rows], upper.astype(float), params=options)
            share = np.asarray(lightgbm.train(options, data, 60).predict(asked))
        split(rows[~upper], low, middle, mass * (1 - share))
        split(rows[upper], middle, high, mass * share)

    split(np.arange(len(codes)), 0, bins, np.ones(len(asked)))
    return probs


def classifier(
    inputs: np.ndarray, codes: np.ndarray, values: np.ndarray, asked: np.ndarray, bins: int, repeats: int
) -> Any:
    options = {**BASE, "objective": "multiclass", "num_class": bins, "min_data_in_leaf": repeats}
    return lightgbm.train(options, lightgbm.Dataset(inputs, codes, params=options), 40).predict(asked)


def either(
    inputs: np.ndarray, codes: np.ndarray, values: np.ndarray, asked: np.ndarray, bins: int, repeats: int
) -> Any:
    design = classifier if len(np.unique(values)) <= bins else hierarchy
    return design(inputs, codes, values, asked, bins, repeats)


DESIGNS: dict[str, Design] = {"forest": forest, "hierarchy": hierarchy, "classifier": classifier, "either": either}


def judge(frame: pd.DataFrame, design: Design, repeats: int, seed: int) -> tuple[float, float]:
    """Mean CRPS and mean log-probability of the bin over the hidden cells of every fifth row."""
    generator = np.random.default_rng(seed)
    table = frame.to_numpy(dtype=float)[generator.permutation(len(frame))]
    seen = generator.random(table.shape) > HIDDEN
    cut = len(table) // 5
    crps, nats = [], []
    for column in range(table.shape[1]):
        known = np.flatnonzero(seen[cut:, column]) + cut
        values = table[known, column]
        distinct = np.unique(values)
        edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS))
        if len(distinct) <= BINS:
            edges = (distinct[1:] + distinct[:-1]) / 2
        codes = np.searchsorted(edges, values, side="right")
        many = np.repeat(np.arange(len(known)), repeats)
        shown = random_subsets(len(many), table.shape[1], generator) & seen[known][many]
        shown[:, column] = False
        hidden = np.flatnonzero(~seen[:cut, column])
        mask = seen[hidden].copy()
        mask[:, column] = False
        asked = np.where(mask, table[hidden], np.nan)
        inputs = np.where(shown, table[known][many], np.nan)
        probs = design(inputs, codes[many], values[many], asked, len(edges) + 1, repeats)
        probs = 0.99 * probs / probs.sum(axis=1, keepdims=True) + 0.01 / probs.shape[1]
        truth = table[hidden, column]
        nats.extend(np.log(probs[np.arange(len(hidden)), np.searchsorted(edges, truth, side="right")]))
        draws = np.stack([_drawn(row, codes, values, generator) for row in probs])
        order = np.sort(draws, axis=1)
        weights = 2 * np.arange(1, DRAWS + 1) - DRAWS - 1
        spread = (order * weights).sum(axis=1) / (DRAWS * (DRAWS - 1))
        crps.extend((np.abs(draws - truth[:, None]).mean(axis=1) - spread) / values.std())
    return float(np.mean(crps)), float(np.mean(nats))


def _drawn(probs: np.ndarray, codes: np.ndarray, values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Draws of a bin, then of a value seen in it."""
    weights = probs[codes] / np.bincount(codes, minlength=len(probs))[codes]
    return generator.choice(values, DRAWS, p=weights / weights.sum())


def training_rows(name: str) -> pd.DataFrame:
    """The training rows of the first standard split."""
    if "ANYORDER_DATA" not in os.environ:
        raise SystemExit("set ANYORDER_DATA to the folder that has the tables")
    folder = Path(os.environ["ANYORDER_DATA"])
    with np.load(folder / f"uci_{name}_splits.npz") as splits:
        return pd.read_csv(folder / f"uci_{name}.csv.gz").iloc[splits["train_0"]]


def main(
    repeats: Annotated[int, typer.Option(help="how often each cell is shown")] = 20,
    seeds: Annotated[int, typer.Option(help="splits of the training rows")] = 3,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Run the comparison and print it."""
    record, rows = Record(json, smoke=smoke), []
    if smoke:
        repeats, seeds = 4, 2
    for name in ("generated",) if smoke else ("yacht", "energy", "concrete"):
        frame = smoke_data.numbers(100, 3) if smoke else training_rows(name)
        for label, design in DESIGNS.items():
            began = time.process_time()
            scores = np.array([judge(frame, design, repeats, seed) for seed in range(seeds)])
            mean, error = scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(seeds)
            rows.append(
                {
                    "set": name,
                    "design": label,
                    "CRPS": f"{mean[0]:.3f} ± {error[0]:.3f}",
                    "log p(bin)": f"{mean[1]:.3f} ± {error[1]:.3f}",
                    "processor seconds": round((time.process_time() - began) / seeds, 1),
                }
            )
            Console().print(rows[-1])
    print_rows(rows)
    payload = {
        "title": "Trees for every conditional: four designs",
        "about": "Hidden cells of held-out training rows, mean over splits ± standard error; smaller CRPS and "
        "larger log-probability are better. Engine 'trees' grows 'either', in several sets with shifted bins.",
        "seed": 0,
        "rows": rows,
    }
    record.write(payload)


if __name__ == "__main__":
    typer.run(main)
