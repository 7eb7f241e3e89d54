"""Reading a model file: what this release does not know is refused by name."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import anyorder as ao
from anyorder.modalities.face import FittedModel
from anyorder.modalities.load import FACES
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


def test_every_face_is_found_by_its_modality() -> None:
    for modality, home in FACES.items():
        module, _, name = home.rpartition(".")
        face = getattr(importlib.import_module(f"anyorder.modalities.{module}"), name)
        assert face.modality == modality
    assert len(FACES) == len(FittedModel.__subclasses__())


def test_a_table_is_asked_without_lightgbm_and_what_other_modalities_need() -> None:
    trees = Path(__file__).parents[1] / "files" / "v1" / "table_trees.anyorder"
    said = (
        "import sys, anyorder as ao\n"
        f"model = ao.load({str(trees)!r})\n"
        "answer = model.given()[model.schema.names[0]]\n"
        "print(sum(answer.probs().values()) if answer.variable.levels else answer.median())\n"
        "print(*[name for name in ('lightgbm', 'scipy', 'sklearn', 'matplotlib', 'PIL', 'anyorder.modalities.images',"
        " 'anyorder.modalities.texts') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == ""


@pytest.mark.parametrize(("card", "named"), [({"modality": "sounds"}, "'sounds'"), ({}, "None")])
def test_a_modality_of_another_release_is_named(tmp_path: Path, card: dict[str, str], named: str) -> None:
    path = tmp_path / "song.anyorder"
    save_model(core(), card, path)
    with pytest.raises(ao.UserError, match=f"modality {named}, .* upgrade anyorder"):
        ao.load(path)
