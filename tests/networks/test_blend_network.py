"""Blends of networks against their members."""

from __future__ import annotations

import torch

from anyorder.networks.blend import BlendNetwork
from anyorder.networks.layout import Layout
from anyorder.testing import check_calls_agree, check_no_leak, mixed_layout, randomised


def network() -> BlendNetwork:
    inner = mixed_layout()
    small = {"name": "residual_mlp", "width": 8, "blocks": 1, "expert": False}
    larger = {"name": "bidirectional_transformer", "width": 8, "blocks": 1, "heads": 2}
    sizes = tuple(inner.width + size for size in inner.sizes)
    layout = Layout(inner.levels, sizes, inner.groups, inner.grid, members=(inner, inner))
    built = BlendNetwork(layout, ({"network": small}, {"network": larger}))
    randomised(built, torch.Generator().manual_seed(0))
    return built


def test_network_keeps_the_contract() -> None:
    check_no_leak(network())
    check_calls_agree(network())


def test_network_puts_members_side_by_side() -> None:
    built = network()
    values = torch.randn(4, 5, dtype=torch.float64).abs().floor()
    known = torch.rand(4, 5) < 0.5
    features = built.beside(values, known)
    width = built.layout.members[0].width
    for place, part in enumerate(built.parts):
        alone = part.beside(values, known)
        size = min(width, features.shape[-1] - place * width)
        assert torch.equal(features[..., place * width : place * width + size], alone[..., :size])
