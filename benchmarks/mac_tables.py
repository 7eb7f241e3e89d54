"""MAC's Tables 4 and 5: marginal and conditional log-likelihood on POWER and BSDS300, at equal training time.

    python benchmarks/mac_tables.py [--minutes 1.5] [--resume] [--json FILE]    (an hour)

Marginals are of the first k columns, as in ACE and in MAC's Table 4. Conditionals are p(rest | known) with every cell
known with probability one half, as in ACE's code (Table 5). One mask per test row, the same for every model, at most
2,000 test rows; ± is the standard error over them. Nats, in the units of MAF's prepared data.

Rows: a full-covariance Gaussian in closed form; one residual MLP with a mixture head in the random order of ARDM, and
trained and asked in MAC's order (marginal and conditional queries in equal parts, as MAC did for these tables); then
the default order with the head exchanged: ACE's energy with importance sampling and with quadrature, the mixture, the
spline. All of these standardise the columns and nothing else, so that only what the row names varies. Last, anyorder as
it comes.

The complete sets are used where $ANYORDER_DATA or the cache has them (see anyorder.data.density_sets); else the parts
that are at hand, and the results say so.
"""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer
from numpy.typing import NDArray
from rich.console import Console

import anyorder as ao
from anyorder.data import density_sets
from anyorder.errors import UserError
from tables_small import ORDERS

import smoke_data
from closed_forms import Gaussian
from common import Json, Record, Smoke, listed, print_rows

TIMES = ("variables", "heads", "networks", "model", "training", "modalities/tables")
Array = NDArray[np.float64]
# Few validations of few queries: with importance sampling they would take more of the energy head's time than training.
STANDARD: dict[str, Any] = {
    "engine": "neural",
    "encoding": "standard",
    "training": {"validate_every": 200, "validation_queries": 500},
}
ROWS: dict[str, dict[str, Any] | None] = {
    "Gaussian": None,
    "ARDM order": {**STANDARD, **ORDERS["ARDM"]},
    "MAC order": {**STANDARD, **ORDERS["MAC, evidence too"]},
    "energy head, importance": {
        **STANDARD,
        "heads": {"continuous": {"name": "energy", "normaliser": "importance"}},
    },
    "energy head, quadrature": {
        **STANDARD,
        "heads": {"continuous": {"name": "energy", "normaliser": "quadrature"}},
    },
    "mixture head": STANDARD,
    "spline head": {**STANDARD, "heads": {"continuous": {"name": "spline"}}},
    "anyorder default": {},
}
SETS = {"power": (3, 5, 6), "bsds300": (3, 5, 10), "miniboone": (3, 5, 10)}
GENERATED = {"generated": (1, 2)}  # of a smoke run
PRINTED: dict[str, dict[str, tuple[float, ...]]] = {  # MAC's Tables 4 and 5: the marginals, then the conditional
    "power": {
        "SPFlow": (-0.63, 1.01, -0.12, -1.03),
        "ACFlow": (-0.57, 1.34, 0.42, 0.56),
        "ACE": (-0.56, 1.42, 0.58, 0.63),
        "MAC": (-0.55, 1.43, 0.61, 0.65),
    },
    "bsds300": {
        "SPFlow": (-2.87, -4.42, -8.15, -24.15),
        "ACFlow": (5.06, 9.26, 19.60, 81.83),
        "ACE": (5.10, 9.37, 20.31, 86.70),
        "MAC": (5.10, 9.37, 20.33, 86.05),
    },
    "miniboone": {
        "SPFlow": (-2.21, -4.31, -9.85, -18.34),
        "ACFlow": (-2.76, -5.31, -10.36, -0.97),
        "ACE": (-2.13, -3.80, -7.94, 0.31),
        "MAC": (-2.12, -3.76, -7.76, 0.07),
    },
}
PARTIAL = {
    "power": "POWER here is the first six and a half months of four years (282,636 of 2,075,259 minutes), prepared by "
    "the same steps, with noise on the time as well.",
    "bsds300": "BSDS300 here is rebuilt from the pictures: other patches, cut at random, 100,000 and not a million.",
    "miniboone": "MINIBOONE here is a smoke test: the first 1,523 of 36,488 rows, split and standardised by ourselves.",
}
MOST_TEST_ROWS = 2000


