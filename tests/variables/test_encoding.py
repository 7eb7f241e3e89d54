"""The encoding: invertible, exact where values are discrete, with the right log|det|, and plain data in a file."""

from __future__ import annotations

import datetime
import json
import time
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyorder.data.frames import as_pandas, like_input
from anyorder.data.tables import prepare
from anyorder.errors import UserError
from anyorder.variables.codecs import Codec, LatticeCodec, LevelCodec, LineCodec, WarpName
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp

from mixed_tables import WARPS, assert_close, example, fitted, mixed


@pytest.mark.parametrize("warp", WARPS)
def test_round_trip_keeps_dtypes_index_and_cells(warp: WarpName) -> None:
    frame = mixed()
    encoding = fitted(frame, warp)
    values, known = encoding.encode(frame)
    assert known.all()
    assert values.dtype == np.float64
    assert np.isfinite(values).all()
    assert_close(encoding.decode(values, index=frame.index), frame)
    for position, codec in enumerate(encoding.codecs):
        if isinstance(codec, LevelCodec):
            assert set(values[:, position]) == set(range(len(codec.variable.levels)))
        elif codec.variable.dtype != "float32":  # neither shifted away nor squeezed to nothing
            assert abs(np.median(values[:, position])) < 0.7
            assert 0.1 < np.diff(np.quantile(values[:, position], [0.1, 0.9]))[0] < 5 or warp == "standard"


def test_missing_cells_come_back_missing() -> None:
    frame = mixed()
    hidden = pd.DataFrame(np.random.default_rng(1).random(frame.shape) < 0.3, frame.index, frame.columns)
    holes = frame.astype({"int": "Int64", "bit": "Int8", "uint8": "UInt8", "truth": "boolean"}).mask(hidden)
    encoding = fitted(holes)
    values, known = encoding.encode(holes)
    assert (known == ~hidden.to_numpy()).all()
    assert (values[~known] == 0.0).all()
    back = encoding.decode(np.where(known, values, np.nan), index=holes.index)
    assert (back.isna().to_numpy() == hidden.to_numpy()).all()
    for name in holes:
        seen = ~hidden[name].to_numpy()
        pd.testing.assert_series_equal(back[name][seen], holes[name][seen], rtol=1e-9, atol=0.0)
    # Fitted without a missing cell, a column that cannot hold one moves to its nullable dtype.
    whole = fitted(frame)
    empty = whole.decode(np.full((2, frame.shape[1]), np.nan))
    assert empty.isna().all(axis=None)
    assert [str(empty[name].dtype) for name in ("int", "uint8", "truth", "bit")] == [
        "Int64",
        "UInt8",
        "boolean",
        "Int8",
    ]


@pytest.mark.parametrize(
    "codec",
    [
        LevelCodec(Variable("p", Kind.CATEGORICAL, ("a", "b"), dtype="str")),
        LatticeCodec(Variable("p", Kind.INTEGER, dtype="int64"), Warp.affine(1.5, 1.5), 0, 3),
        LineCodec(Variable("p", Kind.CONTINUOUS), Warp.affine(1 / 3, 2.0)),
    ],
    ids=lambda codec: type(codec).__name__,
)
def test_a_repeated_codec_is_kept_once(codec: Codec) -> None:
    encoding = Encoding.repeat(codec, (2, 3))
    assert encoding.schema == Schema.repeat(codec.variable, (2, 3))
    assert [own.variable for own in encoding.codecs] == list(encoding.schema.variables)
    described = json.loads(json.dumps(encoding.to_json()))
    assert described["codecs"] == [json.loads(json.dumps(codec.to_json()))]
    assert Encoding.from_json(described) == encoding


def test_codecs_that_differ_are_listed() -> None:
    schema = Schema.repeat(Variable("p", Kind.CONTINUOUS), (2,))
    encoding = Encoding(schema, tuple(LineCodec(v, Warp.affine(0.0, 1.0 + i)) for i, v in enumerate(schema.variables)))
    described = json.loads(json.dumps(encoding.to_json()))
    assert len(described["codecs"]) == 2
    assert Encoding.from_json(described) == encoding
    with pytest.raises(UserError, match="expected 2 codecs"):
        Encoding.from_json({**described, "codecs": described["codecs"] * 2})


