"""What can be done to a file: blind damage to its bytes, and content made on purpose.

Every kind of damage is a function of the whole file and of a generator, so that a seed and a number give the same
file again.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import math
import struct
import tomllib
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

from damage_blind import BLIND, flipped
from damage_bombs import gzip_bomb, xz_bomb, zeros, zip_bomb, zlib_bomb
from damage_sealed import CODED_FILES, TENSORS
from damage_values import FIELDS, Crafted, Generator, malformed_json, toml_text, words


def _json(change: Callable[[Any, Generator], None]) -> Crafted:
    def crafted(data: bytes, rng: Generator) -> bytes:
        value = json.loads(data)
        change(value, rng)
        return json.dumps(value, indent=2).encode("utf-8", "surrogatepass")

    return crafted


def _malformed_json(data: bytes, rng: Generator) -> bytes:
    return malformed_json(json.loads(data), rng).encode("utf-8", "surrogatepass")


def _lines(change: Callable[[Any, Generator], None]) -> Crafted:
    def crafted(data: bytes, rng: Generator) -> bytes:
        lines = [json.loads(line) for line in data.decode().splitlines()]
        change(lines, rng)
        return "".join(words(line) + "\n" for line in lines).encode("utf-8", "surrogatepass")

    return crafted


def _malformed_line(data: bytes, rng: Generator) -> bytes:
    lines = data.decode().splitlines()
    index = int(rng.integers(len(lines)))
    lines[index] = malformed_json(json.loads(lines[index]), rng)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _toml(change: Callable[[Any, Generator], None]) -> Crafted:
    def crafted(data: bytes, rng: Generator) -> bytes:
        value = tomllib.loads(data.decode())
        change(value, rng)
        return toml_text(value).encode("utf-8", "replace")

    return crafted


def _malformed_toml(data: bytes, rng: Generator) -> bytes:
    nested = int(rng.choice([500, 5000, 100_000]))
    choices = (
        b"x = " + b"[" * nested + b"]" * nested,
        b"x = " + b"{a = " * nested + b"1" + b"}" * nested,
        b".".join([b"a"] * nested) + b" = 1",
        data + b"seed = 1" + b"0" * 6000,
        data + b"\n[network]\nname = 'unet'\n",
        b"minutes = 0x" + b"f" * 400,
        b"steps = 1979-05-27T07:32:00Z",
        b"[training]\nminutes = 07:32:00",
        b"\xef\xbb\xbf" + data,
        data.replace(b"\n", b"\r"),
        b"\0" * 20,
        data.decode().encode("utf-16"),
    )
    return choices[int(rng.integers(len(choices)))]


def _png(data: bytes, rng: Generator) -> bytes:
    """Chunks with right checksums: other sizes, depths, palettes, twice or not at all."""
    chunks, at = [], 8
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += 12 + length
    change = rng.random()
    if change < 0.5:
        side = [0, 1, 3, 17, 5000, 20_000, 2**16, 2**31 - 1, 2**32 - 1]
        width, height = (int(rng.choice(side)) for _ in range(2))
        kind = bytes(int(rng.choice([0, 1, 2, 3, 4, 6, 8, 16, 255])) for _ in range(5))
        rest = chunks[0][1][8:] if rng.random() < 0.7 else kind
        chunks[0] = (chunks[0][0], struct.pack(">II", width, height) + rest)
    elif change < 0.6:
        chunks.insert(1, (b"zTXt", b"a\0\0" + zlib_bomb()))
    elif change < 0.7:
        chunks.insert(1, (b"iCCP", b"a\0\0" + zlib_bomb()))
    elif change < 0.8:
        chunks.insert(1, (b"eXIf", b"MM\0*" + rng.bytes(40)))
    elif change < 0.9:
        chunks.insert(1, (b"tRNS", rng.bytes(int(rng.choice([0, 1, 2, 6, 300])))))
    else:
        chunks = [chunks[int(index)] for index in rng.permutation(len(chunks))]
    return data[:8] + b"".join(_chunk(*chunk) for chunk in chunks)


def _large_png(_: bytes, rng: Generator) -> bytes:
    """Less than a megabyte that is a picture of a great many pixels, all of them black."""
    side = int(rng.choice([9_000, 13_000, 16_000]))
    kind = int(rng.choice([0, 2, 6]))
    size = side * (1 + side * {0: 1, 2: 3, 6: 4}[kind])
    content = b"\x78\xda" + zeros(size) + ((size % 65521) << 16 | 1).to_bytes(4, "big")
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", side, side, 8, kind, 0, 0, 0)), (b"IDAT", content), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(name: bytes, own: bytes) -> bytes:
    return struct.pack(">I", len(own)) + name + own + struct.pack(">I", zlib.crc32(name + own))


def _ppm(data: bytes, rng: Generator) -> bytes:
    side = ["0", "-1", "12", "60000", "2147483648", "1" * 30, "x"]
    kind = str(rng.choice(["P6", "P5", "P4", "P3", "P1", "Pf", "PF", "P7"]))
    return (
        f"{kind}\n{rng.choice(side)} {rng.choice(side)}\n{rng.choice([0, 1, 255, 65535, 99999])}\n".encode() + data[13:]
    )


def _picture_header(data: bytes, rng: Generator) -> bytes:
    """The first bytes, where sizes and offsets are, or the last ones, where TIFF keeps its tags."""
    out = bytearray(data)
    where = (
        rng.integers(0, min(64, len(out)), 3)
        if rng.random() < 0.5
        else rng.integers(max(0, len(out) - 150), len(out), 3)
    )
    for place in where:
        out[place] = int(rng.choice([0, 1, 2, 4, 127, 128, 254, 255]))
    return bytes(out)


def _npy(data: bytes, rng: Generator) -> bytes:
    shapes = [
        "()",
        "(0,)",
        "(12, 4, 4)",
        "(1000000, 1000000, 8)",
        "(-1, 4)",
        "(9223372036854775808,)",
        "(2, 2)",
        "12",
        "'x'",
    ]
    kinds = [
        "|u1",
        "<f8",
        "<f2",
        "|O",
        "<U4",
        "|S3",
        "<c8",
        "|b1",
        ">i8",
        "<M8[ns]",
        "<m8[s]",
        "|V4",
        "x",
        "<f16",
        "[('a', 'i4')]",
    ]
    kind = str(rng.choice(kinds))
    front = (
        f"{{'descr': {kind if kind[0] == '[' else repr(kind)}, "
        f"'fortran_order': {rng.choice(['False', 'True', '3'])}, 'shape': {rng.choice(shapes)}, }}"
    )
    if rng.random() < 0.2:
        front = str(rng.choice(["", "(" * 300 + ")" * 300, "__import__('os')", "{}", "{'descr': '<f8'}", "9" * 5000]))
    version = bytes([int(rng.choice([1, 1, 2, 3, 9])), 0])
    length = struct.pack("<H" if version[0] == 1 else "<I", len(front) + 1)
    return b"\x93NUMPY" + version + length + front.encode() + b"\n" + data[128:]


def _zip(data: bytes, rng: Generator) -> bytes:
    """Archives with right checksums that hold something else, nothing, much, or a secret."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        name = archive.namelist()[0]
        inside = archive.read(name)
    out = io.BytesIO()
    change = int(rng.integers(9))
    if change == 0:
        return zip_bomb(name)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:

        def put(name: str, content: bytes) -> None:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)  # of 1980: the same bytes every time

        if change == 1:
            put(name, BLIND[sorted(BLIND)[int(rng.integers(len(BLIND)))]](inside, inside, rng))
        elif change == 2:
            put(name, inside)
            put("second", inside)
        elif change == 3:
            put(name + "/", b"")
        elif change == 4:
            put(name, b"")
        elif change == 5:
            archive.writestr(zipfile.ZipInfo(name), inside, zipfile.ZIP_LZMA)
        elif change == 6:
            put("../" + name, inside)
        elif change == 7 and name.endswith(".npy"):
            put(name, _npy(inside, rng))
        else:
            put(name, inside)
    content = bytearray(out.getvalue())
    if change == 8:  # the bit that says "encrypted", or an unknown method, in both places
        at, what, value = (6, 8, 1) if rng.random() < 0.5 else (8, 10, int(rng.choice([1, 6, 9, 93, 97, 99])))
        content[at] = value
        content[content.rfind(b"PK\x01\x02") + what] = value
    return bytes(content)


