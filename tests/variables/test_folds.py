"""The fold of a row is a function of what its cells say, and of nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anyorder.data.tables import prepare
from anyorder.errors import UserError
from anyorder.variables.encoding import Encoding
from anyorder.variables.folds import fold_of, folds_of, row_hash


def table(rows: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=rows),
            "n": rng.integers(0, 400, size=rows),
            "c": rng.choice(["red", "blue"], size=rows),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**6, size=rows), unit="s"),
            "spiked": np.where(rng.random(rows) < 0.3, 0.0, rng.normal(size=rows)),
        }
    )
    frame.loc[rng.random(rows) < 0.2, "x"] = np.nan
    return frame


def test_hash_is_the_same_on_every_machine() -> None:
    cells = np.array([[0.1, -3.0], [0.1, 0.0], [0.0, -3.0]])
    known = np.array([[True, True], [True, False], [False, True]])
    assert row_hash(cells, known).tolist() == [17290684237420577079, 15815868102671607346, 6769122263485970183]


def test_fold_does_not_depend_on_the_encoding_its_rows_or_their_order() -> None:
    frame = table()
    schema, prepared = prepare(frame)
    whole = folds_of(Encoding.fit(prepared, schema, "standard"), prepared, 4)
    half = Encoding.fit(prepared.iloc[:300], schema, "normal_scores")
    half = Encoding.from_json(half.to_json())
    order = np.random.default_rng(1).permutation(len(frame))
    assert (folds_of(half, prepared.iloc[order], 4) == whole[order]).all()
    assert (folds_of(half, frame, 4) == whole).all()


def test_equal_rows_share_a_fold_whatever_their_dtype() -> None:
    frame = table()
    schema, prepared = prepare(frame)
    encoding = Encoding.fit(prepared, schema)
    other = frame.astype({"x": "float32", "n": "float64", "c": "category"})
    assert (folds_of(encoding, other, 4) == folds_of(encoding, frame, 4)).all()


def test_minus_zero_and_what_stands_in_an_unknown_cell_do_not_matter() -> None:
    known = np.array([[True, False]])
    assert row_hash(np.array([[0.0, 5.0]]), known) == row_hash(np.array([[-0.0, np.nan]]), known)


def test_folds_have_about_the_same_size() -> None:
    cells = np.random.default_rng(0).normal(size=(40_000, 3))
    counts = np.bincount(fold_of(cells, np.ones(cells.shape, dtype=bool), 4), minlength=4)
    # Chi-squared with three degrees of freedom: beyond 16.3 once in a thousand seeds.
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 16.3


def test_every_column_and_every_hole_matters() -> None:
    rng = np.random.default_rng(0)
    cells, known = rng.normal(size=(50, 4)), np.ones((50, 4), dtype=bool)
    for column in range(4):
        other, holes = cells.copy(), known.copy()
        other[:, column] += 1
        holes[:, column] = False
        assert (row_hash(other, known) != row_hash(cells, known)).all()
        assert (row_hash(cells, holes) != row_hash(cells, known)).all()


def test_no_folds_are_refused() -> None:
    with pytest.raises(UserError, match="folds must be a whole number"):
        fold_of(np.zeros((1, 1)), np.ones((1, 1), dtype=bool), 0)
