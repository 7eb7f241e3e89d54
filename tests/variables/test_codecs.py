"""The contract of codecs: every family answers the same questions, and nobody else asks which family it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from anyorder.data.tables import prepare
from anyorder.errors import UserError
from anyorder.variables.cells import SINGLE
from anyorder.variables.codecs import Codec, LatticeCodec, LevelCodec, LineCodec, Space, SpikedCodec, codecs
from anyorder.variables.encoding import Encoding
from anyorder.variables.ranges import Between, Stretch
from anyorder.variables.schema import Kind, Variable
from anyorder.variables.warp import Warp

from rainfall import rain

SOURCE = Path(__file__).resolve().parents[2] / "src" / "anyorder"
WARP = Warp.affine(2.0, 3.0)

LINE = LineCodec(Variable("x", Kind.CONTINUOUS), WARP)
SHARE = LineCodec(Variable("x", Kind.CONTINUOUS, bounds=(0.0, 1.0), declared=True), WARP)
WHOLE = LatticeCodec(Variable("x", Kind.INTEGER), WARP, 0, 9)
COUNT = LatticeCodec(Variable("x", Kind.INTEGER, bounds=(0.0, None), declared=True), WARP, 0, 9)
DICE = LatticeCodec(Variable("x", Kind.INTEGER, bounds=(1.0, 6.0), declared=True), WARP, 1, 6)
DAY = LatticeCodec(Variable("x", Kind.DATETIME, dtype="datetime64[us]", resolution="day"), WARP, 0, 9)
WORDS = LevelCodec(Variable("x", Kind.CATEGORICAL, levels=("red", "5..6", "missing", "3"), dtype="str"))
TRUTH = LevelCodec(Variable("x", Kind.BOOLEAN, levels=(False, True), dtype="bool"))
GRADES = LevelCodec(Variable("x", Kind.ORDINAL, levels=("low", "high"), dtype="str"))
HALVES = LevelCodec(Variable("x", Kind.ATOMS, levels=(1.0, 0.0, 0.5), dtype="float32"))
SPIKE = Variable("x", Kind.SPIKED, atoms=(0.0, 1.0))
RAIN = SpikedCodec(SPIKE, LineCodec(SPIKE, WARP))
ALL: list[Codec] = [LINE, SHARE, WHOLE, COUNT, DICE, DAY, WORDS, TRUTH, GRADES, HALVES, RAIN]


def test_every_family_is_registered_under_its_name() -> None:
    assert {type(codec) for codec in ALL} <= set(codecs.classes())
    for family in codecs.classes():
        assert codecs.get(family.name) is family


@pytest.mark.parametrize("codec", ALL, ids=lambda codec: f"{codec.name}-{codec.variable.kind}")
def test_parameters_go_to_json_and_back(codec: Codec) -> None:
    assert codec.serves(codec.variable)
    assert type(codec).from_parameters(codec.variable, codec.parameters()) == codec


VALUES: list[Any] = [
    *(
        0,
        1,
        2,
        3,
        -1,
        7,
        4.5,
        0.5,
        0.25,
        1.0,
        -0.0,
        1e-9,
        1e99,
        1e101,
        2**52,
        2**53,
        10**400,
        float("nan"),
        float("inf"),
    ),
    *(True, False, None, np.float32(0.5), np.float64(0.1), np.int64(3), np.bool_(True), pd.Timestamp("1970-01-03")),
    *("0", "1", " 3 ", "0.5", "1e3", "1_0", "nan", "N/A", "none", "", "  ", "-9", "-9 ", "inf", "true", "Yes", "red"),
    *(" red", "low", "5..6", "missing", "1970-01-05", "blue", "\ud800", [1], (1,)),
]


@pytest.mark.parametrize("evidence", [False, True])
@pytest.mark.parametrize("codec", ALL, ids=lambda codec: f"{codec.name}-{codec.variable.kind}")
@pytest.mark.filterwarnings("ignore:column 'x'", "ignore:Parsing integer")
def test_one_value_is_read_as_a_column_of_one(codec: Codec, evidence: bool) -> None:
    marks, quick = ("-9",), 0
    for value in VALUES:
        kind = None if isinstance(value, np.generic) else object
        cell: Any = pd.Series([value], index=[SINGLE], dtype=kind)
        refused = ""
        try:
            values, known = codec.encode(cell, marks, evidence=evidence)
        except UserError as error:
            refused = str(error)
        if refused:
            with pytest.raises(UserError) as again:
                codec.encode_one(value, marks, evidence=evidence)
            assert str(again.value) == refused
        elif known[0]:
            assert codec.encode_one(value, marks, evidence=evidence) == values[0], value
            quick += codec._encode_plain(value, marks) is not None
        else:
            with pytest.raises(UserError, match="stands for an unknown cell"):
                codec.encode_one(value, marks, evidence=evidence)
    assert quick or codec is DAY


def test_a_text_is_a_value_only_among_levels() -> None:
    assert [codec.is_value("5..6") for codec in (WORDS, GRADES, LINE, WHOLE, DAY, RAIN)] == [True] + [False] * 5


@pytest.mark.parametrize("levels", [2, 4, 17, 256])
def test_pixels_go_through_a_list_of_model_values(levels: int) -> None:
    half = (levels - 1) / 2
    variable = Variable("p0", Kind.INTEGER, dtype="int64", bounds=(0.0, levels - 1.0), declared=True)
    lattice = LatticeCodec(variable, Warp.affine(half, half), 0, levels - 1)
    texts = tuple(str(level) for level in range(levels))
    coded = LevelCodec(Variable("p0", Kind.CATEGORICAL, texts, dtype="str"))
    pixels = torch.arange(levels).float()
    for codec, scaled in ((lattice, (pixels - half) / half), (coded, pixels)):
        listed = codec.listed()
        assert listed is not None
        assert torch.equal(torch.from_numpy(listed).float(), scaled)
        near = scaled.double().numpy() + 0.2 * (scaled[1] - scaled[0]).item()
        np.testing.assert_array_equal(codec.index(near), np.arange(levels))
        np.testing.assert_array_equal(codec.index(np.array([-99.0, 999.0])), [0, levels - 1])


def test_what_cannot_be_listed() -> None:
    for codec in (LINE, WHOLE, COUNT, DAY, RAIN):
        assert codec.listed() is None
        with pytest.raises(ValueError, match="cannot be listed"):
            codec.index(np.zeros(1))
    assert DICE.listed() == pytest.approx((np.arange(1, 7) - 2.0) / 3.0)


def test_only_fractions_on_a_lattice_are_never_answers() -> None:
    units = np.array([0.0, 0.5, 3.0, 2.0**20, 2.0**20 + 0.5])
    assert WHOLE.can_answer(WHOLE.from_measure(units)).tolist() == [True, False, True, True, False]
    assert LINE.can_answer(units).all()


def test_spaces_ends_and_atoms() -> None:
    assert [codec.space for codec in (LINE, WHOLE, WORDS, RAIN)] == [
        Space.LINE,
        Space.LATTICE,
        Space.LEVELS,
        Space.LINE,
    ]
    assert SHARE.ends == pytest.approx((-2 / 3, -1 / 3))
    assert DICE.ends == (None, None)
    assert DICE.lattice.count == 6
    assert LINE.lattice is None
    assert RAIN.atoms == pytest.approx((-2 / 3, -1 / 3))
    assert [codec.has_point_mass for codec in (LINE, WHOLE, WORDS, RAIN)] == [False, True, True, True]


def test_ranges_in_model_values() -> None:
    assert LINE.between(Between(2, "5"), ()) == Stretch(0.0, 1.0, 0.0, 1.0)
    assert SHARE.between(Between(2, 3), ()) == ()
    stretch = DICE.between(Between(1.5, None), ())
    assert isinstance(stretch, Stretch)
    assert (stretch.least, stretch.before) == pytest.approx((0.0, -0.5 / 3))
    assert HALVES.between(Between(0, 0.7), ()) == (1.0, 2.0)
    assert GRADES.between(Between("low", None, low_open=True), ()) == (1.0,)
    spike = RAIN.points([RAIN.atoms[0]])
    assert isinstance(spike, Stretch)
    assert spike.before < RAIN.atoms[0] < spike.upto
    with pytest.raises(UserError, match="one value or a range, not a set"):
        RAIN.points(RAIN.atoms)


def test_an_unseen_level_is_told_apart_where_it_is_allowed() -> None:
    cells: Any = pd.Series(["red", "blue", None], dtype=object)
    values, known, unseen = WORDS.encode_seen(cells, ())
    assert (known.tolist(), unseen.tolist()) == ([True, False, False], [False, True, False])
    numbers: Any = pd.Series([1.0, np.nan])
    assert not LINE.encode_seen(numbers, ())[2].any()
    assert values[0] == 0.0


@pytest.mark.parametrize("warp", ["normal_scores", "standard"])
def test_atoms_survive_float32_to_the_bit(warp: str) -> None:
    column = rain()
    column.iloc[:3] = [1e-30, np.nextafter(25.0, 0), np.nextafter(25.0, 30)]  # close to an atom, but none
    schema, frame = prepare(pd.DataFrame({"x": column}))
    codec = Encoding.fit(frame, schema, warp).codecs[0]  # type: ignore[arg-type]
    assert isinstance(codec, SpikedCodec)
    values, _ = codec.encode(frame["x"], ())
    narrow = values.astype(np.float32).astype(np.float64)
    for model in (values, narrow):
        assert (np.isin(model, codec.atoms) == frame["x"].isin([0.0, 25.0])).all()
        at = frame["x"].isin([0.0, 25.0]).to_numpy()
        assert (codec.decode(model)[at] == frame["x"][at]).all()
        assert (codec.log_slope(model)[at] == 0).all() and (codec.log_slope(model)[~at] != 0).all()
    np.testing.assert_allclose(codec.decode(values), frame["x"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("value", "advice"), [(3, "integer"), (2.5, "continuous"), ("2024-05-01", "continuous")])
def test_a_value_among_whole_atoms_is_refused_with_advice(value: object, advice: str) -> None:
    codec = LevelCodec(Variable("x", Kind.ATOMS, levels=(1, 2, 4), dtype="int64"))
    given = np.datetime64(value) if isinstance(value, str) else value
    with pytest.raises(UserError, match=f"is not one of its values.*kinds=.'x': '{advice}'"):
        codec.encode(pd.Series([given], dtype=object), ())
