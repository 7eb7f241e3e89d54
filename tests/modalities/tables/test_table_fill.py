"""Filled tables: known cells come back as they were, in the table's own labels, dtypes and spelling."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import anyorder as ao

from messy_tables import QUICK


def test_fill_keeps_what_is_known(model: ao.TableModel, frame: pd.DataFrame) -> None:
    for filled in (model.fill(frame), model.fill(frame, draws=2, seed=3)[1]):
        assert filled.index.equals(frame.index) and list(filled.columns) == list(frame.columns)
        assert not filled.isna().any().any()
        for name in frame.columns:
            known = frame[name].notna()
            assert (filled.loc[known, name] == frame.loc[known, name]).all()
            assert filled[name].dtype == frame[name].dtype, name


def test_draws_are_coherent_and_differ(model: ao.TableModel, frame: pd.DataFrame) -> None:
    first, second = model.fill(frame, draws=2, seed=0)
    hole = frame["size"].isna()
    assert (first.loc[hole, "size"] != second.loc[hole, "size"]).any()
    again = model.fill(frame, draws=2, seed=0)
    pd.testing.assert_frame_equal(first, again[0])


def test_polars_in_polars_out(model: ao.TableModel, frame: pd.DataFrame) -> None:
    table = pl.DataFrame(
        {name: frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in ("size", "river")}
    )
    filled = model.fill(table)
    assert isinstance(filled, pl.DataFrame) and filled["size"].null_count() == 0
    assert isinstance(model.log_prob(table), pl.Series)


def typed(rows: int = 60) -> pd.DataFrame:
    """Narrow dtypes, so that a later frame can differ from each of them."""
    rng = np.random.default_rng(1)
    start = pd.Timestamp("2024-01-01")
    return pd.DataFrame(
        {
            "narrow": rng.normal(size=rows).astype(np.float32),
            "small": rng.integers(-100, 100, rows).astype(np.int8),
            "second": (start + pd.to_timedelta(rng.integers(0, 10**7, rows), unit="s")).astype("datetime64[s]"),
            "day": start + pd.to_timedelta(rng.integers(0, 300, rows), unit="D"),
            "price": rng.normal(20, 5, rows),
            "digits": [f"{number}" for number in rng.integers(0, 99999, rows)],
            "sold": rng.random(rows) < 0.4,
            "stars": rng.choice([0.0, 0.5, 1.0], rows),
            "grade": pd.Categorical(rng.choice(["lo", "hi"], rows)),
        }
    )


@pytest.fixture(scope="module")
def narrow_model() -> ao.TableModel:
    return ao.fit(typed(), seed=0, config={**QUICK, "training": {**QUICK["training"], "steps": 10}})


CELLS = {
    "float64": ("narrow", pd.Series([0.1, 1 / 3, np.nan, -2.5e-7]), "float64"),
    "Float64": ("narrow", pd.Series([0.1, 1 / 3, None, -2.5e-7], dtype="Float64"), "Float64"),
    "number as text": ("narrow", pd.Series(["0.10", "1e0", None, "-2.5e-7"], dtype="str"), "str"),
    "int64": ("small", pd.Series([300, 5, None, -7], dtype="Int64"), "Int64"),
    "float for int": ("small", pd.Series([300.0, 5, np.nan, -7]), "float64"),
    "microseconds": (
        "second",
        pd.Series(["2024-01-01T00:00:00.123456", "2024-02-01T01:01:01.5", None], dtype="datetime64[us]"),
        "datetime64[us]",
    ),
    "nanoseconds": (
        "second",
        pd.Series(["2024-01-01T00:00:00.123456789", None, "2024-03-01"], dtype="datetime64[ns]"),
        "datetime64[ns]",
    ),
    "text dates": ("day", pd.Series(["2024-01-05", None, "2024-03-01"], dtype="str"), "str"),
    "text times": ("second", pd.Series(["2024-01-05 12:00", None, "2024-03-01 01:30"], dtype="str"), "str"),
    "dates": ("day", pd.Series([pd.Timestamp("2024-01-05").date(), None], dtype=object), "object"),
    "whole for float": ("price", pd.Series([20, None, 2**40], dtype="Int64"), "Float64"),
    "too long for float": ("price", pd.Series([2**60 + 1, None], dtype="Int64"), "object"),
    "text": ("price", pd.Series(["20", "19.50", None], dtype="str"), "str"),
    "number for text": ("digits", pd.Series([123.0, np.nan, 77.0]), "float64"),
    "truth as text": ("sold", pd.Series(["yes", None, "no"], dtype="str"), "str"),
    "truth as number": ("sold", pd.Series([1, None, 1], dtype="Int8"), "Int8"),
    "atoms as text": ("stars", pd.Series(["0", "0.50", None, "1.0"], dtype="str"), "str"),
    "atoms as float32": ("stars", pd.Series([0, 0.5, np.nan], dtype="float32"), "float32"),
    "fewer categories": ("grade", pd.Series(["hi", None], dtype=pd.CategoricalDtype(["hi"])), "category"),
    "category as text": ("grade", pd.Series(["hi", None], dtype="str"), "str"),
    "nothing known": ("narrow", pd.Series([np.nan, np.nan]), "float64"),
    "nothing known, no dtype": ("grade", pd.Series([None, None], dtype=object), "category"),
}


@pytest.mark.parametrize("draws", [None, 2])
@pytest.mark.parametrize("case", CELLS)
def test_known_cells_come_back_as_they_were(narrow_model: ao.TableModel, case: str, draws: int | None) -> None:
    name, column, dtype = CELLS[case]
    filled = narrow_model.fill(pd.DataFrame({name: column}), draws=draws)
    found = (filled if draws is None else filled[0])[name]
    assert str(found.dtype) == dtype
    assert not found.isna().any()
    known = column.notna()
    if dtype != "category" or column.dtype == "category":
        assert [(type(a), a) for a in found[known].astype(object)] == [
            (type(b), b) for b in column[known].astype(object if dtype != "Float64" else "Float64").astype(object)
        ]
    # What was filled in can be read again as the same variable.
    assert np.isfinite(narrow_model.log_prob(pd.DataFrame({name: found.iloc[~known.to_numpy()]}))).all()


def test_text_is_filled_in_its_own_spelling(narrow_model: ao.TableModel) -> None:
    frame = pd.DataFrame(
        {
            "sold": pd.Series(["yes", "no", None], dtype="str"),
            "second": pd.Series(["2024-01-05 12:00", "2024-03-01 01:30", None], dtype="str"),
        }
    )
    filled = narrow_model.fill(frame)
    assert filled["sold"].iloc[2] in ("yes", "no")
    assert pd.Timestamp(filled["second"].iloc[2]).strftime("%Y-%m-%d %H:%M") == filled["second"].iloc[2]


@pytest.mark.filterwarnings("ignore")
def test_words_that_mean_nothing_to_the_model_are_kept() -> None:
    """A date that does not exist and a remark are the user's; marks for unknown, fit's too, are holes."""
    days = pd.date_range("2021-01-01", periods=60).strftime("%d/%m/%Y").tolist()
    frame = pd.DataFrame(
        {
            "when": [*days, "31/02/2024", "n/a", None, days[0]],
            "size": [*(f"{number / 7:.2f}" for number in range(60)), "call us", "?", "see", "1.00"],
            "often": [*["never", "often", "always"] * 20, "Prefer not to say", "n/a", None, "often"],
        }
    )
    model = ao.fit(frame, missing=["see"], seed=0, config=QUICK)
    for filled in (model.fill(frame), model.fill(frame, draws=1)[0]):
        assert filled.iloc[60].tolist() == ["31/02/2024", "call us", "Prefer not to say"]
        assert pd.to_datetime(filled["when"].iloc[61:63], format="%d/%m/%Y").notna().all()
        assert filled["size"].iloc[61:63].str.fullmatch(r"-?\d+\.\d\d").all()
        assert filled["often"].iloc[61:63].isin(["never", "often", "always"]).all()
        pd.testing.assert_frame_equal(filled.drop(index=[61, 62]), frame.drop(index=[61, 62]))


@pytest.mark.parametrize("draws", [None, 1])
def test_one_unknown_cell_and_one_row(model: ao.TableModel, frame: pd.DataFrame, draws: int | None) -> None:
    whole = frame.dropna()
    for name in whole.columns:
        for part in (whole.iloc[:5], whole.iloc[:1]):
            holes = part.astype({name: object})
            holes.iloc[-1, holes.columns.get_loc(name)] = None
            filled = model.fill(holes, draws=draws)
            filled = filled if draws is None else filled[0]
            assert filled.notna().all(axis=None)
            others = [other for other in whole.columns if other != name]
            pd.testing.assert_frame_equal(filled[others], part[others])
            assert filled[name].tolist()[:-1] == part[name].tolist()[:-1]


def test_chunks_do_not_change_a_fill(
    model: ao.TableModel, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = frame.head(60)  # nine chunks, the last not full
    whole, scores = model.fill(rows), model.log_prob(rows)
    monkeypatch.setattr("anyorder.model.any_order.rows_at_once", lambda layout: 7)
    pd.testing.assert_frame_equal(model.fill(rows), whole, rtol=1e-4)
    np.testing.assert_allclose(model.log_prob(rows), scores, rtol=1e-4, atol=1e-4)
    assert model.fill(rows, draws=1)[0].notna().all(axis=None)


def test_column_labels_come_back() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=pd.Index([0, 1, 2], name="sensor"))
    model = ao.fit(frame, seed=0, config={**QUICK, "training": {"steps": 5}}, kinds={2: "continuous"}, drop=[1])
    frame.iloc[0, 0] = np.nan
    for filled in (model.fill(frame), model.fill(frame, draws=1)[0]):
        pd.testing.assert_index_equal(filled.columns, frame.columns)
        assert filled.columns.dtype == frame.columns.dtype
        assert (filled[1] == frame[1]).all()
    fewer = model.fill(frame[[2]])
    assert fewer.columns.tolist() == [2, "0"]
    assert fewer.columns.name == "sensor"


def test_extra_columns_pass_through(model: ao.TableModel, frame: pd.DataFrame) -> None:
    more = frame.assign(note=[f"n{i}" for i in range(len(frame))], extra=None)
    with pytest.warns(UserWarning, match="'note', 'extra'"):
        filled = model.fill(more)
    pd.testing.assert_frame_equal(filled[["note", "extra"]], more[["note", "extra"]])
    pd.testing.assert_frame_equal(filled[list(frame.columns)], model.fill(frame))
    with pytest.warns(UserWarning, match="'note'"):
        np.testing.assert_array_equal(model.log_prob(more), model.log_prob(frame))
    with pytest.raises(ao.UserError, match="no column 'roms'; did you mean 'rooms'"):
        model.log_prob(more.rename(columns={"rooms": "roms"}))


def test_unseen_values_as_unknown(model: ao.TableModel, frame: pd.DataFrame) -> None:
    strange, holes = frame.copy(), frame.copy()
    places = strange.index[[0, 3, 5]]
    strange.loc[places, "river"] = "maybe"
    strange.loc[places[:1], "stars"] = 0.75
    holes.loc[places, "river"] = None
    holes.loc[places[:1], "stars"] = np.nan
    with pytest.raises(ao.UserError, match=r"river.*row 0.*valid values: 'no', 'yes'.*--unseen missing"):
        model.fill(strange.assign(stars=1.0))
    with pytest.raises(ao.UserError, match=r"stars.*valid values: 0.0, 0.5, 1.0.*'continuous'.*unseen='missing'"):
        model.log_prob(strange)
    with pytest.warns(UserWarning, match="1 in 'stars', 3 in 'river'"):
        np.testing.assert_array_equal(model.log_prob(strange, unseen="missing"), model.log_prob(holes))
    with pytest.warns(UserWarning, match="3 in 'river'"):
        filled = model.fill(strange, unseen="missing")
    assert (filled.loc[places, "river"] == "maybe").all()
    assert filled.loc[places[0], "stars"] == 0.75
    rest = [name for name in frame.columns if name not in ("river", "stars")]
    pd.testing.assert_frame_equal(filled[rest], model.fill(holes)[rest])
    assert filled.notna().all(axis=None)
    with pytest.raises(ao.UserError, match="unseen='mising'; did you mean 'missing'"):
        model.fill(frame, unseen="mising")  # type: ignore[arg-type]


def test_polars_whole_numbers_take_a_fraction(model: ao.TableModel) -> None:
    filled = model.fill(pl.DataFrame({"size": [100, None, 2**40]}, schema={"size": pl.Int64}))
    assert filled["size"].to_list()[::2] == [100, 2**40]
    assert filled["size"].to_list()[1] % 1 != 0
