"""Reading a model file: what this release does not know is refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import anyorder as ao
from anyorder.model import AnyOrderModel
from anyorder.model.checkpoint import save_model

from models import gaussian_model


def core() -> AnyOrderModel:
    return gaussian_model(np.array([0.0, 1.0]), np.array([[1.0, 0.5], [0.5, 2.0]]))


def test_a_face_names_its_modality_whatever_its_card_says(tmp_path: Path) -> None:
    ao.TableModel(core(), {}).save(tmp_path / "plain.anyorder")
    again = ao.load(tmp_path / "plain.anyorder")
    assert type(again) is ao.TableModel
    assert again.card == {"modality": "table"}


@pytest.mark.parametrize(("card", "named"), [({"modality": "sounds"}, "'sounds'"), ({}, "None")])
def test_a_modality_of_another_release_is_named(tmp_path: Path, card: dict[str, str], named: str) -> None:
    path = tmp_path / "song.anyorder"
    save_model(core(), card, path)
    with pytest.raises(ao.UserError, match=f"modality {named}, .* upgrade anyorder"):
        ao.load(path)
