"""The usual compressors on held-out text, as they are and after reading the training text first.

    python benchmarks/compressors.py --json benchmarks/results/compressors.json    (about a minute on one core)

The first 100,000 characters of text8's test part. *Primed* is the size of training and test text together less that of
the training text alone: what the test text costs a compressor that has just read what a model was trained on. How much
of it a compressor still remembers is its own limit: xz -9 and its dictionary of 64 MiB all of it, as does zstd with
--long=27, zstd -19 alone the last 8 MiB, bzip2 its block of 900 kB, gzip the last 32 kB. zstd can also be given the
training text as a dictionary, which then is no part of the file at all.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any

import typer
import zstandard

from anyorder.data.text import text8

import smoke_data
from common import Json, Record, Smoke, print_rows

TIMES = ("data/text.py",)
SIZE = 100_000

LONG = zstandard.ZstdCompressionParameters.from_level(19, window_log=27, enable_ldm=True)

# Bytes after compression, each at its best setting.
COMPRESSORS: dict[str, Callable[[bytes], int]] = {
    "xz -9": lambda data: len(lzma.compress(data, preset=9)),
    "bzip2 -9": lambda data: len(bz2.compress(data, 9)),
    "zstd -19 --long=27": lambda data: len(zstandard.ZstdCompressor(compression_params=LONG).compress(data)),
    "zstd -19": lambda data: len(zstandard.ZstdCompressor(level=19).compress(data)),
    "gzip -9": lambda data: len(zlib.compress(data, 9)),
}


def by_dictionary(training: bytes, test: bytes) -> float:
    """Bits per character by zstd -19 whose dictionary is the training text, after the round trip."""
    whole = zstandard.ZstdCompressionDict(training, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    packed = zstandard.ZstdCompressor(compression_params=LONG, dict_data=whole).compress(test)
    if zstandard.ZstdDecompressor(dict_data=whole, max_window_size=2**27).decompress(packed) != test:
        raise SystemExit("the text did not come back")
    return round(8 * len(packed) / len(test), 3)


def row(name: str, compressed: Callable[[bytes], int], training: bytes, test: bytes) -> dict[str, Any]:
    """Plain and primed size of the test text, in bytes and in bits per character."""
    plain = compressed(test)
    primed = compressed(training + test) - compressed(training)
    bits = {"plain": 8 * plain / len(test), "primed": 8 * primed / len(test)}
    return {
        "compressor": name,
        "bytes": plain,
        "bytes, primed": primed,
        "bits per character": round(bits["plain"], 3),
        "bits per character, primed": round(bits["primed"], 3),
    }


def main(json: Json = None, smoke: Smoke = False) -> None:
    """Compress with each, print the sizes."""
    record = Record(json, smoke=smoke)
    corpus, size = (smoke_data.text(), 2_000) if smoke else (text8(), SIZE)
    # Letters and the space, so a character is a byte.
    training, test = corpus.training.encode("ascii"), corpus.test[:size].encode("ascii")
    rows = [row(name, compressed, training, test) for name, compressed in COMPRESSORS.items()]
    print_rows(rows)
    record.write(
        {
            "title": "Usual compressors, plain and primed",
            "about": f"The first {size:,} characters of {corpus.name}'s test part, all of them in one stream. Primed: "
            f"the size of the {len(training):,} training characters and the test text together, less that of the "
            "training characters alone. Deterministic, so there is no error and the seed plays no part.",
            "partial": f"This is {corpus.partial}." if corpus.partial else "",
            "seed": 0,
            "rows": rows,
            "zstd -19, the training text as its dictionary, bits per character": by_dictionary(training, test),
        }
    )


if __name__ == "__main__":
    typer.run(main)
