"""Policies against laws that are known: exact Gaussians, an enumerated table, and the generic way to ask."""

from __future__ import annotations

import copy
import itertools
import pickle
import threading
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

import anyorder as ao
from anyorder.heads import Gaussian, GaussianMixture, Spiked
from anyorder.model import AnyOrderModel, layout_of
from anyorder.model.any_order import clipped
from anyorder.networks.base import MaskNetwork
from anyorder.protocols import Canonical
from anyorder.query import Chain, Query
from anyorder.tasks.policies import choosing
from anyorder.tasks.policies.choosing import Chains, sample, scored
from anyorder.variables.codecs import LevelCodec, LineCodec, SpikedCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp

from models import gaussian_model, joint_table_model

MEAN = np.array([0.3, -0.2, 0.5, 0.0])
ROOT = np.random.default_rng(5).normal(size=(4, 4))
COVARIANCE = ROOT @ ROOT.T + 0.2 * np.eye(4)
SCALE = 3.0  # of the units
MANY = 4000
UNLIKELY = 1e-4  # p-values below it fail a test


@pytest.fixture(scope="module")
def gaussian() -> ao.TableModel:
    return ao.TableModel(gaussian_model(MEAN, COVARIANCE, scale=SCALE), {})


@pytest.fixture(scope="module")
def demonstrations() -> pd.DataFrame:
    """Two numbers of state, one with holes; an obstacle is passed on one of two sides by both wheels alike."""
    rng = np.random.default_rng(0)
    position, light = rng.uniform(-1, 1, 400), rng.normal(size=400)
    side = rng.choice([-1.0, 1.0], 400)
    return pd.DataFrame(
        {
            "position": position,
            "light": np.where(rng.random(400) < 0.2, np.nan, light),
            "left": side - position + 0.1 * rng.normal(size=400),
            "right": side + position + 0.1 * rng.normal(size=400),
            "gear": rng.integers(0, 40, 400),
            "horn": rng.choice(["on", "off"], 400),
        }
    )


@pytest.fixture(scope="module", params=["neural", "trees", "auto"])
def fitted(request: pytest.FixtureRequest, demonstrations: pd.DataFrame) -> ao.TableModel:
    brief = {"training": {"steps": 20, "minutes": None}, "trees": {"rounds": 5}}
    context = ["position", "light"]
    return ao.fit(demonstrations, context=context, engine=request.param, config=brief, minutes=None, seed=0)


