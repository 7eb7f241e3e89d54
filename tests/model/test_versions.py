"""Versions of the model file: variables that are alike are there once, and version 1 says the same at length."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

from anyorder.errors import UserError
from anyorder.modalities.images.core import image_model
from anyorder.model import AnyOrderModel
from anyorder.model.checkpoint import load_model, save_model, write_tensors
from anyorder.model.likelihood import log_probs
from anyorder.model.sampling import draws
from anyorder.model.versions import as_version_1, as_version_2
from anyorder.protocols import Random
from anyorder.query import Query
from anyorder.tasks.compression.coder import fingerprint

SAVED = sorted((Path(__file__).resolve().parents[1] / "files" / "v1").glob("*.anyorder"))
TINY = {"name": "unet", "channels": 8, "blocks": 1, "levels": 1}


def metadata(path: Path) -> dict[str, str]:
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata())


def save_as_version_1(model: AnyOrderModel, path: Path) -> None:
    header = {"kind": "model", "description": as_version_1(model.description()), "card": {}}
    write_tensors(path, model.state_dict(), header, version=1)


@pytest.mark.parametrize(("head", "levels"), [("mixture", 256), ("categorical", 256), ("bernoulli", 2)])
def test_the_header_of_many_pixels_is_short(tmp_path: Path, head: str, levels: int) -> None:
    model = image_model((32, 32, 3), levels, TINY, Random(), head=head, components=5, seed=0)
    save_model(model, {"modality": "images"}, tmp_path / "m.anyorder")
    found = metadata(tmp_path / "m.anyorder")
    assert found["version"] == "2"
    assert len(found["header"]) < 50_000
    assert len(json.dumps(as_version_1(model.description()))) > 300_000  # what version 1 would have written


@pytest.mark.parametrize("head", ["mixture", "categorical"])
def test_both_versions_answer_bit_for_bit(tmp_path: Path, head: str) -> None:
    model = image_model((4, 4, 3), 256, TINY, Random(), head=head, components=2, seed=0).eval()
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    save_model(model, {}, tmp_path / "two.anyorder")
    save_as_version_1(model, tmp_path / "one.anyorder")
    assert metadata(tmp_path / "one.anyorder")["version"] == "1"
    values = torch.linspace(-1, 1, 48).repeat(2, 1) if head == "mixture" else torch.arange(48.0).repeat(2, 1)
    known = torch.arange(48).repeat(2, 1) % 2 == 0
    query = Query(known, ~known)
    answers = []
    for read in (model, *(load_model(tmp_path / f"{name}.anyorder")[0] for name in ("one", "two"))):
        answers.append((log_probs(read, values, query, orders=2), draws(read, values, query, seed=3)))
    for nats, drawn in answers[1:]:
        np.testing.assert_array_equal(nats, answers[0][0])
        np.testing.assert_array_equal(drawn, answers[0][1])


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_what_version_1_said_comes_back_to_the_letter(path: Path) -> None:
    header: dict[str, Any] = json.loads(metadata(path)["header"])
    model, card = load_model(path)
    assert card["modality"] == path.stem.split("_")[0].replace("pictures", "images")
    described = json.loads(json.dumps(model.description()))
    said, now = header["description"], as_version_1(described)
    # Trees were a text and are arrays now, and pictures entered a U-Net another way.
    if "lengths" in json.dumps(said["network"]) or said["network"]["name"] == "unet":
        assert said.pop("network") != now.pop("network")
        assert now.pop("former_digest")
    assert now == said
    assert AnyOrderModel.from_description(described).description() == model.description()
    if model.schema.alike:
        assert len(json.dumps(described)) < len(json.dumps(header["description"])) / 5


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_a_fingerprint_is_what_it_was_in_version_1(path: Path, tmp_path: Path) -> None:
    model, _ = load_model(path)
    described = json.loads(metadata(path)["header"])["description"]
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    with safe_open(path, framework="pt") as file:
        for name in sorted(file.keys()):
            digest.update(name.encode() + file.get_tensor(name).numpy().tobytes())
    assert fingerprint(model) == digest.digest()[:8]
    save_model(model, {}, tmp_path / "again.anyorder")
    assert fingerprint(load_model(tmp_path / "again.anyorder")[0]) == digest.digest()[:8]


def test_a_former_digest_that_is_none_is_refused() -> None:
    described = load_model(SAVED[-1])[0].description()
    for odd in ("", "x" * 64, 7):
        with pytest.raises(UserError, match="former_digest"):
            AnyOrderModel.from_description({**described, "former_digest": odd})


def test_the_page_about_the_format_describes_a_model() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "file_format.md").read_text(encoding="utf-8")
    described = json.loads(page.split("```json")[1].split("```")[0])
    model = AnyOrderModel.from_description(described)
    assert model.variables == 250
    assert json.loads(json.dumps(model.description())) == described


def test_headers_of_other_files_stay_as_they_are() -> None:
    assert as_version_2({}, {"kind": "training", "heads": [1]}) == ({}, {"kind": "training", "heads": [1]})