def _gzip(data: bytes, rng: Generator) -> bytes:
    inside = gzip.decompress(data)
    if rng.random() < 0.15:
        return gzip_bomb()
    if rng.random() < 0.1:
        return gzip.compress(b"", mtime=0) if rng.random() < 0.5 else data + data
    if inside[:4] == b"\0\0\x08\x03" and rng.random() < 0.7:
        sides = [0, 1, 4, 12, 2**31, 2**32 - 1]
        axes = int(rng.choice([0, 1, 3, 4, 200, 255]))
        inside = (
            struct.pack(">HBB", 0, 8, axes)
            + struct.pack(">3I", *(int(rng.choice(sides)) for _ in range(3)))
            + inside[16:]
        )
        return gzip.compress(inside, mtime=0)
    change = _csv if inside[:2] != b"\0\0" else lambda own, own_rng: flipped(own, b"", own_rng)
    return gzip.compress(change(inside, rng), mtime=0)


def _xz(data: bytes, rng: Generator) -> bytes:
    inside = lzma.decompress(data)
    choices = (
        xz_bomb,
        lambda: lzma.compress(flipped(inside, b"", rng)),
        lambda: lzma.compress(b""),
        lambda: data + data,
        lambda: data + b"\0" * 3,
        lambda: lzma.compress(inside, lzma.FORMAT_ALONE),
        lambda: lzma.compress(inside, check=lzma.CHECK_NONE),
        lambda: lzma.compress(inside.decode().encode("utf-16")),
        lambda: b"\xfd7zXZ\0",
    )
    return choices[int(rng.integers(len(choices)))]()


