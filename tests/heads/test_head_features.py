"""What heads make of features: shapes, gradients, extreme numbers, moves of the line; and the registry of heads."""

from __future__ import annotations

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyorder.distributions.base import Distribution
from anyorder.errors import UserError
from anyorder.heads import Categorical, DiscretizedLogisticMixture, GaussianMixture, Head, heads
from anyorder.support.registry import describe

from head_cases import ALL, FINE, LOCATION_SCALE, features, label


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("head", ALL, ids=label)
def test_shapes_and_dtypes(head: Head, dtype: torch.dtype) -> None:
    f = features(head, 2, 3, dtype=dtype)
    distribution: Distribution = head(f)
    value = distribution.sample(torch.Generator().manual_seed(0))
    level = torch.full((2, 3), 0.4, dtype=dtype)
    results = [value, distribution.log_prob(value), distribution.cdf(value), distribution.quantile(level),
               distribution.mean(), distribution.entropy()]  # fmt: skip
    assert distribution.shape == (2, 3)
    for result in results:
        assert result.shape == (2, 3)
        assert result.dtype == dtype
        assert torch.isfinite(result).all()
    stacked = distribution.log_prob(value.expand(4, 2, 3))
    torch.testing.assert_close(stacked, distribution.log_prob(value).expand(4, 2, 3))
    assert head(f[:0]).entropy().shape == (0, 3)
    torch.testing.assert_close(head(f[1, 2]).log_prob(value[1, 2]), distribution.log_prob(value)[1, 2])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("head", ALL, ids=label)
def test_every_feature_gets_a_gradient(head: Head, dtype: torch.dtype) -> None:
    if head.size == 3:
        pytest.skip("the logit of a single component has no effect, as it should")
    f = features(head, 40, dtype=dtype).requires_grad_()
    value = head(f).sample(torch.Generator().manual_seed(0))
    (slope,) = torch.autograd.grad(head(f).log_prob(value).sum(), f)
    assert torch.isfinite(slope).all()
    assert (slope.abs().sum(0) > 0).all()
    (slope,) = torch.autograd.grad(head(f).entropy().sum(), f)
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize("head", ALL, ids=label)
def test_gradients_are_the_derivatives(head: Head) -> None:
    f = features(head, 2).requires_grad_()
    value = head(f).sample(torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(lambda g: head(g).log_prob(value), f)
    if not (isinstance(head, DiscretizedLogisticMixture) and head.lattice is FINE):  # differences of steps are noise
        assert torch.autograd.gradcheck(lambda g: head(g).mean(), f, atol=1e-6)


@pytest.mark.parametrize("head", ALL, ids=label)
@given(data=st.data())
def test_extreme_features_never_nan(head: Head, data: st.DataObject) -> None:
    extreme = st.sampled_from([-1e4, -50.0, -7.0, 0.0, 0.3, 7.0, 50.0, 1e4])
    numbers = data.draw(st.lists(extreme, min_size=head.size, max_size=head.size))
    f = torch.tensor([numbers], dtype=torch.float32).requires_grad_()
    code = float(data.draw(st.integers(0, head.levels - 1))) if head.levels else data.draw(extreme)
    distribution = head(f)
    log_prob = distribution.log_prob(torch.tensor([code]))
    lattice = getattr(distribution, "lattice", None)
    if lattice is not None and not bool(lattice.reaches(torch.tensor(code))):
        assert float(log_prob.detach()) == -math.inf, "there is no such point"
    else:
        assert torch.isfinite(log_prob).all()
    assert not distribution.discrete or (log_prob <= 1e-5).all()
    (slope,) = torch.autograd.grad(log_prob.sum(), f)
    assert torch.isfinite(slope).all()
    level = torch.tensor([0.3])
    for result in (distribution.cdf(torch.tensor([code])), distribution.quantile(level), distribution.mean(),
                   distribution.entropy(), distribution.sample(torch.Generator().manual_seed(0))):  # fmt: skip
        assert torch.isfinite(result).all()


def test_a_collapsed_component_can_come_back() -> None:
    """Far below its floor a log scale still has a gradient, and the density stays bounded."""
    f = torch.tensor([0.0, 0.0, -40.0], requires_grad=True)
    log_prob = GaussianMixture(1)(f).log_prob(torch.tensor(0.5))
    (slope,) = torch.autograd.grad(log_prob, f)
    assert slope[2] > 0
    assert float(GaussianMixture(1)(f.detach()).log_prob(torch.tensor(0.0))) <= 7


@pytest.mark.parametrize("head", LOCATION_SCALE, ids=label)
def test_locations_and_log_scales_move_the_line(head: Head) -> None:
    f = features(head, 30)
    location = torch.linspace(-3, 3, 30, dtype=torch.float64)
    scale = torch.linspace(0.05, 20, 30, dtype=torch.float64)
    moved = f.clone()
    moved[:, list(head.locations)] = location[:, None] + scale[:, None] * f[:, list(head.locations)]
    moved[:, list(head.log_scales)] += scale.log()[:, None]
    if isinstance(head, DiscretizedLogisticMixture):
        # Before it is cut into cells: F'(location + scale x) = F(x), seen at the line's quantiles.
        level = torch.full((30,), 0.37, dtype=torch.float64)
        expected = location + scale * head(f)._line_quantile(level)
        torch.testing.assert_close(head(moved)._line_quantile(level), expected, rtol=1e-9, atol=1e-9)
    else:
        x = torch.linspace(-2, 2, 30, dtype=torch.float64)
        torch.testing.assert_close(head(moved).log_prob(location + scale * x), head(f).log_prob(x) - scale.log())


@pytest.mark.parametrize("head", LOCATION_SCALE, ids=label)
def test_start_is_broad(head: Head) -> None:
    distribution = head(head.start().double())
    assert abs(float(distribution.quantile(torch.tensor(0.5)))) < 0.6
    assert float(distribution.cdf(torch.tensor(1.0)) - distribution.cdf(torch.tensor(-1.0))) > 0.3
    assert float(distribution.cdf(torch.tensor(-1.6)) + 1 - distribution.cdf(torch.tensor(1.6))) > 0.02


# Registry


@pytest.mark.parametrize("head", ALL, ids=label)
def test_describe_and_build(head: Head) -> None:
    described = json.loads(json.dumps(describe(head)))
    again = heads.build(described)
    assert type(again) is type(head)
    assert describe(again) == describe(head)
    f = features(head, 3)
    value = head(f).sample(torch.Generator().manual_seed(0))
    assert torch.equal(again(f).log_prob(value), head(f).log_prob(value))


def test_mistakes_are_named() -> None:
    with pytest.raises(UserError, match="did you mean 'gaussian_mixture'"):
        heads.build({"name": "gaussian_mixtur"})
    with pytest.raises(UserError, match="component"):
        GaussianMixture(0)
    with pytest.raises(UserError, match="level"):
        Categorical(0)