@pytest.mark.parametrize("warp", WARPS)
def test_json_is_exact(warp: WarpName) -> None:
    frame = mixed()
    encoding = fitted(frame, warp, missing=["?"])
    again = Encoding.from_json(json.loads(json.dumps(encoding.to_json())))
    assert again == encoding
    assert (again.encode(frame)[0] == encoding.encode(frame)[0]).all()
    described = json.loads(json.dumps(encoding.to_json()))
    del described["codecs"][0]["warp"]
    with pytest.raises(UserError, match="encoding of 'normal' is damaged"):
        Encoding.from_json(described)


@pytest.mark.parametrize("warp", WARPS)
def test_log_det_is_the_derivative(warp: WarpName) -> None:
    """log dz/dx against central differences in the units of the data, times in days."""
    frame = mixed()[["normal", "heavy", "nullable", "second", "int", "text", "day"]]
    encoding = fitted(frame, warp)
    values, _ = encoding.encode(frame)
    log_det = encoding.log_det(values)
    for name, width in (("normal", 1e-4), ("heavy", 1e-6), ("nullable", 1e-6)):
        up, _ = encoding.encode_column(name, frame[name].astype(float) + width)
        down, _ = encoding.encode_column(name, frame[name].astype(float) - width)
        slope = (up - down) / (2 * width)
        np.testing.assert_allclose(np.exp(log_det[:, encoding.schema.index(name)]), slope, rtol=1e-4)
    little = pd.Timedelta(milliseconds=100)  # less than what lies between the last time and its tail
    up, _ = encoding.encode_column("second", frame["second"] + little)
    down, _ = encoding.encode_column("second", frame["second"] - little)
    slope = (up - down) / (2 / (24 * 60 * 600))
    np.testing.assert_allclose(np.exp(log_det[:, encoding.schema.index("second")]), slope, rtol=1e-3)
    assert (log_det[:, 4:] == 0.0).all()


def test_a_density_integrates_to_one_in_units() -> None:
    """A standard normal in model units, carried to the data's units by log_det, keeps its mass."""
    column = np.random.default_rng(3).lognormal(0, 1.5, 500)
    encoding = fitted(pd.DataFrame({"x": column}))
    grid = np.concatenate(
        [np.linspace(-2000, -20, 20001), np.linspace(-20, 20, 400001)[1:], np.geomspace(20, 1e6, 40001)[1:]]
    )
    z, _ = encoding.encode_column("x", grid)
    density = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) + encoding.log_det(z[:, None])[:, 0])
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-3)


numbers = st.floats(-1e9, 1e9, allow_nan=False).map(lambda number: number if abs(number) > 1e-9 else 0.0)


@given(st.lists(numbers, min_size=1, max_size=40), st.sampled_from(WARPS))
def test_continuous_round_trip(column: list[float], warp: WarpName) -> None:
    frame = pd.DataFrame({"x": column})
    encoding = fitted(frame, warp, kinds={"x": "continuous"})
    back = encoding.decode(encoding.encode(frame)[0])["x"].to_numpy()
    np.testing.assert_allclose(back, frame["x"], rtol=1e-9, atol=1e-9 * max(1e-300, np.abs(column).max()))


@given(st.lists(st.integers(-(2**50), 2**50) | st.integers(-20, 20), min_size=1, max_size=40), st.sampled_from(WARPS))
def test_integers_are_exact(column: list[int], warp: WarpName) -> None:
    frame = pd.DataFrame({"x": np.array(column, dtype=np.int64)})
    encoding = fitted(frame, warp, kinds={"x": "integer"})
    assert encoding.decode(encoding.encode(frame)[0])["x"].tolist() == column


@pytest.mark.filterwarnings("ignore:left out")
@given(
    st.lists(
        st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["1", "a", " a", "True", "é"]), min_size=1
    )
)
def test_mixed_levels_are_exact(column: list[Any]) -> None:
    frame = pd.DataFrame({"x": pd.Series(column, dtype=object), "y": range(len(column))})
    encoding = fitted(frame, kinds={"x": "categorical"} if any(cell is not None for cell in column) else {})
    values, known = encoding.encode(frame)
    back = encoding.decode(np.where(known, values, np.nan))["x"]
    if known[:, 0].any() and "x" in encoding.schema:
        found = [(type(a), a) for a, b in zip(back, column, strict=True) if b is not None]
        assert found == [(type(b), b) for b in column if b is not None]


