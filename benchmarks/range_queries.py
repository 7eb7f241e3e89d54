"""P(a < x < b | evidence) on a mixed table: truncated draws against 100,000 brute-force draws, and a rare event.

    python benchmarks/range_queries.py [--steps 1000] [--queries 100] [--json benchmarks/results/range_queries.json]

Each of the random queries asks for one event of one to three variables given zero to two exact values and one or two
ranges. Brute force draws rows given the exact values and counts (rejection): it has an error of its own, so z is the
difference over the combined standard error. A correct method leaves |z| < 3 in all but 0.27 % of the queries. The rare
event is asked of the exact bivariate normal, where the truth is known by quadrature.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer
from rich.console import Console
from rich.table import Table
from scipy.integrate import quad
from scipy.stats import norm

import anyorder as ao
from anyorder.heads import Gaussian
from anyorder.model import AnyOrderModel
from anyorder.networks import GaussianNetwork
from anyorder.protocols import Canonical
from anyorder.questions.conditional import Conditional
from anyorder.variables.codecs import LineCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp

from common import machine, write_results

BRUTE = 100_000
FEWEST = 1000  # accepted brute-force rows below which a query is not judged
MOST_BATCHES = 10


def generate(rows: int, seed: int) -> pd.DataFrame:
    """Seven dependent columns of every common kind."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=rows), rng.normal(size=rows)
    group = np.digitize(a + 0.7 * rng.normal(size=rows), [-0.8, 0.3, 1.2])
    return pd.DataFrame(
        {
            "height": 170 + 9 * a,
            "weight": 70 + 8 * a + 6 * b,
            "delay": rng.exponential(1 + group),
            "visits": rng.poisson(1 + np.exp(0.5 * b + 0.3 * a)),
            "region": np.array(["north", "south", "east", "west"])[group],
            "member": np.where(a - b + rng.normal(size=rows) > 0, "yes", "no"),
            "joined": pd.Timestamp("2024-01-01") + pd.to_timedelta((120 + 40 * b).round().clip(0), unit="D"),
        }
    )


def some_range(frame: pd.DataFrame, name: str, rng: np.random.Generator) -> Any:
    """A range between two quantiles of the column, or a set of its levels; sometimes with an open end."""
    column = frame[name]
    if name in ("region", "member"):
        levels = sorted(column.unique())
        chosen = rng.choice(levels, size=rng.integers(1, len(levels)), replace=False)
        return ao.OneOf(*map(str, chosen))
    low, high = sorted(rng.uniform(0, 1, 2))
    high = min(1.0, max(high, low + 0.15))
    ends = [column.quantile(level, interpolation="nearest") for level in (low, high)]
    side = rng.integers(3)
    return ao.Between(None if side == 0 else ends[0], None if side == 1 else ends[1])


def inside(drawn: pd.DataFrame, name: str, said: Any) -> np.ndarray:
    """Which drawn rows agree with what is said."""
    if isinstance(said, ao.OneOf):
        return np.asarray(drawn[name].isin(list(said.levels)))
    hits = np.ones(len(drawn), dtype=bool)
    if said.low is not None:
        hits &= np.asarray(drawn[name] >= said.low)
    if said.high is not None:
        hits &= np.asarray(drawn[name] <= said.high)
    return hits


