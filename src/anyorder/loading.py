"""Reading a model file of any modality."""

from __future__ import annotations

from pathlib import Path

from anyorder.checkpoint import load_model
from anyorder.images import ImageModel
from anyorder.tables import TableModel
from anyorder.text import TextModel


def load(path: str | Path, device: str = "cpu") -> TableModel | TextModel | ImageModel:
    """Read a model file, of a table, of texts or of pictures; answers are bit-identical to those before saving."""
    core, card = load_model(path, device=device)
    faces: dict[str, type[TableModel | TextModel | ImageModel]] = {"text": TextModel, "images": ImageModel}
    return faces.get(card.get("modality", ""), TableModel)(core, card)
