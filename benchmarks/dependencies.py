"""Columns that fix others: how many impossible pairs are drawn and filled in, recognising dependencies and without.

    python benchmarks/dependencies.py --json benchmarks/results/dependencies.json    (some 20 minutes)

A generated table of 11,934 rows: a city (40 of them, some rare), its code (one to one), its country (many to one), and
four columns besides. Each engine is fitted with the option ``dependencies`` and without; what is compared is the share
of impossible pairs in draws and in fills of rows with 30 % of the cells hidden, the probability of the one right code
given each city (the mean over cities and the least), the log-likelihood of held-out rows, and seconds.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

import anyorder as ao

import smoke_data
from common import Json, Record, Smoke, listed

TIMES = ("heads", "networks", "model", "training", "modalities/tables")
ROWS, HELD_OUT, DRAWN = 11_934, 2_000, 10_000
CITIES, COUNTRIES, HIDDEN = 40, 8, 0.3
PAIRS = (("city", "code"), ("city", "country"), ("code", "country"))
ENGINES = ("neural", "trees", "auto")


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    """Rows of people in cities."""
    rng = np.random.default_rng(seed)
    share = np.random.default_rng(1).dirichlet(np.ones(CITIES))  # the same cities for every seed
    city = rng.choice(CITIES, rows, p=share)
    country = city * COUNTRIES // CITIES
    segment = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    income = np.exp(rng.normal(3 + 0.2 * country + 0.3 * segment, 0.5))
    age = np.clip(rng.normal(45 + 3 * segment, 12), 18, 90).round().astype(int)
    buys = rng.random(rows) < 1 / (1 + np.exp(-(income - 60) / 30))
    return pd.DataFrame(
        {
            "city": [f"city {k}" for k in city],
            "code": [f"C{7 * k % CITIES:02d}" for k in city],
            "country": [f"land {k}" for k in country],
            "segment": [f"segment {k}" for k in segment],
            "income": income.round(2),
            "age": age,
            "buys": np.where(buys, "yes", "no"),
        }
    )


def impossible(frame: pd.DataFrame, truth: pd.DataFrame) -> float:
    """The share of rows with a pair of levels that no row of the truth has; the largest of all pairs."""
    shares = []
    for pair in PAIRS:
        seen = set(truth[list(pair)].itertuples(index=False, name=None))
        shares.append(np.mean([row not in seen for row in frame[list(pair)].itertuples(index=False, name=None)]))
    return float(max(shares))


def measured(model: ao.TableModel, truth: pd.DataFrame, held_out: pd.DataFrame, drawn: int) -> dict[str, Any]:
    hidden = held_out.mask(np.random.default_rng(2).random(held_out.shape) < HIDDEN)
    began = time.perf_counter()
    sample = model.sample(drawn, seed=0)
    sampling = time.perf_counter() - began
    code = dict(truth[["city", "code"]].itertuples(index=False, name=None))
    right = [model.given(city=city)["code"].probs()[code[city]] for city in sorted(code)]
    return {
        "impossible_drawn": impossible(sample, truth),
        "impossible_filled": impossible(model.fill(hidden, draws=1, seed=0)[0], truth),
        "right_code_mean": float(np.mean(right)),
        "right_code_least": float(np.min(right)),
        "log_likelihood": float(model.log_prob(held_out).mean()),
        "draw_seconds": sampling,
    }


def main(
    engines: Annotated[str, typer.Option(help="comma-separated; all by default")] = "",
    minutes: Annotated[float, typer.Option(help="training budget of each fit")] = 1.0,
    seed: int = 0,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Fit with and without, and print the shares side by side."""
    record, chosen, rows, held, drawn = Record(json, smoke=smoke), listed(engines, ENGINES), ROWS, HELD_OUT, DRAWN
    if smoke:
        minutes, chosen, rows, held, drawn = smoke_data.MINUTES, ["neural"], 1_500, 50, 50
    truth = table(rows + held, seed)
    training, held_out = truth.iloc[:rows], truth.iloc[rows:]
    found = []
    for engine in chosen:
        for on in (False, True):
            began = time.perf_counter()
            model = ao.fit(training, engine=engine, minutes=minutes, seed=seed, config={"dependencies": on})
            row: dict[str, Any] = {"engine": engine, "dependencies": "recognised" if on else "off"}
            row["fit_seconds"] = time.perf_counter() - began
            row |= measured(model, truth, held_out, drawn)
            found.append({name: round(value, 5) if isinstance(value, float) else value for name, value in row.items()})
            print(pd.DataFrame(found).to_string(index=False), flush=True)
    for off, on in zip(found[::2], found[1::2], strict=True):
        print(
            f"{off['engine']}: impossible pairs {off['impossible_drawn']:.2%} -> {on['impossible_drawn']:.2%} drawn, "
            f"{off['impossible_filled']:.2%} -> {on['impossible_filled']:.2%} filled"
        )
    about = (
        f"{rows:,} generated rows in which a city fixes its code (one to one) and its country (many to one); "
        f"{minutes:g} minutes a fit. Shares of {drawn:,} drawn rows, and of {held:,} rows filled after {HIDDEN:.0%} "
        "of their cells were hidden, that have an impossible pair; the probability of the right code given its city."
    )
    record.write({"title": "Columns that fix others", "about": about, "seed": seed, "rows": found})


if __name__ == "__main__":
    typer.run(main)
