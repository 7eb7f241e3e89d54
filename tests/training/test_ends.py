"""How often a new value is the greatest of all, by counting, and the factors that make a blend say so."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import torch

import anyorder as ao
from anyorder.heads.blend import Blend
from anyorder.modalities.tables.model import TableModel
from anyorder.training.ends import LEAST, LEAST_CHANCE, MOST, Ends, chance_above, fit_factors
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable


def test_the_next_of_values_that_differ_is_the_greatest_once_in_n_plus_one() -> None:
    assert chance_above(np.arange(200.0)) == pytest.approx(1 / 201, rel=1e-6)


@pytest.mark.parametrize("top", [(9.0, 9.0), (8.0, 9.0), (9.0, 9.0, 9.0), (8.0, 8.0, 9.0)])
def test_the_chance_by_leaving_cells_out(top: tuple[float, ...]) -> None:
    rng = np.random.default_rng(0)
    column = np.concatenate([np.linspace(0, 5, 95), top])
    out = rng.random((100_000, len(column))) < 0.2
    greatest = np.where(out, -np.inf, column).max(axis=1, keepdims=True)
    above, left_out = (out & (column > greatest)).sum(), out.sum()
    # The share of cells left out, beside the one where no two are equal, which is 1 in those that are kept.
    share = above / left_out * (0.8 * len(column)) / (len(column) + 1)
    assert chance_above(column) == pytest.approx(share, rel=0.1)


def test_an_end_that_many_share_is_next_to_never_left() -> None:
    column = np.concatenate([np.arange(80.0), np.full(20, 80.0)])
    assert chance_above(column) == pytest.approx(LEAST_CHANCE / 101)


def encoded(kind: Kind, cells: list[float], step: float = 0.0) -> Ends | None:
    schema = Schema((Variable("x", kind, levels=(0.0, 1.0) if kind is Kind.ATOMS else (), step=step),))
    encoding = Encoding.fit(pd.DataFrame({"x": cells}), schema, "standard")
    values, _ = encoding.encode(pd.DataFrame({"x": cells}))
    ends = Ends.of(encoding.codecs[0], values[:, 0].astype(np.float32))
    if ends is None:
        return None
    low, high = encoding.codecs[0].measure(np.array([ends.low, ends.high]))
    return Ends(float(low), float(high), ends.expected)


def test_ends_lie_where_values_would_be_rounded_to_one_that_was_not_seen() -> None:
    whole = encoded(Kind.INTEGER, [3, 4, 4, 7, 9, 9, 15])
    assert whole is not None and (whole.low, whole.high) == pytest.approx((2.5, 15.5))
    rounded = encoded(Kind.CONTINUOUS, [0.1, 0.3, 0.4, 2.5], step=0.1)
    assert rounded is not None and (rounded.low, rounded.high) == pytest.approx((0.05, 2.55))
    line = encoded(Kind.CONTINUOUS, [0.1, 0.3, 0.4, 2.5])
    assert line is not None and (line.low, line.high) == pytest.approx((0.1, 2.5), abs=1e-5)
    assert line.low < 0.1 and line.high > 2.5


def test_levels_and_equal_cells_have_no_ends() -> None:
    assert encoded(Kind.ATOMS, [0, 1, 1, 0]) is None
    assert encoded(Kind.CONTINUOUS, [2.0, 2.0, 2.0]) is None


def test_factors_bring_the_mean_to_what_is_expected() -> None:
    generator = torch.Generator().manual_seed(0)
    masses = torch.rand(2, 3, 500, generator=generator, dtype=torch.float64) ** 4 * 0.2
    weights = torch.rand(500, 3, generator=generator, dtype=torch.float64).softmax(1)
    counts = torch.rand(500, generator=generator, dtype=torch.float64)
    plain = (counts[:, None] * weights * masses.transpose(1, 2)).sum((1, 2)) / counts.sum()
    expected = (float(plain[0]) / 20, float(plain[1]) * 1.5)
    below, above = fit_factors(masses, weights, counts, expected)
    changed = torch.tensor([below, above]).double()[:, None, None] * masses
    changed = changed / (1 + (below - 1) * masses[0] + (above - 1) * masses[1])
    said = (counts[:, None] * weights * changed.transpose(1, 2)).sum((1, 2)) / counts.sum()
    assert said.tolist() == pytest.approx(expected, rel=1e-4)


def test_factors_keep_within_limits_and_slight_ones_are_none() -> None:
    masses = torch.full((2, 1, 10), 0.01, dtype=torch.float64)
    even = torch.ones(10, 1, dtype=torch.float64), torch.ones(10, dtype=torch.float64)
    assert fit_factors(masses, *even, (1e-9, 0.5)) == (LEAST, MOST)
    assert fit_factors(masses, *even, (0.011, 0.009)) == (1.0, 1.0)
    assert fit_factors(0 * masses, *even, (0.01, 0.01)) == (1.0, 1.0)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Two numbers of which one stops at 40 and 60, where several cells lie, and the other nowhere."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y = np.clip(50 + 5 * x + 3 * rng.normal(size=300), 40, 60).round(1)
    return pd.DataFrame({"x": x, "y": y, "k": np.where(x > rng.normal(size=300), "a", "b")})


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> TableModel:
    quick = {"training": {"steps": 60, "minutes": None}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ao.fit(frame, config=quick, bounds={"y": (None, None)}, seed=0)


def test_next_to_nothing_is_drawn_beyond_an_end_that_many_cells_share(model: TableModel, frame: pd.DataFrame) -> None:
    head = model.core.heads.of(model.schema.index("y"))
    assert isinstance(head, Blend) and len(head.beyond) == 2
    holes = frame.assign(y=np.nan)
    drawn = np.concatenate([one["y"].to_numpy() for one in model.fill(holes, draws=20, seed=0)])
    assert ((drawn < 40) | (drawn > 60)).mean() < 1 / len(frame)
    plain = Blend(head.members, head.weights, head.starts, head.gates)
    values, known = model.core.encoding.encode(holes)
    with torch.no_grad():
        features = model.core.features_of(torch.as_tensor(values).float(), torch.as_tensor(known), 1)
        without = plain(features).outside(head.ends[0], head.ends[1]).sum(0).mean()
        beyond = head(features).outside(head.ends[0], head.ends[1]).sum(0).mean()
    assert float(without) > 10 * float(beyond)


def test_a_saved_model_answers_the_same(model: TableModel, tmp_path: object) -> None:
    path = f"{tmp_path}/model.anyorder"
    model.save(path)
    again = ao.load(path)
    assert isinstance(again, TableModel)
    asked = model.given(x=1.0)["y"], again.given(x=1.0)["y"]
    assert asked[0].quantile(0.95) == asked[1].quantile(0.95)
    assert asked[0].mean() == asked[1].mean()
    one, other = (each.sample(200, seed=0) for each in (model, again))
    pd.testing.assert_frame_equal(one, other)
