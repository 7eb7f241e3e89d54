"""Compressed files made on purpose, with right checksums: refused, and in the end."""

from __future__ import annotations

import contextlib
import dataclasses
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.data.dialect import Dialect
from anyorder.errors import UserError
from anyorder.tasks.compression import coder, tables
from anyorder.tasks.compression import texts as written_texts
from anyorder.tasks.compression.cell_bytes import read_cells
from anyorder.tasks.compression.coder import Sealed
from anyorder.tasks.compression.tables import MAGIC as TABLE
from anyorder.tasks.compression.texts import MAGIC as TEXT

FILES = Path(__file__).resolve().parents[2] / "files" / "v1"


@pytest.fixture(scope="module")
def texts() -> Any:
    return ao.load(FILES / "text.anyorder")


@pytest.fixture(scope="module")
def rows() -> Any:
    return ao.load(FILES / "table_neural.anyorder")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return pd.DataFrame({"size": [0.5, 0.25, None, 0.5], "kind": ["ash", "cedar", "ash", 3], "other": [1, 2, 3, 4]})


def crafted(magic: bytes, model: Any, packed: bytes, change: Callable[[Sealed], Sealed]) -> bytes:
    return change(Sealed.read(magic, model.core, packed)).written(magic, model.core)


def with_facts(**facts: Any) -> Callable[[Sealed], Sealed]:
    return lambda sealed: dataclasses.replace(sealed, facts={**sealed.facts, **facts})


@pytest.mark.parametrize(
    "facts, problem",
    [
        ({"count": 10**12}, "count: 1000000000000 are declared"),
        ({"count": 50_000}, "more is declared than its bytes hold"),
        ({"count": -1}, "count must be a whole number"),
        ({"count": "3"}, "count must be a whole number"),
        ({"count": 2.5}, "count must be a whole number"),
        ({"starts": [5, 3]}, "starts: "),
        ({"starts": "ab"}, "starts: "),
        ({"starts": [0, 10**9]}, "starts: "),
        ({"starts": 7}, "cannot be read"),
        ({"gaps": [10**6], "characters": "x"}, "cannot be read"),
        ({"gaps": [0, 1], "characters": "x"}, "cannot be read"),
        ({"gaps": {}, "characters": 3}, "cannot be read"),
    ],
)
def test_facts_of_a_text_are_checked(texts: Any, facts: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        texts.decompress(crafted(TEXT, texts, texts.compress("the quick brown fox"), with_facts(**facts)))


@pytest.mark.parametrize(
    "facts, problem",
    [
        ({"rows": 10**12}, "rows: 1000000000000 are declared"),
        ({"rows": 90_000}, "cannot be read"),
        ({"rows": 0}, "a dictionary has"),
        ({"rows": None}, "rows must be a whole number"),
        ({"columns": ["size", "size", "other"]}, "their names must differ"),
        ({"columns": ["size"]}, "cannot be read"),
        ({"columns": [["size"], "kind", "other"]}, "cannot be read"),
        ({"columns": 3}, "cannot be read"),
    ],
)
def test_facts_of_a_table_are_checked(rows: Any, frame: pd.DataFrame, facts: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        rows.decompress(crafted(TABLE, rows, rows.compress(frame), with_facts(**facts)))


@pytest.mark.parametrize("blob", range(9))
@pytest.mark.parametrize("content", [b"", b"[3]", b'[["Timestamp", 3]]', b"\xff\xff\xff\x7f" * 4])
def test_blobs_of_a_table_are_checked(rows: Any, frame: pd.DataFrame, blob: int, content: bytes) -> None:
    def change(sealed: Sealed) -> Sealed:
        blobs = [*sealed.blobs]
        blobs[blob] = content
        return dataclasses.replace(sealed, blobs=tuple(blobs))

    with contextlib.suppress(UserError):  # refused, and by no other error
        assert len(rows.decompress(crafted(TABLE, rows, rows.compress(frame), change))) == len(frame)


@pytest.mark.parametrize("dialect", [3, [], {"delimiter": ";;"}, {"encoding": "hex"}, {"more": 1}])
def test_a_dialect_that_is_none_is_refused(rows: Any, frame: pd.DataFrame, dialect: Any) -> None:
    packed = rows.compress(frame)

    def change(sealed: Sealed) -> Sealed:
        return dataclasses.replace(sealed, facts={**sealed.facts, "dialect": dialect})

    with pytest.raises(UserError, match="dialect"):
        rows.decompress(crafted(TABLE, rows, packed, change))


def test_the_dialect_comes_back(rows: Any, frame: pd.DataFrame) -> None:
    plain = rows.compress(frame)
    assert "dialect" not in Sealed.read(TABLE, rows.core, plain).facts
    assert not rows.decompress(plain).attrs
    said = Dialect(delimiter=";", encoding="cp1252", newline="\r\n")
    packed = rows.compress(said.put_on(frame.copy()))
    assert Dialect.of(rows.decompress(packed)) == said
    assert len(packed) < len(plain) + 100


def test_a_dictionary_of_nothing_a_billion_times_is_refused(rows: Any, frame: pd.DataFrame) -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"cells": arrow.nulls(10**9)})  # no bytes of its own, and eight a cell as a column
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    made = sink.getvalue().to_pybytes()
    with pytest.raises(UserError, match="a dictionary has 1000000000 cells"):
        rows.decompress(
            crafted(TABLE, rows, rows.compress(frame), lambda s: dataclasses.replace(s, blobs=(made, *s.blobs[1:])))
        )