def load(name: str) -> tuple[Array, Array, bool]:
    """Training rows, test rows, and whether the set is complete."""
    if name in GENERATED:
        train, test = smoke_data.halves()
        return train.to_numpy(), test.to_numpy(), True
    try:
        data = density_sets.load(name, download=False)
        return data.train, data.test, True
    except UserError as error:
        folder = Path(os.environ.get("ANYORDER_DATA", ""))
        files = {
            "power": "power_maf_style.npz",
            "bsds300": "bsds300_patches_u8.npz",
            "miniboone": "miniboone_maf_first1523.npz",
        }
        path = folder / files[name]
        if not path.exists():
            raise SystemExit(f"{error}\n(nor is there a part of it: {path.name})") from error
    with np.load(path) as parts:
        if name == "power":
            return parts["train"].astype(float), parts["test"].astype(float), False
        if name == "bsds300":
            return _vectors(parts["train"], seed=1), _vectors(parts["test"], seed=0), False
        rows = parts["x"]
    train, test = rows[:1300], rows[1300:]
    return (train - train.mean(axis=0)) / train.std(axis=0), (test - train.mean(axis=0)) / train.std(axis=0), False


def _vectors(patches: NDArray[np.uint8], seed: int) -> Array:
    """Grey levels with uniform noise, scaled to [0, 1), less their mean; the last pixel is then redundant and goes."""
    noise = np.random.RandomState(seed).rand(len(patches), 64)
    rows = (patches.reshape(len(patches), 64) + noise) / 256.0
    return np.asarray((rows - rows.mean(axis=1, keepdims=True))[:, :-1])


