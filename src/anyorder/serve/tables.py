"""Tables in and out of a request: JSON, CSV, Parquet or an Arrow stream, by ``Content-Type`` and ``Accept``.

JSON is ``{"columns": [...], "rows": [[...], ...]}``, or a list of objects. A CSV is read as the command line reads one,
whatever its delimiter, encoding and dates; it is written in the dialect of the table that came in.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from fastapi import Request
from fastapi.responses import Response

from anyorder.data.delimited import read_delimited
from anyorder.data.dialect import Dialect
from anyorder.data.frames import as_pandas
from anyorder.data.said import Said
from anyorder.data.table_text import Source
from anyorder.data.written import as_written
from anyorder.errors import UserError
from anyorder.serve.errors import ServiceError, of_mistake
from anyorder.serve.settings import Limits
from anyorder.serve.unpacking import read_arrow, read_parquet
from anyorder.support.boundary import first_line
from anyorder.support.notes import note
from anyorder.support.plain import plain
from anyorder.variables.schema import Schema

JSON, CSV = "application/json", "text/csv"
PARQUET, ARROW = "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream"
TYPES = (JSON, CSV, PARQUET, ARROW)
LIKE_CSV = (CSV, "text/plain", "text/tab-separated-values", "application/csv")
MOST_COLUMNS = 10_000
MOST_BESIDE = 50  # lines of titles, names and footnotes beside the rows

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


@dataclass(frozen=True)
class Sent:
    """A body that is a table, and what its type says of it: ``text/csv; rows=all`` keeps every line as a row."""

    content: bytes
    kind: str
    said: Said = field(default_factory=Said)

    @property
    def key(self) -> tuple[Any, ...]:
        """What an answer to it depends on."""
        return self.content, self.kind, repr(self.said)


async def sent(request: Request) -> Sent:
    """The body of a request, which is a table."""
    header = Message()
    header["content-type"] = request.headers.get("content-type", JSON)
    kind = header.get_content_type() if "/" in header["content-type"] else header["content-type"].lower()
    said = Said()
    if kind in LIKE_CSV:
        kind, options = CSV, {name.lower(): value for name, value in header.get_params([])[1:]}
        names = {"present": None, "absent": "0"}.get(options.get("header", ""), options.get("header"))  # RFC 4180
        try:
            said = Said.of(options.get("delimiter"), header=names, rows=options.get("rows"))
        except UserError as error:
            raise of_mistake(error, "content-type") from None
    elif kind not in TYPES:
        raise ServiceError(415, f"a table is sent as one of {', '.join(TYPES)}, got {kind!r:.80}", where="content-type")
    return Sent(await request.body(), kind, said)


def accepted(request: Request) -> str:
    """The type that the client wants of a table: of those that there are, the one that it likes best or names first."""
    said = request.headers.get("accept", "") or "*/*"
    named = [(part.partition(";")[0].strip().lower(), _liking(part)) for part in said.split(",")]
    for wanted, _ in sorted((one for one in named if one[1] > 0), key=lambda one: -one[1]):
        if wanted in ("*/*", "application/*"):
            return JSON
        if wanted in LIKE_CSV or wanted == "text/*":
            return CSV
        if wanted in TYPES:
            return wanted
    raise ServiceError(406, f"a table is answered as one of {', '.join(TYPES)}, not as {said!r:.80}", where="accept")


def _liking(part: str) -> float:
    """How much a type is wanted, from 0 to 1: ``q`` of one part of an Accept header."""
    found = re.search(r";\s*q\s*=\s*([\d.]+)", part)
    try:
        return float(found[1]) if found else 1.0
    except ValueError:
        return 1.0


def read_table(body: Sent, marks: Iterable[str], limits: Limits) -> pd.DataFrame:
    """The table in a body."""
    if body.kind == CSV:
        table = _read_csv(body, tuple(marks), limits)
    elif body.kind == JSON:
        table = _read_json(body.content, limits)
    else:
        table = (read_parquet if body.kind == PARQUET else read_arrow)(body.content, limits, check_size)
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
    if columns > MOST_COLUMNS:
        raise ServiceError(
            413,
            f"{columns} columns are too many, {MOST_COLUMNS} are allowed",
            kind="columns_limit",
            where="body",
            limit=MOST_COLUMNS,
        )
    if rows * columns > limits.cells:
        raise ServiceError(
            413,
            f"{rows} rows of {columns} columns are too many cells, {limits.cells} are allowed; send them in parts",
            kind="cells_limit",
            where="body",
            limit=limits.cells,
        )


def _read_csv(body: Sent, marks: tuple[str, ...], limits: Limits) -> pd.DataFrame:
    _check_lines(body.content, limits)
    source = Source(partial(io.BytesIO, body.content), "the body", _way, len(body.content))
    # What was skipped, and other things found out: whoever sent it should know.
    return read_delimited(source, marks, body.said, partial(note, stacklevel=1))


def _way(saying: str) -> str:
    return f"'Content-Type: {CSV}; {saying}'"


def _check_lines(content: bytes, limits: Limits) -> None:
    """Refuse what has too many lines or fields before any of it is read, which takes long for a wide table.

    Within quotes there may be line ends and delimiters that are neither: such a text is counted once it is read.
    """
    if b'"' in content or b"'" in content:
        return
    lines = max(content.count(b"\n"), content.count(b"\r"))
    if lines > limits.rows + MOST_BESIDE:
        check_size(lines, 1, limits)
    widest = max((line.count(sign) for line in content.splitlines()[:MOST_BESIDE] for sign in b",;\t|"), default=0)
    check_size(0, widest + 1, limits)


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
    read = {name: _column(list(column)) for name, column in zip(columns, cells, strict=True)}
    return pd.DataFrame(read, index=range(len(rows)))


def _column(cells: list[Any]) -> Any:
    """A column as pandas would have read it: null is unknown among numbers too."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {int, float} and (float in kinds or None in cells):
        return np.array([np.nan if cell is None else float(cell) for cell in cells])
    return pd.Series(cells, dtype=None if len(kinds) == 1 and None not in cells else object)


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
