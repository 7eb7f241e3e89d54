"""The model's own doubt: the jackknife over parts that have each left out a fold, found only when it is asked for."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from scipy import stats

from anyorder.heads import Gaussian
from anyorder.heads.blend import Blend
from anyorder.model import AnyOrderModel, layout_of
from anyorder.model.leave_out import folds
from anyorder.networks.blend import BlendNetwork
from anyorder.questions import doubt
from anyorder.questions.conditional import Conditional
from anyorder.questions.doubt import jackknife
from anyorder.questions.estimate import Estimate
from anyorder.questions.evidence import Between
from anyorder.questions.information import mutual_information

from models import gaussian_model

MEANS = (0.0, 0.4, 1.0)
COVARIANCE = np.array([[1.0, 0.5], [0.5, 2.0]])


@pytest.fixture(scope="module")
def model() -> AnyOrderModel:
    """Three parts, one a fold: normals that differ in their means."""
    parts = [gaussian_model(np.array([mean, -mean]), COVARIANCE, scale=2.0) for mean in MEANS]
    heads = [Blend(tuple(Gaussian() for _ in MEANS), (1 / 3,) * 3, (0, 2, 4)) for _ in range(2)]
    network = BlendNetwork.of(layout_of(parts[0].schema, heads), [part.network for part in parts], (0, 1, 2), 3)
    return AnyOrderModel(parts[0].encoding, network, heads, parts[0].protocol).eval()


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    """Leaving out a group and averaging the rest: the formula gives back s / sqrt(n) of the groups' means."""
    groups = np.random.default_rng(0).normal(size=8)
    rest = [float(np.delete(groups, k).mean()) for k in range(8)]
    assert jackknife(rest) == pytest.approx(groups.std(ddof=1) / math.sqrt(8), rel=1e-12)
    assert jackknife([1.0]) == jackknife([2.0, 2.0]) == jackknife([-math.inf, -math.inf]) == 0
    assert jackknife([-math.inf, 1.0]) == math.inf


def test_answers_carry_the_spread_of_the_parts(model: AnyOrderModel) -> None:
    assert folds(model) == 3
    answer = Conditional(model)["v0"]
    expected = {
        "mean": jackknife([2 * mean for mean in MEANS]),
        "cdf": jackknife([stats.norm.cdf(1.0, 2 * mean, 2.0) for mean in MEANS]),
        "log_prob": jackknife([stats.norm.logpdf(1.0, 2 * mean, 2.0) for mean in MEANS]),
    }
    for name, found in (("mean", answer.mean()), ("cdf", answer.cdf(1.0)), ("log_prob", answer.log_prob(1.0))):
        assert found.exact
        assert found.doubt == pytest.approx(expected[name], rel=1e-5)
        assert f"± {found.doubt:.2g} (exact for this model" in repr(found)
        assert found.to_json()["doubt"] == found.doubt
    assert Conditional(model).answers()["v0"].mean().doubt == answer.mean().doubt
    assert answer.std().doubt == pytest.approx(0, abs=1e-5)  # the parts agree about it
    assert "± " in repr(answer)
    kept = copy.copy(answer.mean())
    assert (kept.doubt, kept.standard_error) == (answer.mean().doubt, 0.0)
    low, high = answer.mean().interval(1.0)
    assert high - low == pytest.approx(2 * expected["mean"], rel=1e-5)


def test_every_kind_of_question_has_its_doubt(model: AnyOrderModel) -> None:
    exact, ranged = Conditional(model, {"v1": 0.5}), Conditional(model, {"v1": Between(-1, 1)}, draws=200)
    tail = [stats.norm.sf(1.0, 2 * (mean + 0.25 * (0.25 + mean)), 2 * math.sqrt(0.875)) for mean in MEANS]
    assert exact.prob("v0 > 1").doubt == pytest.approx(jackknife(tail), rel=1e-4)
    assert exact.log_prob(v0=1.0).doubt > 0
    assert Conditional(model).log_prob(v0=1.0, v1=0.0).doubt > 0
    assert Conditional(model, draws=64).entropy("v0", "v1").doubt < 0.1
    found = ranged["v0"].mean()
    assert found.standard_error > 0
    assert found.doubt > found.standard_error
    assert found.error == pytest.approx(math.hypot(found.standard_error, found.doubt))
    assert "its own doubt" in repr(found)
    information = mutual_information(Conditional(model, draws=64), ["v0"], ["v1"])
    assert 0 <= information.doubt < 0.1


def test_nothing_is_asked_twice_until_the_doubt_is_read(model: AnyOrderModel, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    original = Conditional.by_parts
    monkeypatch.setattr(Conditional, "by_parts", lambda self: asked.append(self) or original(self))
    found = Conditional(model)["v0"].mean()
    probability = Conditional(model).prob("v0 > 1")
    assert float(found) + float(probability) > 0
    assert not asked
    assert found.doubt > 0
    assert found.doubt == found.doubt
    assert len(asked) == 1


def test_a_model_without_folds_has_no_doubt() -> None:
    plain = gaussian_model(np.zeros(2), COVARIANCE)
    assert doubt.parts_of(plain) == []
    found = Conditional(plain)["v0"].mean()
    assert (found.doubt, found.error) == (0.0, 0.0)
    assert repr(found) == float.__repr__(float(found))
    assert Estimate(1.0, 0.3, "draws", 0.4).error == pytest.approx(0.5)
