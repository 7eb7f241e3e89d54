"""Parquet files and Arrow streams, unpacked no further than the limits allow.

Both can hold in a few hundred bytes what fills gigabytes: pages that are compressed, one long text that a dictionary
repeats in every row, lists within a cell. So the schema is read first, and only flat columns are taken; the size that
pages and buffers have unpacked is known before they are; and rows are taken some at a time, while texts that are
repeated still stand there once, and counted as if each row had its own.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pandas as pd

from anyorder.serve.errors import ServiceError
from anyorder.serve.settings import Limits
from anyorder.support.boundary import first_line

ROWS = 4096  # that are unpacked at a time
UNPACKED = 4  # times the largest body: what all pages of a file may have unpacked
YEARS = (-62_135_596_800, 253_402_300_799)  # seconds from 1970 to the first and the last year that Python knows
SIZES = Callable[[int, int, Limits], None]  # refuses too many rows, or columns


def read_parquet(content: bytes, limits: Limits, check_size: SIZES) -> pd.DataFrame:
    """The table in a Parquet file."""
    return _read(_of_parquet, "Parquet", content, limits, check_size)


def read_arrow(content: bytes, limits: Limits, check_size: SIZES) -> pd.DataFrame:
    """The table in an Arrow stream."""
    return _read(_of_arrow, "an Arrow stream", content, limits, check_size)


def _read(how: Any, what: str, content: bytes, limits: Limits, check_size: SIZES) -> pd.DataFrame:
    try:
        schema, parts = how(content, limits, check_size)
        return _frame(schema, parts, limits, check_size)
    except ServiceError:
        raise
    except ImportError:
        message = f"{what} needs the package pyarrow on the service's side; send CSV or JSON"
        raise ServiceError(415, message, where="content-type") from None
    except Exception as error:  # noqa: BLE001 (of a damaged file pyarrow raises nearly anything)
        raise ServiceError(422, f"the body is not {what}: {first_line(error)}", where="body") from None


def _of_parquet(content: bytes, limits: Limits, check_size: SIZES) -> tuple[Any, Iterator[Any]]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(content))
    about, schema = file.metadata, file.schema_arrow
    check_size(about.num_rows, about.num_columns, limits)
    _check_flat(schema)
    chunks = [
        about.row_group(group).column(at) for group in range(about.num_row_groups) for at in range(about.num_columns)
    ]
    _check_bytes(sum(chunk.total_uncompressed_size for chunk in chunks), UNPACKED * limits.body)
    # Beginnings that texts share are written once in this encoding, so one row may be as long as all of the column.
    shared = [chunk for chunk in chunks if "DELTA_BYTE_ARRAY" in chunk.encodings]
    longest = sum(chunk.total_uncompressed_size for chunk in shared)
    rows = max(1, min(ROWS, UNPACKED * limits.body // longest)) if longest else ROWS
    # The others as dictionaries: what is repeated is unpacked once.
    apart = {chunk.path_in_schema for chunk in shared}
    texts = [field.name for field in schema if _is_text(field.type) and field.name not in apart]
    file = pq.ParquetFile(io.BytesIO(content), read_dictionary=texts)
    return schema, file.iter_batches(batch_size=rows, use_threads=False)


def _of_arrow(content: bytes, limits: Limits, check_size: SIZES) -> tuple[Any, Iterator[Any]]:
    import pyarrow as pa

    for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(content)):
        if _is_compressed(message.metadata.to_pybytes()):
            raise ServiceError(415, "an Arrow stream must be sent without compression", where="body")
    stream = pa.ipc.open_stream(pa.py_buffer(content))
    check_size(0, len(stream.schema), limits)
    _check_flat(stream.schema)
    return stream.schema, iter(stream)


def _frame(schema: Any, parts: Iterable[Any], limits: Limits, check_size: SIZES) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = texts = 0
    taken = []
    for part in parts:
        rows += part.num_rows
        check_size(rows, part.num_columns, limits)
        part.validate(full=True)
        texts += sum(_text_bytes(column) for column in part.columns)
        _check_bytes(texts, limits.body)
        columns = [
            column if column.type == field.type else pc.cast(column, field.type)
            for column, field in zip(part.columns, schema, strict=True)
        ]
        for column, field in zip(columns, schema, strict=True):
            if pa.types.is_timestamp(field.type):
                _check_years(column, field)
        taken.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    table: pd.DataFrame = pa.Table.from_batches(taken, schema).to_pandas()
    named = [name for name in table.index.names if name is not None]
    if named:  # what was an index of pandas is columns like any others; an even one is not even among them
        table = table.reset_index(named)
    return table.reset_index(drop=True)


def _check_flat(schema: Any) -> None:
    import pyarrow.types as kinds

    for field in schema:
        kind = field.type.value_type if kinds.is_dictionary(field.type) else field.type
        simple = kinds.is_primitive(kind) or kinds.is_decimal(kind) or kinds.is_null(kind) or _is_text(kind)
        if not simple:
            message = f"{field.name!r:.80} holds {str(field.type)[:80]}: a cell is a number, a text, a time or empty"
            raise ServiceError(422, message, where="body")


def _is_text(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _text_bytes(column: Any) -> int:
    """The bytes of all texts of a column, each as often as it is there."""
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    if kinds.is_dictionary(column.type):
        if not _is_text(column.type.value_type):
            return 0
        lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
    elif _is_text(column.type):
        lengths = pc.binary_length(column)
    else:
        return 0
    return pc.sum(pc.cast(lengths, "int64")).as_py() or 0


def _check_bytes(count: int, limit: int) -> None:
    if count > limit:
        message = f"unpacked, the table has more than {limit} bytes; send it in parts"
        raise ServiceError(413, message, kind="body_limit", where="body", limit=limit)


def _check_years(column: Any, field: Any) -> None:
    import pyarrow.compute as pc

    ends = pc.min_max(pc.cast(column, "int64")).as_py()
    second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[field.type.unit]
    if ends["min"] is not None and not (YEARS[0] * second <= ends["min"] <= ends["max"] <= YEARS[1] * second):
        raise ServiceError(422, f"{field.name!r:.80}: times must lie in the years 1 to 9999", where="body")


def _is_compressed(message: bytes) -> bool:
    """Whether the buffers of a message are compressed, by Arrow's own schema of messages (``Message.fbs``).

    pyarrow does not tell before it has unpacked them.
    """
    kind = _field(message, struct.unpack_from("<i", message)[0], 1)  # the root of all
    header = _table(message, struct.unpack_from("<i", message)[0], 2)
    which = message[kind] if kind else 0
    if which == 2:  # DictionaryBatch: the batch is its second field
        header = _table(message, header, 1)
    elif which != 3:  # RecordBatch
        return False
    return bool(header and _field(message, header, 3))


def _field(message: bytes, table: int, number: int) -> int:
    """Where a field of a flatbuffer's table stands; 0 if it is left out."""
    vtable = table - int(struct.unpack_from("<i", message, table)[0])
    size = struct.unpack_from("<H", message, vtable)[0]
    at = 4 + 2 * number
    offset = struct.unpack_from("<H", message, vtable + at)[0] if at < size else 0
    return table + int(offset) if offset else 0


def _table(message: bytes, table: int, number: int) -> int:
    """Where the table stands that a field leads to; 0 if it is left out."""
    at = _field(message, table, number)
    return at + int(struct.unpack_from("<i", message, at)[0]) if at else 0
