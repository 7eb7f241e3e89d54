"""The presets of the papers: they have the parameters that the documentation states, and take a training step."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from anyorder.errors import UserError
from anyorder.modalities.images.core import encoded, image_masking, image_model
from anyorder.modalities.images.options import ImageOptions
from anyorder.model import AnyOrderModel
from anyorder.networks import UNet, networks
from anyorder.protocols import Pixelwise, Random
from anyorder.training.objectives import objective_for

# Convolutions and attention have as many weights for a small picture as for a large one, but take less time.
SHAPES = {
    "tiny": ((8, 8), 17),
    "small": ((8, 8), 256),
    "mnist": ((8, 8), 2),
    "fashion_mnist": ((8, 8), 256),
    "cifar10": ((8, 8, 3), 256),
    "64x64": ((8, 8, 3), 256),
    "mac": ((8, 8, 3), 256),
}
DOCS = Path(__file__).parents[3] / "docs" / "images.md"


def described(preset: str) -> dict[str, Any]:
    """The network; that of MAC has neither modes nor channels that share a mixture."""
    shape, levels = SHAPES[preset]
    if preset == "mac":
        return ImageOptions.read(None, preset=preset).described_network(modes=0, coupled=0)
    coupled = levels if len(shape) == 3 else 0
    return ImageOptions.read(None, preset=preset).described_network(modes=7, coupled=coupled)


def built(network: dict[str, Any], preset: str) -> AnyOrderModel:
    shape, levels = SHAPES[preset]
    options = ImageOptions.read(None, preset=preset)
    protocol = Pixelwise(3) if network["coupled"] else Random()
    head = "categorical" if preset == "mac" else options.head
    return image_model(shape, levels, network, protocol, head=head, components=options.components, seed=0)


def test_the_papers_presets_bring_their_training_and_what_is_said_wins() -> None:
    paper = ImageOptions.read({"preset": "cifar10"})
    assert (paper.components, paper.training.batch, paper.training.learning_rate) == (30, 32, 2e-4)
    said = ImageOptions.read({"components": 10, "training": {"batch": 64}}, preset="cifar10", minutes=3)
    assert (said.components, said.training.batch, said.training.learning_rate) == (10, 64, 2e-4)
    assert said.training.minutes == 3
    assert ImageOptions.read(None) == ImageOptions()
    assert ImageOptions.read(paper.to_json()) == paper  # a card repeats a run
    with pytest.raises(UserError, match="table of options"):
        ImageOptions.read({"training": 5})


def test_a_budget_ends_early_only_after_a_large_share_of_it_without_any_gain() -> None:
    training = ImageOptions().training
    assert training.noticeable == 0.0
    assert (training.falls + 1) * training.patience_share == pytest.approx(0.4)
    assert 0 < training.cool_down < 1  # the rate goes to zero with the budget


@pytest.mark.parametrize("preset", UNet.presets)
def test_a_preset_has_its_stated_size(preset: str) -> None:
    stated = re.search(rf"\| `{preset}` .*\| ([\d,]+) \|", DOCS.read_text(encoding="utf-8"))
    assert stated is not None
    network = described(preset)
    tiny = built({**network, "channels": 8, "entry": 0, "blocks": 1}, preset)
    with torch.device("meta"):  # counted without a place in memory for any of them
        whole = networks.build({**network, "embedded": SHAPES[preset][1]}, layout=tiny.network.layout)
    assert sum(parameter.numel() for parameter in whole.parameters()) == int(stated[1].replace(",", ""))


@pytest.mark.slow
@pytest.mark.parametrize("preset", [name for name in UNet.presets if name != "mac"])
def test_a_preset_takes_a_step(preset: str) -> None:
    model = built(described(preset), preset)
    shape, levels = SHAPES[preset]
    objective = objective_for(model, image_masking(shape))
    pictures = np.random.default_rng(0).integers(0, levels, (1, *shape)).astype(np.uint8)
    values = encoded(model, pictures)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    everything = torch.ones_like(values, dtype=torch.bool)
    before = model.network.leave.weight.detach().clone()  # type: ignore[union-attr]
    loss = -objective.scores(
        model, values, everything, torch.zeros_like(values), torch.Generator().manual_seed(0)
    ).mean()
    loss.backward()
    optimizer.step()
    assert bool(loss.isfinite())
    assert not torch.equal(model.network.leave.weight, before)  # type: ignore[union-attr]
