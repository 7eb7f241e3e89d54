"""Regions: their probability and draws inside, on a distribution whose masses are known."""

from __future__ import annotations

import math

import pytest
import torch

from anyorder.distributions.region import Interval, Points


def test_regions_alone() -> None:
    """Points and intervals on a distribution whose mass is known: P(k) of four levels."""
    from anyorder.heads.categorical import CategoricalDistribution

    p = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    law = CategoricalDistribution(p.log().expand(3, -1))
    region = Points((1.0, 3.0))
    assert region.log_mass(law).exp().tolist() == pytest.approx([0.6] * 3)
    assert region.draw(law, torch.tensor([0.0, 0.33, 0.34], dtype=torch.float64)).tolist() == [1, 1, 3]
    between = Interval(1.0, 2.0, 0.5, 2.5)
    assert between.log_mass(law).exp().tolist() == pytest.approx([0.5] * 3)
    assert between.draw(law, torch.tensor([0.01, 0.39, 0.41], dtype=torch.float64)).tolist() == [1, 1, 2]
    assert Points((2.0,)).log_mass(CategoricalDistribution(torch.tensor([[0.0, 0.0]]))).tolist() == [-math.inf]
