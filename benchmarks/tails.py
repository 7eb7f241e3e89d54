"""How often and how far draws leave the range that was seen, beside held-out cells and a Gaussian's draws.

    python benchmarks/tails.py [--tables concrete,wine] --json benchmarks/results/tails.json    (an hour)

Of every table four fifths of the rows are fitted; in the others three cells in ten are hidden and filled by so many
draws that there are 100,000 numbers in all. Printed, pooled over several splits: the share of drawn numbers beyond the
range of their column in the fitted rows, and the share of held-out cells there, with how many these are: too few, as a
rule, to be compared with. So beside it stands the share that held-out cells have on average over all splits of the same
table, which is known without a model: a cell lies beyond if all cells as far out are held out with it (1 / (n + 1) a
side where no two cells are equal, next to nothing at an end that many share). The ratio of drawn to expected, with its
standard error over the splits; the farthest draw, in widths of the range; the root of the mean square error, in
standard deviations, of the mean of 20 draws and of all draws over that of the point fill. However good the draws, the
mean of 20 of them is off by a twentieth of their variance more than the mean of all: draws as wide as the errors are
cost the root of 1 + 1/20, which is 1.025. What the spread of these draws makes of it stands beside the ratio as
expected. The obvious alternative draws from a Gaussian with the column's mean and deviation. Each table says whether it
was seen while the library was tuned.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from scipy.special import gammaln

import anyorder as ao

import smoke_data
import table_sets
from common import Json, Record, Smoke, print_rows

TIMES = ("variables", "heads", "training", "tasks/imputation.py", "modalities/tables")
HIDDEN = 0.3
DRAWS = 100_000
FEW = 20


def measured(frame: pd.DataFrame, options: dict[str, Any], draws: int, seed: int) -> dict[str, Any]:
    """Fit most rows, hide cells of the others, and look where the draws for them lie."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(frame))
    cut = round(0.8 * len(frame))
    train, test = frame.iloc[order[:cut]], frame.iloc[order[cut:]]
    model = ao.fit(train, seed=seed, progress=False, **options)
    numeric = [v.name for v in model.schema.variables if v.kind in ("continuous", "integer", "spiked")]
    hidden = pd.DataFrame((rng.random(test.shape) < HIDDEN) & test.notna().to_numpy(), test.index, test.columns)
    holes = test.mask(hidden)
    cells = int(hidden[numeric].to_numpy().sum())
    rounds = max(FEW, math.ceil(draws / cells))
    filled = model.fill(holes, draws=rounds, seed=seed, unseen="missing")
    point = model.fill(holes, unseen="missing")
    beyond = alternative = outside = known = farthest = strange = 0.0
    expected = 0.0
    errors: dict[str, list[np.ndarray]] = {"few": [], "all": [], "point": [], "spread": []}
    for name in numeric:
        column, here = train[name].dropna().to_numpy(float), hidden[name].to_numpy()
        low, high, deviation = column.min(), column.max(), column.std()
        drawn = np.stack([one[name].to_numpy(float)[here] for one in filled])
        excess = np.maximum(drawn - high, low - drawn)
        beyond += float((excess > 0).sum())
        farthest = max(farthest, float(excess.max(initial=-np.inf)) / (high - low))
        plain = rng.normal(column.mean(), deviation, drawn.shape)
        alternative += float(((plain > high) | (plain < low)).sum())
        strange = max(strange, float(np.maximum(plain - high, low - plain).max(initial=-np.inf)) / (high - low))
        actual = test[name].dropna().to_numpy(float)
        outside += float(((actual > high) | (actual < low)).sum())
        known += len(actual)
        expected += float(here.sum()) * expected_beyond(frame[name].dropna().to_numpy(float), len(column))
        truth = test[name].to_numpy(float)[here]
        for label, guess in (
            ("few", drawn[:FEW].mean(0)),
            ("all", drawn.mean(0)),
            ("point", point[name].to_numpy(float)[here]),
        ):
            errors[label].append(((guess - truth) / deviation) ** 2)
        errors["spread"].append(drawn.var(axis=0, ddof=1) / deviation**2)
    rmse = {label: float(np.sqrt(np.concatenate(parts).mean())) for label, parts in errors.items()}
    more = rmse["spread"] ** 2 * (1 / FEW - 1 / rounds)
    return {
        "rows": len(train),
        "numbers": len(numeric),
        "draws": rounds * cells,
        "beyond": beyond / (rounds * cells),
        "expected_beyond": expected / cells,
        "held_out_beyond": outside / known,
        "held_out_cells": int(outside),
        "farthest": farthest,
        "gaussian_beyond": alternative / (rounds * cells),
        "gaussian_farthest": strange,
        "rmse_point": rmse["point"],
        "rmse_20_draws": rmse["few"] / rmse["point"],
        "rmse_20_expected": math.sqrt(rmse["all"] ** 2 + more) / rmse["point"],
        "rmse_all_draws": rmse["all"] / rmse["point"],
    }


