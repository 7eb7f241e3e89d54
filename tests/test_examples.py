"""What a user calls is documented: parameters, what comes back, and an example that runs."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

import anyorder as ao
from anyorder.modalities.face import FittedModel
from anyorder.modalities.tables.questions import TableQuestions
from anyorder.modalities.tables.tasks import TableTasks
from anyorder.questions.evidence import Missing
from anyorder.questions.one_variable import OneVariable
from anyorder.questions.range_answer import RangedAnswer
from anyorder.questions.shown_answer import ShownAnswer
from anyorder.sklearn import TableEstimator
from anyorder.sklearn.predictor import TablePredictor
from anyorder.tasks.acquisition.interview import Interview
from anyorder.tasks.acquisition.next_question import NextQuestion
from anyorder.tasks.anomalies import Anomalies, Anomaly
from anyorder.tasks.calibration import Calibration
from anyorder.tasks.coherence import Coherence
from anyorder.tasks.conformal import Conformal
from anyorder.tasks.pooling import Pooled

from texts import CORPUS

FACES = (FittedModel, TableQuestions, TableTasks, ao.TableModel, ao.TextModel, ao.ImageModel)
RESULTS = (
    ao.Conditional,
    ao.Answer,
    ao.RowConditionals,
    ao.RowAnswers,
    RangedAnswer,
    ao.Estimate,
    Pooled,
    Calibration,
    Conformal,
    NextQuestion,
    Coherence,
    Anomalies,
    ao.Policy,
)
ESTIMATORS = (ao.AnyOrderImputer, ao.AnyOrderDensity, ao.AnyOrderClassifier, ao.AnyOrderRegressor)
BASES = (OneVariable, ShownAnswer, TableEstimator, TablePredictor)
CLASSES = (*FACES, *RESULTS, *BASES, *ESTIMATORS)  # every public method of these has an example,
SHOWN = (
    *RESULTS,
    *ESTIMATORS,
    ao.Between,
    ao.OneOf,
    Missing,
    ao.OrderSpread,
    Anomaly,
    Interview,
)  # and these themselves
ABSTRACT = {
    *("FittedModel.compress", "FittedModel.decompress"),  # each face that can has its own
    *("ShownAnswer.measured_quantiles", "ShownAnswer.measured_cdf"),
}
FUNCTIONS = (ao.fit, ao.fit_text, ao.fit_images, ao.load, ao.pool, ao.compress, ao.decompress)


def houses(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rooms = rng.integers(3, 9, rows)
    river = rng.random(rows) < 0.3
    return pd.DataFrame(
        {
            "rooms": rooms,
            "river": np.where(river, "yes", "no"),
            "door": np.round(rng.random(rows), 3),
            "price": np.round(6.0 * rooms + 5 * river + rng.normal(0, 2, rows), 2),
        }
    )


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    for function in FUNCTIONS:
        yield function.__name__, function
    for cls in CLASSES:
        for name, member in vars(cls).items():
            public = name == "__getitem__" or not name.startswith("_")
            inherits = cls is RangedAnswer and member.__doc__ is None  # as documented for Answer
            if public and inspect.isfunction(member) and not inherits and f"{cls.__name__}.{name}" not in ABSTRACT:
                yield f"{cls.__name__}.{name}", member


CALLABLES = dict(callables())
EXAMPLES: dict[str, Any] = {**CALLABLES, **{cls.__name__: cls for cls in SHOWN}, "Interview.next": Interview.next}


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the examples may speak of."""
    frame = houses(200, 0)
    digits = load_digits().images.astype(np.uint8)[:60]
    table = {"training": {"steps": 300, "minutes": None}, "trees": {"rounds": 30}}
    brief = {"training": {"steps": 60, "minutes": None, "threads": 1}}
    estimator: dict[str, Any] = {"engine": "neural", "config": brief, "random_state": 0}
    return {
        "ao": ao,
        "np": np,
        "frame": frame,
        "held_out": houses(60, 1),
        "model": ao.fit(frame, config=table, seed=0),
        "texts": ao.fit_text(CORPUS, length=24, preset="tiny", config=brief, seed=0),
        "digits": digits,
        "pictures": ao.fit_images(digits, preset="tiny", config={"training": {"steps": 10, "minutes": None}}, seed=0),
        "folder": tmp_path_factory.mktemp("examples"),
        "imputer": ao.AnyOrderImputer(**estimator).fit(frame),
        "density": ao.AnyOrderDensity(**estimator).fit(frame),
        "classifier": ao.AnyOrderClassifier(**estimator).fit(frame[["rooms", "price"]], frame["river"]),
        "regressor": ao.AnyOrderRegressor(**estimator).fit(frame[["rooms", "river"]], frame["price"]),
    }


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name: str, names: dict[str, Any]) -> None:
    tests = doctest.DocTestFinder(recurse=False).find(EXAMPLES[name], name, globs=dict(names))
    examples = [test for test in tests if test.examples]
    assert examples, f"{name} has no example"
    for test in examples:
        report: list[str] = []
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
        assert not report, "".join(report)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_parameter_is_described(name: str) -> None:
    text = inspect.getdoc(EXAMPLES[name]) or ""
    signature = inspect.signature(EXAMPLES[name])
    parameters = [one for one in signature.parameters if one != "self" and not one.startswith("_")]
    section = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    named = {word.strip(" *") for line in section.splitlines() if not line.startswith(" ") for word in line.split(",")}
    assert set(parameters) <= named | {"options"}, f"{name}: {set(parameters) - named} not described"
    gives = not inspect.isclass(EXAMPLES[name]) and signature.return_annotation not in (None, "None")
    assert "Returns\n-------" in text or not gives, f"{name} does not say what comes back"


def test_a_wrong_example_is_seen(tmp_path: Path) -> None:
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    report: list[str] = []
    doctest.DocTestRunner().run(test, out=report.append)
    assert "Expected" in "".join(report)
