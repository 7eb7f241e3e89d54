"""Columns that are always known: is p(target | context) as good in half the time, and what does a wide context cost?

    python benchmarks/context.py --json benchmarks/results/context.json    (an hour)

Concrete and energy, all inputs as context and one target. A fifth of the rows is the test; what is scored is
log p(target | all inputs) of every test row, in nats and in the units of the data. The model without ``context`` has
the whole budget, the one with it half of it; both are free to end sooner. Differences are paired over the rows of all
splits, and their error is that of the mean over splits. Beside them stand two plain regressions: ridge with normal
residuals, and LightGBM with a mixture of normals for its residuals on rows that it has not seen.

Policies: generated tables of 9 actions and a state of 5 to 59 numbers, of which the first five matter. Shown is
log p(actions | state) of test rows per action, and that of the last five given the state and the first four, after the
same budget: nothing of the state is to be learned, so a wider one should cost little.
"""

from __future__ import annotations

import time
import warnings
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.preprocessing import StandardScaler

import anyorder as ao
from anyorder.training.linear import residual_law

import table_sets
from common import Json, Record, Smoke, listed, print_rows

TIMES = ("training", "networks", "heads", "masking", "modalities/tables")
TABLES = ("concrete", "energy")
STATES = (5, 20, 59)
ACTIONS = 9


