"""Bombs: little to read, much to hold."""

from __future__ import annotations

import gzip
import io
import lzma
import zipfile
import zlib

MUCH = 3 << 29  # bytes: 1.6 GB
_BLOCK = 1 << 24


def zeros(size: int) -> bytes:
    """So many zeros, deflated: every block after a full flush has the same bytes, so that one is enough."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    squeeze.compress(bytes(_BLOCK))
    squeeze.flush(zlib.Z_FULL_FLUSH)
    block = squeeze.compress(bytes(_BLOCK)) + squeeze.flush(zlib.Z_FULL_FLUSH)
    return block * (size // _BLOCK) + squeeze.compress(bytes(size % _BLOCK)) + squeeze.flush()


def zlib_bomb() -> bytes:
    """What ``zlib.decompress`` takes."""
    return b"\x78\xda" + zeros(MUCH) + ((MUCH % 65521) << 16 | 1).to_bytes(4, "big")


def gzip_bomb() -> bytes:
    """Many members, one after the other."""
    return gzip.compress(bytes(_BLOCK), mtime=0) * (MUCH // _BLOCK)


def xz_bomb() -> bytes:
    """Many streams, one after the other."""
    return lzma.compress(bytes(_BLOCK), preset=0) * (MUCH // _BLOCK)


def zip_bomb(name: str) -> bytes:
    """An archive whose one file is zeros; its checksum is wrong, but comes only after all of them."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), zeros(MUCH), zipfile.ZIP_STORED)
    data = bytearray(out.getvalue())
    directory = data.rfind(b"PK\x01\x02")
    for at in (8, directory + 10):
        data[at] = 8  # deflated
    for at in (22, directory + 24):
        data[at : at + 4] = MUCH.to_bytes(4, "little")
    return bytes(data)
