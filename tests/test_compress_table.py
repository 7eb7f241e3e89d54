"""Compression of tables: any cell comes back, levels cost what the likelihood says, damage is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import anyorder as ao
from anyorder.compress import compress, decompress
from anyorder.errors import UserError
from anyorder.tables import TableModel

pytest.importorskip("constriction")
pytest.importorskip("pyarrow")


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    size = rng.normal(size=rows)
    frame = pd.DataFrame(
        {
            "length": np.round(10 + 3 * size, 2),
            "weight": 5 + 2 * size + rng.normal(size=rows) / 5,
            "count": rng.poisson(np.exp(0.5 * size + 1)),
            "town": np.where(size + rng.normal(size=rows) / 3 > 0, "york", "bath"),
            "wet": rng.random(rows) < 0.3,
            "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 60, rows), unit="D"),
        }
    )
    frame.loc[rng.random(rows) < 0.2, "length"] = np.nan
    frame.loc[rng.random(rows) < 0.1, "town"] = None
    return frame


@pytest.fixture(scope="module", params=["neural", "trees"])
def model(request: pytest.FixtureRequest) -> TableModel:
    config = {"engine": request.param, "training": {"steps": 40, "minutes": 0.2}}
    fitted: TableModel = ao.fit(table(400), seed=0, minutes=0.2, config=config)
    return fitted


def test_any_table_comes_back(model: TableModel) -> None:
    frame = table(700, seed=1)  # the weights are all distinct: a dictionary in two stages
    packed = compress(model, frame)
    assert_frame_equal(decompress(model, packed), frame)


def test_strange_cells_and_columns_come_back(model: TableModel) -> None:
    frame = table(50, seed=2)
    frame.loc[3, "town"] = "atlantis"  # never seen
    frame.loc[4, "length"] = 1e300
    frame["note"] = [f"row {number}" for number in range(50)]  # the model knows no such column
    frame["town"] = frame["town"].astype("category")
    frame["count"] = frame["count"].astype("Int16")
    frame.loc[7, "count"] = pd.NA
    frame = frame[["note", "town", "count", "length", "day"]]
    assert_frame_equal(decompress(model, compress(model, frame)), frame)
    words = frame.assign(length=["long"] * 50)
    assert_frame_equal(decompress(model, compress(model, words)), words)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows_come_back(model: TableModel, rows: int) -> None:
    frame = table(60, seed=3).iloc[:rows].reset_index(drop=True)
    assert_frame_equal(decompress(model, compress(model, frame)), frame)


def test_levels_cost_what_the_likelihood_says() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, 20_000)
    second = np.where(rng.random(20_000) < 0.9, first, rng.integers(0, 4, 20_000))
    frame = pd.DataFrame({"a": [f"a{k}" for k in first], "b": [f"b{k}" for k in second]})
    model = ao.fit(frame.iloc[:2000], seed=0, minutes=0.3, config={"engine": "neural", "training": {"steps": 200}})
    packed = compress(model, frame)
    bits = -float(model.log_prob(frame).sum()) / np.log(2)
    assert bits < 3.0 * len(frame)  # the columns do tell of each other: apart they cost 4 bits a row
    assert 8 * len(packed) < 1.02 * bits + 8 * 1500  # dictionaries and their dtypes


def test_damage_and_other_models_are_refused(model: TableModel) -> None:
    packed = bytearray(compress(model, table(30)))
    packed[-1] ^= 1
    with pytest.raises(UserError, match="damaged"):
        decompress(model, bytes(packed))
    packed[-1] ^= 1
    packed[12] ^= 1
    with pytest.raises(UserError, match="rounds otherwise"):
        decompress(model, bytes(packed))
    with pytest.raises(UserError, match="not compressed by anyorder"):
        decompress(model, b"AOT2" + bytes(packed[4:]))
    with pytest.raises(UserError, match="calls are for texts"):
        compress(model, table(3), calls=2)
    other = ao.fit(table(100), seed=1, minutes=0.1, config={"engine": "neural", "training": {"steps": 2}})
    with pytest.raises(UserError, match="another model"):
        decompress(other, compress(model, table(3)))
