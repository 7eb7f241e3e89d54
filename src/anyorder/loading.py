"""Reading a model file of any modality."""

from __future__ import annotations

from pathlib import Path

from anyorder.checkpoint import load_model
from anyorder.tables import TableModel
from anyorder.text import TextModel


def load(path: str | Path, device: str = "cpu") -> TableModel | TextModel:
    """Read a model file, of a table or of texts; answers are bit-identical to those before saving."""
    core, card = load_model(path, device=device)
    return TextModel(core, card) if card.get("modality") == "text" else TableModel(core, card)
