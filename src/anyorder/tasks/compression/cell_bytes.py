"""Cells of a column as bytes and back, type by type and bit by bit; what cannot come back as it was is refused.

Columns with a dtype of their own go through Arrow, which knows categories, time zones and nullable numbers. Columns of
Python objects are written as JSON, each value with its type: 1, 1.0, True and "1" are four different cells.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import io
import json
import math
import struct
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int

from anyorder.errors import UserError
from anyorder.support.strict_json import read_json
from anyorder.variables.cells import Series


def distinct_cells(series: Series, name: str) -> Int[np.ndarray, " rows"]:
    """A number for every cell: equal for equal ones alone, to the type and the bit (0.0 and -0.0 differ)."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "f":
        values = series.to_numpy()
        return (
            pd.factorize(values.view(f"i{values.dtype.itemsize}"))[0] if values.dtype.itemsize <= 8 else _slow(series)
        )
    if series.dtype == object:
        return _slow(series)
    try:
        return pd.factorize(series, use_na_sentinel=False)[0]
    except TypeError as error:
        raise UserError(
            f"column {name!r} holds values that cannot be compared: {error}; turn them into texts"
        ) from error


def _slow(series: Series) -> Int[np.ndarray, " rows"]:
    return pd.factorize(np.array([f"{type(cell).__name__} {cell!r}" for cell in series], dtype=object))[0]


def write_cells(cells: Series, name: str) -> bytes:
    """The cells with their dtype; refused by name if they would not come back the same."""
    try:
        data = _objects(cells) if cells.dtype == object else _arrow(cells)
        back = read_cells(data, len(cells))
        same = back.dtype == cells.dtype and all(map(_same, back, cells))
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"column {name!r} cannot be written: {error}; turn its cells into texts or numbers") from error
    if not same:
        raise UserError(f"column {name!r} ({cells.dtype}) would not come back as it is; turn its cells into texts")
    return data


def read_cells(data: bytes, most: int) -> Series:
    """What :func:`write_cells` wrote, which are so many cells at ``most``."""
    if data[:1] == b"[":
        items = read_json(data)
        found = len(items)
    else:
        _refuse_packed(data)
        table = _pyarrow().ipc.open_stream(data).read_all()
        table.validate(full=True)  # positions in it that lead outside would be followed
        found = table.num_rows
    if found > most:
        raise UserError(f"a dictionary has {found} cells, and the table {most} rows")
    if data[:1] == b"[":
        return pd.Series([_from_plain(item) for item in items], dtype=object)
    cells: Series = table.to_pandas()["cells"]
    return cells


def _refuse_packed(data: bytes) -> None:
    """Refuse batches with compressed buffers, which Arrow would unpack to any size; :func:`write_cells` makes none."""
    messages = _pyarrow().ipc.MessageReader.open_stream(data)
    with contextlib.suppress(StopIteration):
        while True:
            message = messages.read_next_message()
            words = message.metadata.to_pybytes()
            (root,) = struct.unpack_from("<I", words)
            batch = _inner(words, root, 2)  # Message.header
            if message.type == "dictionary":
                batch = _inner(words, batch, 1)  # DictionaryBatch.data
            if message.type != "schema" and _offset(words, batch, 3):  # RecordBatch.compression
                raise UserError("a dictionary of cells is packed, which anyorder never does")


def _inner(words: bytes, table: int, field: int) -> int:
    """Where a table inside a table of a FlatBuffer begins."""
    at = table + _offset(words, table, field)
    return at + int(struct.unpack_from("<I", words, at)[0])


def _offset(words: bytes, table: int, field: int) -> int:
    """Where a field lies within a table of a FlatBuffer; 0 where it has none."""
    fields = table - int(struct.unpack_from("<i", words, table)[0])
    (size,) = struct.unpack_from("<H", words, fields)
    return int(struct.unpack_from("<H", words, fields + 4 + 2 * field)[0]) if size > 4 + 2 * field else 0


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, float) and isinstance(other, float):
        return (one == other and math.copysign(1, one) == math.copysign(1, other)) or (one != one and other != other)
    return repr(one) == repr(other)


def _objects(cells: Series) -> bytes:
    return json.dumps([_plain(cell) for cell in cells]).encode()


def _plain(cell: Any) -> list[Any]:
    """A type and a value that JSON keeps."""
    if cell is None or isinstance(cell, bool | str):
        return ["plain", cell]
    if cell is pd.NA or cell is pd.NaT:
        return ["missing", "NA" if cell is pd.NA else "NaT"]
    if type(cell) is int:
        return ["int", str(cell)]
    if type(cell) is float:
        return ["float", cell.hex()]
    if type(cell) is decimal.Decimal:
        return ["decimal", str(cell)]
    if type(cell) is pd.Timestamp:
        return ["Timestamp", [str(cell.value), cell.unit, None if cell.tz is None else str(cell.tz)]]
    for kind in (datetime.datetime, datetime.date, datetime.time):
        if type(cell) is kind:
            return [kind.__name__, cell.isoformat()]
    raise UserError(f"a value of the type {type(cell).__name__} cannot be compressed; turn it into a text or a number")


def _from_plain(item: list[Any]) -> Any:
    kind, value = item
    read: dict[str, Any] = {
        "plain": lambda given: given,
        "missing": lambda given: pd.NA if given == "NA" else pd.NaT,
        "int": int,
        "float": float.fromhex,
        "decimal": decimal.Decimal,
        "Timestamp": lambda given: pd.Timestamp(int(given[0]), tz=given[2]).as_unit(given[1]),
        "datetime": datetime.datetime.fromisoformat,
        "date": datetime.date.fromisoformat,
        "time": datetime.time.fromisoformat,
    }
    return read[kind](value)


def _arrow(cells: Series) -> bytes:
    arrow = _pyarrow()
    table = arrow.Table.from_pandas(pd.DataFrame({"cells": cells}), preserve_index=False)
    sink = io.BytesIO()
    with arrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise UserError("compressing tables needs pyarrow: pip install anyorder[compress]") from error
    return pyarrow
