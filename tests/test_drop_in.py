"""A new component is one new file: dropped into its package, it is named in a config, trained, saved, loaded, asked."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import anyorder as ao
from anyorder.errors import UserError

TRAINING = {"minutes": None, "steps": 6, "batch": 16, "validate_every": 3, "validation_queries": 16, "threads": 1}

MASKING = '''
from dataclasses import dataclass
from typing import ClassVar

import torch

from anyorder.masking.base import Masking
from anyorder.query import Query


@dataclass(frozen=True)
class RestGivenFirst(Masking):
    """Asks for everything but the first ``count`` variables, given those."""

    name: ClassVar[str] = "rest_given_first"

    count: int = 1

    def draw(self, batch, variables, generator):
        known = (torch.arange(variables) < self.count).expand(batch, -1)
        return Query(known, ~known)
'''

PROTOCOL = '''
from dataclasses import dataclass
from typing import ClassVar

import torch

from anyorder.protocols.base import Protocol


@dataclass(frozen=True)
class Backwards(Protocol):
    """The last variable first."""

    name: ClassVar[str] = "backwards"

    def keys(self, mask, generator):
        return torch.arange(mask.shape[1], 0, -1, device=mask.device).expand_as(mask)
'''

HEAD = '''
from dataclasses import dataclass
from typing import ClassVar

from anyorder.heads.base import Head
from anyorder.heads.gaussian import GaussianDistribution


@dataclass(eq=False)
class FixedWidth(Head):
    """A Gaussian of which the network says where it is, and not how wide."""

    name: ClassVar[str] = "fixed_width"

    log_scale: float = 0.0

    @property
    def size(self):
        return 1

    def forward(self, features):
        location = features[..., 0]
        return GaussianDistribution(location, location.new_full(location.shape, self.log_scale))
'''

NETWORK = '''
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from anyorder.networks.base import MaskNetwork
from anyorder.networks.parts.dropout import Dropout


@dataclass(eq=False)
class OneLayer(MaskNetwork):
    """A hidden layer of plain torch: its first weights follow the seed without a word about it here."""

    name: ClassVar[str] = "one_layer"

    hidden: int = 8
    dropout: float = 0.1

    presets: ClassVar = {"small": {"hidden": 12}, "wide": {"hidden": 20}}

    def __post_init__(self):
        super().__post_init__()
        variables = self.layout.variables
        self.inner = nn.Sequential(nn.Linear(2 * variables, self.hidden), nn.Tanh(), Dropout(self.dropout))
        self.leave = nn.Linear(self.hidden, variables * self.layout.width)

    def beside(self, values, known, prefix=None):
        dtype = self.leave.weight.dtype
        inputs = torch.cat([values.where(known, 0.0).to(dtype), known.to(dtype)], dim=1)
        return self.leave(self.inner(inputs)).unflatten(1, (self.layout.variables, self.layout.width))
'''

OBJECTIVE = '''
from dataclasses import dataclass
from typing import ClassVar

import torch

from anyorder.training.objectives.base import Beside, Objective


@dataclass(frozen=True)
class ScatteredCells(Objective):
    """Cells at random given a random ``share`` of the others."""

    name: ClassVar[str] = "scattered_cells"

    share: float = 0.5

    def draw(self, model, values, observed, generator):
        known = (torch.rand(values.shape, generator=generator) < self.share) & observed
        return Beside((observed & ~known).to(values.dtype), known)
'''

Drop = Callable[[str, str], None]


@pytest.fixture
def drop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Drop]:
    """Puts one file into a package for as long as the test runs."""
    dropped = []

    def put(package: str, source: str) -> None:
        folder = tmp_path / package
        folder.mkdir()
        (folder / "dropped_in.py").write_text(source, encoding="utf-8")
        module = importlib.import_module(package)
        monkeypatch.setattr(module, "__path__", [*module.__path__, str(folder)])
        dropped.append(module)

    yield put
    for module in dropped:
        sys.modules.pop(f"{module.__name__}.dropped_in", None)
        vars(module).pop("dropped_in", None)
    gc.collect()  # a class is its base's subclass until it is really gone


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    first = rng.normal(size=60)
    return pd.DataFrame({"a": first, "b": 2 * first + rng.normal(size=60), "c": rng.choice(list("xyz"), 60)})


def fitted_table(**config: Any) -> ao.TableModel:
    return ao.fit(table(), engine="neural", config={"folds": 1, "training": TRAINING, **config})


def saved_and_loaded(model: Any, tmp_path: Path) -> Any:
    """The model from its file, once it has answered as the one that was saved."""
    model.save(tmp_path / "model.anyorder")
    again = ao.load(tmp_path / "model.anyorder")
    assert type(again) is type(model)
    assert again.core.description() == model.core.description()
    return again


def check_answers(model: ao.TableModel, again: ao.TableModel) -> None:
    np.testing.assert_array_equal(again.log_prob(table().head(5)), model.log_prob(table().head(5)))
    pd.testing.assert_frame_equal(again.sample(4, seed=1), model.sample(4, seed=1))
    assert np.isfinite(float(again.given(b=1.0)["a"].mean()))


def test_a_masking(drop: Drop, tmp_path: Path) -> None:
    drop("anyorder.masking", MASKING)
    model = fitted_table(masking={"name": "rest_given_first", "count": 2})
    check_answers(model, saved_and_loaded(model, tmp_path))
    with pytest.raises(UserError, match="did you mean 'count'"):
        fitted_table(masking={"name": "rest_given_first", "counts": 2})


def test_a_protocol(drop: Drop, tmp_path: Path) -> None:
    drop("anyorder.protocols", PROTOCOL)
    model = fitted_table(protocol={"name": "backwards"})
    again = saved_and_loaded(model, tmp_path)
    assert again.core.protocol.name == "backwards"
    check_answers(model, again)


def test_a_head(drop: Drop, tmp_path: Path) -> None:
    drop("anyorder.heads", HEAD)
    model = fitted_table(heads={"continuous": {"name": "fixed_width", "log_scale": -0.5}})
    again = saved_and_loaded(model, tmp_path)
    assert again.core.heads.of(0).name == "fixed_width"
    check_answers(model, again)


LEVEL_HEAD = '''
from dataclasses import dataclass
from typing import ClassVar

from anyorder.heads.base import Head
from anyorder.heads.categorical import CategoricalDistribution
from anyorder.variables.codecs import Space


@dataclass(eq=False)
class Sharper(Head):
    """Levels whose logits count twice."""

    name: ClassVar[str] = "sharper"
    space: ClassVar[Space] = Space.LEVELS

    levels: int = 2

    @property
    def size(self):
        return self.levels

    def forward(self, features):
        return CategoricalDistribution(2 * features)
'''


@pytest.mark.parametrize("shape", [(12, 4, 4), (12, 4, 4, 3)])
def test_a_head_of_pictures(shape: tuple[int, ...], drop: Drop, tmp_path: Path) -> None:
    drop("anyorder.heads", LEVEL_HEAD)
    pictures = np.random.default_rng(0).integers(0, 5, shape).astype(np.uint8)
    network = {"name": "unet", "channels": 8, "blocks": 1, "levels": 1}
    model = ao.fit_images(pictures, levels=5, config={"training": TRAINING, "network": network, "head": "sharper"})
    again = saved_and_loaded(model, tmp_path)
    assert again.core.heads.of(0).name == "sharper"
    np.testing.assert_array_equal(again.log_prob(pictures[:2]), model.log_prob(pictures[:2]))


def test_an_objective(drop: Drop, tmp_path: Path) -> None:
    drop("anyorder.training.objectives", OBJECTIVE)
    model = fitted_table(objective={"name": "scattered_cells", "share": 0.3})
    check_answers(model, saved_and_loaded(model, tmp_path))
    with pytest.raises(UserError, match="did you mean 'share'"):
        fitted_table(objective={"name": "scattered_cells", "shared": 0.3})


def test_a_network_of_a_table(drop: Drop, tmp_path: Path) -> None:
    drop("anyorder.networks", NETWORK)
    before = torch.get_rng_state()
    model = fitted_table(network={"name": "one_layer", "hidden": 10})
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)
    twin = fitted_table(network={"name": "one_layer", "hidden": 10})
    for name, tensor in model.core.state_dict().items():
        assert torch.equal(twin.core.state_dict()[name], tensor)
    check_answers(model, saved_and_loaded(model, tmp_path))


def test_a_network_of_a_text(drop: Drop, tmp_path: Path) -> None:
    drop("anyorder.networks", NETWORK)
    corpus = "the quick brown fox jumps over the lazy dog. " * 12
    config = {"training": TRAINING, "network": {"name": "one_layer"}}
    model = ao.fit_text(corpus, length=10, preset="wide", engine="neural", config=config)
    again = saved_and_loaded(model, tmp_path)
    assert again.core.network.hidden == 20
    np.testing.assert_array_equal(again.log_prob(["the fox"]), model.log_prob(["the fox"]))
    assert again.sample(2, length=6, seed=1) == model.sample(2, length=6, seed=1)
    with pytest.raises(UserError, match="did you mean 'wide'"):
        ao.fit_text(corpus, length=10, preset="wid", config={"training": TRAINING, "network": {"name": "one_layer"}})


def test_a_network_of_pictures(drop: Drop, tmp_path: Path) -> None:
    drop("anyorder.networks", NETWORK)
    pictures = np.random.default_rng(0).integers(0, 2, (40, 4, 4)).astype(np.uint8)
    model = ao.fit_images(pictures, config={"training": TRAINING, "network": {"name": "one_layer"}})
    again = saved_and_loaded(model, tmp_path)
    assert model.modes == ()
    np.testing.assert_array_equal(again.log_prob(pictures[:3]), model.log_prob(pictures[:3]))
    np.testing.assert_array_equal(again.sample(2, steps=4, seed=1), model.sample(2, steps=4, seed=1))


def test_without_the_file_the_name_is_unknown() -> None:
    with pytest.raises(UserError, match="unknown network 'one_layer'"):
        fitted_table(network={"name": "one_layer"})