def questions(name: str, rows: int, columns: int) -> dict[str, tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """What is known and what is asked, by the heading of its column."""
    out = {}
    for first in (SETS | GENERATED)[name]:
        asked = np.zeros((rows, columns), dtype=bool)
        asked[:, :first] = True
        out[f"first {first}"] = (np.zeros_like(asked), asked)
    known = np.random.default_rng(7).random((rows, columns)) < 0.5
    out["conditional"] = (known, ~known)
    return out


def run(name: str, row: str, minutes: float, seed: int) -> dict[str, Any]:
    """Train one row on one set and ask it everything."""
    train, test, complete = load(name)
    test = test[np.random.default_rng(0).permutation(len(test))[:MOST_TEST_ROWS]]
    columns = [f"x{place}" for place in range(train.shape[1])]
    asked = questions(name, len(test), len(columns))
    config, scores, began = ROWS[row], {}, time.monotonic()
    if config is None:
        gaussian = Gaussian(train)
        fitted = time.monotonic() - began
        for heading, (known, wanted) in asked.items():
            scores[heading] = summary(gaussian.log_prob(test, known, wanted))
        steps = 0
    else:
        kinds = dict.fromkeys(columns, "continuous")
        frame, rows = pd.DataFrame(train, columns=columns), pd.DataFrame(test, columns=columns)
        model = ao.fit(frame, minutes=minutes, seed=seed, kinds=kinds, config=config)
        fitted = time.monotonic() - began
        for heading, (known, wanted) in asked.items():
            given = pd.DataFrame(known, columns=columns)
            scores[heading] = summary(model.log_prob(rows.mask(~(known | wanted)), given=given, seed=seed).to_numpy())
        steps = model.card["training"]["steps"]
    asking = time.monotonic() - began - fitted
    facts = {"train": len(train), "test": len(test), "complete": complete, "steps": steps}
    return {"scores": scores, "seconds": round(fitted, 1), "asking": round(asking, 1), **facts}


def summary(nats: Array) -> tuple[float, float]:
    return float(nats.mean()), float(nats.std(ddof=1) / math.sqrt(len(nats)))


def main(
    minutes: Annotated[float, typer.Option(help="training budget of every row")] = 1.5,
    sets: Annotated[str, typer.Option(help="comma-separated; all by default")] = "",
    rows: Annotated[str, typer.Option(help="semicolon-separated; all by default")] = "",
    seed: int = 0,
    resume: Annotated[bool, typer.Option(help="do only what the JSON file lacks")] = False,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Run row by row, and print a table per set."""
    torch.set_num_threads(1)
    record = Record(json, "mac_tables.json", smoke=smoke)
    names, chosen = listed(sets, list(SETS)), listed(rows, list(ROWS), ";")
    if smoke:
        minutes, names = smoke_data.MINUTES, list(GENERATED)
        chosen = ["Gaussian", "MAC order", "anyorder default"]
    options = {"minutes": minutes, "seed": seed}
    found: dict[str, Any] = record.earlier(options, "by_set") if resume else {}
    for name in names:
        for row in chosen:
            if row in found.get(name, {}):
                continue
            found.setdefault(name, {})[row] = run(name, row, minutes, seed) | {"run": record.number}
            Console(width=120).print(f"{name}, {row}: {found[name][row]}")
            record.write(payload(found, options))
    for name, lines in payload(found, options).items():
        if name in SETS | GENERATED:
            print(name)
            print_rows(lines)


def payload(found: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The tables as the documentation shows them, and the figures behind them."""
    tables: dict[str, Any] = {}
    for name, firsts in (SETS | GENERATED).items():
        if name not in found:
            continue
        lines = []
        for row in ROWS:
            if row in found[name]:
                result = found[name][row]
                shown = {heading: f"{mean:.2f} ± {error:.2f}" for heading, (mean, error) in result["scores"].items()}
                lines.append({"row": row, **shown, "seconds": result["seconds"], "steps": result["steps"]})
        headings = [*(f"first {first}" for first in firsts), "conditional"]
        for row, figures in PRINTED.get(name, {}).items():
            lines.append({"row": f"{row}, printed", **dict(zip(headings, (f"{x:.2f}" for x in figures), strict=True))})
        tables[name] = lines
    incomplete = [name for name in tables if not all(row["complete"] for row in found[name].values())]
    minutes = options["minutes"]
    return {
        "title": "MAC's Tables 4 and 5: marginals of the first k columns, and conditionals",
        "about": "Mean test log-likelihood in nats (higher is better), plus or minus its standard error over at most "
        f"{MOST_TEST_ROWS} test rows. Conditional: every cell is known with probability one half, as in ACE's code. "
        f"Every row but the Gaussian trains for {minutes:g} minutes on one thread; all but the last standardise the "
        "columns and differ from 'mixture head' only in what they name.",
        "partial": " ".join(
            [PARTIAL[name] for name in incomplete]
            + ["The printed figures are of the complete sets: near ours in meaning, not comparable to the last digit."]
            * bool(incomplete)
        ),
        "seed": options["seed"],
        **tables,
        **comparison(found.get("power", {})),
        "details": {"options": options, "by_set": found},
    }


def comparison(power: dict[str, Any]) -> dict[str, Any]:
    """The default against the energy head with importance sampling, on POWER: the difference of the means."""
    ours, energy = power.get("anyorder default"), power.get("energy head, importance")
    if ours is None or energy is None:
        return {}
    row = {}
    for heading, (mean, error) in ours["scores"].items():
        other, its_error = energy["scores"][heading]
        # As if the two were independent: on the same rows the error of the difference is smaller.
        row[heading] = f"{mean - other:+.2f} ± {math.hypot(error, its_error):.2f}"
    return {"default_minus_energy_head_on_power": [row]}


if __name__ == "__main__":
    typer.run(main)