def _csv(data: bytes, rng: Generator) -> bytes:
    """Tables that a program writes once in a lifetime: huge fields, many columns, quotes without end."""
    delimiter = b"\t" if b"\t" in data else b","
    lines = data.splitlines()
    cells = [line.split(delimiter) for line in lines]
    row, column = int(rng.integers(len(cells))), int(rng.integers(len(cells[0])))
    contents = [
        b"x" * 140_000, b'"' + b"y" * 200_000 + b'"', b'"', b'""""', b"1e999", b"-1e-999", b"9" * 400, b"0x1F", b"\0",
        b"\xff\xfe", b"\xed\xa0\x80", b"=cmd|'/c calc'!A1", b"9999-99-99", b"0001-01-01", b"1" * 5000, b"inf", b"nan",
        b"-0", b"1_000", b"True", "٣".encode(), b"\r", b"262144-01-01T00:00:00Z", b"$x_{$", b"\xe2\x80\xae",
    ]  # fmt: skip
    choices: tuple[Callable[[], bytes], ...] = (
        lambda: b"\n".join([delimiter.join([b"c%d" % i for i in range(500)]), delimiter.join([b"1"] * 500)] * 2),
        lambda: data + delimiter * 50_000,
        lambda: data.decode().encode("utf-16"),
        lambda: data.decode().encode("utf-16")[:-1],
        lambda: data.replace(b"\n", b"\r"),
        lambda: b"\n" * 10_000 + data,
        lambda: lines[0],
        lambda: lines[0] + b"\n" + b"\n".join([delimiter * (len(cells[0]) - 1)] * 30),
        lambda: data.replace(delimiter, bytes([int(rng.choice([0x3B, 0x7C, 0x20, 0x3A]))])),
        lambda: b"\n".join([lines[0], *lines[1:3] * 3000]),
    )
    if rng.random() < 0.35:
        return choices[int(rng.integers(len(choices)))]()
    for _ in range(int(rng.choice([1, 1, 3]))):
        cells[row][column] = contents[int(rng.integers(len(contents)))]
        row = int(rng.integers(len(cells)))
    if rng.random() < 0.3:
        content = cells[row][column]
        for line in cells[1:]:
            line[column] = content
    return b"\n".join(delimiter.join(line) for line in cells)


