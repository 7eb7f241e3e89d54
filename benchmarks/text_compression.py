"""Lossless compression of held-out text, and of the rows of a table, against the compressors people use.

    python benchmarks/text_compression.py --model MODEL [--json benchmarks/results/text_compression.json]

Text: the first 100,000 characters of text8's test part, with a model that was trained on the training part (the chain
row of text_table.py: 20 minutes). The others see the same bytes: xz -9, bzip2 -9, zstd -19. The model's file is not
counted, as the others' programs are not; it is some thirty times larger than the text, so this pays off only for many
such texts. Tables: rows that a model fitted on the other half has not seen, as CSV and as Parquet for the others. Every
round trip is checked.
"""

from __future__ import annotations

import bz2
import io
import lzma
import math
import time
from pathlib import Path
from typing import Annotated, Any

import pyarrow
import torch
import typer
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits

import anyorder as ao
from anyorder import compress, decompress
from anyorder.data.text import text8
from anyorder.modalities.texts.model import TextModel

from common import machine, write_results

SIZE = 100_000


def others(data: bytes) -> dict[str, int]:
    """Bytes by the usual compressors at their best settings."""
    zstd = pyarrow.Codec("zstd", compression_level=19)
    return {
        "xz -9": len(lzma.compress(data, preset=9)),
        "bzip2 -9": len(bz2.compress(data, 9)),
        "zstd -19": zstd.compress(data).size,
    }


def texts(model: TextModel, budgets: list[int]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    corpus = text8()
    text = corpus.test[:SIZE]
    rows = []
    for calls in (None, *budgets):
        budget = None if calls is None else model.budget(corpus.validation, calls, most=16)
        began = time.perf_counter()
        packed = compress(model, text, calls=budget)
        middle = time.perf_counter()
        back = decompress(model, packed)
        if back != text:
            raise SystemExit("the text did not come back")
        ended = time.perf_counter()
        name = "anyorder" if calls is None else f"anyorder, {calls} calls a window of {model.length}"
        seconds = {"compress, s": round(middle - began, 1), "decompress, s": round(ended - middle, 1)}
        predicted = 0.0 if budget is None else budget.nats / math.log(2) / model.length
        rows.append(row(name, len(packed), SIZE) | seconds | {"predicted extra bits": round(predicted, 3)})
    rows += [row(name, size, SIZE) for name, size in others(text.encode()).items()]
    bits = model.bits_per_character(text)
    spent = 8 * rows[0]["bytes"] / SIZE
    return rows, {"the model's own bits per character": round(bits, 4), "file above that": f"{spent / bits - 1:+.2%}"}


def row(name: str, size: int, count: int) -> dict[str, Any]:
    return {"compressor": name, "bytes": size, "bits per character": round(8 * size / count, 3)}


def tables(minutes: float) -> list[dict[str, Any]]:
    """Unseen rows of two tables: measurements with few decimals, and pixels of few levels."""
    rows = []
    for name, loaded in (("breast cancer", load_breast_cancer), ("digits", load_digits)):
        frame = loaded(as_frame=True).frame.sample(frac=1.0, random_state=0).reset_index(drop=True)
        if name == "digits":
            frame = frame.astype(int)
        half = len(frame) // 2
        seen, unseen = frame.iloc[:half], frame.iloc[half:].reset_index(drop=True)
        model = ao.fit(seen, minutes=minutes, seed=0)
        packed = compress(model, unseen)
        if not decompress(model, packed).equals(unseen):
            raise SystemExit("the table did not come back")
        csv = unseen.to_csv(index=False).encode()
        parquet = io.BytesIO()
        unseen.to_parquet(parquet, compression="zstd", compression_level=19)
        sizes = {"anyorder": len(packed), **others(csv), "Parquet with zstd -19": len(parquet.getvalue())}
        rows.append({"table": f"{name}, {len(unseen)} rows", "CSV": len(csv), **sizes})
    return rows


def main(
    model: Annotated[Path, typer.Option(help="trained on text8's training part", show_default=False)],
    calls: Annotated[str, typer.Option(help="of windows in fewer network calls, comma-separated; or none")] = "125,64",
    minutes: Annotated[float, typer.Option(help="of fitting each table; 0 leaves tables out")] = 1.0,
    json: Annotated[Path | None, typer.Option(help="write the results here")] = None,
) -> None:
    """Compress, check the round trip, print the sizes."""
    torch.set_num_threads(1)
    loaded = ao.load(model)
    assert isinstance(loaded, TextModel)
    rows, facts = texts(loaded, [int(part) for part in calls.split(",") if part.strip()])
    others_rows = tables(minutes) if minutes else []
    console = Console(width=140)
    for part in filter(None, (rows, others_rows)):
        table = Table(*part[0])
        for line in part:
            table.add_row(*(str(line.get(str(column.header), "")) for column in table.columns))
        console.print(table)
    console.print(facts)
    if json is not None:
        payload = {
            "title": "Lossless compression",
            "about": f"{SIZE:,} characters of text8's test part by the any-order chain network of 20 minutes, in "
            "windows of 250 that know nothing of each other; one thread. "
            + ("Sizes of tables in bytes, rows that the model has not seen. " if others_rows else "")
            + "The models' own files are not counted. All round trips exact.",
            "partial": f"This is {text8().partial}." if text8().partial else "",
            "command": f"python benchmarks/text_compression.py --model MODEL --calls '{calls}' --minutes {minutes:g}",
            "machine": machine(),
            "rows": rows,
            **facts,
            **({"tables, bytes": others_rows} if others_rows else {}),
        }
        write_results(json, payload)


if __name__ == "__main__":
    typer.run(main)
