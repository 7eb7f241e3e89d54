"""From a messy table to any conditional answer, in the units of the data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anyorder as ao

from messy_tables import QUICK


def test_kinds(model: ao.TableModel) -> None:
    kinds = {variable.name: str(variable.kind) for variable in model.schema.variables}
    assert kinds == {
        "size": "continuous",
        "rooms": "integer",
        "stars": "atoms",
        "river": "boolean",
        "sold": "boolean",
        "day": "datetime",
        "clock": "datetime",
    }


def test_one_number_a_row(model: ao.TableModel, frame: pd.DataFrame) -> None:
    scores = model.log_prob(frame)
    assert scores.index.equals(frame.index) and np.isfinite(scores).all()


def test_conditional_and_marginal_add_up(model: ao.TableModel, frame: pd.DataFrame) -> None:
    # The protocol answers columns in order, so p(first two) p(rest | first two) walks the same chain as p(all).
    whole = frame.dropna()
    first = whole[["size", "rooms"]]
    split = model.log_prob(first, orders=1) + model.log_prob(whole, given=["size", "rooms"], orders=1)
    np.testing.assert_allclose(split, model.log_prob(whole, orders=1), atol=1e-3)


def test_given_as_a_frame_of_booleans(model: ao.TableModel, frame: pd.DataFrame) -> None:
    known = pd.DataFrame(False, index=frame.index, columns=frame.columns)
    known[["size", "river"]] = True
    by_mask = model.log_prob(frame, given=known)
    np.testing.assert_array_equal(by_mask, model.log_prob(frame, given=["size", "river"]))


def test_missing_cells_are_marginalised_out(model: ao.TableModel, frame: pd.DataFrame) -> None:
    row = frame.dropna().head(1)
    alone = row.copy()
    alone[["stars", "river", "day"]] = None
    left = row.drop(columns=["stars", "river", "day"])
    np.testing.assert_allclose(model.log_prob(alone), model.log_prob(left))


def test_density_integrates_to_one_in_the_units_of_the_data(model: ao.TableModel) -> None:
    answer = model.given(river="yes", rooms=21)["size"]
    low, high = answer.quantile([1e-9, 1 - 1e-9])
    grid = np.linspace(low, high, 200_001)
    assert np.trapezoid(answer.pdf(grid), grid) == pytest.approx(1.0, abs=1e-3)
    assert np.trapezoid(answer.pdf(grid) * grid, grid) == pytest.approx(answer.mean(), rel=1e-3)
    second = np.trapezoid(answer.pdf(grid) * (grid - answer.mean()) ** 2, grid)
    assert second**0.5 == pytest.approx(answer.std(), rel=1e-2)
    density = answer.pdf(grid)
    entropy = -np.trapezoid(density * np.log(np.maximum(density, 1e-300)), grid)
    assert entropy == pytest.approx(answer.entropy(), abs=1e-2)


def test_whole_numbers_sum_to_one(model: ao.TableModel) -> None:
    answer = model.given(size=150.0)["rooms"]
    numbers = np.arange(-400, 800)
    assert answer.pdf(numbers).sum() == pytest.approx(1.0, abs=1e-4)
    assert (answer.pdf(numbers) * numbers).sum() == pytest.approx(answer.mean(), abs=0.5)


def test_levels_sum_to_one(model: ao.TableModel) -> None:
    for name in ("stars", "river", "sold"):
        assert sum(model.given(size=150.0)[name].probs().values()) == pytest.approx(1.0, abs=1e-5)
    assert model["river"].probs().keys() == {"no", "yes"}


def test_log_prob_of_a_conditional_is_the_answers_density(model: ao.TableModel) -> None:
    conditional = model.given(river="no", stars=0.5)
    assert conditional.log_prob(size=120.0) == pytest.approx(conditional["size"].log_prob(120.0), abs=1e-6)
    assert conditional.log_prob(sold=True) == pytest.approx(np.log(conditional["sold"].probs()[True]), abs=1e-6)


def test_order_average_is_the_log_of_the_mean_probability(model: ao.TableModel) -> None:
    spread = model.given(river="no").order_spread(size=120.0, rooms=28, stars=1.0, orders=6)
    assert len(set(spread.log_probs)) > 1
    assert spread.average == pytest.approx(np.log(np.mean(np.exp(spread.log_probs))))
    again = model.given(river="no").log_prob(size=120.0, rooms=28, stars=1.0, orders=6)
    assert again == pytest.approx(spread.average)


def test_samples_are_full_rows_of_the_right_types(model: ao.TableModel, frame: pd.DataFrame) -> None:
    rows = model.given(river="yes", rooms=21).sample(50, seed=1)
    assert list(rows.columns) == list(frame.columns)
    assert (rows["river"] == "yes").all() and (rows["rooms"] == 21).all()
    assert not rows.isna().any().any()
    assert set(rows["stars"]) <= {0.0, 0.5, 1.0} and rows["sold"].dtype == bool
    assert (rows["day"].dt.normalize() == rows["day"]).all()
    pd.testing.assert_frame_equal(rows, model.given(river="yes", rooms=21).sample(50, seed=1))
    assert not rows.equals(model.given(river="yes", rooms=21).sample(50, seed=2))


def test_answers_survive_a_file(model: ao.TableModel, frame: pd.DataFrame, tmp_path: Path) -> None:
    model.save(tmp_path / "m.anyorder")
    again = ao.load(tmp_path / "m.anyorder")
    pd.testing.assert_series_equal(model.log_prob(frame), again.log_prob(frame), check_exact=True)
    pd.testing.assert_frame_equal(model.sample(20, seed=4), again.sample(20, seed=4), check_exact=True)
    assert json.loads(json.dumps(again.card)) == json.loads(json.dumps(model.card))


def test_absurd_evidence_gives_finite_answers(model: ao.TableModel) -> None:
    with pytest.warns(UserWarning, match="outside the data"):
        conditional = model.given(size=1e60)
    assert np.isfinite(conditional["rooms"].mean())
    assert np.isfinite(conditional.log_prob(river="yes"))


@pytest.mark.parametrize("network", ["residual_mlp", "causal_transformer"])
def test_rows_of_which_nothing_or_everything_is_known(frame: pd.DataFrame, network: str) -> None:
    size = {"width": 16, "blocks": 1}
    model = ao.fit(frame, seed=0, config={**QUICK, "training": {"steps": 5}, "network": {"name": network, **size}})
    whole = frame.dropna()
    pd.testing.assert_frame_equal(model.fill(whole, draws=1)[0], whole)
    row = whole.iloc[0].to_dict()
    assert len(model.given(row).sample(2)) == 2
    empty = pd.DataFrame(index=range(3), columns=frame.columns, dtype=object)
    assert (model.log_prob(empty) == 0).all()
