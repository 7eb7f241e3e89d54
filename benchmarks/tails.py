"""How often and how far draws leave the range that was seen, beside held-out cells and a Gaussian's draws.

    python benchmarks/tails.py [--tables concrete,wine] --json benchmarks/results/tails.json    (an hour)

Of every table four fifths of the rows are fitted; in the others three cells in ten are hidden and filled by so many
draws that there are 100,000 numbers in all. Printed: the share of drawn numbers beyond the range of their column in the
fitted rows, the share of held-out cells there, and the share that exchangeable rows have on average (1 / (n + 1) a
side, less where a column has ties or bounds at its ends); the farthest draw, in widths of that range; the root of the
mean square error, in standard deviations, of the mean of 20 draws and of all draws over that of the point fill. The
obvious alternative draws from a Gaussian with the column's mean and deviation. Each table says whether it was seen
while the library was tuned.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

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
    filled = model.fill(holes, draws=rounds, seed=seed)
    point = model.fill(holes)
    beyond = alternative = outside = known = farthest = strange = 0.0
    expected: list[float] = []
    errors: dict[str, list[np.ndarray]] = {"few": [], "all": [], "point": []}
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
        expected.append(2 / (len(column) + 1))
        truth = test[name].to_numpy(float)[here]
        for label, guess in (
            ("few", drawn[:FEW].mean(0)),
            ("all", drawn.mean(0)),
            ("point", point[name].to_numpy(float)[here]),
        ):
            errors[label].append(((guess - truth) / deviation) ** 2)
    rmse = {label: float(np.sqrt(np.concatenate(parts).mean())) for label, parts in errors.items()}
    return {
        "rows": len(train),
        "numbers": len(numeric),
        "draws": rounds * cells,
        "beyond": beyond / (rounds * cells),
        "held_out_beyond": outside / known,
        "exchangeable": float(np.mean(expected)),
        "farthest": farthest,
        "gaussian_beyond": alternative / (rounds * cells),
        "gaussian_farthest": strange,
        "rmse_point": rmse["point"],
        "rmse_20_draws": rmse["few"] / rmse["point"],
        "rmse_all_draws": rmse["all"] / rmse["point"],
    }


def main(
    tables: Annotated[str, typer.Option(help="tables, separated by commas; all by default")] = "",
    engine: str = "auto",
    minutes: float = 0.5,
    seeds: int = 1,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    record = Record(json, smoke=smoke)
    rows = []
    for name in ["smoke"] if smoke else (tables.split(",") if tables else list(table_sets.NAMES)):
        frame = smoke_data.numbers(200, 3) if smoke else table_sets.load(name).frame
        options: dict[str, Any] = {"engine": engine, "minutes": 0.02 if smoke else minutes}
        for seed in range(seeds):
            found = measured(frame, options, 2_000 if smoke else DRAWS, seed)
            rows.append({"table": name, "tuned_on": name in table_sets.TUNING, "seed": seed, **found})
            print_rows(rows[-1:])
    record.write(
        {
            "title": "Draws beyond the range that was seen",
            "about": __doc__.split("\n\n")[2],
            "seed": 0,
            "options": {"engine": engine, "minutes": minutes, "seeds": seeds},
            "rows": rows,
        }
    )


if __name__ == "__main__":
    typer.run(main)
