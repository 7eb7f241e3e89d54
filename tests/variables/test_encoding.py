"""The encoding: invertible, exact where values are discrete, with the right log|det|, clear about what it refuses."""

from __future__ import annotations

import datetime
import functools
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
from anyorder.data.tables import infer, prepare
from anyorder.errors import UserError
from anyorder.variables.codecs import Codec, LatticeCodec, LevelCodec, LineCodec, WarpName
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp

WARPS: tuple[WarpName, ...] = ("normal_scores", "standard")
ROWS = 200


def mixed(rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """One column of every kind and many dtypes, without missing cells."""
    random = np.random.default_rng(seed)
    start = pd.Timestamp("2024-03-01")
    seconds = pd.to_timedelta(random.integers(0, 10**7, rows), unit="s")
    whole_days = pd.to_timedelta(random.integers(0, 400, rows), unit="D")
    local_days = pd.Series(start + whole_days).dt.tz_localize("Europe/Berlin")
    return pd.DataFrame(
        {
            "normal": random.normal(1e6, 1.0, rows),
            "heavy": random.standard_cauchy(rows),
            "single": random.lognormal(0, 3, rows).astype(np.float32),
            "nullable": pd.array(random.normal(size=rows), dtype="Float64"),
            "int": random.integers(-1000, 1000, rows),
            "uint8": random.integers(0, 255, rows).astype(np.uint8),
            "Int64": pd.array(random.integers(0, 10**12, rows), dtype="Int64"),
            "whole": np.rint(random.normal(0, 100, rows)),
            "atoms": random.choice([0.1, 0.25, 7.0], rows),
            "atom32": random.choice([0.1, 0.2], rows).astype(np.float32),
            "bit": random.integers(0, 2, rows).astype(np.int8),
            "truth": random.random(rows) < 0.5,
            "text": random.choice(["a", "b", "c d"], rows),
            "spelt": random.choice(["TRUE", "FALSE"], rows),
            "grade": pd.Categorical(random.choice(["lo", "hi"], rows), categories=["hi", "lo", "top"], ordered=True),
            "numbered": pd.Categorical(random.choice([3, 1], rows)),
            "objects": pd.Series(random.choice(np.array([1, "1", True, 2.5], dtype=object), rows), dtype=object),
            "digits": [f"{number}" for number in random.integers(0, 99999, rows)],
            "decimal": [f"{number:.9g}" for number in random.normal(size=rows)],
            "day": start + whole_days,
            "local": local_days.array,
            "date": [moment.date() for moment in start + whole_days],
            "iso": (start + whole_days).strftime("%Y-%m-%d"),
            "stamp": (start + seconds).strftime("%Y-%m-%d %H:%M:%S"),
            "second": (start + seconds).astype("datetime64[s]"),
            "nano": pd.DatetimeIndex(start + seconds).as_unit("ns").tz_localize("UTC").tz_convert("Europe/Berlin"),
            "constant": [pd.Timestamp("2024-01-01", tz="UTC")] * rows,
            "arrow date": pd.Series([moment.date() for moment in start + whole_days]).astype("date32[pyarrow]"),
            "arrow": pd.Series(random.integers(0, 500, rows)).astype("int64[pyarrow]"),
        },
        index=pd.Index(random.permutation(rows), name="row"),
    )


def assert_close(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Equal in dtypes, index and cells; numbers on a line to 1e-9."""
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9, atol=0.0)


def fitted(frame: pd.DataFrame, warp: WarpName = "normal_scores", **options: Any) -> Encoding:
    schema, kept = prepare(frame, **options)
    return Encoding.fit(kept, schema, warp)


@functools.cache
def example() -> Encoding:
    """The encoding of :func:`mixed`, fitted once."""
    return fitted(mixed())


@pytest.mark.parametrize("warp", WARPS)
def test_round_trip_keeps_dtypes_index_and_cells(warp: WarpName) -> None:
    frame = mixed()
    encoding = fitted(frame, warp)
    values, known = encoding.encode(frame)
    assert known.all()
    assert values.dtype == np.float64
    assert np.isfinite(values).all()
    assert_close(encoding.decode(values, index=frame.index), frame)
    for place, codec in enumerate(encoding.codecs):
        if isinstance(codec, LevelCodec):
            assert set(values[:, place]) == set(range(len(codec.variable.levels)))
        elif codec.variable.dtype != "float32":  # neither shifted away nor squeezed to nothing
            assert abs(np.median(values[:, place])) < 0.7
            assert 0.1 < np.diff(np.quantile(values[:, place], [0.1, 0.9]))[0] < 5 or warp == "standard"


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
    minute = pd.Timedelta(minutes=1)
    up, _ = encoding.encode_column("second", frame["second"] + minute)
    down, _ = encoding.encode_column("second", frame["second"] - minute)
    slope = (up - down) / (2 / (24 * 60))
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


def test_measure() -> None:
    encoding = example()

    def measured(name: str, value: object) -> float:
        return float(encoding.measure(name, np.array([encoding.encode_value(name, value)]))[0])

    assert measured("heavy", 2.5) == pytest.approx(2.5)
    assert measured("atoms", 0.25) == 0.25
    assert measured("truth", True) == 1.0
    assert measured("spelt", "FALSE") == 0.0
    assert np.isnan(measured("text", "a"))
    assert measured("second", "1970-01-03T12:00:00") == pytest.approx(2.5)
    assert measured("day", "1970-01-03") == pytest.approx(2.0)
    for name in ("heavy", "int", "atoms", "truth", "second", "day"):
        values = encoding.encode(mixed())[0][:, encoding.schema.index(name)]
        np.testing.assert_allclose(encoding.codec(name).from_measure(encoding.measure(name, values)), values, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        ("int", [6, "6", " 6 ", 6.0, "6.0", np.int8(6)]),
        ("heavy", [0.5, "0.5", "5e-1", np.float32(0.5)]),
        ("atoms", [0.25, "0.25", ".25"]),
        ("atom32", [np.float32(0.1), 0.1, "0.1"]),
        ("bit", [1, "1", True, 1.0]),
        ("truth", [True, "true", "True", "yes", 1, np.True_]),
        ("spelt", ["TRUE", "true", True]),
        ("text", ["c d", " c d "]),
        ("numbered", [3, "3", 3.0]),
        ("day", ["2024-05-01", datetime.date(2024, 5, 1), pd.Timestamp("2024-05-01"), np.datetime64("2024-05-01")]),
        ("local", ["2024-05-01", pd.Timestamp("2024-05-01", tz="Europe/Berlin"), "2024-04-30T22:00:00+00:00"]),
        ("stamp", ["2024-05-01 12:00", "2024-05-01T12:00:00", datetime.datetime(2024, 5, 1, 12)]),
        ("constant", ["2024-01-01T00:00:00+00:00", pd.Timestamp("2024-01-01", tz="UTC")]),
    ],
)
def test_one_value_in_many_spellings(name: str, spellings: list[object]) -> None:
    encoding = example()
    found = {encoding.encode_value(name, value) for value in spellings}
    assert len(found) == 1


def test_distinct_values_stay_distinct() -> None:
    encoding = example()
    codes = [encoding.encode_value("objects", value) for value in (1, "1", True, 2.5)]
    assert len(set(codes)) == 4


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("text", "A", "column 'text': 'A' is not one of its values; did you mean 'a'"),
        ("int", 2.5, r"column 'int': got 2.5, expected a whole number.*kinds=\{'int': 'continuous'\}"),
        ("int", "six", "column 'int': expected a number, got 'six'"),
        ("heavy", float("inf"), "column 'heavy': expected a finite number"),
        ("heavy", None, "expected a value, got None"),
        ("heavy", "N/A", "stands for an unknown cell"),
        ("heavy", [1, 2], "column 'heavy': expected a number"),
        ("atoms", 0.3, "0.3 is not one of its values; valid values: 0.1, 0.25, 7.0. .*kinds={'atoms': 'continuous'}"),
        ("truth", "maybe", "column 'truth': 'maybe' is not one of its values"),
        ("day", "2024-05-01T12:00", "column 'day': got 2024-05-01T12:00, expected a whole day"),
        ("day", "soon", "column 'day': expected a time such as 2024-05-01"),
        ("second", "2024-05-01T12:00:00+02:00", "time zone"),
        ("hevy", 1, "did you mean 'heavy'"),
    ],
)
def test_values_that_do_not_fit(name: str, value: object, words: str) -> None:
    with pytest.raises(UserError, match=words):
        example().encode_value(name, value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"text": ["a"] * (ROWS - 1) + ["z"]},
            r"column 'text', row 199: 'z' is not one of its values; valid values: 'a'.*unseen='missing'",
        ),
        ({"int": [1] * (ROWS - 1) + ["x"]}, "column 'int', row 199: expected a number, got 'x'"),
        ({"heavy": [1.0] * (ROWS - 1) + [-np.inf]}, "column 'heavy', row 199: expected a finite number, got -inf"),
        ({"grade": "low"}, "column 'grade', row 0: 'low' is not one of its values"),
        ({"grade": "top"}, "column 'grade', row 0: 'top' is not one of its values"),
    ],
)
def test_frames_that_do_not_fit(change: dict[str, Any], words: str) -> None:
    frame = mixed().reset_index(drop=True)
    with pytest.raises(UserError, match=words):
        example().encode(frame.assign(**change))
    with pytest.raises(UserError, match="knows no column 'texts'; did you mean 'text'"):
        example().encode(frame.rename(columns={"text": "texts"}))
    with pytest.raises(UserError, match="'int' appears more than once"):
        example().encode(frame[["int", "text", "int"]])


def test_columns_absent_left_out_or_dropped() -> None:
    frame = mixed()[["int", "text"]].assign(empty=None, name=[f"n{i}" for i in range(ROWS)])
    with pytest.warns(UserWarning, match="'empty'"):
        encoding = fitted(frame, drop=["name"])
    values, known = encoding.encode(frame[["text", "name", "empty"]])
    assert known.tolist() == [[False, True]] * ROWS
    back = encoding.decode(values)
    assert back.columns.tolist() == ["int", "text", "empty"]
    assert back["empty"].isna().all()
    assert encoding.encode(frame.iloc[:0])[0].shape == (0, 2)
    assert encoding.decode(values[:0]).dtypes.tolist()[:2] == frame.dtypes.tolist()[:2]


def test_marks_count_later_too() -> None:
    train = pd.DataFrame({"x": ["?", "1.5", "2.5", "3"] * 5, "c": ["a", "?", "b", "a"] * 5})
    encoding = fitted(train, missing=["?"])
    _, known = encoding.encode(pd.DataFrame({"x": [" ? ", "", "n/a", "3"], "c": ["?", "", None, "b"]}))
    assert known.tolist() == [[False, False]] * 3 + [[True, True]]


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
    forced = Encoding.fit(frame, infer(frame, {"x": "continuous", "n": "integer", "t": "datetime"}))
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
