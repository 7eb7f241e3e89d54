"""Kinds beyond the plain ones: what is inferred, how atoms and bounds survive, and a zero-inflated table end to end."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch

import anyorder as ao
from anyorder.cli.show import answer_facts
from anyorder.data.tables import prepare
from anyorder.errors import UserError
from anyorder.heads import GaussianMixture
from anyorder.heads.bounded import Bounded
from anyorder.heads.spiked import Spiked
from anyorder.modalities.tables.heads import head_for
from anyorder.modalities.tables.options import TableOptions
from anyorder.questions.answer import Answer
from anyorder.variables.codecs import LatticeCodec, LineCodec
from anyorder.variables.codecs.spiked import SpikedCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp

RNG = np.random.default_rng(0)
ROWS = 400


def rain() -> pd.Series:
    """Dry on 40 % of the days, else positive and skewed; clipped at 25."""
    fallen = np.where(RNG.random(ROWS) < 0.4, 0.0, RNG.lognormal(1.0, 1.0, ROWS))
    return pd.Series(np.where(RNG.random(ROWS) < 0.12, 25.0, fallen))


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


@pytest.mark.parametrize("warp", ["normal_scores", "standard"])
def test_heads_follow_atoms_and_bounds(warp: str) -> None:
    table = pd.DataFrame({"rain": rain(), "wait": RNG.exponential(1, ROWS), "count": RNG.poisson(12, ROWS)})
    schema, frame = prepare(table, bounds={"count": (0, 40), "wait": (0, None)})
    encoding = Encoding.fit(frame, schema, warp)  # type: ignore[arg-type]
    spiked, bounded, count = (head_for(codec, 3, {}) for codec in encoding.codecs)
    assert isinstance(spiked, Spiked) and isinstance(spiked.base, Bounded) and isinstance(bounded, Bounded)
    generator = torch.Generator().manual_seed(0)
    for head, codec in zip((spiked, bounded, count), encoding.codecs, strict=True):
        distribution = head(3 * torch.randn(500, head.size, generator=generator))
        drawn = codec.decode(distribution.sample(generator).double().numpy())
        assert drawn.min() >= 0 and (codec.variable.name != "count" or drawn.max() <= 40)
    codec = encoding.codec("count")
    assert isinstance(codec, LatticeCodec)
    points = torch.as_tensor(codec.from_measure(np.arange(41.0)))
    total = count(torch.randn(count.size, generator=generator)).log_prob(points).exp().sum()
    assert float(total) == pytest.approx(1, abs=1e-5)


def test_choices_of_heads() -> None:
    table = pd.DataFrame({"rain": rain(), "x": RNG.normal(0, 1, ROWS), "day": pd.date_range("2024", periods=ROWS)})
    schema, frame = prepare(table)
    encoding = Encoding.fit(frame, schema)
    chosen = TableOptions.read(
        {"heads": {k: {"name": "spline", "bins": 4} for k in ("continuous", "spiked", "datetime")}}
    ).heads
    spiked, line, day = (head_for(codec, 3, chosen) for codec in encoding.codecs)
    assert isinstance(spiked, Spiked) and isinstance(spiked.base, Bounded) and spiked.base.base.name == "spline"
    assert line.name == "spline" and line.size == 15
    assert day.name == "discretized_logistic_mixture"  # whole days are a lattice: the choice was for finer times


@pytest.mark.parametrize(
    ("heads", "word"),
    [
        ({"continous": {"name": "spline"}}, "continuous"),
        ({"continuous": {"name": "splin"}}, "spline"),
        ({"continuous": {"name": "categorical"}}, "levels"),
        ({"continuous": {"name": "spline", "bin": 3}}, "bins"),
        ({"continuous": "spline"}, "name"),
        ({"spiked": {"name": "spiked"}}, "base"),
        ({"categorical": {"name": "categorical", "levels": 3}}, "own"),
    ],
)
def test_wrong_choices_are_refused(heads: dict[str, object], word: str) -> None:
    with pytest.raises(UserError, match=word):
        TableOptions.read({"heads": heads})


@pytest.fixture(scope="module")
def weather() -> tuple[pd.DataFrame, ao.TableModel]:
    rng = np.random.default_rng(1)
    cloud = rng.uniform(0, 1, 600)
    dry = rng.random(600) > cloud  # P(rain = 0 | cloud) = 1 - cloud
    fallen = np.where(dry, 0.0, rng.lognormal(1.0, 0.5, 600))
    grade = pd.Categorical.from_codes((4 * cloud).astype(int), ["clear", "fair", "grey", "dark"], ordered=True)
    frame = pd.DataFrame({"cloud": cloud, "rain": fallen, "grade": grade, "visits": rng.poisson(9, 600) * dry})
    network = {"name": "residual_mlp", "width": 48, "blocks": 1, "dropout": 0.0}
    config = {
        "training": {"steps": 300, "minutes": 1.0},
        "encoding": "normal_scores",
        "network": network,
        "engine": "neural",
    }
    return frame, ao.fit(frame, config=config, bounds={"cloud": (0, 1)}, seed=0)


def test_a_zero_inflated_table_end_to_end(weather: tuple[pd.DataFrame, ao.TableModel]) -> None:
    _, model = weather
    assert [str(variable.kind) for variable in model.schema.variables] == ["continuous", "spiked", "ordinal", "integer"]
    for cloud in (0.15, 0.85):
        answer = model.given(cloud=cloud)["rain"]
        zero = float(answer.probs()[0.0])
        assert zero == pytest.approx(1 - cloud, abs=0.2)
        assert float(answer.pdf(0.0)) == pytest.approx(zero)
        assert float(answer.cdf(0.0)) == pytest.approx(zero, abs=1e-5)  # nothing lies below
        grid = np.linspace(1e-6, 80, 40_001)
        continuum = np.trapezoid(answer.pdf(list(grid)), grid)
        assert continuum + zero == pytest.approx(1, abs=2e-3)
        drawn = answer.sample(2000, seed=0)
        assert drawn.min() >= 0 and (drawn == 0).mean() == pytest.approx(zero, abs=0.04)
        mean = np.trapezoid(grid * answer.pdf(list(grid)), grid)
        assert float(answer.mean()) == pytest.approx(mean, rel=0.02, abs=0.02)
        assert math.isfinite(float(answer.entropy()))
        assert answer.mode() == 0.0


def test_declared_and_inferred_bounds(weather: tuple[pd.DataFrame, ao.TableModel]) -> None:
    _, model = weather
    with pytest.raises(UserError, match=r"cloud.*outside its bounds 0\.\.1"):
        model.given(cloud=1.5)
    with pytest.raises(UserError, match="cloud"):
        model.given(rain=0.0)["cloud"].log_prob(-0.1)
    # Inferred from the data: another value is improbable beyond words, but no mistake.
    assert float(model.given(cloud=0.5)["rain"].log_prob(-1.0)) == -math.inf
    assert model.given(rain=-1.0)["grade"].probs()
    assert float(model.given(cloud=0.5)["visits"].log_prob(-1)) == -math.inf
    assert model.given(rain=0.0).sample(300, seed=0)["cloud"].between(0, 1).all()


def test_ordinal_answers(weather: tuple[pd.DataFrame, ao.TableModel]) -> None:
    _, model = weather
    answer = model.given(cloud=0.6)["grade"]
    assert sum(answer.probs().values()) == pytest.approx(1, abs=1e-5)
    assert answer.mode() == "grey" == answer.median()
    assert float(answer.cdf("dark")) == pytest.approx(1)
    assert float(answer.cdf("fair")) == pytest.approx(answer.probs()["clear"] + answer.probs()["fair"], abs=1e-6)
    with pytest.raises(UserError, match="no distance"):
        answer.mean()


def test_fills_files_and_facts(weather: tuple[pd.DataFrame, ao.TableModel], tmp_path: object) -> None:
    frame, model = weather
    holes = frame.head(60).copy()
    holes["rain"] = holes["rain"].mask(np.arange(60) % 2 == 0)
    holes.loc[holes.index[::3], "grade"] = np.nan
    point, (drawn,) = model.fill(holes), model.fill(holes, draws=1)
    assert point["rain"].min() >= 0 and drawn["rain"].min() >= 0
    assert (drawn["rain"][::2] == 0).any() and not drawn.isna().any().any()
    assert drawn["grade"].dtype == frame["grade"].dtype
    assert np.isfinite(model.log_prob(frame.head(20))).all()
    model.save(f"{tmp_path}/m.anyorder")
    again = ao.load(f"{tmp_path}/m.anyorder")
    assert np.array_equal(again.log_prob(frame.head(20)), model.log_prob(frame.head(20)))
    for name in model.schema.names:
        facts = answer_facts(model.given()[name])
        assert "quantiles" in facts and ("mean" in facts) == (name != "grade")


@pytest.mark.parametrize("mean", [-4.0, 0.0, 4.0])
def test_highest_density_set_holds_atoms_first(mean: float) -> None:
    """Half of the mass on an atom at 0, half normal: 0.9 is the atom and the middle 80 % of the normal."""
    variable = Variable("x", Kind.SPIKED, atoms=(0.0,))
    encoding = Encoding(Schema((variable,)), (SpikedCodec(variable, LineCodec(variable, Warp.affine(0.0, 2.0))),))
    features = torch.tensor([[0.0, 0.0, mean, 0.0]], dtype=torch.float64)
    answer = Answer(variable, encoding, Spiked((0.0,), GaussianMixture(1))(features))
    assert answer.hdi(0.4) == [(0.0, 0.0)]
    reach = 2 * 1.2816
    found = answer.hdi(0.9)
    low, high = next(part for part in found if part[0] < part[1])
    assert (low, high) == pytest.approx((2 * mean - reach, 2 * mean + reach), abs=0.02)
    assert any(low <= 0.0 <= high for low, high in found)


def test_a_guessed_bound_does_not_rule_out_rows_in_silence(weather: tuple[pd.DataFrame, ao.TableModel]) -> None:
    frame, model = weather
    odd = frame.head(3).copy()
    odd.loc[odd.index[1], "rain"] = -0.5
    with pytest.warns(UserWarning, match="'rain': 1 values, the first in row 1"):
        nats = model.log_prob(odd)
    assert np.isneginf(np.asarray(nats)).tolist() == [False, True, False]