@given(st.lists(st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)), min_size=2, max_size=30))
def test_times_to_the_microsecond_or_better_than_their_spread(column: list[datetime.datetime]) -> None:
    frame = pd.DataFrame({"x": pd.Series(column).astype("datetime64[us]")})
    encoding = fitted(frame, kinds={"x": "datetime"})
    back = encoding.decode(encoding.encode(frame)[0])["x"]
    spread = (frame["x"].max() - frame["x"].min()).total_seconds()
    assert (back - frame["x"]).abs().max().total_seconds() <= 2e-6 + 1e-9 * spread


def test_lattice_has_unit_steps() -> None:
    frame = mixed()[["int", "local"]]
    encoding = fitted(frame)
    codec = encoding.codec("int")
    assert isinstance(codec, LatticeCodec)
    assert (codec.start, codec.stop, codec.step) == (frame["int"].min(), frame["int"].max(), 1)
    days = encoding.codec("local")
    assert isinstance(days, LatticeCodec)
    first = frame["local"].min().tz_localize(None)
    assert days.start == (first - pd.Timestamp(0)).days
    # Days of a wall clock are 23, 24 or 25 hours long, and still one step apart.
    both = pd.Series(pd.to_datetime(["2024-03-31", "2024-04-01"])).dt.tz_localize("Europe/Berlin")
    values, _ = encoding.encode_column("local", both)
    assert np.diff(encoding.measure("local", values))[0] == pytest.approx(1.0)


def test_samples_outside_the_range_still_decode() -> None:
    """A model may draw far out in the tails; what comes back must fit the dtype, not wrap around."""
    encoding = fitted(mixed(), "standard")
    far = np.vstack([np.full(len(encoding.schema), sign * 1e6) for sign in (-1.0, 1.0)])
    frame = encoding.decode(far)
    assert frame["uint8"].tolist() == [0, 255]
    assert frame["int"].iloc[0] < -(10**6)
    assert frame["nano"].dt.year.tolist() == [1677, 2262] or frame["nano"].dt.year.between(1677, 2262).all()
    assert frame["day"].is_monotonic_increasing
    assert not frame.isna().any(axis=None)


def test_polars_there_and_back() -> None:
    frame = pl.DataFrame({"x": [0.5, 1.25, None, 2.0], "n": [1, None, 5, 9], "c": ["a", "b", "a", None]})
    schema, table = prepare(frame, kinds={"x": "continuous"})
    encoding = Encoding.fit(table, schema)
    values, known = encoding.encode(as_pandas(frame))
    back = like_input(encoding.decode(np.where(known, values, np.nan)), frame)
    assert back.schema == frame.schema
    assert back["n"].to_list() == [1, None, 5, 9]
    assert back["x"].to_list() == pytest.approx([0.5, 1.25, None, 2.0])


def test_constants() -> None:
    frame = pd.DataFrame({"x": [3.5] * 4, "n": [7] * 4, "c": ["a"] * 4, "t": pd.to_datetime(["2024-01-01T12:00"] * 4)})
    encoding = fitted(frame)
    assert_close(encoding.decode(encoding.encode(frame)[0]), frame)
    forced = Encoding.fit(frame, prepare(frame, {"x": "continuous", "n": "integer", "t": "datetime"})[0])
    assert [type(codec) for codec in forced.codecs] == [LineCodec, LatticeCodec, LevelCodec, LineCodec]
    assert_close(forced.decode(forced.encode(frame)[0]), frame)


def test_codecs_are_plain_data() -> None:
    encoding = example()
    for codec in encoding.codecs:
        assert json.loads(json.dumps(codec.to_json())).keys() == codec.to_json().keys()
    with pytest.raises(UserError, match="did you mean 'normal_scores'"):
        Encoding.fit(mixed(), encoding.schema, "normal_score")  # type: ignore[arg-type]


def test_a_hundred_thousand_rows() -> None:
    frame = mixed(100_000)[["normal", "heavy", "int", "atoms", "truth", "text", "grade", "day", "second", "Int64"]]
    encoding = fitted(frame)
    start = time.perf_counter()
    values, _ = encoding.encode(frame)
    assert time.perf_counter() - start < 5.0  # about 0.3 s on a quiet core
    assert values.shape == frame.shape
