"""Blends of networks against their members."""

from __future__ import annotations

import math

import pytest
import torch

from anyorder.errors import UserError
from anyorder.networks.blend import BlendNetwork
from anyorder.networks.layout import Layout
from anyorder.testing import check_calls_agree, check_no_leak, mixed_layout, randomised


def network(gates: int = 0) -> BlendNetwork:
    inner = mixed_layout()
    small = {"name": "residual_mlp", "width": 8, "blocks": 1, "expert": False}
    larger = {"name": "bidirectional_transformer", "width": 8, "blocks": 1, "heads": 2}
    sizes = tuple(2 * inner.width + gates if gates else inner.width + size for size in inner.sizes)
    layout = Layout(inner.levels, sizes, inner.groups, inner.grid, members=(inner, inner))
    built = BlendNetwork(layout, ({"network": small}, {"network": larger}), gates=gates)
    randomised(built, torch.Generator().manual_seed(0))
    if gates:
        generator = torch.Generator().manual_seed(1)
        built.slopes.copy_(torch.randn(built.slopes.shape, generator=generator, dtype=torch.float64))
    return built


@pytest.mark.parametrize("gates", [0, 2])
def test_network_keeps_the_contract(gates: int) -> None:
    check_no_leak(network(gates))
    # Gates are single precision.
    check_calls_agree(network(gates), tolerance=1e-6 if gates else 1e-10)


def test_gates_are_linear_in_what_is_known() -> None:
    built = network(2)
    known = torch.tensor([[True, False, True, False, False], [False] * 5])
    gates = built.beside(torch.zeros(2, 5, dtype=torch.float64), known)[..., -2:]
    features = torch.tensor([0.0, 1 / 3, 0.5, -0.5, 0.5, -0.5, -0.5], dtype=torch.float64)
    torch.testing.assert_close(gates[0, 1].double(), built.slopes[1] @ features, rtol=0, atol=1e-6)
    nothing = torch.tensor([-0.5, 1.0, -0.5, -0.5, -0.5, -0.5, -0.5], dtype=torch.float64)
    torch.testing.assert_close(gates[1, 3].double(), built.slopes[3] @ nothing, rtol=0, atol=1e-6)


@pytest.mark.parametrize("value", [math.nan, 1e9])
def test_damaged_gates_are_refused(value: float) -> None:
    built = network(2)
    state = {key: tensor.clone() for key, tensor in built.state_dict().items()}
    state["slopes"].view(-1)[1] = value
    with pytest.raises(UserError, match="slopes"):
        built.load_state_dict(state)


def test_heads_cannot_read_beyond_members_and_gates() -> None:
    inner = mixed_layout()
    layout = Layout(inner.levels, (inner.width + 1,) * 5, inner.groups, inner.grid, members=(inner,))
    with pytest.raises(UserError, match="more features"):
        BlendNetwork(layout, ({"network": {"name": "residual_mlp", "width": 8, "blocks": 1}},))


def test_network_puts_members_side_by_side() -> None:
    built = network()
    values = torch.randn(4, 5, dtype=torch.float64).abs().floor()
    known = torch.rand(4, 5) < 0.5
    features = built.beside(values, known)
    width = built.layout.members[0].width
    for position, part in enumerate(built.parts):
        alone = part.beside(values, known)
        size = min(width, features.shape[-1] - position * width)
        assert torch.equal(features[..., position * width : position * width + size], alone[..., :size])
