"""Conditionals of many rows: what a row gets is what it gets alone, in the frame's own library and index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import anyorder as ao
from anyorder.errors import UserError
from anyorder.modalities.tables.model import TableModel

from models import categorical_model, categorical_table, gaussian_model

QUICK = {
    "folds": 1,
    "training": {"minutes": None, "steps": 15, "validation_queries": 32},
    "trees": {"members": 1, "rounds": 3},
}
LEVELS = [0.05, 0.5, 0.95]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size = rng.normal(size=120)
    return pd.DataFrame(
        {
            "size": np.round(size, 1),  # recorded to a tenth: quantiles are finer, draws are not
            "colour": np.where(size + rng.normal(size=120) > 0, "red", "blue"),
            "count": rng.poisson(np.exp(size / 2)),
            "rain": np.where(rng.random(120) < 0.4, 0.0, np.exp(size + rng.normal(size=120))),
            "grade": pd.Categorical.from_codes(rng.integers(0, 3, 120), ["low", "mid", "high"], ordered=True),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.rint(20 * size + 100), unit="D"),
        }
    )


@pytest.fixture(scope="module")
def model(table: pd.DataFrame) -> TableModel:
    return ao.fit(table, config=QUICK, kinds={"rain": "spiked", "count": "integer"})


@pytest.fixture(scope="module")
def rows(table: pd.DataFrame) -> pd.DataFrame:
    """Some rows with holes in different columns, under labels of their own."""
    rng = np.random.default_rng(1)
    some = table.head(7).copy()
    for name in some.columns:
        some[name] = some[name].mask(rng.random(7) < 0.4)
    return some.set_axis([f"row {number}" for number in range(7)])


def known(row: pd.Series) -> dict[str, Any]:
    return {name: cell for name, cell in row.items() if not pd.isna(cell)}


def close(found: pd.Series, expected: list[Any]) -> None:
    if found.dtype.kind == "M":
        seconds = (found.reset_index(drop=True) - pd.Series(expected)).dt.total_seconds()
        assert seconds.abs().max() <= 60
    elif found.dtype.kind in "if":
        np.testing.assert_allclose(found.astype(float), np.array(expected, dtype=float), rtol=2e-4, atol=1e-5)
    else:
        assert found.astype(object).tolist() == expected


ASKED = {
    "size": ("quantile", "mean", "std", "mode"),
    "colour": ("probs", "mode"),
    "count": ("quantile", "mean", "std", "mode"),
    "rain": ("quantile", "mean", "std", "probs", "mode"),
    "grade": ("quantile", "probs", "mode"),
    "day": ("quantile", "mean", "std"),
}


@pytest.mark.parametrize(("name", "what"), [(name, what) for name, some in ASKED.items() for what in some])
def test_every_row_gets_what_it_gets_alone(model: TableModel, rows: pd.DataFrame, name: str, what: str) -> None:
    others = rows.drop(columns=name)
    answers = model.given(others)[name]
    single = [model.given(known(row))[name] for _, row in others.iterrows()]
    if what == "quantile":
        found = answers.quantile(LEVELS)
        assert found.columns.tolist() == LEVELS
        for level in LEVELS:
            close(found[level], [one.quantile(level) for one in single])
    elif what == "probs":
        found = answers.probs()
        for level in found.columns:
            close(found[level], [one.probs()[level] for one in single])
    else:
        found = getattr(answers, what)()
        close(found, [getattr(one, what)() for one in single])
    assert found.index.equals(rows.index)


@pytest.mark.parametrize("name", list(ASKED))
def test_log_probs_and_cdfs_of_values_of_the_rows(
    model: TableModel, rows: pd.DataFrame, table: pd.DataFrame, name: str
) -> None:
    others, truth = rows.drop(columns=name), table[name].head(7).set_axis(rows.index)
    answers = model.given(others)[name]
    single = [model.given(known(row))[name] for _, row in others.iterrows()]
    close(answers.log_prob(truth), [one.log_prob(cell) for one, cell in zip(single, truth, strict=True)])
    close(answers.log_prob(truth.iloc[0]), [one.log_prob(truth.iloc[0]) for one in single])
    if name != "colour":
        close(answers.cdf(truth), [one.cdf(cell) for one, cell in zip(single, truth, strict=True)])
        ends = answers.interval(0.8)
        close(ends["low"], [one.interval(0.8)[0] for one in single])
        close(ends["high"], [one.interval(0.8)[1] for one in single])


def test_predict_gives_what_fill_would(model: TableModel, rows: pd.DataFrame) -> None:
    for name in ASKED:
        holes = rows.drop(columns=name)
        filled = model.fill(holes.assign(**{name: None}))[name]
        close(model.predict(rows, name), filled.tolist())  # its own column is not looked at


def test_an_exact_gaussian() -> None:
    covariance = np.array([[1.0, 0.6, 0.2], [0.6, 2.0, -0.4], [0.2, -0.4, 1.5]])
    mean = np.array([1.0, -2.0, 0.5])
    model = TableModel(gaussian_model(mean, covariance, scale=3.0), {})
    frame = pd.DataFrame({"v1": [3.0, np.nan, -9.0], "v2": [1.0, 4.0, np.nan]})
    found = model.given(frame)["v0"]
    for row, columns in enumerate([[1, 2], [2], [1]]):
        gain = covariance[0, columns] @ np.linalg.inv(covariance[np.ix_(columns, columns)])
        at = frame[[f"v{column}" for column in columns]].to_numpy()[row] / 3.0
        centre = 3.0 * (mean[0] + gain @ (at - mean[columns]))
        spread = 3.0 * np.sqrt(covariance[0, 0] - gain @ covariance[columns, 0])
        assert found.mean()[row] == pytest.approx(centre, rel=1e-6)
        assert found.std()[row] == pytest.approx(spread, rel=1e-5)
        assert found.quantile(0.975)[row] == pytest.approx(centre + 1.959964 * spread, rel=1e-5)
        assert found.log_prob(2.0)[row] == pytest.approx(
            -0.5 * ((2.0 - centre) / spread) ** 2 - np.log(spread * np.sqrt(2 * np.pi)), rel=1e-6
        )


def test_draws_follow_the_probabilities() -> None:
    model = TableModel(categorical_model({"name": "residual_mlp", "width": 16, "blocks": 1}, steps=20), {})
    rows = categorical_table(3)[["a", "b"]]
    answers = model.given(rows)["d"]
    drawn = answers.sample(4000, seed=3)
    assert drawn.shape == (3, 4000) and drawn.iloc[:, :5].equals(answers.sample(4000, seed=3).iloc[:, :5])
    expected = 4000 * answers.probs().to_numpy()
    counts = np.array([[(drawn.iloc[row] == level).sum() for level in answers.probs().columns] for row in range(3)])
    assert ((counts - expected) ** 2 / expected).sum(axis=1).max() < 21.1  # chi-squared, 3 degrees, 1 in 10,000


def test_draws_and_predictions_have_the_precision_of_the_data(model: TableModel, rows: pd.DataFrame) -> None:
    answers = model.given(rows.drop(columns="size"))["size"]
    for found in (answers.sample(20, seed=0).to_numpy(), answers.best().to_numpy()):
        np.testing.assert_allclose(found, np.round(found, 1), atol=1e-9)
    exact = answers.quantile(0.3).to_numpy()
    assert np.abs(exact - np.round(exact, 1)).max() > 1e-6


def test_polars_in_and_out(model: TableModel, rows: pd.DataFrame) -> None:
    others = rows[["size", "colour"]].reset_index(drop=True)
    colours = [None if pd.isna(cell) else cell for cell in others["colour"]]
    frame = pl.DataFrame({"size": others["size"].tolist(), "colour": colours})
    frame = frame.with_columns(pl.col("size").fill_nan(None))
    median = model.given(frame)["rain"].median()
    assert isinstance(median, pl.Series)
    np.testing.assert_allclose(median.to_numpy(), model.given(others)["rain"].median())
    assert model.predict_proba(frame, "grade").columns == ["low", "mid", "high"]
    assert isinstance(model.given(frame)["day"].interval(0.5), pl.DataFrame)


def test_no_rows_and_no_columns(model: TableModel, table: pd.DataFrame) -> None:
    assert model.given(table.head(0)[["size"]])["rain"].mean().tolist() == []
    everywhere = model.given(pd.DataFrame(index=range(3)))["size"].mean()
    np.testing.assert_allclose(everywhere, [float(model["size"].mean())] * 3, rtol=1e-4)


def test_a_column_of_the_rows_is_asked_given_the_others(model: TableModel, table: pd.DataFrame) -> None:
    some = table.head(3)
    with pytest.warns(UserWarning, match="'size' is asked, so its values in the given rows are ignored"):
        asked = model.given(some)["size"].mean()
    pd.testing.assert_series_equal(asked, model.given(some.drop(columns="size"))["size"].mean())


def test_mistakes(model: TableModel, table: pd.DataFrame) -> None:
    some = table.head(3)
    with pytest.raises(UserError, match="one by one"):
        model.given(pd.DataFrame({"size": [ao.Between(0, 1), 2.0]}))
    with pytest.raises(UserError, match="not both"):
        model.given(some[["size"]], colour="red")  # type: ignore[call-overload]
    with pytest.raises(UserError, match="no column 'sise'"):
        model.given(some[["size"]].rename(columns={"size": "sise"}))
    answers = model.given(some[["size"]])
    with pytest.raises(UserError, match="no order"):
        answers["colour"].quantile(0.5)
    with pytest.raises(UserError, match="no distance"):
        answers["grade"].mean()
    with pytest.raises(UserError, match="no list of levels"):
        answers["day"].probs()
    with pytest.raises(UserError, match="one for each of 3 rows"):
        answers["rain"].cdf([1.0, 2.0])
    with pytest.raises(UserError, match="is not one of its values"):
        model.predict(some.assign(colour="green"), "size")
    with pytest.warns(UserWarning, match="never seen"):
        assert len(model.predict(some.assign(colour="green"), "size", unseen="missing")) == 3


def test_no_unknown_cell_and_no_other_row_matters(model: TableModel, rows: pd.DataFrame, table: pd.DataFrame) -> None:
    others = rows[["size", "colour", "count"]]
    before = model.given(others)["rain"].quantile(0.3)
    again = pd.concat([others, table.tail(3)[["size", "colour", "count"]]])
    np.testing.assert_allclose(model.given(again)["rain"].quantile(0.3).head(7), before, rtol=1e-5)
