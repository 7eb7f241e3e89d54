"""Rows in parts that fit into memory."""

from __future__ import annotations

from collections.abc import Iterator

from anyorder.model import AnyOrderModel
from anyorder.networks.base import rows_at_once


def row_chunks(model: AnyOrderModel, rows: int) -> Iterator[slice]:
    """Rows in parts that fit into memory; the parts do not change a result, only when random draws are taken."""
    size = min(rows_at_once(model.network.layout), 4096)
    return (slice(start, start + size) for start in range(0, rows, size))
