"""Evidence outside of what was seen is answered with a note that says how far out it lies."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.variables.codecs.base import fitted_warp
from anyorder.variables.seen import seen_by
from anyorder.variables.warp import Warp

FILE = Path(__file__).parents[1] / "files" / "v1" / "table_trees.anyorder"


@pytest.fixture(scope="module")
def model() -> ao.TableModel:
    loaded = ao.load(FILE)
    assert isinstance(loaded, ao.TableModel)
    return loaded


@pytest.mark.parametrize("warp", ["normal_scores", "standard"])
@pytest.mark.parametrize("rows", [5, 40, 3000])
@pytest.mark.parametrize("law", ["normal", "heavy", "rounded", "far away"])
def test_the_range_of_the_data_is_in_the_warp(warp: str, rows: int, law: str) -> None:
    rng = np.random.default_rng(rows)
    values = rng.normal(size=rows)
    if law == "heavy":
        values = np.exp(3 * values)
    elif law == "rounded":
        values = np.append(np.round(values, 1), [-0.1, 0.2])
    elif law == "far away":
        values = 1e6 + values
    found = seen_by(fitted_warp(values, warp))  # type: ignore[arg-type]
    assert found is not None
    width = values.max() - values.min()
    assert found == pytest.approx((values.min(), values.max()), abs=1e-6 * width)


def test_a_straight_line_does_not_tell() -> None:
    assert seen_by(Warp.affine(3.0, 2.0)) is None


@pytest.mark.parametrize(
    ("evidence", "says"),
    [
        ({"count": 900_000}, "count=900000 lies outside the data: 47,366 times their whole range above the largest"),
        ({"count": 900_000}, r"the largest value seen \(40\)\. Answers there are extrapolations"),
        ({"count": "900000"}, "47,366 times"),
        ({"count": 10}, r"0\.58 of their whole range below the smallest value seen \(21\)"),
        ({"size": ">3.9"}, r"size > 3\.9 lies outside the data: 0\.12 of their whole range above"),
        ({"size": "<-50 or >90"}, "12 times their whole range below the smallest"),
        ({"day": "1999-01-01"}, r"47 times their whole range below the smallest value seen \(2024-03-02\)"),
        ({"rain": 100.0}, "rain=100.0 lies outside"),
    ],
)
def test_how_far_evidence_lies_outside(model: ao.TableModel, evidence: dict[str, object], says: str) -> None:
    with pytest.warns(UserWarning, match=says) as caught:
        given = model.given(evidence)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():  # once, not for every number that is asked
        warnings.simplefilter("error")
        if not given.ranged:  # else the model holds it for impossible
            given["kind"].probs()
        given.using(draws=10).asking("kind")


@pytest.mark.parametrize(
    "evidence",
    [
        {"count": 30},
        {"count": 41},
        {"size": ">3.39"},
        {"size": "<0 or >90"},
        {"size": "..1"},
        {"kind": "ash"},
        {"kind": "!=ash"},
        {"half": 0.5},
        {"rain": 0.0},
        {"count": "!=30"},
        {},
    ],
)
def test_evidence_among_the_data_is_not_spoken_of(model: ao.TableModel, evidence: dict[str, object]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.given(evidence)


def test_many_rows_are_counted(model: ao.TableModel) -> None:
    rows = model.sample(20, seed=0)[["size", "count"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.given(rows)
    far = rows.assign(count=[900_000, 1_000_000, *rows["count"][2:]], size=[*rows["size"][:-1], -300.0])
    with pytest.warns(UserWarning, match=r"far outside the data .*: 1 in 'size', 2 in 'count'") as caught:
        model.given(far)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert isinstance(far, pd.DataFrame)