def expected_beyond(column: np.ndarray, fitted: int) -> float:
    """The share of held-out cells of a column that lie beyond the fitted ones, on average over all splits.

    A cell lies beyond if it is held out and so are all the others that lie as far out or further: g cells in all, which
    happens in C(N - g, fitted) of the C(N, fitted) splits.
    """
    count, ascending = len(column), np.sort(column)
    total = 0.0
    for ordered in (ascending, -ascending[::-1]):
        as_far = count - np.searchsorted(ordered, ordered, side="left")
        as_far = as_far[as_far <= count - fitted]
        held_out = gammaln(count - as_far + 1) - gammaln(count - as_far - fitted + 1)
        total += float(np.exp(held_out - gammaln(count + 1) + gammaln(count - fitted + 1)).sum())
    return total / (count - fitted)


def pooled(splits: list[dict[str, Any]]) -> dict[str, Any]:
    """Several splits of one table as one line: means, the farthest of all, and the ratio with its error."""
    line = {name: float(np.mean([split[name] for split in splits])) for name in splits[0]}
    line |= {name: max(split[name] for split in splits) for name in ("farthest", "gaussian_farthest")}
    line |= {name: sum(split[name] for split in splits) for name in ("draws", "held_out_cells")}
    line |= {name: splits[0][name] for name in ("rows", "numbers")}
    ratios = [split["beyond"] / max(split["expected_beyond"], 1e-12) for split in splits]
    spread = float(np.std(ratios, ddof=1) / math.sqrt(len(ratios))) if len(ratios) > 1 else math.nan
    return {"ratio": float(np.mean(ratios)), "ratio_error": spread, **line}


def main(
    tables: Annotated[str, typer.Option(help="tables, separated by commas; all by default")] = "",
    engine: str = "auto",
    minutes: float = 0.5,
    splits: Annotated[int, typer.Option(help="random splits a table")] = 3,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    record = Record(json, smoke=smoke)
    rows = []
    for name in ["smoke"] if smoke else (tables.split(",") if tables else list(table_sets.NAMES)):
        frame = smoke_data.numbers(200, 3) if smoke else table_sets.load(name).frame
        options: dict[str, Any] = {"engine": engine, "minutes": 0.02 if smoke else minutes}
        few, draws = (2, 2_000) if smoke else (splits, math.ceil(DRAWS / splits))
        found = pooled([measured(frame, options, draws, seed) for seed in range(few)])
        rows.append({"table": name, "tuned_on": name in table_sets.TUNING, "splits": few, **found})
        print_rows(rows[-1:])
    record.write(
        {
            "title": "Draws beyond the range that was seen",
            "about": __doc__.split("\n\n")[2],
            "seed": 0,
            "options": {"engine": engine, "minutes": minutes, "splits": splits},
            "rows": rows,
        }
    )


if __name__ == "__main__":
    typer.run(main)
