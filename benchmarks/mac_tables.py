"""MAC's Tables 4 and 5: marginal and conditional log-likelihood on five sets, at equal training time.

    python benchmarks/mac_tables.py [--minutes 5] [--seeds 3] [--json FILE]    (half a day)

Marginals are of the first k columns, as in ACE and in MAC's Table 4. Conditionals are p(rest | known) with every cell
known with probability one half, as in ACE's code (Table 5). One mask per test row, the same for every model, at most
2,000 test rows, the same for every row and seed. Nats, in the units of MAF's prepared data. The ± of a row's mean is
the standard error over test rows. Two rows of the table are compared on the same test rows and seeds: the error of
their difference has one part of the test rows (paired) and one of the seeds, and a ranking is called resolved where the
difference is more than twice that.

Rows: a full-covariance Gaussian in closed form; one residual MLP with a mixture head in the random order of ARDM, and
trained and asked in MAC's order (marginal and conditional queries in equal parts, as MAC did for these tables); then
the default order with the head exchanged: an energy that tilts the mixture, by importance sampling and by quadrature;
the energy as ACE has it, without the proposal as a factor, blocks and components as MAC's appendix says (widths are
our guess; 200 draws after training); the mixture;
the spline. All of these standardise the columns and nothing else, so that only what the row names varies. Last,
anyorder as it comes.

The complete sets are used where $ANYORDER_DATA or the cache has them (see anyorder.data.density_sets); else the parts
that are at hand, and the results say so. A set of which nothing is at hand (GAS and HEPMASS, unless fetched by hand) is
named and left out. Parts are kept in ``--work`` and made again only when the library has changed.
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

import parts
import smoke_data
from closed_forms import Gaussian
from common import Json, Record, Smoke, commit, listed, print_rows

TIMES = ("variables", "heads", "networks", "model", "training", "modalities/tables")
Array = NDArray[np.float64]
# Few validations of few queries: with importance sampling they would take more of the energy head's time than training.
STANDARD: dict[str, Any] = {
    "engine": "neural",
    "encoding": "standard",
    "folds": 1,  # one network
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
    "energy head as in ACE": {
        **STANDARD,
        "heads": {"continuous": {"name": "ace_energy", "evaluation_draws": 200}},
    },
    "mixture head": STANDARD,
    "spline head": {**STANDARD, "heads": {"continuous": {"name": "spline"}}},
    "anyorder default": {},
}
SETS = {
    "power": (3, 5, 6),
    "gas": (3, 5, 8),
    "hepmass": (3, 5, 10),
    "miniboone": (3, 5, 10),
    "bsds300": (3, 5, 10),
}
GENERATED = {"generated": (1, 2)}  # of a smoke run
PRINTED: dict[str, dict[str, tuple[float, ...]]] = {  # MAC's Tables 4 and 5: the marginals, then the conditional
    "power": {
        "SPFlow": (-0.63, 1.01, -0.12, -1.03),
        "ACFlow": (-0.57, 1.34, 0.42, 0.56),
        "ACE": (-0.56, 1.42, 0.58, 0.63),
        "MAC": (-0.55, 1.43, 0.61, 0.65),
    },
    "gas": {
        "SPFlow": (0.68, 1.88, 4.81, 4.30),
        "ACFlow": (0.78, 3.01, 10.13, 8.09),
        "ACE": (1.31, 4.31, 12.20, 9.64),
        "MAC": (1.59, 4.98, 13.02, 9.77),
    },
    "hepmass": {
        "SPFlow": (-4.01, -6.58, -13.38, -12.78),
        "ACFlow": (-4.03, -6.19, -11.58, -8.20),
        "ACE": (-4.00, -5.91, -10.72, -3.86),
        "MAC": (-4.00, -5.90, -10.69, -3.05),
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
PART_FILES = {
    "power": "power_maf_style.npz",
    "bsds300": "bsds300_patches_u8.npz",
    "miniboone": "miniboone_maf_first1523.npz",
}
MOST_TEST_ROWS = 2000
COMPARED = (("MAC order", "ARDM order"), ("anyorder default", "energy head, importance"))
"""Rows whose difference is what the papers are about."""


class NotAtHandError(Exception):
    """Neither the set nor a part of it is on this machine."""


def load(name: str) -> tuple[Array, Array, bool]:
    """Training rows, test rows, and whether the set is complete."""
    if name in GENERATED:
        train, test = smoke_data.halves()
        return train.to_numpy(), test.to_numpy(), True
    try:
        data = density_sets.load(name, download=False)
        return data.train, data.test, True
    except UserError as error:
        path = Path(os.environ.get("ANYORDER_DATA", "no-folder-of-data")) / PART_FILES.get(name, "no-part-of-it")
        if not path.exists():
            raise NotAtHandError(str(error)) from error
    with np.load(path) as parts_of:
        if name == "power":
            return parts_of["train"].astype(float), parts_of["test"].astype(float), False
        if name == "bsds300":
            return _vectors(parts_of["train"], seed=1), _vectors(parts_of["test"], seed=0), False
        rows = parts_of["x"]
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
    """Train one row on one set and ask it everything: the nats of every test row, by heading."""
    train, test, complete = load(name)
    test = test[np.random.default_rng(0).permutation(len(test))[:MOST_TEST_ROWS]]
    columns = [f"x{place}" for place in range(train.shape[1])]
    asked = questions(name, len(test), len(columns))
    config, nats, began = ROWS[row], {}, time.monotonic()
    if config is None:
        gaussian = Gaussian(train)
        fitted = time.monotonic() - began
        for heading, (known, wanted) in asked.items():
            nats[heading] = gaussian.log_prob(test, known, wanted)
        steps = 0
    else:
        kinds = dict.fromkeys(columns, "continuous")
        frame, rows = pd.DataFrame(train, columns=columns), pd.DataFrame(test, columns=columns)
        model = ao.fit(frame, minutes=minutes, seed=seed, kinds=kinds, config=config)
        fitted = time.monotonic() - began
        for heading, (known, wanted) in asked.items():
            given = pd.DataFrame(known, columns=columns)
            nats[heading] = model.log_prob(rows.mask(~(known | wanted)), given=given, seed=seed).to_numpy()
        steps = model.card["training"]["steps"]
    asking = time.monotonic() - began - fitted
    facts = {"train": len(train), "test": len(test), "complete": complete, "steps": steps}
    shown = {heading: np.asarray(values).round(4).tolist() for heading, values in nats.items()}
    return {"nats": shown, "seconds": round(fitted, 1), "asking": round(asking, 1), **facts}


def code_of(row: str) -> str:
    """The version of the code that decides a row."""
    return parts.digest(
        row, repr(ROWS[row]), files=(Path(__file__).with_name("closed_forms.py"),), library=row != "Gaussian"
    )


def main(
    minutes: Annotated[float, typer.Option(help="training budget of every row")] = 5.0,
    sets: Annotated[str, typer.Option(help="comma-separated; all by default")] = "",
    rows: Annotated[str, typer.Option(help="semicolon-separated; all by default")] = "",
    seeds: Annotated[int, typer.Option(min=1, help="trainings of every row")] = 3,
    work: Annotated[Path, typer.Option(help="where parts are kept")] = Path("build/mac_tables"),
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Run row by row, and print a table per set."""
    torch.set_num_threads(1)
    record = Record(json, "mac_tables.json", smoke=smoke)
    names, chosen = listed(sets, list(SETS)), listed(rows, list(ROWS), ";")
    if smoke:
        minutes, names, seeds, work = smoke_data.MINUTES, list(GENERATED), 1, record.beside(work)
        chosen = ["Gaussian", "MAC order", "ARDM order", "anyorder default"]
    missing, there = [], []
    for name in names:
        try:
            load(name)
            there.append(name)
        except NotAtHandError as error:
            missing.append(name)
            print(f"{name} is not at hand and left out: {error}")
    options = {"minutes": minutes, "seeds": seeds, "not_at_hand": missing}
    trained = len(there) * sum(1 if ROWS[row] is None else seeds for row in chosen)
    print(f"{trained} trainings of {minutes:g} minutes: {trained * minutes * 1.15 / 60:.1f} hours if none is there yet")
    found: dict[str, Any] = {}
    for seed in range(seeds):  # one seed of everything first: a run that is stopped has something to show
        for name in there:
            for row in chosen:
                if ROWS[row] is None and seed:
                    continue  # the same for every seed
                path = work / f"{name}-{row.replace(', ', '-').replace(' ', '-')}-{minutes:g}-{seed}.json"
                result = parts.done(path, code_of(row))
                if result is None:
                    result = run(name, row, minutes, seed) | {"code": code_of(row), **commit()}
                    parts.write(path, result)
                    means = {heading: f"{np.mean(nats):.2f}" for heading, nats in result["nats"].items()}
                    Console(width=120).print(f"{name}, {row}, seed {seed}: {means}, {result['steps']} steps")
                found.setdefault(name, {}).setdefault(row, []).append(result)
                record.write(payload(found, options))
    for name, lines in payload(found, options).items():
        if name in SETS | GENERATED or name == "differences":
            print(name)
            print_rows(lines)


