"""Which columns are said to fix others, and how far that is believed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from anyorder.heads import Categorical
from anyorder.model import AnyOrderModel
from anyorder.model.likelihood import log_prob
from anyorder.protocols import Canonical
from anyorder.query import Query
from anyorder.training.dependencies import _Asked, _limit, find_dependencies, with_dependencies
from anyorder.training.rows import Rows, encoded_rows
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable


def table(rows: int, noise: float = 0.0, seed: int = 0) -> pd.DataFrame:
    """A city and its code, one to one; the city's country, many to one; and a column by itself."""
    rng = np.random.default_rng(seed)
    city = rng.choice(12, rows, p=rng.dirichlet(np.full(12, 3.0)))
    code = np.where(rng.random(rows) < noise, rng.integers(0, 12, rows), (5 * city) % 12)
    return pd.DataFrame({"city": city, "code": code, "country": city // 4, "other": rng.integers(0, 3, rows)}).astype(
        str
    )


def model_of(frame: pd.DataFrame) -> tuple[AnyOrderModel, Rows]:
    """An untrained model: nearly the same probability for every level."""
    variables = [Variable(name, Kind.CATEGORICAL, levels=tuple(sorted(frame[name].unique()))) for name in frame]
    encoding = Encoding.fit(frame, Schema(tuple(variables)), "standard")
    heads = [Categorical(len(variable.levels)) for variable in variables]
    network = {"name": "residual_mlp", "width": 8, "blocks": 1, "expert": False}
    model = AnyOrderModel.build(encoding, heads, network, Canonical(), seed=0)
    return model, encoded_rows(encoding, frame)


def names(frame: pd.DataFrame) -> set[tuple[str, str]]:
    model, rows = model_of(frame)
    return {(frame.columns[one.source], frame.columns[one.target]) for one in find_dependencies(model, rows)}


EXACT = {("city", "code"), ("code", "city"), ("city", "country"), ("code", "country")}


@pytest.mark.parametrize("rows", [200, 12_000])
def test_columns_that_fix_others_are_found_and_no_others(rows: int) -> None:
    assert names(table(rows)) == EXACT


def test_a_few_exceptions_are_allowed_and_many_are_not() -> None:
    assert names(table(6_000, noise=0.01)) == EXACT
    assert names(table(6_000, noise=0.06)) == {("city", "country")}


def test_nothing_is_found_by_chance() -> None:
    rng = np.random.default_rng(0)
    rare = (rng.random(4_000) < 0.004).astype(str)  # nearly constant: every column seems to fix it
    unique = rng.integers(0, 3_000, 4_000).astype(str)  # nearly distinct: it seems to fix every column
    frame = pd.DataFrame({"rare": rare, "unique": unique, "coin": rng.integers(0, 2, 4_000).astype(str)})
    assert names(frame) == set()
    assert names(table(24)) == set()  # too few rows to say so


def test_missing_cells_neither_prove_nor_disprove() -> None:
    frame = table(3_000).mask(np.random.default_rng(1).random((3_000, 4)) < 0.3)
    model, rows = model_of(frame.fillna("0"))
    rows = Rows(rows.values, torch.as_tensor(frame.notna().to_numpy()), rows.log_det)
    assert {(frame.columns[one.source], frame.columns[one.target]) for one in find_dependencies(model, rows)} == EXACT


def test_the_limit_is_the_share_of_failures() -> None:
    held, failed = torch.full((500,), 0.4, dtype=torch.float64), torch.full((50,), 0.4, dtype=torch.float64)
    assert _limit(_Asked(held, 9_900), _Asked(failed, 100)) == pytest.approx(0.01, rel=0.06)
    never = _limit(_Asked(held, 10_000), _Asked(failed[:0], 0))
    assert never == pytest.approx(0.5 / 10_000, rel=0.1)


def test_a_model_that_knows_when_a_dependency_fails_is_left_alone() -> None:
    held = torch.full((500,), 0.001, dtype=torch.float64)
    failed = torch.full((50,), 0.9, dtype=torch.float64)
    assert _limit(_Asked(held, 9_900), _Asked(failed, 100)) > 0.89
    assert _limit(_Asked(torch.full((500,), 0.01).double(), 9_900), _Asked(torch.full((50,), 0.01).double(), 100)) == 1


def test_other_rows_are_more_probable_also_with_exceptions() -> None:
    for noise in (0.0, 0.01):
        frame = table(5_000, noise)
        model, rows = model_of(frame[:3_000])
        found, said = with_dependencies(model, rows, seed=0)
        assert len(said) >= 3
        test = encoded_rows(model.encoding, frame[3_000:])
        asked = Query.marginal(torch.ones_like(test.observed))
        gain = log_prob(found, test.values, asked) - log_prob(model, test.values, asked)
        assert gain.mean() > 3.0 and (noise > 0 or gain.min() > 0)


def test_the_joint_distribution_still_adds_up_to_one() -> None:
    frame = table(2_000, noise=0.01)
    model, _ = with_dependencies(*model_of(frame), seed=0)
    levels = [len(variable.levels) for variable in model.schema.variables]
    every = torch.cartesian_prod(*(torch.arange(count).float() for count in levels))
    asked = Query.marginal(torch.ones_like(every, dtype=torch.bool))
    for protocol in (Canonical(), Canonical(order=(3, 2, 1, 0))):
        model.protocol = protocol
        assert np.exp(log_prob(model, every, asked)).sum() == pytest.approx(1, abs=1e-4)
