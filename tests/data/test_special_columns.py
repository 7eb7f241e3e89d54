"""Kinds beyond the plain ones: how atoms, bounds and orders of levels are inferred and declared."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anyorder.data.tables import prepare
from anyorder.errors import UserError
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable

from rainfall import rain

RNG = np.random.default_rng(0)
ROWS = 400


def variable_of(column: pd.Series, **options: object) -> Variable:
    schema, _ = prepare(pd.DataFrame({"x": column}), **options)  # type: ignore[arg-type]
    return schema["x"]


@pytest.mark.parametrize(
    ("column", "kind", "atoms", "bounds"),
    [
        (rain(), "spiked", (0.0, 25.0), (0.0, None)),
        (pd.Series(RNG.normal(0, 1, ROWS)), "continuous", (), (None, None)),
        (pd.Series(RNG.exponential(1, ROWS)), "continuous", (), (0.0, None)),
        (pd.Series(RNG.normal(170.25, 5.5, ROWS)), "continuous", (), (None, None)),  # far above 0: heights
        (pd.Series(RNG.poisson(60, ROWS) - 20), "integer", (), (None, None)),
        (pd.Series(np.where(RNG.random(ROWS) < 0.6, 0, RNG.integers(1, 5000, ROWS))), "integer", (0.0,), (0.0, None)),
        (pd.Series(np.repeat([0.5, 1.5, 2.5, 3.5], 100)), "atoms", (), (None, None)),
        (pd.Series(np.r_[np.zeros(9), RNG.normal(0, 1, 60)]), "continuous", (), (None, None)),  # nine zeros are few
        (pd.Series(np.minimum(RNG.gamma(9, 3, ROWS), 40.0)), "spiked", (40.0,), (None, 40.0)),  # a hard limit
        (pd.Series(np.r_[RNG.beta(2, 2, ROWS), 1.0, 0.0]), "continuous", (), (0.0, 1.0)),
        (pd.Series(np.r_[RNG.uniform(30, 99, ROWS), 100.0, 100.0]), "continuous", (), (0.0, 100.0)),
        (pd.Series(RNG.uniform(30, 99, ROWS)), "continuous", (), (None, None)),
        (pd.Series(np.r_[RNG.integers(20, 99, ROWS), 0]), "integer", (), (0.0, None)),
    ],
)
def test_inference(column: pd.Series, kind: str, atoms: tuple[float, ...], bounds: tuple[float | None, ...]) -> None:
    found = variable_of(column)
    assert (found.kind, found.atoms, found.bounds, found.declared) == (kind, atoms, bounds, False)


def test_what_is_told_is_taken_literally() -> None:
    plain = variable_of(rain(), kinds={"x": "continuous"})
    assert (plain.kind, plain.atoms, plain.bounds) == ("continuous", (), (None, None))
    bounded = variable_of(rain(), kinds={"x": "continuous"}, bounds={"x": (0, 30)})
    assert bounded.bounds == (0.0, 30.0) and bounded.declared
    free = variable_of(rain(), bounds={"x": (None, None)})
    assert (free.kind, free.bounds, free.declared) == ("spiked", (None, None), False)
    assert variable_of(pd.Series([1.5, 1.5, 2.0, 3.0]), kinds={"x": "spiked"}).atoms == (1.5,)


@pytest.mark.parametrize(
    "options",
    [
        {"bounds": {"x": (3, 1)}},
        {"bounds": {"x": 3}},
        {"bounds": {"x": ("a", None)}},
        {"bounds": {"y": (0, 1)}},
        {"bounds": {"x": (0, 1)}, "kinds": {"x": "categorical"}},
        {"bounds": {"x": (0, 0.25)}, "kinds": {"x": "atoms"}},
        {"kinds": {"x": "spiked"}},
    ],
)
def test_wrong_bounds_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"[xy]"):
        prepare(pd.DataFrame({"x": [0.1, 0.2, 0.3]}), **options)  # type: ignore[arg-type]


def test_ordered_categories_are_ordinal() -> None:
    sizes = pd.Series(pd.Categorical(["S", "L", "M", "L"], categories=["S", "M", "L", "XL"], ordered=True))
    found = variable_of(sizes)
    assert (found.kind, found.levels) == (Kind.ORDINAL, ("S", "M", "L"))
    assert found.discrete and found.kind.has_levels and not found.numeric
    schema, frame = prepare(pd.DataFrame({"x": sizes}))
    encoding = Encoding.fit(frame, schema)
    pd.testing.assert_series_equal(encoding.decode(encoding.encode(frame)[0])["x"], frame["x"])
    assert variable_of(pd.Series([3, 1, 2, 10]), kinds={"x": "ordinal"}).levels == (1, 2, 3, 10)


def test_schema_survives_json() -> None:
    schema, _ = prepare(pd.DataFrame({"rain": rain(), "count": RNG.poisson(30, ROWS)}), bounds={"count": (0, None)})
    assert Schema.from_json(schema.to_json()) == schema


@pytest.mark.parametrize(("step", "offset"), [(0.1, 0.0), (0.01, 3.0), (0.25, 0.0), (0.5, 100.0), (0.0, 0.0)])
def test_numbers_come_back_as_precise_as_they_were(step: float, offset: float) -> None:
    values = RNG.normal(offset, 5, ROWS)
    column = pd.Series(np.round(np.rint(values / step) * step, 6) if step else values)
    schema, frame = prepare(pd.DataFrame({"x": column}))
    assert schema["x"].step == step
    encoding = Encoding.fit(frame, schema)
    drawn = encoding.decode(RNG.normal(size=(500, 1)))["x"]
    raw = encoding.decode_column("x", RNG.normal(size=500))
    assert (drawn == np.round(drawn, 2)).all() == bool(step)
    if step:
        np.testing.assert_allclose(drawn / step, np.rint(drawn / step), atol=1e-6)
    assert not (raw == np.round(raw, 2)).all()
    np.testing.assert_allclose(encoding.decode(encoding.encode(frame)[0])["x"], column, rtol=1e-9)
    assert Variable.from_json(schema["x"].to_json()) == schema["x"]


@pytest.mark.parametrize(
    ("column", "step"),
    [
        (RNG.uniform(1e15, 4e15, ROWS), 0.0),  # a float of this size is always a whole number of eighths
        (RNG.uniform(1e17, 9e17, ROWS), 0.0),
        (RNG.normal(0, 1e16, ROWS), 0.0),
        (np.round(RNG.uniform(2e9, 9e9, ROWS), 2), 0.01),  # cents of billions
        (RNG.integers(1, 10**11, ROWS) * 0.25, 0.25),
    ],
)
def test_large_numbers_are_not_rounded(column: np.ndarray, step: float) -> None:
    schema, frame = prepare(pd.DataFrame({"x": column}))
    assert schema["x"].step == step
    encoding = Encoding.fit(frame, schema)
    back = encoding.decode(encoding.encode(frame)[0])["x"].to_numpy()
    np.testing.assert_allclose(back, column, rtol=1e-14)


def test_a_step_must_be_a_positive_number_of_a_continuum() -> None:
    for wrong in (-1.0, float("nan"), "0.1", True):
        with pytest.raises(UserError, match="step"):
            Variable("x", Kind.CONTINUOUS, step=wrong)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="step"):
        Variable("x", Kind.INTEGER, step=1.0)
