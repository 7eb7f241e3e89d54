"""Entropy and mutual information, in closed form for the normal and as sums over a table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.questions import information
from anyorder.questions.conditional import Conditional
from anyorder.questions.evidence import Between
from anyorder.questions.information import mutual_information

from models import gaussian_model
from range_oracles import COVARIANCE, MEAN, SCALE, close, joint


def test_joint_entropy_and_information_against_the_sum(table: AnyOrderModel) -> None:
    p = joint(table).sum(axis=(2, 3))
    c = Conditional(table, draws=4000)
    close(c.entropy("a", "b"), float(-(p * np.log(p)).sum()), 1e-5)
    # The chain's own joint one way round; the other way p(b) p(a | b). Each is a joint, whose information is a sum.
    marginal = np.array(list(c["b"].probs().values()))
    given = [Conditional(table, {"b": level})["a"].probs().values() for level in table.schema["b"].levels]
    ways = [p, marginal * np.array([list(one) for one in given]).T]
    truth = [float((q * np.log(q / q.sum(0) / q.sum(1, keepdims=True))).sum()) for q in ways]
    found = mutual_information(c, ["a"], ["b"])
    assert found.exact
    assert found == pytest.approx(sum(truth) / 2, abs=1e-5)
    assert found.doubt == pytest.approx(abs(truth[0] - truth[1]) / 2, abs=1e-5)
    again = mutual_information(c, ["b"], ["a"])
    assert (again, again.doubt) == pytest.approx((found, found.doubt), abs=1e-9)


def test_gaussian_information_is_closed_form(gaussian: AnyOrderModel) -> None:
    c = Conditional(gaussian, {"v0": 1.0}, draws=500)
    left = COVARIANCE[1:, 1:] - np.outer(COVARIANCE[1:, 0], COVARIANCE[0, 1:]) / COVARIANCE[0, 0]

    def entropy(*which: int) -> float:
        block = left[np.ix_(which, which)] * SCALE**2
        return 0.5 * float(np.linalg.slogdet(2 * math.pi * math.e * block)[1])

    assert c.entropy("v1", "v2", "v3") == pytest.approx(entropy(0, 1, 2), abs=1e-6)
    assert c.entropy("v2") == pytest.approx(entropy(1), abs=1e-6)
    pair = entropy(0) + entropy(1) - entropy(0, 1)
    assert mutual_information(c, ["v1"], ["v2"]) == pytest.approx(pair, abs=1e-3)
    sets = mutual_information(c.using(draws=2000), ["v1"], ["v2", "v3"])
    close(sets, entropy(0) + entropy(1, 2) - entropy(0, 1, 2), 1e-6)
    four = gaussian_model(MEAN, COVARIANCE)
    both = mutual_information(Conditional(four, draws=3000), ["v0", "v1"], ["v2", "v3"])
    dets = [np.linalg.slogdet(COVARIANCE[np.ix_(w, w)])[1] for w in ([0, 1], [2, 3], [0, 1, 2, 3])]
    close(both, 0.5 * (dets[0] + dets[1] - dets[2]), 1e-6)


def test_entropy_under_ranges(gaussian: AnyOrderModel) -> None:
    """A range as wide as the line changes nothing."""
    wide = Conditional(gaussian, {"v0": Between(-200, 200)})
    whole = 0.5 * float(np.linalg.slogdet(2 * math.pi * math.e * SCALE**2 * COVARIANCE[2:, 2:])[1])
    one = 0.5 * math.log(2 * math.pi * math.e * SCALE**2 * COVARIANCE[3, 3])
    close(wide["v3"].entropy(), one, 0.01)
    close(wide.entropy("v2", "v3"), whole, 0.03)


def test_information_under_a_range(gaussian: AnyOrderModel) -> None:
    """A range as wide as the line changes nothing; a narrow one is close to the value in its middle."""
    for evidence, known in ((Between(-200, 200), []), (Between(0.95, 1.05), [0])):
        c = Conditional(gaussian, {"v0": evidence})
        rest = COVARIANCE - (np.outer(COVARIANCE[0], COVARIANCE[0]) / COVARIANCE[0, 0] if known else 0.0)
        truth = -0.5 * math.log(1 - rest[2, 3] ** 2 / rest[2, 2] / rest[3, 3])
        found = mutual_information(c, ["v2"], ["v3"])
        close(found, truth, 5e-3)
        assert 0 < found.standard_error < 0.2 * truth + 0.02
        assert mutual_information(c, ["v3"], ["v2"]) == pytest.approx(found, abs=1e-9)


def test_mutual_information_of_a_variable_with_a_range_is_refused(gaussian: AnyOrderModel) -> None:
    names = gaussian.schema.names
    with pytest.raises(UserError, match="is given"):
        mutual_information(Conditional(gaussian, {names[0]: Between(0.0, 1.0)}), [names[0]], [names[1]])


def test_the_last_seed_has_seeds_after_it(gaussian: AnyOrderModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(information, "POOL", 4)
    monkeypatch.setattr(information, "ROWS", 4)
    ranged = Conditional(gaussian, {"v0": Between(-1, 2)}, draws=64, seed=2**63 - 1)
    assert np.isfinite(float(mutual_information(ranged, ["v1"], ["v2"])))
    assert 0 < float(ranged.prob("v1 > 0, v2 > 0")) < 1
