"""The questions of :mod:`latency`, run in a process of their own by whatever code ``PYTHONPATH`` names.

Only what every release has is used, so that an older one can be measured by the same lines.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import anyorder as ao

LEVELS = [0.05, 0.5, 0.95]
GIVEN = {"alcohol": 13.0, "hue": 1.0, "ash": 2.3}


def fit(path: str, minutes: str, engine: str) -> None:
    """A model of the wines of scikit-learn: 178 rows, 13 numbers and a class."""
    from sklearn.datasets import load_wine

    wine = load_wine(as_frame=True)
    frame = wine.data.assign(kind=[str(wine.target_names[code]) for code in wine.target])
    ao.fit(frame, engine=engine, minutes=float(minutes), seed=0, progress=False).save(path)


def summary(answer: Any) -> Any:
    """Three quantiles, or the probabilities of the levels."""
    return answer.probs() if answer.variable.levels else answer.quantile(LEVELS)


def marginals(model: Any) -> Any:
    """Those of all variables: in one call, where there is one."""
    known = model.given()
    names = [variable.name for variable in model.schema.variables]
    found = known.answers() if hasattr(known, "answers") else {name: known[name] for name in names}
    return {name: summary(found[name]) for name in names}


def questions(model: Any) -> dict[str, Callable[[], Any]]:
    """By name."""
    return {
        "quantiles of one number": lambda: model.given(GIVEN)["malic_acid"].quantile(LEVELS),
        "quantiles of a whole number": lambda: model.given(GIVEN)["proline"].quantile(LEVELS),
        "mean of one number": lambda: model.given(GIVEN)["malic_acid"].mean(),
        "probabilities of one class": lambda: model.given(GIVEN)["kind"].probs(),
        "all 14 marginals": lambda: marginals(model),
        "P(a range | values)": lambda: model.given(GIVEN).prob("proline > 1000"),
        "P(a class | a range)": lambda: model.given(hue="> 1").prob("kind=class_0"),
        "P(two ranges | a value)": lambda: model.given(alcohol=13.0).prob("proline > 1000, hue > 1"),
        "mean of one number | a range": lambda: model.given(hue="> 1")["malic_acid"].mean(),
        "sample(10)": lambda: model.given().sample(10, seed=0),
        "sample(1000)": lambda: model.given().sample(1000, seed=0),
    }


def run(path: str, seconds: str) -> None:
    """Print the median milliseconds of every question, each asked again and again for so long."""
    model = ao.load(path)
    least = 3 if float(seconds) else 1  # 0 seconds only see that every question is answered
    found = {}
    for name, question in questions(model).items():
        if float(seconds):
            question()  # the first one makes the tables of trees ready
        times: list[float] = []
        end = time.perf_counter() + float(seconds)
        while len(times) < least or time.perf_counter() < end:
            began = time.perf_counter()
            question()
            times.append(1000 * (time.perf_counter() - began))
        found[name] = statistics.median(times)
    sys.stdout.write(json.dumps(found) + "\n")
