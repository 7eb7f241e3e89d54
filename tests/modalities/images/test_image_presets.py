"""The presets of the papers: they have the parameters that the documentation states, and take a training step."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from anyorder.errors import UserError
from anyorder.modalities.images.core import encoded, image_masking, image_model
from anyorder.modalities.images.options import ImageOptions
from anyorder.model import AnyOrderModel
from anyorder.networks import UNet
from anyorder.protocols import Pixelwise, Random
from anyorder.training.objectives import objective_for

SHAPES = {
    "tiny": ((8, 8), 17),
    "small": ((28, 28), 256),
    "mnist": ((28, 28), 2),
    "fashion_mnist": ((28, 28), 256),
    "cifar10": ((32, 32, 3), 256),
    "64x64": ((64, 64, 3), 256),
}
DOCS = Path(__file__).parents[3] / "docs" / "images.md"


def built(preset: str) -> AnyOrderModel:
    shape, levels = SHAPES[preset]
    colour = len(shape) == 3
    options = ImageOptions.read(None, preset=preset)
    network = options.described_network(modes=7, coupled=levels if colour else 0)
    protocol = Pixelwise(3) if colour else Random()
    return image_model(shape, levels, network, protocol, head=options.head, components=options.components, seed=0)


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


@pytest.mark.slow
@pytest.mark.parametrize("preset", UNet.presets)
def test_a_preset_has_its_stated_size_and_takes_a_step(preset: str) -> None:
    model = built(preset)
    stated = re.search(rf"\| `{preset}` .*\| ([\d,]+) \|", DOCS.read_text(encoding="utf-8"))
    assert stated is not None
    assert sum(parameter.numel() for parameter in model.parameters()) == int(stated[1].replace(",", ""))
    shape, levels = SHAPES[preset]
    objective = objective_for(model, image_masking(shape))
    pictures = np.random.default_rng(0).integers(0, levels, (2, *shape)).astype(np.uint8)
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
