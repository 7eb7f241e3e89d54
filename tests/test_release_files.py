"""Model files of every release load, and answer as they did when they were saved."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import anyorder as ao
from anyorder.heads._mixture import draw
from anyorder.heads.binned import BinnedDistribution
from anyorder.model import AnyOrderModel, likelihood
from anyorder.protocols import Protocol
from anyorder.tasks.hidden_cells import has_order
from anyorder.variables.codecs import Codec, LatticeCodec, LevelCodec, LineCodec, SpikedCodec
from anyorder.variables.codecs.scores import Law

import release

FILES = Path(__file__).resolve().parent / "files"
SAVED = sorted(FILES.glob("v*/*.anyorder"))


def agree(answer: Any, then: Any, where: str) -> None:
    """Words and whole numbers to the letter, numbers up to what another processor's rounding may change."""
    if isinstance(then, dict):
        assert list(answer) == list(then), where
        for name in then:
            agree(answer[name], then[name], f"{where}/{name}")
    elif isinstance(then, list):
        assert len(answer) == len(then), where
        for index, (one, other) in enumerate(zip(answer, then, strict=True)):
            agree(one, other, f"{where}[{index}]")
    elif isinstance(then, float):
        same = (math.isnan(answer) and math.isnan(then)) or math.isclose(answer, then, rel_tol=1e-4, abs_tol=1e-4)
        assert same, f"{where}: {answer} now, {then} then"
    else:
        assert answer == then, f"{where}: {answer!r} now, {then!r} then"


def test_there_are_files_of_every_release() -> None:
    assert {path.stem for path in SAVED if path.parent.name == "v1"} == set(release.MODELS)


def test_they_are_small() -> None:
    for folder in {path.parent for path in SAVED}:
        assert sum(path.stat().st_size for path in folder.iterdir()) < 1_000_000


def ask_as_version_1(patched: pytest.MonkeyPatch) -> None:
    """Take back four choices that were made since: they change what is asked of a model, not what it knows.

    Answers about several columns were along one order, and are now the mean over an order and its opposite. A mean over
    several was over orders that came without their opposites. A histogram drew a bin and then a point in it, with two
    random numbers, and now draws a level of its cdf, with one. An odd cell was one far out on either side, now it is
    one that is less probable than most.
    """
    patched.setattr(likelihood, "ORDERS", 1)
    in_pairs = likelihood.order_protocols

    def without_opposites(model: AnyOrderModel, orders: int, seed: int = 0) -> list[Protocol]:
        return in_pairs(model, orders, seed) if model.schema.alike else in_pairs(model, 2 * orders - 1, seed)[::2]

    patched.setattr(likelihood, "order_protocols", without_opposites)

    def bin_and_share(self: BinnedDistribution, generator: torch.Generator | None = None) -> torch.Tensor:
        chosen = draw(self.logits, generator)
        share = torch.rand(self.shape, generator=generator, dtype=torch.float64, device=self.logits.device)
        found = torch.from_numpy(self.bins.below(chosen.numpy(), share.numpy()))
        return self._on_lattice(found).to(self.logits.dtype)

    patched.setattr(BinnedDistribution, "sample", bin_and_share)

    def two_sided(self: Codec, law: Law, values: torch.Tensor) -> np.ndarray:
        standing = self.standing(law, values)
        side = 2 * np.minimum(standing.below + standing.at, 1 - standing.below)
        return (side if has_order(self.variable) else 1 - standing.below).clip(0.0, 1.0)

    for family in (LineCodec, LatticeCodec, LevelCodec, SpikedCodec):
        patched.setattr(family, "rarity", two_sided)


@pytest.mark.parametrize("path", SAVED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_old_models_answer_as_they_did(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.parent.name == "v1":
        ask_as_version_1(monkeypatch)
    then = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    agree(release.MODELS[path.stem][1](ao.load(path)), then, path.stem)


@pytest.mark.parametrize("path", SAVED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_saved_again_they_answer_bit_for_bit(path: Path, tmp_path: Path) -> None:
    model, ask = ao.load(path), release.MODELS[path.stem][1]
    model.save(tmp_path / path.name)
    again = ao.load(tmp_path / path.name)
    assert type(again) is type(model)
    assert json.dumps(ask(again)) == json.dumps(ask(model))


def test_a_changed_answer_is_seen() -> None:
    with pytest.raises(AssertionError, match=r"2\.0 then"):
        agree({"mean": [1.0]}, {"mean": [2.0]}, "model")
