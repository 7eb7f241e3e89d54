"""Tables in and out of a request: JSON, CSV, Parquet or an Arrow stream, by ``Content-Type`` and ``Accept``.

JSON is ``{"columns": [...], "rows": [[...], ...]}``, or a list of objects. A CSV is read as the command line reads one,
whatever its delimiter, encoding and dates; it is written in the dialect of the table that came in.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from fastapi import Request
from fastapi.responses import Response

from anyorder.data.delimited import read_delimited
from anyorder.data.dialect import Dialect
from anyorder.data.frames import as_pandas
from anyorder.data.said import Said, way_to
from anyorder.data.table_text import Source
from anyorder.data.written import as_written
from anyorder.errors import UserError
from anyorder.serve.errors import ServiceError
from anyorder.serve.settings import Limits
from anyorder.support.boundary import first_line
from anyorder.support.plain import plain
from anyorder.variables.schema import Schema

JSON, CSV = "application/json", "text/csv"
PARQUET, ARROW = "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream"
TYPES = (JSON, CSV, PARQUET, ARROW)
LIKE_CSV = (CSV, "text/plain", "text/tab-separated-values", "application/csv")
MOST_COLUMNS = 10_000

ROWS = {"type": "array", "items": {"type": "array", "items": {"type": ["number", "string", "boolean", "null"]}}}
TABLE: dict[str, Any] = {
    "type": "object",
    "required": ["columns", "rows"],
    "properties": {"columns": {"type": "array", "items": {"type": "string"}}, "rows": ROWS},
}
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": {"oneOf": [TABLE, {"type": "array", "items": {"type": "object"}}]}},
            CSV: {"schema": {"type": "string"}},
            PARQUET: {"schema": {"type": "string", "format": "binary"}},
            ARROW: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
"""What the description of the service says of a body that is a table."""


def media_type(request: Request) -> str:
    """The type of the body."""
    said = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if said in LIKE_CSV:
        return CSV
    if said not in TYPES:
        raise ServiceError(415, f"a table is sent as one of {', '.join(TYPES)}, got {said!r:.80}", where="content-type")
    return said


def accepted(request: Request) -> str:
    """The type that the client wants of a table: the first that it names and that there is."""
    said = request.headers.get("accept", "") or "*/*"
    for part in said.split(","):
        wanted = part.partition(";")[0].strip().lower()
        if wanted in ("*/*", "application/*"):
            return JSON
        if wanted in LIKE_CSV or wanted == "text/*":
            return CSV
        if wanted in TYPES:
            return wanted
    raise ServiceError(406, f"a table is answered as one of {', '.join(TYPES)}, not as {said!r:.80}", where="accept")


def read_table(content: bytes, kind: str, marks: Iterable[str], limits: Limits) -> pd.DataFrame:
    """The table in a body."""
    read = {JSON: _read_json, PARQUET: _read_parquet, ARROW: _read_arrow}.get(kind)
    table = _read_csv(content, tuple(marks)) if read is None else read(content, limits)
    table = as_pandas(table)
    check_size(len(table), len(table.columns), limits)
    return table


def check_size(rows: int, columns: int, limits: Limits) -> None:
    """Refuse more rows, columns or cells than are allowed."""
    if rows > limits.rows:
        raise ServiceError(
            413,
            f"{rows} rows at once are too many, {limits.rows} are allowed; send them in parts",
            kind="rows_limit",
            where="body",
            limit=limits.rows,
        )
    if columns > MOST_COLUMNS or rows * columns > limits.cells:
        raise ServiceError(
            413,
            f"{rows} rows of {columns} columns are too many cells, {limits.cells} are allowed; send them in parts",
            kind="cells_limit",
            where="body",
            limit=limits.cells,
        )


def _read_csv(content: bytes, marks: tuple[str, ...]) -> pd.DataFrame:
    said = Said()
    source = Source(partial(io.BytesIO, content), "the body", way_to("the body", said), len(content))
    notices: list[str] = []
    return read_delimited(source, marks, said, notices.append)


def _read_json(content: bytes, limits: Limits) -> pd.DataFrame:
    try:
        said = json.loads(content)
        if b"\\ud" in content.lower():  # half of a pair, which is no letter: pandas and Arrow could not hold it
            json.dumps(said, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise ServiceError(422, f"the body is not JSON: {first_line(error)}", where="body") from None
    if isinstance(said, Mapping):
        columns, rows = said.get("columns"), said.get("rows")
        if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
            raise ServiceError(422, "a table needs 'columns', a list of names", where="columns")
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise ServiceError(422, "a table needs 'rows', a list of lists of cells", where="rows")
        for number, row in enumerate(rows):
            if len(row) != len(columns):
                raise ServiceError(
                    422,
                    f"row {number} has {len(row)} cells, but there are {len(columns)} columns",
                    where=f"rows.{number}",
                )
    elif isinstance(said, list) and all(isinstance(row, Mapping) for row in said):
        columns = list(dict.fromkeys(str(name) for row in said for name in row))
        check_size(len(said), len(columns), limits)
        rows = [[row.get(name) for name in columns] for row in said]
    else:
        raise ServiceError(422, "a table is {'columns': [...], 'rows': [[...]]} or a list of objects", where="body")
    check_size(len(rows), len(columns), limits)
    for number, row in enumerate(rows):
        for name, cell in zip(columns, row, strict=True):
            if cell is not None and not isinstance(cell, str | int | float):
                raise ServiceError(
                    422,
                    f"a cell is a number, a text, true, false or null, not {cell!r:.60}",
                    where=f"rows.{number}.{name}",
                )
            if isinstance(cell, int) and abs(cell) > 1 << 63:
                raise ServiceError(422, "a whole number must have 64 bits at most", where=f"rows.{number}.{name}")
    if len(set(columns)) < len(columns):
        raise ServiceError(422, "the names of columns must differ", where="columns")
    cells = zip(*rows, strict=True) if rows else ([] for _ in columns)
    return pd.DataFrame({name: _column(list(column)) for name, column in zip(columns, cells, strict=True)})


def _column(cells: list[Any]) -> Any:
    """A column as pandas would have read it: null is unknown among numbers too."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {int, float} and (float in kinds or None in cells):
        return np.array([np.nan if cell is None else float(cell) for cell in cells])
    return pd.Series(cells, dtype=None if len(kinds) == 1 and None not in cells else object)


