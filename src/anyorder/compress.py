"""``compress(model, data)`` and ``decompress(model, bytes)``: texts by a model of texts, tables by one of a table."""

from __future__ import annotations

from typing import Any

from anyorder.compress_table import compress_table, decompress_table
from anyorder.compress_text import compress_text, decompress_text
from anyorder.errors import UserError
from anyorder.steps import Budget
from anyorder.tables import TableModel
from anyorder.text import TextModel


def compress(model: TextModel | TableModel, data: Any, *, calls: int | Budget | None = None) -> bytes:
    """A text, or the rows of a frame, in as few bytes as the model can.

    ``calls``: of texts, the network calls for each window; the fewer, the quicker and the longer.
    """
    if isinstance(model, TextModel):
        if not isinstance(data, str):
            raise UserError(f"a model of texts compresses a text, got {type(data).__name__}")
        return compress_text(model, data, calls=calls)
    if calls is not None:
        raise UserError("calls are for texts; a row is coded one cell after the other")
    return compress_table(model, data)


def decompress(model: TextModel | TableModel, data: bytes) -> Any:
    """What :func:`compress` compressed with this model."""
    return decompress_text(model, data) if isinstance(model, TextModel) else decompress_table(model, data)