@pytest.mark.parametrize("values", [["a"] * 4, pd.Categorical(["a", "b", "a", "b"]), [1.5, 2.5, 3.5, 4.5]])
def test_a_packed_dictionary_is_refused(values: Any) -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"cells": arrow.array(pd.Series(values))})
    for packed in (False, True):
        sink = arrow.BufferOutputStream()
        options = arrow.ipc.IpcWriteOptions(compression="zstd" if packed else None)
        with arrow.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        made = sink.getvalue().to_pybytes()
        if not packed:
            assert len(read_cells(made, 4)) == 4
            continue
        with pytest.raises(UserError, match="a dictionary of cells is packed"):
            read_cells(made, 4)


def test_what_unpacks_to_far_too_much_is_refused(texts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coder, "LEAST_UNPACKED", 1 << 16)
    packed = lzma.compress(bytes(1 << 20), lzma.FORMAT_ALONE, preset=0)
    with pytest.raises(UserError, match="become more than 65536"):
        coder._unpacked(packed)
    greedy = packed[:1] + b"\xff\xff\xff\xff" + packed[5:]  # a dictionary of 4 GB
    with pytest.raises(lzma.LZMAError, match=r"[Mm]emory"):
        coder._unpacked(greedy)
    with pytest.raises(UserError, match="damaged"):
        coder._unpacked(packed[:50])


def test_what_is_written_is_within_what_is_read(texts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coder, "FREE", 10)
    monkeypatch.setattr(coder, "PER_BYTE", 1)
    monkeypatch.setattr(coder, "LEAST_UNPACKED", 100)
    text = "the quick brown fox " * 20 + "ü" * 200  # the facts have the gaps between those that the alphabet lacks
    packed = texts.compress(text)
    assert len(Sealed.read(TEXT, texts.core, packed).stream) >= len(text) - 10
    assert texts.decompress(packed) == text


def test_cells_that_are_all_alike_come_back_too(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coder, "FREE", 10)
    monkeypatch.setattr(coder, "PER_BYTE", 1)
    frame = pd.DataFrame({"kind": ["ash"] * 300, "half": np.repeat([0.0, 0.5, 1.0], 100)})
    assert rows.decompress(rows.compress(frame)).equals(frame)


def test_what_earlier_releases_wrote_is_read_without_padding(
    texts: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coder, "FREE", 10)
    monkeypatch.setattr(coder, "PER_BYTE", 1)
    frame = pd.DataFrame({"kind": ["ash"] * 300})  # a single level: no bits at all
    text = "the quick brown fox " * 20
    for module, magics, model, content in (
        (tables, (b"AOR1", b"AOR2"), rows, frame),
        (written_texts, (b"AOT2", b"AOT3"), texts, text),
    ):
        packed = {}
        for magic in magics:
            with monkeypatch.context() as patch:
                patch.setattr(module, "padded", lambda words, _: words)
                patch.setattr(module, "MAGIC", magic)
                packed[magic] = model.compress(content)
        back = model.decompress(packed[magics[0]])
        assert back.equals(content) if isinstance(content, pd.DataFrame) else back == content
        with pytest.raises(UserError, match="at most"):
            model.decompress(packed[magics[1]])


def test_what_an_earlier_format_declares_is_limited_too(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = Sealed.read(TABLE, rows.core, rows.compress(pd.DataFrame({"kind": ["ash"] * 3})))
    for count, problem in ((10**12, "are declared"), (coder.FREE_FORMER, "of memory")):
        monkeypatch.setattr("anyorder.support.memory.machine_memory", lambda: 1 << 20)
        packed = dataclasses.replace(sealed, facts={**sealed.facts, "rows": count}).written(b"AOR1", rows.core)
        with pytest.raises(UserError, match=problem):
            rows.decompress(packed)


def test_another_format_is_named(texts: Any) -> None:
    with pytest.raises(UserError, match="of format b'7', and this release reads b'2' and b'3'"):
        texts.decompress(b"AOT7" + texts.compress("a fox")[4:])