def _text(data: bytes, rng: Generator) -> bytes:
    choices = (
        b"",
        b"\0",
        b"\xef\xbb\xbf" + data,
        data.decode().encode("utf-16"),
        b"\xed\xa0\x80",
        b"\xff" * 9,
        b"a" * 10**6,
    )
    return choices[int(rng.integers(len(choices)))]


def _parquet(data: bytes, rng: Generator) -> bytes:
    """Other numbers in the footer, its length, and tables that pandas writes but a table is not."""
    import pandas as pd

    frames = (
        lambda: pd.DataFrame(),
        lambda: pd.DataFrame({"a": [[1], [2, 3], None, []]}),
        lambda: pd.DataFrame({"a": [{"x": 1}] * 4}),
        lambda: pd.DataFrame({"a": [b"\xff\0"] * 4, "b": range(4)}),
        lambda: pd.DataFrame({"a": [2**63] * 4}, dtype="uint64"),
        lambda: pd.DataFrame({"a": pd.array([1, None, 3, 4], "Int8"), "b": pd.timedelta_range("1s", periods=4)}),
        lambda: pd.DataFrame([[1, 2]] * 4, columns=pd.MultiIndex.from_tuples([("a", "b"), ("c", "d")])),
        lambda: pd.DataFrame({"a": ["x" * 200_000] * 4}),
        lambda: pd.DataFrame({f"c{i}": [1.0, math.inf, math.nan, -math.inf] for i in range(300)}),
        lambda: pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="i")),
        lambda: pd.DataFrame({"": [1, 2], " ": [3, 4]}),
    )
    if rng.random() < 0.4:
        out = io.BytesIO()
        frames[int(rng.integers(len(frames)))]().to_parquet(out)
        return out.getvalue()
    length = int.from_bytes(data[-8:-4], "little")
    content = bytearray(data)
    if rng.random() < 0.2:
        content[-8:-4] = int(rng.choice([0, 1, 2**31, 2**32 - 1, length - 1, length + 4])).to_bytes(4, "little")
    for place in rng.integers(len(data) - 8 - length, len(data) - 8, int(rng.integers(1, 4))):
        content[place] = int(rng.integers(256))
    return bytes(content)


def _cells_flipped(data: bytes, rng: Generator) -> bytes:
    """Bits at the end of a column: cells, which the checksum of their page covers, unlike its header."""
    import pyarrow.parquet

    group = pyarrow.parquet.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
    column = group.column(int(rng.integers(group.num_columns)))
    end = column.data_page_offset + column.total_compressed_size
    if column.has_dictionary_page:
        end = column.dictionary_page_offset + column.total_compressed_size
    start = end - min(16, (end - column.data_page_offset) // 4)
    return data[:start] + flipped(data[start:end], b"", rng) + data[end:]


CRAFTED: dict[str, dict[str, Crafted]] = {
    "tensors": TENSORS,
    "coded": CODED_FILES,
    "json": {**{name: _json(change) for name, change in FIELDS.items()}, "malformed JSON": _malformed_json},
    "lines": {**{name: _lines(change) for name, change in FIELDS.items()}, "malformed JSON": _malformed_line},
    "toml": {**{name: _toml(change) for name, change in FIELDS.items()}, "malformed TOML": _malformed_toml},
    "png": {"other chunks": _png, "large picture": _large_png, "other header": _picture_header},
    "ppm": {"other header": _ppm},
    "picture": {"other header": _picture_header},
    "npy": {"other header": _npy},
    "zip": {"other archive": _zip},
    "gzip": {"other content": _gzip},
    "xz": {"other content": _xz},
    "csv": {"other cells": _csv},
    "text": {"other text": _text},
    "parquet": {"other content": _parquet},
    "our parquet": {"cells flipped": _cells_flipped},
}
