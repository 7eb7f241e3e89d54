"""The papers' recipes for pictures: what they say, the size of their networks, what wins over them, a step of each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import anyorder as ao
from anyorder.errors import UserError
from anyorder.masking import Cardinality, Univariate, maskings
from anyorder.modalities.images.core import image_model
from anyorder.modalities.images.options import ImageOptions
from anyorder.modalities.images.recipes import WHOLE
from anyorder.networks import networks
from anyorder.protocols import Canonical, Pixelwise, Random, protocols

DOCS = Path(__file__).parents[3] / "docs" / "images.md"
RELEASED = 141_060_736  # parameters of the U-Net in MAC's released code, by hand from its layers
OF_MAC = [name for name in WHOLE if not name.startswith("sfarm")]
OF_SFARM = [name for name in WHOLE if name.startswith("sfarm")]
TINY = {"name": "unet", "channels": 8, "entry": 0, "blocks": 1, "levels": 1}
BRIEF = {"steps": 1, "batch": 2, "parts": 2, "validation_queries": 2}


def pictures_for(preset: str) -> tuple[tuple[int, ...], int]:
    return {"sfarm_mnist": ((4, 4), 2), "sfarm_fashion": ((4, 4), 256)}.get(preset, ((4, 4, 3), 256))


@pytest.mark.parametrize("preset", OF_MAC)
def test_a_recipe_is_what_appendix_d_and_the_tables_of_mac_say(preset: str) -> None:
    options = ImageOptions.read(None, preset=preset)
    network, training = options.described_network(), options.training
    assert (network["name"], network["channels"], network["blocks"], network["levels"]) == ("unet", 256, 32, 1)
    assert network["attention"] == "every" and "dropout" not in network
    assert (training.batch, training.learning_rate, training.clip) == (128, 1e-4, 100.0)
    assert (training.beta1, training.beta2, training.weight_decay) == (0.9, 0.999, 0.0)
    assert (training.minutes, training.early_stopping, training.average) == (None, False, 0.0)
    epochs, shown = (16, 1_281_167) if preset == "mac_imagenet32" else (1_200, 50_000)
    assert training.steps is not None and 0 <= training.steps * 128 - epochs * shown < 128
    assert (options.head, options.variables) == ("categorical", "channels")
    assert options.augment == ("none" if preset == "mac_imagenet32" else "rotate_flip")


def test_mac_and_its_ardm_differ_in_their_order_and_masks_alone() -> None:
    mac, ardm = (ImageOptions.read({"preset": name}) for name in ("mac_cifar10", "ardm_cifar10"))
    assert protocols.build(mac.protocol) == Canonical(stride=96) and protocols.build(ardm.protocol) == Random()
    assert maskings.build(mac.masking) == Cardinality() and maskings.build(ardm.masking) == Univariate()
    assert mac.objective == {"name": "parallel", "reweight": True} and ardm.objective == {"name": "parallel"}
    said = ("network", "training", "head", "variables", "augment", "size")
    assert all(getattr(mac, name) == getattr(ardm, name) for name in said)


def test_a_stride_of_32_plane_by_plane_is_one_of_96_pixel_by_pixel() -> None:
    planes = np.arange(3072).reshape(3, 32, 32)  # MAC's code has the planes one after the other, here they alternate
    by_plane = Canonical(stride=32).sequence(3072)
    by_pixel = Canonical(stride=96).sequence(3072)
    assert planes.transpose(1, 2, 0).flatten()[by_pixel].tolist() == by_plane


@pytest.mark.parametrize(
    ("preset", "head", "batch", "epochs", "shown"),
    [
        ("sfarm_mnist", "bernoulli", 128, 300, 50_000),
        ("sfarm_fashion", "logistic", 128, 300, 60_000),
        ("sfarm_cifar10", "mixture", 32, 3_000, 50_000),
        ("sfarm_celeba64", "mixture", 16, 3_000, 27_000),
        ("sfarm_imagenet64", "mixture", 16, 20, 1_281_167),
    ],
)
def test_a_recipe_is_what_table_4_of_sfarm_says(preset: str, head: str, batch: int, epochs: int, shown: int) -> None:
    options = ImageOptions.read(None, preset=preset)
    network, training = options.described_network(), options.training
    small = preset in ("sfarm_mnist", "sfarm_fashion")
    blocks, levels = (4, 1) if small else (32, 1) if preset == "sfarm_cifar10" else (16, 2)
    assert (network["channels"], network["blocks"], network["levels"]) == (32 if small else 128, blocks, levels)
    assert network.get("entry", 0) == (0 if small else 256)
    assert (options.head, options.variables, training.learning_rate) == (head, "pixels", 2e-4)
    assert small or options.components == 30
    assert training.batch == batch and training.batch % training.parts == 0
    assert training.steps is not None and 0 <= training.steps * batch - epochs * shown < batch
    assert options.masking == {"name": "modes"} and options.objective == {"name": "stages"}


@pytest.mark.parametrize("preset", WHOLE)
def test_what_is_said_wins_over_a_recipe(preset: str) -> None:
    recipe = ImageOptions.read(None, preset=preset)
    said = ImageOptions.read({"training": {"steps": 7}, "components": 3}, preset=preset, minutes=3, augment="mirror")
    assert (said.training.steps, said.training.minutes, said.components, said.augment) == (7, 3, 3, "mirror")
    assert (said.training.batch, said.masking) == (recipe.training.batch, recipe.masking)
    assert ImageOptions.read(recipe.to_json()) == recipe  # a card repeats a run


@pytest.mark.parametrize("preset", WHOLE)
def test_the_networks_are_as_large_as_stated(preset: str) -> None:
    stated = re.search(rf"\| `{preset}` .*\| ([\d,]+) \|", DOCS.read_text(encoding="utf-8"))
    assert stated is not None
    assert parameters_of(preset) == int(stated[1].replace(",", ""))


def test_the_network_of_mac_is_the_released_one_but_for_its_output_and_the_vector_of_unknown() -> None:
    assert parameters_of("mac_cifar10") == RELEASED - 8 * 256 * 768 + 64
    text = DOCS.read_text(encoding="utf-8")
    assert f"{RELEASED:,}" in text and f"{8 * 256 * 768:,}" in text


def parameters_of(preset: str) -> int:
    """Counted without a place in memory for any of them."""
    shape, levels = pictures_for(preset)
    options = ImageOptions.read(None, preset=preset)
    coupled = levels if len(shape) == 3 and options.variables == "pixels" else 0
    network = options.described_network(modes=7 if preset in OF_SFARM else 0, coupled=coupled)
    protocol = Pixelwise(3) if coupled else Random()
    how: dict[str, Any] = {"head": options.head, "components": options.components, "seed": 0}
    tiny = image_model(shape, levels, {**network, **TINY}, protocol, **how)
    with torch.device("meta"):
        built = networks.build({**network, "embedded": levels}, layout=tiny.network.layout)
    return sum(parameter.numel() for parameter in built.parameters())


@pytest.mark.parametrize("preset", WHOLE)
def test_a_recipe_trains_a_small_network(preset: str) -> None:
    shape, levels = pictures_for(preset)
    pictures = np.random.default_rng(0).integers(0, levels, (6, *shape)).astype(np.uint8)
    model = ao.fit_images(pictures, levels=levels, preset=preset, config={"network": TINY, "training": BRIEF})
    assert model.card["training"]["steps"] == 1 and model.card["config"]["preset"] == preset
    assert len(model.modes) == (7 if preset in OF_SFARM else 0)
    known = np.arange(16).reshape(4, 4) % 4 > 0
    filled = model.fill(pictures[0], known, draws=2, seed=0)
    assert (filled[:, known] == pictures[0][known]).all()


def test_a_misspelt_recipe_is_named() -> None:
    with pytest.raises(UserError, match="did you mean 'mac_cifar10'"):
        ImageOptions.read(None, preset="mac_cifar")