def split(frame: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Four fifths of the rows, and the rest."""
    order = np.random.default_rng([seed, 20]).permutation(len(frame))
    cut = len(frame) // 5
    return frame.iloc[order[cut:]], frame.iloc[order[:cut]]


def fitted(frame: pd.DataFrame, seconds: float, seed: int, **options: Any) -> tuple[ao.TableModel, dict[str, float]]:
    """A model, and how long it took, on the wall and of the processor."""
    wall, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ao.fit(frame, minutes=seconds / 60, seed=seed, **options)
    return model, {"seconds": time.perf_counter() - wall, "processor": time.process_time() - processor}


def ridge(train: pd.DataFrame, test: pd.DataFrame, target: str) -> NDArray[np.float64]:
    """Log-densities by ridge regression with normal residuals, as broad as on rows that it has not seen."""
    scale = StandardScaler().fit(train.drop(columns=target))
    inputs, values = scale.transform(train.drop(columns=target)), train[target].to_numpy()
    model = RidgeCV(np.logspace(-3, 3, 13))
    left = values - cross_val_predict(model, inputs, values, cv=KFold(5, shuffle=True, random_state=0))
    said = model.fit(inputs, values).predict(scale.transform(test.drop(columns=target)))
    deviation = float(np.sqrt(np.mean(left**2)))
    standard = (test[target].to_numpy() - said) / deviation
    return -0.5 * standard**2 - np.log(deviation) - 0.5 * np.log(2 * np.pi)


def boosted(train: pd.DataFrame, test: pd.DataFrame, target: str) -> NDArray[np.float64]:
    """Log-densities by LightGBM, with the law of its residuals on rows that it has not seen."""
    from lightgbm import LGBMRegressor

    inputs, values = train.drop(columns=target).to_numpy(), train[target].to_numpy()
    model = LGBMRegressor(
        n_estimators=400, learning_rate=0.05, num_leaves=15, subsample=0.8, subsample_freq=1, n_jobs=1, verbose=-1
    )
    left = values - cross_val_predict(model, inputs, values, cv=KFold(5, shuffle=True, random_state=0))
    shares, offsets, log_scales = (
        part.numpy() for part in residual_law(torch.from_numpy(left), float(values.std(ddof=1)))
    )
    off = test[target].to_numpy() - model.fit(inputs, values).predict(test.drop(columns=target).to_numpy())
    standard = (off[:, None] - offsets) / np.exp(log_scales)
    return np.asarray(logsumexp(shares - log_scales - 0.5 * standard**2 - 0.5 * np.log(2 * np.pi), axis=1))


def regressions(name: str, frame: pd.DataFrame, target: str, seconds: float, splits: int) -> list[dict[str, Any]]:
    """Scores of all ways on all splits of a table, each with its difference to the model with context."""
    nats: dict[str, list[NDArray[np.float64]]] = {}
    took: dict[str, list[dict[str, float]]] = {}
    inputs = [column for column in frame.columns if column != target]

    def add(way: str, scores: Any, times: dict[str, float]) -> None:
        nats.setdefault(way, []).append(np.asarray(scores, dtype=np.float64))
        took.setdefault(way, []).append(times)

    for seed in range(splits):
        train, test = split(frame, seed)
        with_context, times = fitted(train, seconds / 2, seed, context=inputs)
        add("context, half the time", with_context.log_prob(test), times)
        without, times = fitted(train, seconds, seed)
        add("without context", without.log_prob(test, given=inputs), times)
        for way, plain in (("ridge", ridge), ("LightGBM", boosted)):
            began = time.perf_counter(), time.process_time()
            scores = plain(train, test, target)
            add(way, scores, {"seconds": time.perf_counter() - began[0], "processor": time.process_time() - began[1]})
        print(name, seed, {way: round(float(own[-1].mean()), 3) for way, own in nats.items()}, flush=True)
    ours = nats["context, half the time"]
    rows = []
    for way, own in nats.items():
        apart = np.array([float((mine - other).mean()) for mine, other in zip(ours, own, strict=True)])
        error = float(apart.std(ddof=1) / len(apart) ** 0.5) if len(apart) > 1 else 0.0
        rows.append(
            {
                "table": name,
                "way": way,
                "nats": round(float(np.mean([part.mean() for part in own])), 4),
                "context_minus": round(float(apart.mean()), 4),
                "error": round(error, 4),
                "seconds": round(float(np.mean([one["seconds"] for one in took[way]])), 1),
                "processor": round(float(np.mean([one["processor"] for one in took[way]])), 1),
            }
        )
    return rows


def demonstrations(rows: int, state: int, seed: int = 0) -> tuple[pd.DataFrame, list[str]]:
    """Actions that bend with the state, and two ways to act that all of them share; the names of the state."""
    rng = np.random.default_rng(seed)
    seen = rng.standard_normal((rows, state))
    hidden = np.tanh(seen[:, :5] @ rng.standard_normal((5, 16)) + rng.standard_normal(16))
    way = rng.choice([-1.0, 1.0], (rows, 1))
    actions = 0.5 * hidden @ rng.standard_normal((16, ACTIONS)) + way * rng.standard_normal(ACTIONS)
    actions += 0.2 * rng.standard_normal(actions.shape)
    names = [f"state_{number}" for number in range(state)]
    frame = pd.DataFrame(seen, columns=names)
    return frame.assign(**{f"action_{number}": actions[:, number] for number in range(ACTIONS)}), names


def policy(rows: int, state: int, seconds: float, engine: str) -> dict[str, Any]:
    """How well actions are known given the state, and given it and four of them, after so many seconds."""
    frame, names = demonstrations(rows, state)
    train, test = split(frame, 0)
    model, times = fitted(train, seconds, 0, context=names, engine=engine)
    four = [f"action_{number}" for number in range(4)]
    whole, part = model.log_prob(test), model.log_prob(test, given=four)
    return {
        "state": state,
        "engine": engine,
        "rows": rows,
        "nats": round(float(whole.mean()) / ACTIONS, 4),
        "error": round(float(whole.std() / len(whole) ** 0.5) / ACTIONS, 4),
        "given_four": round(float(part.mean()) / (ACTIONS - 4), 4),
        "steps": model.card["training"]["steps"],
        **{name: round(value, 1) for name, value in times.items()},
    }


def main(
    tables: Annotated[str, typer.Option(help="concrete, energy")] = ",".join(TABLES),
    seconds: Annotated[float, typer.Option(help="the budget without context")] = 120.0,
    splits: Annotated[int, typer.Option(help="how many splits of each table")] = 5,
    policies: Annotated[bool, typer.Option(help="generated policies too")] = True,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Measure both, and print them."""
    record = Record(json, smoke=smoke)
    if smoke:
        frame, _ = demonstrations(80, 5)
        found = regressions("generated", frame[["state_0", "state_1", "action_0"]], "action_0", 2.0, 2)
        acted = [policy(80, 5, 1.0, "neural")]
    else:
        found = []
        for name in listed(tables, TABLES):
            one = table_sets.load(name)
            found += regressions(name, one.frame, one.targets[0], seconds, splits)
        sizes = STATES if policies else ()
        acted = [policy(20_000, state, seconds, engine) for state in sizes for engine in ("neural", "auto")]
    print_rows(found)
    print_rows(acted)
    about = (
        "Regressions: log p(target | all inputs) of test rows in nats; context minus: what the model with context, in "
        "half the time, has more than the way of the row, the error that of the mean over splits. Policies: generated "
        "tables of nine actions; nats an action given the state, and given it and four other actions."
    )
    record.write(
        {"title": "Columns that are always known", "about": about, "seed": 0}
        | {"regressions": found}
        | {"policies": acted}
    )


if __name__ == "__main__":
    typer.run(main)
