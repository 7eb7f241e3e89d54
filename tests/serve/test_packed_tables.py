"""Small bodies that are large inside are refused before they are unpacked; each would be a table otherwise."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anyorder.serve.settings import Limits

from asking import Asking, asked

CSV, PARQUET, ARROW = "text/csv", "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream"
SCORE = "/v1/models/table/score"
LIMITS = Limits(body=4000, rows=20, cells=200_000)
LONG = "x" * 1500


@pytest.fixture(scope="module")
def small(models: dict[str, Any]) -> Iterator[Asking]:
    with asked({"table": models["table"]}, limits=LIMITS, remembered=0) as asking:
        yield asking


def parquet(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, store_schema=False, **{"write_statistics": False, "compression": "zstd"} | options)
    return buffer.getvalue()


def arrow(table: pa.Table, compression: str | None = None) -> bytes:
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as stream:
        stream.write_table(table)
    return buffer.getvalue()


def repeated(kind: Any) -> pa.Table:
    """One long text in all rows, which stands there once."""
    return pa.table({"note": pa.array([LONG] * 10, kind)})


BOMBS: list[tuple[str, str, Callable[[], bytes], int, str]] = [
    ("a text that all rows share", PARQUET, lambda: parquet(repeated(pa.string())), 413, "body_limit"),
    (
        "beginnings that texts share",
        PARQUET,
        lambda: parquet(
            pa.table({"note": [LONG + str(row) for row in range(10)]}),
            use_dictionary=False,
            column_encoding={"note": "DELTA_BYTE_ARRAY"},
        ),
        413,
        "body_limit",
    ),
    ("pages that unpack", PARQUET, lambda: parquet(pa.table({"note": ["x" * 20_000]})), 413, "body_limit"),
    ("a list in a cell", PARQUET, lambda: parquet(pa.table({"count": [[1] * 100]})), 422, "invalid_request"),
    ("bytes in a cell", PARQUET, lambda: parquet(pa.table({"count": [b"x"]})), 422, "invalid_request"),
    (
        "a dictionary",
        ARROW,
        lambda: arrow(repeated(pa.dictionary(pa.int8(), pa.string()))),
        413,
        "body_limit",
    ),
    ("views of one text", ARROW, lambda: arrow(repeated(pa.string_view())), 413, "body_limit"),
    (
        "compressed buffers",
        ARROW,
        lambda: arrow(pa.table({"note": ["x" * 100_000]}), "zstd"),
        415,
        "unsupported_media_type",
    ),
    (
        "a compressed dictionary",
        ARROW,
        lambda: arrow(
            pa.table({"note": pa.array(["x" * 100_000], pa.dictionary(pa.int8(), pa.string()))}),
            "lz4",
        ),
        415,
        "unsupported_media_type",
    ),
    (
        "a list of nothing",
        ARROW,
        lambda: arrow(pa.table({"count": pa.array([[None] * 100_000], pa.list_(pa.null()))})),
        422,
        "invalid_request",
    ),
    (
        "a time of no year",
        ARROW,
        lambda: arrow(pa.table({"day": pa.array([1 << 62], pa.timestamp("s"))})),
        422,
        "invalid_request",
    ),
    ("a wide CSV", CSV, lambda: b"," * 1_000_000, 413, "body_limit"),
    ("lines", CSV, lambda: b"count\n" + b"1\n" * 1000, 413, "rows_limit"),
]


@pytest.mark.parametrize(("type_", "body", "status", "kind"), [one[1:] for one in BOMBS], ids=[one[0] for one in BOMBS])
def test_what_is_large_inside_is_refused(
    type_: str, body: Callable[[], bytes], status: int, kind: str, small: Asking
) -> None:
    answer = small.post(SCORE, content=body(), headers={"content-type": type_})
    assert (answer.status_code, answer.json()["error"]["kind"]) == (status, kind), answer.text


@pytest.mark.parametrize("type_", [PARQUET, ARROW])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_what_is_small_inside_is_taken(type_: str, kind: Any, small: Asking) -> None:
    table = pa.table({"kind": pa.array(["ash", None, "ash"], kind), "count": [20, 21, 22]})
    body = parquet(table) if type_ == PARQUET else arrow(table)
    answer = small.post(SCORE, content=body, headers={"content-type": type_})
    assert answer.status_code == 200, answer.text
    plain = {"columns": ["kind", "count"], "rows": [["ash", 20], [None, 21], ["ash", 22]]}
    assert answer.json() == small.post(SCORE, plain).json()


def test_too_many_columns_are_counted_before_they_are_read(service: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyorder.serve.tables.read_delimited", lambda *_: pytest.fail("it was read"))
    body = ",".join(f"c{number}" for number in range(20_000)) + "\n" + ",".join(["1"] * 20_000)
    found = service.post(SCORE, content=body, headers={"content-type": CSV}).json()["error"]
    assert found["kind"] == "columns_limit" and found["limit"] == 10_000