def one_query(
    model: Any, frame: pd.DataFrame, rng: np.random.Generator, seed: int, draws: int
) -> dict[str, Any] | None:
    """Both answers to one random query, or None where brute force accepts too few rows to judge."""
    names = [str(name) for name in rng.permutation(frame.columns)]
    exact, ranges, asked = (int(rng.integers(low, high)) for low, high in ((0, 3), (1, 3), (1, 4)))
    row = frame.iloc[int(rng.integers(len(frame)))]
    evidence = {name: row[name] for name in names[:exact]}
    given = {name: some_range(frame, name, rng) for name in names[exact : exact + ranges]}
    event = {name: some_range(frame, name, rng) for name in names[exact + ranges : exact + ranges + asked]}
    conditional = model.given({**evidence, **given}).using(draws=draws, seed=seed)
    began = time.perf_counter()
    estimate = conditional.prob(event)
    ours = time.perf_counter() - began
    # Brute force must walk the same chain, since a trained model is not coherent over orders: exact evidence first (a
    # set of one level is exact), then the ranges of the evidence, then the event.
    single = {
        name: said.levels[0] for name, said in given.items() if isinstance(said, ao.OneOf) and len(said.levels) == 1
    }
    rest = {name: said for name, said in given.items() if name not in single}
    began = time.perf_counter()
    accepted: list[pd.DataFrame] = []
    batches = 0
    # At least 100,000 draws; more where too few of them are accepted to judge by.
    while batches < MOST_BATCHES and sum(map(len, accepted)) < FEWEST:
        first = (
            model.given({**evidence, **single}).asking(*rest).sample(BRUTE, seed=10_000 + MOST_BATCHES * seed + batches)
        )
        kept = np.logical_and.reduce(
            [np.ones(BRUTE, dtype=bool), *(inside(first, n, said) for n, said in rest.items())]
        )
        accepted.append(first[kept])
        batches += 1
    rows = pd.concat(accepted, ignore_index=True)
    if len(rows) < FEWEST:
        return None
    hits = _event_hits(model, rows, event, seed)
    theirs = time.perf_counter() - began
    share = float(hits.mean())
    # The error a count would have if our answer were right: that of the score test, good for small counts too.
    error = math.sqrt(max(estimate.value * (1 - estimate.value), 1e-300) / len(hits))
    combined = math.hypot(error, estimate.standard_error)
    shown = ", ".join(f"{name}={said}" for name, said in event.items())
    known = ", ".join(f"{name}={said}" for name, said in {**evidence, **given}.items())
    return {
        "query": f"P({shown} | {known})",
        "estimate": estimate.value,
        "standard_error": estimate.standard_error,
        "brute_force": share,
        "brute_force_error": error,
        "accepted": len(hits),
        "brute_force_draws": batches * BRUTE,
        "z": (estimate.value - share) / combined,
        "seconds": ours,
        "brute_force_seconds": theirs,
    }


def _event_hits(model: Any, rows: pd.DataFrame, event: dict[str, Any], seed: int) -> np.ndarray:
    """Which rows, with the event's variables drawn given what they know, are hits."""
    from anyorder.model.sampling import draws
    from anyorder.query import Query

    core = model.core
    values, known = core.encoding.encode(rows)
    asked = np.zeros_like(known)
    asked[:, [core.schema.index(name) for name in event]] = True
    query = Query(torch.as_tensor(known), torch.as_tensor(asked))
    drawn = core.encoding.decode(draws(core, torch.as_tensor(values), query, seed=seed + 20_000))
    return np.logical_and.reduce([inside(drawn, name, said) for name, said in event.items()])


def rare_event(draws: int) -> list[dict[str, Any]]:
    """Joint tail events of an exact correlated normal, down to far below one in a million."""
    correlation = 0.6
    schema = Schema((Variable("x", Kind.CONTINUOUS), Variable("y", Kind.CONTINUOUS)))
    encoding = Encoding(schema, tuple(LineCodec(variable, Warp.affine(0.0, 1.0)) for variable in schema.variables))
    model = AnyOrderModel.build(encoding, [Gaussian(), Gaussian()], {"name": "gaussian"}, Canonical(), seed=0).double()
    assert isinstance(model.network, GaussianNetwork)
    covariance = torch.tensor([[1.0, correlation], [correlation, 1.0]], dtype=torch.float64)
    model.network.set_moments(torch.zeros(2, dtype=torch.float64), covariance)
    rows = []
    for bound in (2.0, 4.1, 6.0):
        rest = math.sqrt(1 - correlation**2)
        truth = quad(
            lambda x, bound=bound, rest=rest: norm.pdf(x) * norm.sf((bound - correlation * x) / rest), bound, bound + 12
        )[0]
        found = Conditional(model.eval(), draws=draws).prob(f"x > {bound}, y > {bound}")
        rows.append(
            {
                "event": f"x > {bound} and y > {bound}",
                "truth": truth,
                "estimate": found.value,
                "standard_error": found.standard_error,
                "relative_error": found.standard_error / found.value,
                "z": (found.value - truth) / found.standard_error,
                "rows_rejection_would_need": round((found.value / found.standard_error) ** 2 / truth),
            }
        )
    return rows


