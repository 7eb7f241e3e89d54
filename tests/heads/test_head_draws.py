"""Quantiles undo the cdf, and draws follow it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import special, stats

from anyorder.heads import Categorical, DiscretizedLogisticMixture, GaussianMixture, Head

from head_cases import CONTINUOUS, DISCRETE, features, label, points

# Quantiles


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("head", CONTINUOUS, ids=label)
def test_quantile_inverts_cdf(head: Head, dtype: torch.dtype) -> None:
    distribution = head(features(head, 50, dtype=dtype))
    level = torch.tensor([1e-6, 0.01, 0.3, 0.5, 0.77, 0.99], dtype=dtype)[:, None]
    value = distribution.quantile(level)
    assert value.dtype == dtype
    near = 1e-12 if dtype == torch.float64 else 3e-6
    torch.testing.assert_close(
        distribution.cdf(value), level.expand(6, 50), rtol=1e-9 if dtype == torch.float64 else 1e-3, atol=near
    )
    if dtype == torch.float64:
        torch.testing.assert_close(distribution.quantile(distribution.cdf(value)), value, rtol=1e-7, atol=1e-7)
    ends = distribution.quantile(torch.tensor([[0.0], [1.0], [1.5]], dtype=dtype))
    assert (ends[0] == -math.inf).all()
    assert (ends[1] == math.inf).all()
    assert ends[2].isnan().all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("head", DISCRETE, ids=label)
def test_quantile_is_the_least_point_that_reaches(head: Head, dtype: torch.dtype) -> None:
    distribution = head(features(head, 8, dtype=dtype))
    values = points(head, dtype)
    cdf = distribution.cdf(values[:, None])
    levels = torch.cat([torch.linspace(0.001, 0.999, 101, dtype=dtype), cdf[(cdf > 1e-4) & (cdf < 0.9999)]])
    found = distribution.quantile(levels[:, None])
    for column in range(8):
        place = torch.searchsorted(cdf[:, column].contiguous(), levels)
        torch.testing.assert_close(found[:, column], values[place], rtol=0, atol=1e-6)
    assert distribution.quantile(torch.tensor(-0.1, dtype=dtype).expand(8)).isnan().all()
    if not (isinstance(head, DiscretizedLogisticMixture) and head.lattice.count is None):
        assert torch.equal(distribution.quantile(torch.ones(8, dtype=dtype)), values[-1].expand(8))
        assert torch.equal(distribution.quantile(torch.zeros(8, dtype=dtype)), values[0].expand(8))


def test_quantile_of_far_apart_components() -> None:
    """A flat cdf between two modes, where Newton alone fails."""
    f = torch.tensor([0.0, 0.0, -1000.0, 1000.0, -4.0, -4.0], dtype=torch.float64)
    level = torch.tensor([0.25, 0.75, 1e-9, 0.4999999], dtype=torch.float64)
    expected = np.array([-1000.0, 1000.0, -1000.0, -1000.0]) + math.exp(-4) * special.ndtri([0.5, 0.5, 2e-9, 0.9999998])
    assert GaussianMixture(2)(f).quantile(level).numpy() == pytest.approx(expected, abs=1e-9)


# Draws


@pytest.mark.parametrize("head", CONTINUOUS, ids=label)
def test_draws_follow_the_cdf(head: Head) -> None:
    f = features(head)
    draws = head(f.expand(20_000, -1)).sample(torch.Generator().manual_seed(3))
    assert stats.kstest(head(f).cdf(draws).numpy(), "uniform").pvalue > 1e-3
    assert torch.equal(draws, head(f.expand(20_000, -1)).sample(torch.Generator().manual_seed(3)))


@pytest.mark.parametrize("head", DISCRETE, ids=label)
def test_draws_follow_the_masses(head: Head) -> None:
    f = features(head)
    draws = head(f.expand(20_000, -1)).sample(torch.Generator().manual_seed(4))
    values = points(head)
    place = (draws[:, None] - values).abs().argmin(-1)
    assert (draws - values[place]).abs().max() < 1e-9  # on the points, never between
    counts = torch.bincount(place, minlength=len(values)).numpy()
    expected = head(f).log_prob(values).exp().numpy() * 20_000
    often = expected > 5
    seen = np.append(counts[often], counts[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    keep = wanted > 1e-3
    assert stats.chisquare(seen[keep], wanted[keep] * seen[keep].sum() / wanted[keep].sum()).pvalue > 1e-3


def test_impossible_levels_are_never_drawn() -> None:
    logits = torch.tensor([-math.inf, 0.0, 1.0, -math.inf, -math.inf]).expand(100_000, 5)
    distribution = Categorical(5)(logits)
    assert set(distribution.sample(torch.Generator().manual_seed(0)).tolist()) == {1.0, 2.0}
    p = 1 / (1 + math.e)
    assert float(distribution.entropy()[0]) == pytest.approx(-p * math.log(p) - (1 - p) * math.log(1 - p), abs=1e-6)
