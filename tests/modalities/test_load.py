"""Reading a model file: what this release does not know is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

import anyorder as ao
from anyorder.model.checkpoint import save_model

from models import gaussian_model


def test_a_modality_of_another_release_is_named(tmp_path: Path) -> None:
    path = tmp_path / "song.anyorder"
    save_model(gaussian_model([0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]]), {"modality": "sounds"}, path)
    with pytest.raises(ao.UserError, match=r"modality 'sounds'.* upgrade anyorder"):
        ao.load(path)
