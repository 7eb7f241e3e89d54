"""Highest-density sets, against the normal's own."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import norm

from anyorder.errors import UserError
from anyorder.heads import GaussianMixture
from anyorder.heads.spiked import Spiked
from anyorder.model import AnyOrderModel
from anyorder.questions.answer import Answer
from anyorder.questions.conditional import Conditional
from anyorder.questions.evidence import Between
from anyorder.variables.codecs import LineCodec
from anyorder.variables.codecs.spiked import SpikedCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp

from range_oracles import COVARIANCE, MEAN, SCALE


def test_highest_density_sets(gaussian: AnyOrderModel, table: AnyOrderModel) -> None:
    location, scale = SCALE * MEAN[3], SCALE * math.sqrt(COVARIANCE[3, 3])
    ((low, high),) = Conditional(gaussian)["v3"].hdi(0.9)
    assert (low, high) == pytest.approx((location - 1.6449 * scale, location + 1.6449 * scale), abs=0.02 * scale)
    # Under a one-sided range the set begins at the end of the range.
    ((low, high),) = Conditional(gaussian, {"v3": Between(location, None)})["v3"].hdi(0.5)
    assert low == pytest.approx(location, abs=0.02 * scale)
    assert high == pytest.approx(location + norm.ppf(0.75) * scale, abs=0.02 * scale)
    ((low, high),) = Conditional(gaussian, {"v0": Between(-200, 200)})["v3"].hdi(0.9)
    assert (low, high) == pytest.approx((location - 1.6449 * scale, location + 1.6449 * scale), abs=0.2 * scale)
    answer = Conditional(table)["d"]
    probabilities = answer.probs()
    chosen = answer.hdi(0.6)
    assert sum(probabilities[level] for level in chosen) >= 0.6
    assert min(probabilities[level] for level in chosen) >= max(
        [p for level, p in probabilities.items() if level not in chosen], default=0.0
    )
    assert sum(probabilities[level] for level in chosen[:-1]) < 0.6


@pytest.mark.parametrize("level", [0.9, 0.998, 0.999, 0.9999, 0.99999])
def test_highest_density_sets_of_high_levels(gaussian: AnyOrderModel, level: float) -> None:
    location, scale = SCALE * MEAN[3], SCALE * math.sqrt(COVARIANCE[3, 3])
    ((low, high),) = Conditional(gaussian)["v3"].hdi(level)
    reach = norm.ppf((1 + level) / 2) * scale
    assert (low, high) == pytest.approx((location - reach, location + reach), abs=0.01 * scale)
    held = norm.cdf(high, location, scale) - norm.cdf(low, location, scale)
    assert level <= held < level + 0.1 * (1 - level) + 5e-3 * level * (level < 0.99)
    ((low, high),) = Conditional(gaussian, {"v0": Between(-300, 300)})["v3"].hdi(level)
    assert (low, high) == pytest.approx((location - reach, location + reach), abs=0.3 * scale)


def test_highest_density_sets_too_near_to_everything_are_refused(gaussian: AnyOrderModel) -> None:
    with pytest.raises(UserError, match=r"can be at most 0\.99999"):
        Conditional(gaussian)["v3"].hdi(0.9999999)


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