def conditional(known: dict[int, float], mean: np.ndarray = MEAN) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the other variables, in the units of the data."""
    here, others = list(known), [index for index in range(4) if index not in known]
    values = np.array([known[index] for index in here]) / SCALE
    gain = COVARIANCE[np.ix_(others, here)] @ np.linalg.inv(COVARIANCE[np.ix_(here, here)])
    spread = COVARIANCE[np.ix_(others, others)] - gain @ COVARIANCE[np.ix_(here, others)]
    return SCALE * (mean[others] + gain @ (values - mean[here])), SCALE**2 * spread


def repeated(policy: ao.Policy, state: list[float], given: dict[str, Any] | None = None, **options: Any) -> np.ndarray:
    """Many actions for one state."""
    found: np.ndarray = policy.act(np.tile(state, (MANY, 1)), given, as_array=True, **options)
    return found


def test_the_mean_is_that_of_the_conditional(gaussian: ao.TableModel) -> None:
    policy = ao.Policy(gaussian, state=["v0"])
    expected, _ = conditional({0: 1.5})
    assert np.allclose(policy.act({"v0": 1.5}, how="mean", as_array=True), expected, atol=1e-6)
    expected, _ = conditional({0: 1.5, 2: -2.0})
    action = policy.act([1.5], {"v2": -2.0}, how="mean")
    assert list(action) == ["v1", "v2", "v3"]
    assert action["v2"] == -2.0
    assert np.allclose([action["v1"], action["v3"]], expected, atol=1e-6)


def test_draws_follow_the_conditional(gaussian: ao.TableModel) -> None:
    policy = ao.Policy(gaussian, state=["v0"])
    mean, covariance = conditional({0: 1.5, 2: -2.0})
    drawn = repeated(policy, [1.5], {"v2": -2.0}, seed=1)
    assert (drawn[:, 1] == -2.0).all()
    whitened = (drawn[:, [0, 2]] - mean) @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    for column in (whitened[:, 0], whitened[:, 1], whitened.sum(axis=1) / 2**0.5):
        assert stats.kstest(column, "norm").pvalue > UNLIKELY


def test_draws_of_levels_follow_the_enumerated_table() -> None:
    table = np.random.default_rng(3).random((2, 3, 2, 3)) ** 2
    names = ["light", "hand", "foot", "eye"]
    policy = ao.Policy(ao.TableModel(joint_table_model(table / table.sum(), names), {}), state=["light"])
    levels = policy._core.schema["foot"].levels
    state = pd.DataFrame({"light": [policy._core.schema["light"].levels[1]] * MANY})
    drawn = policy.act(state, {"foot": levels[1]}, seed=2)
    assert (drawn["foot"] == levels[1]).all()
    expected = table[1, :, 1] / table[1, :, 1].sum()
    codes = [drawn[name].map(policy._core.schema[name].levels.index) for name in ("hand", "eye")]
    counts = np.histogram2d(*codes, bins=[np.arange(4), np.arange(4)])[0]
    assert stats.chisquare(counts.ravel(), MANY * expected.ravel()).pvalue > UNLIKELY
    likeliest = policy.act(state.iloc[0], {"foot": levels[1]}, how="most probable", draws=256, seed=0)
    best = np.unravel_index(expected.argmax(), expected.shape)
    assert [policy._core.schema[name].levels.index(likeliest[name]) for name in ("hand", "eye")] == list(best)


def near(law: Any, value: float, delta: float = 0.02 * SCALE) -> float:
    """The probability of what lies within delta."""
    return float(law.cdf(value + delta) - law.cdf(value - delta))


@dataclass(eq=False)
class Constant(MaskNetwork):
    """The same features whatever is known: independent variables."""

    name: ClassVar[str] = "constant"

    def hold(self, features: list[list[float]]) -> Constant:
        padded = [row + [0.0] * (self.layout.width - len(row)) for row in features]
        self.register_buffer("features", torch.tensor(padded, dtype=torch.float64))
        return self

    def beside(self, values: torch.Tensor, known: torch.Tensor, prefix: torch.Tensor | None = None) -> torch.Tensor:
        return self.features.expand(len(values), -1, -1)


@pytest.fixture(scope="module")
def uneven() -> ao.TableModel:
    """A state that says nothing; *arm*: 0.3 N(0, 0.1^2) + 0.7 N(5, 1); *grip*: 0 with 0.4, else N(1, 0.05^2)."""
    arm, grip = Variable("arm", Kind.CONTINUOUS), Variable("grip", Kind.SPIKED, atoms=(0.0,))
    schema = Schema((Variable("state", Kind.CONTINUOUS), arm, grip))
    lines = [LineCodec(variable, Warp.affine(0.0, 1.0)) for variable in schema.variables]
    heads = [Gaussian(), GaussianMixture(2), Spiked((0.0,), Gaussian())]
    features = [
        [0.0, 0.0],
        [np.log(0.3), np.log(0.7), 0.0, 5.0, np.log(0.1), 0.0],
        [np.log(0.4 / 0.6), 1.0, np.log(0.05)],
    ]
    encoding = Encoding(schema, (lines[0], lines[1], SpikedCodec(grip, lines[2])))
    network = Constant(layout_of(schema, heads)).hold(features)
    return ao.TableModel(AnyOrderModel(encoding, network, heads, Canonical()).double().eval(), {})


def test_the_most_probable_draw_weighs_bounds_and_atoms_as_probabilities(uneven: ao.TableModel) -> None:
    policy, count = ao.Policy(uneven, state=["state"], bounds={"arm": (-2.0, 2.0)}), 200
    known = torch.tensor([[True, False, False]]).expand(count, -1)
    drawn, nats = scored(
        uneven.core, torch.zeros(count, 3, dtype=torch.float64), Query(known, ~known), 0, policy._bounds.limits
    )
    narrow, wide, held = stats.norm(0, 0.1), stats.norm(5, 1), stats.norm(1, 0.05)
    behind = 0.3 * narrow.sf(1.98) + 0.7 * wide.sf(1.98)
    for (_, arm, grip), total in zip(drawn, nats, strict=True):
        of_arm = behind if arm > 1.98 else 0.3 * near(narrow, arm, 0.02) + 0.7 * near(wide, arm, 0.02)
        of_grip = 0.6 * near(held, grip, 0.02) + 0.4 * (abs(grip) <= 0.02)
        assert total == pytest.approx(np.log(of_arm * of_grip), abs=1e-6)
    assert {(bool(arm == 2), bool(grip == 0)) for _, arm, grip in drawn} == set(
        itertools.product([True, False], repeat=2)
    )
    # By density the other way would win: 1.2 at 0 against 0.003 at the bound, and 4.8 at 1 against a mass of 0.4.
    for seed in range(20):
        action = policy.act([0.0], how="most probable", draws=64, seed=seed)
        assert (action["arm"], action["grip"]) == (2.0, 0.0)


def test_the_most_probable_draw_is_the_densest_of_them(gaussian: ao.TableModel) -> None:
    policy, core = ao.Policy(gaussian, state=["v0"]), gaussian.core
    known = torch.tensor([[True, False, True, False]]).expand(16, -1)
    values = torch.tensor([[1.5, 0.0, -2.0, 0.0]], dtype=torch.float64).expand(16, -1) / SCALE
    drawn, nats = scored(core, values, Query(known, ~known), 7, None)
    law = stats.multivariate_normal(*conditional({0: 1.5, 2: -2.0}))
    for row, total in zip(SCALE * drawn, nats, strict=True):  # v1 first, then v3 given it
        (first, _), spread = conditional({0: 1.5, 2: -2.0})
        (then,), then_spread = conditional({0: 1.5, 1: row[1], 2: -2.0})
        own = (
            near(stats.norm(first, spread[0, 0] ** 0.5), row[1]),
            near(stats.norm(then, then_spread[0, 0] ** 0.5), row[3]),
        )
        assert total == pytest.approx(np.log(own).sum(), abs=1e-6)
    action = policy.act([1.5], {"v2": -2.0}, how="most probable", draws=16, seed=7)
    assert np.allclose([action["v1"], action["v3"]], SCALE * drawn[np.argmax(nats)][[1, 3]], atol=1e-9)
    # Of more draws the densest is nearer to the mode, here the mean.
    mean, _ = conditional({0: 1.5, 2: -2.0})
    many = policy.act([1.5], {"v2": -2.0}, how="most probable", draws=4000, seed=7)
    assert law.logpdf([many["v1"], many["v3"]]) > law.logpdf(mean) - 0.05


def test_bounds_clip_each_draw_before_the_next_is_drawn(gaussian: ao.TableModel) -> None:
    free, bounds = ao.Policy(gaussian, state=["v0"], action=["v1", "v2"]), (-1.0, 2.0)
    mean, covariance = conditional({0: 1.5})
    spread = np.sqrt(np.diag(covariance))
    policy = ao.Policy(gaussian, state=["v0"], action=["v1", "v2"], bounds={"v1": bounds})
    assert repeated(free, [1.5])[:, 0].max() > 2.0
    drawn = repeated(policy, [1.5], seed=3)
    assert drawn[:, 0].min() == -1.0
    assert drawn[:, 0].max() == 2.0
    above = stats.norm(mean[0], spread[0]).sf(2.0)
    own = stats.norm(mean[0], spread[0])
    expected = -own.cdf(-1) + 2 * above + own.expect(lambda x: x, lb=-1, ub=2)
    assert policy.act([1.5], how="mean")["v1"] == pytest.approx(expected, abs=1e-4)
    # Drawn along both orders: half of the rows have v1 first, and then v2 follows from the bound.
    first = gaussian.core.draw(
        torch.tensor([[0.5, 0.0, 0.0, 0.0]], dtype=torch.float64).expand(MANY, -1),
        gaussian.core.chain(Query(*(torch.tensor([mask]).expand(MANY, -1) for mask in _SETS))),
        torch.Generator().manual_seed(0),
        limits=policy._bounds.limits,
    )[:, 1:3].numpy()
    clipped = np.isclose(SCALE * first[:, 0], 2.0)
    assert stats.binomtest(int(clipped.sum()), MANY, above).pvalue > UNLIKELY
    then_mean, then_covariance = conditional({0: 1.5, 1: 2.0})
    law = stats.norm(then_mean[0], then_covariance[0, 0] ** 0.5)
    assert stats.kstest(SCALE * first[clipped, 1], law.cdf).pvalue > UNLIKELY


def test_a_model_may_be_on_another_device(gaussian: ao.TableModel) -> None:
    # "meta" has shapes without numbers, and as any other device it does not mix with the processor's.
    bounds = ao.Policy(gaussian, state=["v0"], bounds=(-1, 1))._bounds
    drawn, variable = torch.zeros(3, device="meta"), torch.zeros(3, dtype=torch.long, device="meta")
    assert clipped(drawn, variable, bounds.limits).device.type == "meta"
    core, chains = gaussian.core, Chains()
    query = Query(*(torch.tensor([mask]) for mask in _SETS))
    chain = core.chain(query)
    elsewhere = Chain(chain.prefix.to("meta"), chain.order.to("meta"), chain.variables)
    chains[core.protocol, torch.device("meta")] = elsewhere  # as of an earlier call, before the model was moved
    sample(core, torch.zeros(1, 4, dtype=torch.float64), query, 0, None, chains)
    assert {device.type for _, device in chains} == {"meta", "cpu"}
    assert chains[core.protocol, torch.device("meta")] is elsewhere


_SETS = ([True, False, False, False], [False, True, True, False])


def test_one_pair_bounds_all_actions_that_are_numbers(fitted: ao.TableModel) -> None:
    policy = ao.Policy(fitted, bounds=(-0.5, 0.5))
    assert sorted(policy.bounds) == ["gear", "left", "right"]
    state = pd.DataFrame({"position": np.linspace(-1, 1, 50), "light": 0.0})
    drawn = policy.act(state, seed=0)
    assert drawn[["left", "right", "gear"]].abs().max().max() <= 0.5
    assert set(drawn["horn"]) == {"on", "off"}


def test_bounded_levels_are_levels_within() -> None:
    probability = np.array([[0.3, 0.2, 0.05, 0.25, 0.1, 0.1]])  # of levels 0 to 5, in one state
    core = joint_table_model(probability, ["place", "gear"])
    place = core.schema["place"]
    gear = Variable("gear", Kind.ATOMS, levels=tuple(range(6)), dtype="int64")
    encoding = Encoding(Schema((place, gear)), (LevelCodec(place), LevelCodec(gear)))
    core = AnyOrderModel(encoding, core.network, [core.heads.of(0), core.heads.of(1)], Canonical()).eval()
    policy = ao.Policy(ao.TableModel(core, {}), state=["place"], action=["gear"], bounds={"gear": (0.5, 4.5)})
    assert policy.act({"place": "0"}, how="mean") == {"gear": 3}
    assert policy.act(pd.DataFrame({"place": ["0"] * 2}), how="mean")["gear"].tolist() == [3, 3]
    drawn = policy.act(pd.DataFrame({"place": ["0"] * MANY}), seed=0)["gear"]
    counts = [int((drawn == level).sum()) for level in range(1, 5)]
    assert stats.chisquare(counts, MANY * np.array([0.5, 0.05, 0.25, 0.2])).pvalue > UNLIKELY
    # All mass behind a bound counts there: 0.3 + 0.2 against 0.25.
    assert policy.act({"place": "0"}, how="most probable", draws=64) == {"gear": 1}


def test_means_of_many_states_are_made_in_parts(gaussian: ao.TableModel, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, states = ao.Policy(gaussian, state=["v0"]), np.linspace(-2, 2, 20)[:, None]
    expected = policy.act(states, {"v2": np.where(np.arange(20) % 3, np.nan, 1.0)}, how="mean", as_array=True)
    seen: list[int] = []
    whole = AnyOrderModel.features_beside

    def counting(model: AnyOrderModel, values: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
        seen.append(len(values))
        return whole(model, values, known)

    monkeypatch.setattr(AnyOrderModel, "features_beside", counting)
    monkeypatch.setattr("anyorder.model.any_order.rows_at_once", lambda layout: 8)
    found = policy.act(states, {"v2": np.where(np.arange(20) % 3, np.nan, 1.0)}, how="mean", as_array=True)
    assert seen == [8, 8, 4]
    assert np.allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("given", [{}, {"left": 0.4}, {"right": -1.0, "gear": 3}, {"horn": "on", "left": -0.2}])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_draw_is_that_of_the_generic_way(fitted: ao.TableModel, given: dict[str, Any], seed: int) -> None:
    policy = ao.Policy(fitted)
    assert (policy.state, policy.action) == (["position", "light"], ["left", "right", "gear", "horn"])
    state = {"position": 0.25, "light": -0.5}
    expected = fitted.given({**state, **given}).sample(1, seed=seed)[policy.action].iloc[0].to_dict()
    assert policy.act(state, given, seed=seed) == expected
    assert policy.act(pd.Series(state), given, seed=seed) == expected
    assert policy.act([0.25, -0.5], given, seed=seed) == expected
    if "left" not in given:  # of the seed's own randomness
        assert policy.act(state, given, seed=seed + 100)["left"] != expected["left"]


def test_optional_context_may_be_unknown(fitted: ao.TableModel) -> None:
    policy = ao.Policy(fitted)
    expected = fitted.given(position=0.25).sample(1, seed=4)[policy.action].iloc[0].to_dict()
    for state in (
        {"position": 0.25, "light": np.nan},
        {"position": 0.25},
        [0.25, np.nan],
        pd.Series({"position": 0.25}),
    ):
        assert policy.act(state, seed=4) == expected
    states = pd.DataFrame({"position": [0.25, 0.25], "light": [np.nan, 1.0]})
    means = policy.act(states, how="mean")
    for row in range(2):
        alone = policy.act(states.iloc[row], how="mean")
        assert alone["left"] == pytest.approx(means["left"][row], abs=1e-4)


def test_means_of_many_are_those_of_each_alone(fitted: ao.TableModel) -> None:
    policy = ao.Policy(fitted)
    rng = np.random.default_rng(1)
    states = pd.DataFrame(rng.uniform(-1, 1, (6, 2)), columns=policy.state, index=list("abcdef"))
    given = pd.DataFrame({"left": [0.1, np.nan, -0.3, np.nan, 0.5, 0.0]}, index=states.index)
    together = policy.act(states, given, how="mean")
    assert together.index.tolist() == list("abcdef")
    assert together.columns.tolist() == policy.action
    for label in states.index:
        alone = policy.act(states.loc[label], given.loc[label], how="mean")
        assert alone["horn"] == together.loc[label, "horn"]
        assert alone["gear"] == together.loc[label, "gear"]
        for name in ("left", "right"):
            assert alone[name] == pytest.approx(together.loc[label, name], abs=1e-4)
    by_array = policy.act(states.to_numpy(), {"left": given["left"].to_numpy()}, how="mean", as_array=True)
    assert by_array.shape == (6, 4)
    assert np.array_equal(by_array[:, 0].astype(float), together["left"])


def test_what_is_not_asked_does_not_matter(fitted: ao.TableModel, demonstrations: pd.DataFrame) -> None:
    policy = ao.Policy(fitted)
    rows = demonstrations.dropna().head(20)
    other = rows.assign(left=0.0, right=9.0, horn="on", more="x")
    for how in ("sample", "mean", "most probable"):
        expected = policy.act(rows[policy.state], {"gear": 3}, how=how, seed=1)
        pd.testing.assert_frame_equal(policy.act(other, {"gear": 3}, how=how, seed=1), expected)
    # An action that is left out of the policy is marginalised out, not drawn.
    assert list(ao.Policy(fitted, action=["right"]).act(rows.iloc[0])) == ["right"]


def test_values_of_unknown_cells_reach_no_action(fitted: ao.TableModel) -> None:
    """Beneath the reading of a state too: whatever stands where a row knows nothing, the actions are the same bits."""
    core, rng = fitted.core, np.random.default_rng(0)
    schema, count = core.schema, 12
    states = pd.DataFrame(rng.uniform(-1, 1, (count, 2)), columns=["position", "light"]).assign(
        gear=rng.integers(0, 40)
    )
    values, known = core.encoding.encode(states.assign(left=0.3, right=0.0, horn="on"))
    known[:, [schema.index(name) for name in ("right", "horn")]] = False
    known[::2, schema.index("light")] = False  # context that may be unknown
    asked = np.zeros_like(known)
    asked[:, [schema.index(name) for name in ("right", "horn")]] = True
    query = Query(torch.from_numpy(known), torch.from_numpy(asked))
    rows = torch.from_numpy(np.where(known, values, 0.0))
    other = torch.from_numpy(np.where(known, values, rng.integers(0, 2, values.shape)))
    assert not torch.equal(rows, other)
    for choose in (
        lambda of: sample(core, of, query, 3, None),
        lambda of: choosing.mean(core, of, query, None),
        lambda of: choosing.most_probable(core, of, query, 3, None, count=4),
    ):
        assert np.array_equal(choose(rows)[asked], choose(other)[asked])


def test_everything_given_comes_back_as_it_is(fitted: ao.TableModel) -> None:
    policy = ao.Policy(fitted)
    given = {"left": np.float32(0.1), "right": 0, "gear": 7, "horn": "off"}
    assert policy.act([0.0, 0.0], given) == given
    given_rows = pd.DataFrame({"left": [0.1, 0.2], "right": 0.5, "gear": 7, "horn": ["off", "on"]})
    states = pd.DataFrame({"position": [0.0, 0.1], "light": 0.0})
    pd.testing.assert_frame_equal(policy.act(states, given_rows), given_rows)


def test_what_is_given_comes_back_as_it_was_read(gaussian: ao.TableModel, fitted: ao.TableModel) -> None:
    policy = ao.Policy(gaussian, state=["v0"])
    for state, given in (
        ([0.0], {"v1": "0.5"}),
        ([[0.0]], {"v1": "0.5"}),
        ([[0.0], [1.0]], pd.DataFrame({"v1": ["0.5", None]})),
        ([0.0], {"v1": "0.5", "v2": 1, "v3": np.float32(2)}),
    ):
        found = policy.act(state, given, as_array=True)
        assert found.dtype == np.float64
        assert found.flat[0] == 0.5
    assert policy.act([0.0], {"v1": "0.5"})["v1"] == 0.5
    # A number that no draw would be, with a third decimal or a fraction, is what was decided.
    mixed = ao.Policy(fitted)
    found = mixed.act([0.0, 0.0], {"left": 0.123456, "gear": "7", "horn": "on"}, as_array=True)
    assert found.dtype == object
    assert [found[0], found[2], found[3]] == [0.123456, 7, "on"]
    many = mixed.act([[0.0, 0.0]] * 2, {"left": "0.25", "gear": ["7", None]})
    assert many["left"].tolist() == [0.25, 0.25]
    assert many["gear"][0] == 7
    assert float(many["gear"][1]).is_integer()


def test_what_is_given_is_found_by_the_labels_of_the_states(gaussian: ao.TableModel) -> None:
    policy = ao.Policy(gaussian, state=["v0"], action=["v1", "v2"])
    states = pd.DataFrame({"v0": [0.0, 1.0, 2.0]}, index=["a", "b", "c"])
    given = pd.DataFrame({"v1": [30.0, 10.0, 20.0]}, index=["c", "a", "b"])
    for said in (given, {"v1": given["v1"]}, given.reset_index(drop=True).iloc[[1, 2, 0]].set_axis(list("abc"))):
        assert policy.act(states, said, how="mean")["v1"].tolist() == [10.0, 20.0, 30.0]
    for said in (given.reset_index(drop=True), {"v1": given["v1"].reset_index(drop=True)}, {"v1": [30.0, 10.0, 20.0]}):
        assert policy.act(states, said, how="mean")["v1"].tolist() == [30.0, 10.0, 20.0]
    # States without labels: by place.
    assert policy.act(states.to_numpy(), given, how="mean")["v1"].tolist() == [30.0, 10.0, 20.0]
    for said in (given.set_axis(["c", "a", "x"]), {"v1": given["v1"].set_axis([5, 6, 7])}, given.set_axis(list("aab"))):
        with pytest.raises(ao.UserError, match="other labels"):
            policy.act(states, said, how="mean")


def test_threads_agree(fitted: ao.TableModel) -> None:
    policy = ao.Policy(fitted)
    cases = [(number / 40 - 0.5, {"left": 0.1} if number % 2 else {}) for number in range(24)]
    expected = [ao.Policy(fitted).act([at, 0.0], given, seed=seed) for seed, (at, given) in enumerate(cases)]
    found: dict[int, list[dict[str, Any]]] = {}

    def work(number: int) -> None:
        found[number] = [policy.act([at, 0.0], given, seed=seed) for seed, (at, given) in enumerate(cases)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[number] == expected for number in range(4))


def test_polars_frames_come_back_as_such(fitted: ao.TableModel) -> None:
    pl = pytest.importorskip("polars")
    found = ao.Policy(fitted).act(pl.DataFrame({"position": [0.1, 0.2], "light": [0.0, 1.0]}), how="mean")
    assert isinstance(found, pl.DataFrame)
    assert found.columns == ["left", "right", "gear", "horn"]


@pytest.mark.parametrize(
    ("state", "given", "options", "message"),
    [
        ({"position": np.nan, "light": 0.0}, {}, {}, "'position' is unknown"),
        ([np.nan, 0.0], {}, {}, "'position' is unknown"),
        ([None, 0.0], {}, {}, "'position' is unknown"),
        ([[0.0, 0.0], [np.nan, 0.0]], {}, {}, "'position' is unknown .* in row 1"),
        ([np.inf, 0.0], {}, {}, "'position'.*finite"),
        ([0.0, 0.0, 0.0], {}, {}, "2 values .* got 3"),
        (np.zeros((2, 3)), {}, {}, "2 values .* got 3"),
        (3.0, {}, {}, "state must be"),
        ({"light": 0.0}, {}, {}, "lacks 'position'"),
        ({"positon": 0.0, "light": 0.0}, {}, {}, "did you mean 'position'"),
        (pd.DataFrame({"positon": [0.0]}), {}, {}, "lacks 'position'.*did you mean 'position'"),
        ({"position": 0.0, "left": 0.0}, {}, {}, "'left' is an action"),
        ([0.0, 0.0], {"light": 0.0}, {}, "'light' is part of the state"),
        ([0.0, 0.0], {"lift": 0.0}, {}, "no action 'lift'; did you mean 'left'"),
        ([0.0, 0.0], {"left": 1.5}, {}, "'left' is given as 1.5, outside its bounds -1 to 1"),
        ([[0.0, 0.0]] * 2, {"left": [0.0, -1.5]}, {}, "given as -1.5 in row 1"),
        ([[0.0, 0.0]] * 2, {"left": [0.0]}, {}, "1 values, but there are 2 states"),
        ([[0.0, 0.0]] * 2, pd.DataFrame({"left": [0.0]}), {}, "1 rows, but there are 2 states"),
        ([0.0, 0.0], [0.1], {}, "given must be a mapping"),
        ([0.0, 0.0], {"left": [0.1, 0.2]}, {}, "one value"),
        ([0.0, 0.0], {"horn": "loud"}, {}, "'horn'"),
        ([[0.0, 0.0], [0.0]], {}, {}, "state must be"),
        ((cell for cell in [0.0, 0.0]), {}, {}, "state must be"),
        ([{"position": 0.0, "light": 0.0}] * 2, {}, {}, "state must be .* for many states a frame"),
        ([np.zeros((2, 2)), 0.0], {}, {}, "state must be"),
        ({"position": np.zeros((2, 2)), "light": 0.0}, {}, {}, "'position' must be one value"),
        (pd.DataFrame([[0.0] * 3], columns=["position", "light", "light"]), {}, {}, "repeated: 'light'"),
        (pd.Series([0.0] * 3, index=["position", "light", "light"]), {}, {}, "'light' more than once"),
        ([[0.0, 0.0]], pd.DataFrame([[0.0] * 2], columns=["left", "left"]), {}, "repeated: 'left'"),
        ([0.0, 0.0], pd.Series([0.0] * 2, index=["left", "left"]), {}, "'left' more than once"),
        ([[0.0, 0.0]] * 2, {"left": {0.1, 0.2}}, {}, "'left' must be one value, or a list"),
        ([[0.0, 0.0]] * 2, {"left": (cell for cell in [0.1, 0.2])}, {}, "'left' must be one value, or a list"),
        ([[0.0, 0.0]] * 2, {"left": np.zeros((2, 2))}, {}, "'left' must be one value, or a list"),
        ([0.0, 0.0], {}, {"how": "median"}, "unknown how='median'"),
        ([0.0, 0.0], {}, {"seed": -1}, "seed must be"),
        ([0.0, 0.0], {}, {"how": "most probable", "draws": 0}, "draws must be"),
    ],
)
def test_mistakes(fitted: ao.TableModel, state: Any, given: Any, options: dict[str, Any], message: str) -> None:
    policy = ao.Policy(fitted, bounds={"left": (-1, 1)})
    with pytest.raises(ao.UserError, match=message):
        policy.act(state, given, **options)


@pytest.mark.parametrize(
    ("cell", "message"),
    [(1 + 2j, "expected a number"), (np.complex64(1j), "expected a number"), (10**400, "too large"), ("x", "a number")],
)
def test_cells_among_plain_numbers_that_are_none(gaussian: ao.TableModel, cell: Any, message: str) -> None:
    policy = ao.Policy(gaussian, state=["v0", "v1"])
    for state, given, column in (([0.0, cell], {}, "v1"), ([0.0, 0.0], {"v2": cell}, "v2")):
        with pytest.raises(ao.UserError, match=f"'{column}'.*{message}"):
            policy.act(state, given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"state": ["position", "lihgt"]}, "did you mean 'light'"),
        ({"state": ["light"]}, "'position' is context"),
        ({"action": ["light"]}, "'light' is context"),
        ({"action": ["left", "left"]}, "more than once"),
        ({"action": "left"}, "list of columns"),
        ({"action": []}, "needs a state and an action"),
        ({"state": ["position", "light", "left"], "action": ["left"]}, "both state and action"),
        ({"bounds": {"lift": (0, 1)}}, "did you mean 'left'"),
        ({"bounds": {"left": (1, 0)}}, "increase"),
        ({"bounds": {"left": 1}}, "pair of numbers"),
        ({"bounds": {"horn": (0, 1)}}, "no number"),
        ({"bounds": {"gear": (0.2, 0.8)}}, "no whole number"),
    ],
)
def test_policies_that_cannot_be(fitted: ao.TableModel, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ao.UserError, match=message):
        ao.Policy(fitted, **options)


def test_a_state_that_is_no_context_may_be_left_out(gaussian: ao.TableModel) -> None:
    with pytest.raises(ao.UserError, match=r"'v1' is unknown .* in which it is neither state nor action"):
        ao.Policy(gaussian, state=["v0", "v1"]).act([1.5, np.nan], how="mean")
    expected, _ = conditional({0: 1.5})
    found = ao.Policy(gaussian, state=["v0"], action=["v2", "v3"]).act([1.5], how="mean", as_array=True)
    assert np.allclose(found, expected[1:], atol=1e-6)


def test_a_policy_goes_to_another_process(fitted: ao.TableModel) -> None:
    policy = ao.Policy(fitted, action=["right", "left"], bounds={"left": (-1, 1)})
    for again in (pickle.loads(pickle.dumps(policy)), copy.deepcopy(policy)):
        assert (again.state, again.action, again.bounds) == (policy.state, policy.action, policy.bounds)
        assert again.act([0.2, 0.1], seed=5) == policy.act([0.2, 0.1], seed=5)


def test_a_policy_needs_a_table(gaussian: ao.TableModel) -> None:
    with pytest.raises(ao.UserError, match="which columns are the state"):
        ao.Policy(gaussian)
    with pytest.raises(ao.UserError, match="model of a table"):
        ao.Policy("house.anyorder")
    ruled = ao.TableModel(gaussian.core, {"arguments": {"rules": ["v1 <= v2"]}})
    with pytest.raises(ao.UserError, match=r"fitted with rules=.*'v1 <= v2'.*fit without rules="):
        ao.Policy(ruled, state=["v0"])
    assert ao.Policy(gaussian, action=["v3"]).state == ["v0", "v1", "v2"]
