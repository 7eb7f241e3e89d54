"""Dropout from a given generator: torch's own law and draws, no other source, nothing dropped but while training."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from anyorder.errors import UserError
from anyorder.networks import BidirectionalTransformer
from anyorder.networks.parts.attention import attention
from anyorder.networks.parts.dropout import Dropout, dropout_from
from anyorder.testing import check_own_randomness, mixed_layout


def test_it_drops_what_torch_would_drop() -> None:
    inputs = torch.randn(200, 50, generator=torch.Generator().manual_seed(0))
    before = torch.get_rng_state()
    with dropout_from(torch.Generator().manual_seed(1)):
        dropped = Dropout(0.3)(inputs)
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        assert torch.equal(dropped, F.dropout(inputs, 0.3))
    assert float((dropped == 0).float().mean()) == pytest.approx(0.3, abs=0.02)


def test_only_training_drops_and_only_from_a_generator() -> None:
    inputs = torch.ones(100)
    assert torch.equal(Dropout(0.5).eval()(inputs), inputs)
    assert torch.equal(Dropout(0.0)(inputs), inputs)
    with pytest.raises(RuntimeError, match="dropout_from"):
        Dropout(0.5)(inputs)
    with pytest.raises(UserError, match=r"\[0, 1\)"):
        Dropout(1.0)


@pytest.mark.parametrize("seen", ["all", "causal", "mask"])
def test_attention_written_out_is_torchs(seen: str) -> None:
    generator = torch.Generator().manual_seed(0)
    queries, keys, values = torch.randn(3, 2, 4, 6, 8, generator=generator, dtype=torch.float64)
    visible = torch.rand(2, 1, 6, 6, generator=generator) < 0.5
    visible = (visible | torch.eye(6, dtype=torch.bool)) if seen == "mask" else None
    causal = seen == "causal"
    almost_none = Dropout(1e-12)  # takes the way that is written out, and drops nothing
    with dropout_from(generator):
        found = attention(queries, keys, values, visible, causal=causal, dropout=almost_none)
    expected = F.scaled_dot_product_attention(queries, keys, values, visible, is_causal=causal)
    torch.testing.assert_close(found, expected)


def test_the_contract_check_catches_a_layer_that_draws_from_everyone() -> None:
    check_own_randomness(BidirectionalTransformer(mixed_layout(), width=8, blocks=1, heads=1, dropout=0.3).double())
    network = BidirectionalTransformer(mixed_layout(), width=8, blocks=1, heads=1).double()
    network.norm = torch.nn.Sequential(network.norm, torch.nn.Dropout(0.3))  # type: ignore[assignment]
    with pytest.raises(AssertionError, match="whole process"):
        check_own_randomness(network)
