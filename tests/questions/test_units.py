"""Numbers and times are computed with as such, and shown as their column writes them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.questions.units import few_digits, shown, shown_evidence
from anyorder.variables.notations.number import NumberNotation
from anyorder.variables.schema import Kind, Variable

from written_tables import written_model

DOLLARS = NumberNotation(prefix="$", thousands=",", places=2)


@pytest.fixture(scope="module")
def model() -> ao.TableModel:
    return written_model()


@pytest.mark.parametrize("evidence", [6, ao.Between(4, 6)], ids=["exact", "range"])
def test_what_is_asked_of_written_numbers_is_a_number(model: ao.TableModel, evidence: object) -> None:
    price = model.given(rooms=evidence).using(draws=8)["price"]
    for value in (price.quantile(0.5), price.median(), price.mean(), price.std(), price.mode(), *price.interval(0.9)):
        assert isinstance(value, float)
    assert price.quantile([0.1, 0.9]).dtype == np.float64
    assert all(isinstance(end, float) for pair in price.hdi(0.5) for end in pair)
    assert np.isclose(price.cdf(price.quantile(0.3)), 0.3, atol=1e-3)
    assert price.pdf([100.0, 200.0]).shape == (2,)
    assert price.cdf("$500.00") == price.cdf(500.0)


def test_draws_are_cells_of_the_column(model: ao.TableModel) -> None:
    assert all(text.startswith("$") for text in model["price"].sample(5, seed=0))
    assert all(text.endswith("%") for text in model.given(rooms=6).sample(5, seed=0)["off"])


def test_times_are_timestamps(model: ao.TableModel) -> None:
    joined = model.given(rooms=6)["joined"]
    for value in (joined.quantile(0.5), joined.mean(), joined.mode(), *joined.interval(0.9)):
        assert isinstance(value, pd.Timestamp)
    assert joined.quantile([0.1, 0.9]).dtype.kind == "M"
    assert joined.written(pd.Timestamp("2024-07-16")) == "16/07/2024"


def test_whole_numbers_are_python_ints(model: ao.TableModel) -> None:
    assert type(model["off"].quantile(0.5)) is int


def test_the_rows_of_a_frame_have_numbers_and_times_too(model: ao.TableModel) -> None:
    rows = model.given(pd.DataFrame({"rooms": [4, 8]}))
    assert rows["price"].quantile(0.5).dtype == np.float64
    assert rows["price"].interval(0.9).dtypes.eq(np.float64).all()
    assert rows["joined"].quantile(0.5).dtype.kind == "M"
    assert rows["price"].best().str.startswith("$").all(), "what would be filled in is a cell"


def test_reprs_write_values_as_the_column_does(model: ao.TableModel) -> None:
    assert "$" in repr(model["price"]) and "np." not in repr(model["price"])
    assert repr(model["off"]).count("%") >= 3
    assert "/2024" in repr(model["joined"])


@pytest.mark.parametrize(
    "value, text",
    [(12045.6, "12046"), (1.23456, "1.235"), (6, "6"), (1e-7, "1e-07"), (2e20, "2e+20"), (float("nan"), "nan")],
)
def test_numbers_have_few_digits(value: float, text: str) -> None:
    assert few_digits(value) == text


def test_values_are_shown_for_people() -> None:
    assert shown(Variable("x", Kind.CONTINUOUS, notation=DOLLARS), np.float64(1204.5)) == "$1,204.50"
    assert shown(Variable("x", Kind.DATETIME, resolution="day"), np.datetime64("2024-05-01T00:00")) == "2024-05-01"
    assert shown(Variable("x", Kind.BOOLEAN, levels=(False, True)), np.bool_(True)) == "True"
    assert len(shown(Variable("x", Kind.CATEGORICAL, levels=("a",)), "a" * 500)) < 100


def test_evidence_is_shown_for_people(model: ao.TableModel) -> None:
    evidence = {"rooms": ao.Between(4, 6), "price": 1204.5, "off": ao.Between(5, None, low_open=True), "river": "yes"}
    assert shown_evidence(model.schema, evidence) == "rooms in 4..6, price = $1,204.50, off >5, river = yes"
