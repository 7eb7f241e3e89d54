"""The blur of bins is chosen by what held-out cells say, and the softest of equals."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from anyorder.heads import Binned, Bounded, Categorical, Spiked
from anyorder.training.trees.softening import BLURS, _softest, softened


def test_only_the_bins_inside_a_head_change() -> None:
    head = Spiked((0.0,), Bounded(Binned(), -1.0, None, firm=False))
    soft = softened(head, 0.5)
    assert isinstance(soft, Spiked) and isinstance(soft.base, Bounded) and isinstance(soft.base.base, Binned)
    assert (soft.atoms, soft.base.low, soft.base.firm, soft.base.base.blur) == ((0.0,), -1.0, False, 0.5)
    plain = Categorical(3)
    assert softened(plain, 0.5) is plain


@pytest.mark.parametrize("best", range(len(BLURS)))
def test_the_best_wins_where_cells_can_tell(best: int) -> None:
    noise = torch.randn(1, 500, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    nats = noise + -0.1 * torch.arange(len(BLURS)).sub(best).abs()[:, None].double()
    assert _softest(nats, 500) == BLURS[best]


def test_the_softest_of_equals() -> None:
    nats = torch.as_tensor(np.random.default_rng(0).normal(size=(len(BLURS), 400)))
    nats[:, 1::2] = -nats[:, ::2]  # means of zero, differences that are noise
    assert _softest(nats, 400) == BLURS[-1]
    assert _softest(torch.zeros(len(BLURS), 0), 0) == BLURS[-1]
