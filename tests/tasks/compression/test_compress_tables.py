"""Compression of tables: any cell comes back, levels cost what the likelihood says, damage is refused."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import anyorder as ao
from anyorder.errors import UserError
from anyorder.modalities.face import compress, decompress
from anyorder.modalities.tables.model import TableModel
from anyorder.tasks.compression.coder import HEADER
from anyorder.tasks.compression.tables import MAGIC

from altered_files import assert_never_wrong

pytest.importorskip("constriction")
pytest.importorskip("pyarrow")

SMALL = {
    "engine": "neural",
    "training": {"steps": 40},
    "network": {"name": "residual_mlp", "width": 32, "blocks": 1},
}


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
    config = {**SMALL, "engine": request.param, "trees": {"members": 1, "shown": 2000, "rounds": 20}}
    fitted: TableModel = ao.fit(table(400), seed=0, config=config)
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


STRANGE = {
    "zeros": [0.0, -0.0, 1.5],
    "types": pd.Series([True, 1, 1.0], dtype=object),
    "missing": pd.Series(["york", None, float("nan")], dtype=object),
    "decimals": pd.Series([decimal.Decimal("2"), decimal.Decimal("1.10"), None], dtype=object),
    "large": pd.Series([2**70, -1, 3], dtype=object),
    "zones": pd.Series(
        [
            pd.Timestamp("2024-01-01", tz="Asia/Tokyo"),
            datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
            datetime.date(2024, 1, 1),
        ],
        dtype=object,
    ),
    "surrogates": pd.Series(["a\udcff", "b", "ä😀"], dtype=object),
    "days": pd.to_datetime(["2024-01-01", None, "2024-03-01"]).tz_localize("Europe/Berlin"),
    "single": np.array([0.1, np.inf, -0.0], dtype=np.float32),
    "wide": np.array([2**63, 1, 0], dtype=np.uint64),
    "ordered": pd.Categorical(["b", "a", None], categories=["c", "b", "a"], ordered=True),
}


@pytest.mark.parametrize("name", [*STRANGE, "length", "town"])
def test_cells_come_back_with_type_and_bit(model: TableModel, name: str) -> None:
    cells = STRANGE.get(name, STRANGE["types"])  # also under the name of a column that the model knows
    for label in (name, 7):
        frame = pd.DataFrame({label: cells, "town": ["york", "bath", "york"]} if label != "town" else {label: cells})
        back = decompress(model, compress(model, frame))
        assert list(back.columns) == list(frame.columns)
        assert back.dtypes.equals(frame.dtypes)
        for one, other in zip(back[label], frame[label], strict=True):
            assert type(one) is type(other)
            assert repr(one) == repr(other)


def test_cells_that_would_not_come_back_are_refused(model: TableModel) -> None:
    for cells in ([[1], [2]], [{"a": 1}, None], [1 + 2j, 3j], [object(), object()]):
        with pytest.raises(UserError, match=r"'odd'|type"):
            compress(model, pd.DataFrame({"odd": pd.Series(cells, dtype=object)}))
    with pytest.raises(UserError, match="rename it"):
        compress(model, pd.DataFrame({1.5: [1, 2]}))
    with pytest.raises(UserError, match="names must differ"):
        compress(model, pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_levels_cost_what_the_likelihood_says() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, 20_000)
    second = np.where(rng.random(20_000) < 0.9, first, rng.integers(0, 4, 20_000))
    frame = pd.DataFrame({"a": [f"a{k}" for k in first], "b": [f"b{k}" for k in second]})
    model = ao.fit(frame.iloc[:2000], seed=0, config={**SMALL, "training": {"steps": 200}})
    packed = compress(model, frame)
    bits = -float(model.log_prob(frame).sum()) / np.log(2)
    assert bits < 3.0 * len(frame)  # the columns do tell of each other: apart they cost 4 bits a row
    coded = len(packed) - HEADER.size - HEADER.unpack(packed[: HEADER.size])[3]  # without the dictionaries
    assert 8 * coded == pytest.approx(bits, rel=0.005)


def test_damage_and_other_models_are_refused(model: TableModel) -> None:
    packed = bytearray(compress(model, table(30)))
    packed[-1] ^= 1
    with pytest.raises(UserError, match="damaged"):
        decompress(model, bytes(packed))
    packed[-1] ^= 1
    for place in range(4, HEADER.size):
        packed[place] ^= 1
        with pytest.raises(UserError, match="damaged"):
            decompress(model, bytes(packed))
        packed[place] ^= 1
    assert_never_wrong(MAGIC, model, bytes(packed), lambda back: back.equals(table(30)))
    with pytest.raises(UserError, match="not compressed by anyorder"):
        decompress(model, b"AOT2" + bytes(packed[4:]))
    with pytest.raises(UserError, match="only for models of texts"):
        compress(model, table(3), calls=2)
    other = ao.fit(table(100), seed=1, config={**SMALL, "training": {"steps": 2}})
    with pytest.raises(UserError, match="another model"):
        decompress(other, compress(model, table(3)))