def main(
    steps: int = 1000,
    queries: int = 100,
    draws: int = 4000,
    seed: int = 0,
    json: Annotated[Path | None, typer.Option(help="write the results here")] = None,
) -> None:
    """Fit, ask, count."""
    torch.set_num_threads(1)
    frame = generate(4000, seed)
    # A small network: what is tested is the arithmetic of ranges, and brute force pays for every draw.
    network = {"name": "residual_mlp", "width": 64, "blocks": 2}
    training = {"steps": steps, "minutes": None}  # not minutes: the same seed must give the same model
    config = {"engine": "neural", "encoding": "standard", "network": network, "training": training}
    began = time.perf_counter()
    model = ao.fit(frame, seed=seed, config=config)
    seconds = time.perf_counter() - began
    rng = np.random.default_rng(seed + 1)
    rows: list[dict[str, Any]] = []
    unjudged = 0
    while len(rows) < queries:
        found = one_query(model, frame, rng, len(rows) + unjudged, draws)
        if found is None:
            unjudged += 1
        else:
            rows.append(found)
    z = np.abs([row["z"] for row in rows])
    # Time for equal errors: brute force needs (its error / ours)^2 as many draws.
    ratios = [
        row["brute_force_seconds"] * (row["brute_force_error"] / row["standard_error"]) ** 2 / row["seconds"]
        for row in rows
        if row["standard_error"] > 0
    ]
    summary = {
        "queries": len(rows),
        "within_1_standard_error": int((z < 1).sum()),
        "within_2_standard_errors": int((z < 2).sum()),
        "within_3_standard_errors": int((z < 3).sum()),
        "expected_within_1": round(0.6827 * len(rows), 1),
        "expected_within_2": round(0.9545 * len(rows), 1),
        "expected_within_3": round(0.9973 * len(rows), 1),
        "largest_z": round(float(z.max()), 2),
        "mean_square_z": round(float((z**2).mean()), 2),
        "queries_too_rare_for_brute_force": unjudged,
        "draws": draws,
        "brute_force_draws": f"{BRUTE} or more",
        "seconds_of_training": round(seconds, 1),
        "median_seconds": round(float(np.median([row["seconds"] for row in rows])), 4),
        "median_seconds_brute_force": round(float(np.median([row["brute_force_seconds"] for row in rows])), 4),
        "median_speed_ratio_at_equal_error": round(float(np.median(ratios)), 1),
    }
    rare = rare_event(draws)
    table = Table("", "value")
    for name, value in summary.items():
        table.add_row(name.replace("_", " "), str(value))
    tails = Table(*(name.replace("_", " ") for name in rare[0]))
    for row in rare:
        tails.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))
    Console(width=140).print(table, tails)
    outside = [
        {name: round(value, 6) if isinstance(value, float) else value for name, value in row.items()}
        for row in rows
        if abs(row["z"]) >= 3
    ]
    for row in outside:
        Console(width=140).print(row)
    if json is not None:
        payload = {
            "title": "Range queries against brute force",
            "about": __doc__.split("\n\n")[2].replace("\n", " "),
            "command": f"python benchmarks/range_queries.py --steps {steps} --queries {queries} --draws {draws}",
            "seed": seed,
            "machine": machine(),
            **summary,
            "outside_3_standard_errors": outside,
            "rare_events": [
                {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in row.items()}
                for row in rare
            ],
        }
        write_results(json, payload)


if __name__ == "__main__":
    typer.run(main)
