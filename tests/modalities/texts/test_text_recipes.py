"""The papers' recipes for text8: what they say, the size of their network, what wins over them, a step of each."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import anyorder as ao
from anyorder.data.text import Alphabet
from anyorder.errors import UserError
from anyorder.masking import Cardinality, Univariate, maskings
from anyorder.modalities.texts.core import text_model
from anyorder.modalities.texts.options import TextOptions
from anyorder.modalities.texts.recipes import RECIPES
from anyorder.networks import networks
from anyorder.networks.parts.attention import SIZES
from anyorder.protocols import Canonical, Random, protocols
from anyorder.training.objectives import Parallel, objective_for

RELEASED = 85_062_172  # parameters of the network in MAC's released code
DOCS = Path(__file__).parents[3] / "docs" / "texts.md"
LETTERS = " abcdefghijklmnopqrstuvwxyz"
TINY = {"name": "bidirectional_transformer", "width": 16, "blocks": 1, "heads": 2}
BRIEF = {"steps": 1, "batch": 2, "parts": 2, "validation_queries": 2}


@pytest.mark.parametrize("preset", RECIPES)
def test_a_recipe_is_what_appendix_d_and_table_1_of_mac_say(preset: str) -> None:
    options = TextOptions.read(None, preset=preset)
    network, training = options.described_network(), options.training
    assert network["name"] == "bidirectional_transformer"
    assert (network["blocks"], network["width"], network["heads"], network["dropout"]) == (12, 768, 12, 0.0)
    assert (training.batch, training.learning_rate, training.warmup, training.clip) == (512, 5e-4, 5000, 0.25)
    assert abs(training.steps * training.batch - 3000 * 90_000) < training.batch and training.minutes is None
    assert inspect.signature(ao.fit_text).parameters["length"].default == 250
    # The paper does not say these; MAC's released code does.
    assert (training.beta1, training.beta2, training.weight_decay) == (0.9, 0.99, 1e-3)
    assert (training.average, training.cool_down, training.early_stopping) == (0.0, 0.0, False)
    assert training.batch % training.parts == 0
    assert round(options.validation_share * 95_000_000) == 5_000_000
    assert options.engine == "neural" and options.preset == preset


def test_the_recipes_differ_in_their_order_and_masks_alone() -> None:
    mac, ardm = (TextOptions.read({"preset": name}) for name in ("mac_text8", "ardm_text8"))
    assert protocols.build(mac.protocol) == Canonical() and protocols.build(ardm.protocol) == Random()
    assert maskings.build(mac.masking) == Cardinality() and maskings.build(ardm.masking) == Univariate()
    assert mac.objective == {"name": "parallel", "reweight": True} and ardm.objective == {"name": "parallel"}
    assert (mac.network, mac.training, mac.engine) == (ardm.network, ardm.training, ardm.engine)


@pytest.mark.parametrize("preset", RECIPES)
def test_what_is_said_wins_over_a_recipe(preset: str) -> None:
    recipe = TextOptions.read(None, preset=preset)
    config = {"training": {"steps": 7, "parts": 4}, "network": {"name": "bidirectional_transformer", "blocks": 2}}
    said = TextOptions.read(config, preset=preset, minutes=3, engine="auto")
    assert (said.training.steps, said.training.parts, said.training.minutes, said.engine) == (7, 4, 3, "auto")
    assert (said.training.batch, said.training.clip, said.masking) == (512, 0.25, recipe.masking)
    assert (said.described_network()["blocks"], said.described_network()["width"]) == (2, 768)
    assert TextOptions.read(recipe.to_json()) == recipe  # a card repeats a run
    assert TextOptions.read(said.to_json()) == said


def test_mac_alone_is_a_size() -> None:
    size, usual = TextOptions.read(None, preset="mac"), TextOptions()
    assert size.described_network()["width"] == 768 and size.network == {"name": "causal_transformer"}
    assert (size.training, size.masking, size.engine) == (usual.training, usual.masking, usual.engine)
    with pytest.raises(UserError, match="did you mean 'mac_text8'"):
        TextOptions.read(None, preset="mac_tex8")


def test_known_sets_of_ardm_are_uniform_in_size_and_mac_prefers_an_ascending_order() -> None:
    model = text_model(Alphabet(tuple("ab"), "characters"), 6, TINY, Random(), seed=0)
    values = torch.zeros(6000, 6)
    counts = {}
    for preset in RECIPES:
        options = TextOptions.read(None, preset=preset)
        model.protocol = protocols.build(options.protocol)
        objective = objective_for(model, maskings.build(options.masking), **options.objective)
        assert isinstance(objective, Parallel)
        drawn = objective.draw(model, values, values == 0, torch.Generator().manual_seed(0))
        counts[preset] = drawn.known.sum(dim=1).bincount(minlength=6) / 6000
        torch.testing.assert_close(drawn.weight.sum(dim=1), torch.ones(6000))
    torch.testing.assert_close(counts["ardm_text8"], torch.full((6,), 1 / 6), rtol=0, atol=0.025)
    # D_CR: (1 + t) sum_T>t 1 / T, by hand for six characters.
    weight = torch.tensor([(1 + t) * sum(1 / size for size in range(t + 1, 7)) for t in range(6)])
    torch.testing.assert_close(counts["mac_text8"], weight / weight.sum(), rtol=0, atol=0.025)


def test_the_network_has_as_many_parameters_as_the_released_one_but_for_the_output_of_the_unknown() -> None:
    for preset in RECIPES:
        options = TextOptions.read(None, preset=preset)
        width = options.described_network()["width"]
        assert parameters_of(options.described_network()) == RELEASED - (width + 1) == 85_061_403
    text = DOCS.read_text(encoding="utf-8")
    assert f"{RELEASED:,}" in text and "85,061,403 parameters" in text and "769 parameters fewer" in text


@pytest.mark.parametrize("size", SIZES)
def test_the_sizes_are_as_stated(size: str) -> None:
    stated = re.search(rf"\| `{size}` .*\| ([\d,]+) \|", DOCS.read_text(encoding="utf-8"))
    assert stated is not None
    assert parameters_of(TextOptions.read(None, preset=size).described_network()) == int(stated[1].replace(",", ""))


def parameters_of(network: dict[str, Any]) -> int:
    """Counted without a place in memory for any of them."""
    small = text_model(Alphabet(tuple(LETTERS), "characters"), 250, TINY, Canonical(), seed=0)
    with torch.device("meta"):
        built = networks.build(network, layout=small.network.layout)
    return sum(parameter.numel() for parameter in built.parameters())


@pytest.mark.parametrize("preset", RECIPES)
def test_a_recipe_trains_a_small_network(preset: str) -> None:
    model = ao.fit_text(
        "to be or not to be " * 20, length=16, preset=preset, config={"network": TINY, "training": BRIEF}
    )
    assert model.card["training"]["steps"] == 1 and model.card["training"]["engine"] == "neural"
    assert model.card["config"]["preset"] == preset
    assert len(model.fill("to __ or no", seed=0).text) == 11


@pytest.mark.slow
@pytest.mark.parametrize("preset", RECIPES)
def test_a_recipe_takes_a_step_at_full_size(preset: str) -> None:
    corpus = LETTERS + "to be or not to be " * 10
    model = ao.fit_text(corpus, length=16, preset=preset, config={"training": BRIEF})
    assert model.card["training"]["parameters"] == 85_061_403
    assert model.card["training"]["steps"] == 1
