"""Fits in threads give the models that they give one after the other, and leave the caller's random state alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

import anyorder as ao

TRAINING = {
    "minutes": None,
    "steps": 12,
    "batch": 16,
    "validate_every": 4,
    "validation_queries": 16,
    "threads": 1,
}
MLP = {"name": "residual_mlp", "width": 24, "blocks": 1, "dropout": 0.3}
TREES = {"members": 1, "rounds": 3, "leaves": 3, "bins": 4, "shown": 400}


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    first = rng.normal(size=80)
    return pd.DataFrame({"a": first, "b": 2 * first + rng.normal(size=80), "c": rng.choice(list("xyz"), 80)})


def neural(seed: int) -> Any:
    return ao.fit(table(), engine="neural", seed=seed, config={"training": TRAINING, "network": MLP})


def both_engines(seed: int) -> Any:
    config = {"training": TRAINING, "network": MLP, "trees": TREES}
    return ao.fit(table(), engine="auto", seed=seed, config=config)


def energy(seed: int) -> Any:
    config = {"training": TRAINING, "network": MLP, "heads": {"continuous": {"name": "energy"}}}
    return ao.fit(table(), engine="neural", seed=seed, config=config)


def text(seed: int) -> Any:
    network = {"name": "causal_transformer", "width": 16, "blocks": 2, "heads": 2, "dropout": 0.2}
    corpus = "the quick brown fox jumps over the lazy dog. " * 12
    return ao.fit_text(corpus, length=12, seed=seed, config={"training": TRAINING, "network": network})


def pictures(seed: int) -> Any:
    network = {"name": "unet", "channels": 8, "blocks": 1, "levels": 1, "dropout": 0.2}
    pictures = np.random.default_rng(0).integers(0, 2, (40, 5, 5)).astype(np.uint8)
    return ao.fit_images(pictures, seed=seed, config={"training": TRAINING, "network": network})


QUESTIONS: dict[Callable[[int], Any], Callable[[Any], object]] = {
    neural: lambda model: (model.given({"a": 1.0}).sample(5, seed=1), model.log_prob(table().head(3))),
    both_engines: lambda model: (model.sample(5, seed=1), model.log_prob(table().head(3))),
    energy: lambda model: (model.sample(3, seed=1), model.log_prob(table().head(3))),
    text: lambda model: (model.fill("the ____k", seed=1), model.log_prob(["the fox"])),
    pictures: lambda model: (model.sample(2, steps=3, seed=1), model.log_prob(np.zeros((1, 5, 5), dtype=np.uint8))),
}


@contextmanager
def random_state_unchanged() -> Iterator[None]:
    before = torch.get_rng_state(), np.random.get_state(legacy=False), random.getstate()  # noqa: NPY002 (the caller's)
    yield
    assert torch.equal(torch.get_rng_state(), before[0])
    now = np.random.get_state(legacy=False)  # noqa: NPY002 (the caller's)
    assert isinstance(now, dict) and isinstance(before[1], dict)
    assert now["state"]["pos"] == before[1]["state"]["pos"]
    assert np.array_equal(now["state"]["key"], before[1]["state"]["key"])
    assert random.getstate() == before[2]


def weights(model: Any) -> dict[str, Tensor]:
    return dict(model.core.state_dict())


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("fit", [neural, both_engines, text, pictures])
def test_four_fits_side_by_side_are_those_one_after_the_other(fit: Callable[[int], Any]) -> None:
    seeds = (0, 1, 1, 2)
    alone = {seed: weights(fit(seed)) for seed in set(seeds)}
    assert not same(alone[0], alone[1])
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fit, seeds))
    for seed, model in zip(seeds, together, strict=True):
        assert same(weights(model), alone[seed]), f"seed {seed} gave another model beside others"


@pytest.mark.parametrize("fit", QUESTIONS)
def test_the_callers_random_state_is_left_alone_and_not_read(fit: Callable[[int], Any]) -> None:
    with random_state_unchanged():
        model = fit(0)
        QUESTIONS[fit](model)
    torch.rand(3)
    np.random.random(3)  # noqa: NPY002 (the caller's)
    assert same(weights(fit(0)), weights(model))