def _read_parquet(content: bytes, limits: Limits) -> pd.DataFrame:
    try:
        import pyarrow.parquet as pq

        file = pq.ParquetFile(io.BytesIO(content))
        check_size(file.metadata.num_rows, file.metadata.num_columns, limits)
        table: pd.DataFrame = file.read().to_pandas()
        return table
    except ServiceError:
        raise
    except Exception as error:  # noqa: BLE001 (of a damaged file pyarrow raises nearly anything)
        raise ServiceError(422, f"the body is not Parquet: {first_line(error)}", where="body") from None


def _read_arrow(content: bytes, limits: Limits) -> pd.DataFrame:
    try:
        import pyarrow as pa

        parts, rows = [], 0
        with pa.ipc.open_stream(io.BytesIO(content)) as stream:
            for part in stream:
                rows += part.num_rows
                check_size(rows, part.num_columns, limits)
                part.validate(full=True)
                parts.append(part)
            table: pd.DataFrame = pa.Table.from_batches(parts, stream.schema).to_pandas()
            return table
    except ServiceError:
        raise
    except Exception as error:  # noqa: BLE001 (as above)
        raise ServiceError(422, f"the body is not an Arrow stream: {first_line(error)}", where="body") from None


def rows_of(frame: pd.DataFrame) -> dict[str, Any]:
    """A frame as JSON has it."""
    columns = []
    for _, column in frame.items():
        unknown = column.isna().to_numpy(dtype=bool)
        cells = column.astype(object).tolist()
        columns.append([None if gone else plain(cell) for gone, cell in zip(unknown, cells, strict=True)])
    rows = [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(len(frame))]
    return {"columns": [str(name) for name in frame.columns], "rows": rows}


def table_bytes(
    frame: pd.DataFrame, kind: str, *, like: pd.DataFrame | None = None, schema: Schema | None = None
) -> bytes:
    """A frame as CSV, Parquet or an Arrow stream; as CSV in the dialect of ``like``."""
    if kind == CSV:
        dialect = Dialect.of(frame if like is None else like)
        table = as_pandas(frame)
        if schema is not None:
            table = as_written(table, schema, like)
        table.attrs.clear()
        text: str = table.to_csv(lineterminator=dialect.newline, **dialect.csv_options(table))
        return (("\ufeff" if dialect.mark else "") + text).encode("utf-8")
    table = as_pandas(frame).reset_index(drop=True)
    table.attrs.clear()
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq

        arrow = pa.Table.from_pandas(table, preserve_index=False)
    except ImportError:
        raise UserError(
            "Parquet and Arrow need the package pyarrow on the service's side; ask for CSV or JSON"
        ) from None
    except pa.ArrowException as error:
        raise ServiceError(
            406, f"this table cannot be written as {kind}: {first_line(error)}", where="accept"
        ) from None
    buffer = io.BytesIO()
    if kind == PARQUET:
        pq.write_table(arrow, buffer)
    else:
        with pa.ipc.new_stream(buffer, arrow.schema) as stream:
            stream.write_table(arrow)
    return buffer.getvalue()


def binary(content: bytes, kind: str, notes: list[str]) -> Response:
    """An answer that is a table; notes stand in a header, since there is no other place for them."""
    headers = {"X-Anyorder-Notes": json.dumps(notes)} if notes else {}
    return Response(content, media_type=f"{kind}; charset=utf-8" if kind == CSV else kind, headers=headers)