def payload(found: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The tables as the documentation shows them, and the figures behind them."""
    tables: dict[str, Any] = {}
    details: dict[str, Any] = {}
    for name, firsts in (SETS | GENERATED).items():
        if name not in found:
            continue
        lines = []
        for row in [row for row in ROWS if row in found[name]]:
            runs = found[name][row]
            lines.append({"row": row, **{heading: shown(runs, heading) for heading in runs[0]["nats"]}})
            lines[-1] |= {"seeds": len(runs), "seconds": _mean(runs, "seconds"), "steps": round(_mean(runs, "steps"))}
            details.setdefault(name, {})[row] = [
                {heading: round(float(np.mean(nats)), 4) for heading, nats in one["nats"].items()}
                | {fact: one[fact] for fact in ("train", "test", "complete", "steps", "seconds", "asking")}
                for one in runs
            ]
        headings = [*(f"first {first}" for first in firsts), "conditional"]
        for row, figures in PRINTED.get(name, {}).items():
            lines.append({"row": f"{row}, printed", **dict(zip(headings, (f"{x:.2f}" for x in figures), strict=True))})
        tables[name] = lines
    incomplete = [name for name in tables if not all(one["complete"] for runs in found[name].values() for one in runs)]
    every = [one for rows in found.values() for runs in rows.values() for one in runs]
    missing = options["not_at_hand"]
    said = [PARTIAL[name] for name in incomplete]
    if incomplete:
        said.append(
            "The printed figures are of the complete sets: near ours in meaning, not comparable to the last digit."
        )
    if missing:
        said.append(f"Not at hand, and so not run: {', '.join(missing)}.")
    return {
        "title": "MAC's Tables 4 and 5: marginals of the first k columns, and conditionals",
        "about": "Mean test log-likelihood in nats (higher is better), plus or minus its standard error over at most "
        f"{MOST_TEST_ROWS} test rows; means over seeds. Conditional: every cell is known with probability one half, as "
        f"in ACE's code. Every row but the Gaussian trains for {options['minutes']:g} minutes on one thread; all but "
        "the last standardise the columns and differ from 'mixture head' only in what they name. Differences are on "
        "the same test rows and seeds; a ranking is resolved where the difference is more than twice its error.",
        "partial": " ".join(said),
        "seed": list(range(options["seeds"])),
        **tables,
        "differences": comparisons(found),
        "details": {"options": options, "by_set": details, "commits": parts.of_one_version(every)},
    }


def shown(runs: list[dict[str, Any]], heading: str) -> str:
    """The mean over seeds and test rows, with the standard error over test rows."""
    nats = np.mean([one["nats"][heading] for one in runs], axis=0)
    return f"{nats.mean():.2f} ± {nats.std(ddof=1) / math.sqrt(len(nats)):.2f}"


def comparisons(found: dict[str, Any]) -> list[dict[str, Any]]:
    """One row less another, by set and heading, and whether their ranking is resolved."""
    lines = []
    for name, rows in found.items():
        for one, other in COMPARED:
            pairs = list(zip(rows.get(one, []), rows.get(other, []), strict=False))
            if not pairs:
                continue
            line: dict[str, Any] = {"set": name, "difference": f"{one} less {other}", "seeds": len(pairs)}
            resolved = []
            for heading in pairs[0][0]["nats"]:
                difference, error = paired([(a["nats"][heading], b["nats"][heading]) for a, b in pairs])
                line[heading] = f"{difference:+.3f} ± {error:.3f}"
                resolved.append(heading if abs(difference) > 2 * error else None)
            line["resolved"] = ", ".join(filter(None, resolved)) or "nothing"
            if len(pairs) == 1:
                line["resolved"] = "unknown: one seed"
            lines.append(line)
    return lines


def paired(seeds: list[tuple[list[float], list[float]]]) -> tuple[float, float]:
    """The mean difference and its error: over test rows, of the mean over seeds, and over seeds, of the mean over rows.

    With one seed the second part is unknown and left out, so that error is too small.
    """
    gaps = np.array([np.subtract(one, other) for one, other in seeds])
    rows = gaps.mean(axis=0).std(ddof=1) / math.sqrt(gaps.shape[1])
    trainings = gaps.mean(axis=1).std(ddof=1) / math.sqrt(len(gaps)) if len(gaps) > 1 else 0.0
    return float(gaps.mean()), math.hypot(float(rows), float(trainings))


def _mean(runs: list[dict[str, Any]], fact: str) -> float:
    return round(float(np.mean([one[fact] for one in runs])), 1)


if __name__ == "__main__":
    typer.run(main)
