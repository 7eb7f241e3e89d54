"""Lossless compression of held-out text, and of the rows of a table, against the compressors people use.

    python benchmarks/text_compression.py --model MODEL --json benchmarks/results/text_compression.json    (30 minutes)

Text: the first 100,000 characters of text8's test part, with a model that was trained on the training part (the chain
row of text_table.py: 20 minutes). The others see the same bytes; compressors.py lets them read the training text first,
too. The model's file is not counted, as the others' programs are not; it is some thirty times larger than the text, so
this pays off only for many such texts. Tables: rows that a model fitted on the other half has not seen, as CSV and as
Parquet for the others. Every round trip is checked.
"""

from __future__ import annotations

import io
import math
import time
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from sklearn.datasets import load_breast_cancer, load_digits

import anyorder as ao
from anyorder import compress, decompress
from anyorder.data.text import Corpus, text8
from anyorder.modalities.texts.model import TextModel

import smoke_data
from common import Json, Record, Smoke, print_rows
from compressors import COMPRESSORS, SIZE

TIMES = ("heads", "networks", "model", "tasks/compression")


def others(data: bytes) -> dict[str, int]:
    """Bytes by the usual compressors."""
    return {name: compressed(data) for name, compressed in COMPRESSORS.items()}


def texts(
    model: TextModel, corpus: Corpus, size: int, budgets: list[int]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The held-out text by the model (as it is, and in fewer network calls) and by the others."""
    text = corpus.test[:size]
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
        rows.append(row(name, len(packed), size) | seconds | {"predicted extra bits": round(predicted, 3)})
    rows += [row(name, packed_size, size) for name, packed_size in others(text.encode()).items()]
    bits = model.bits_per_character(text)
    spent = 8 * rows[0]["bytes"] / size
    return rows, {"the model's own bits per character": round(bits, 4), "file above that": f"{spent / bits - 1:+.2%}"}


def row(name: str, size: int, count: int) -> dict[str, Any]:
    return {"compressor": name, "bytes": size, "bits per character": round(8 * size / count, 3)}


def tables(minutes: float, most: int | None = None) -> list[dict[str, Any]]:
    """Unseen rows of two tables: measurements with few decimals, and pixels of few levels."""
    rows = []
    for name, loaded in (("breast cancer", load_breast_cancer), ("digits", load_digits)):
        frame = loaded(as_frame=True).frame.sample(frac=1.0, random_state=0).reset_index(drop=True)
        if name == "digits":
            frame = frame.astype(int)
        frame = frame.iloc[:most, -4:] if most else frame
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
    model: Annotated[Path | None, typer.Option(help="trained on text8's training part", show_default=False)] = None,
    calls: Annotated[str, typer.Option(help="of windows in fewer network calls, comma-separated; or none")] = "125,64",
    minutes: Annotated[float, typer.Option(help="of fitting each table; 0 leaves tables out")] = 1.0,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Compress, check the round trip, print the sizes."""
    torch.set_num_threads(1)
    record, size = Record(json, smoke=smoke), SIZE
    if smoke:
        corpus, calls, minutes, size = smoke_data.text(), "4", smoke_data.MINUTES, 40
        loaded = ao.fit_text(corpus.training, length=20, minutes=minutes, preset="tiny", seed=0)
    elif model is None:
        raise typer.BadParameter("a trained model is needed", param_hint="--model")
    else:
        corpus, loaded = text8(), ao.load(model)
    assert isinstance(loaded, TextModel)
    rows, facts = texts(loaded, corpus, size, [int(part) for part in calls.split(",") if part.strip()])
    others_rows = tables(minutes, 20 if smoke else None) if minutes else []
    for part in filter(None, (rows, others_rows)):
        print_rows(part)
    Console(width=140).print(facts)
    seconds = loaded.card["training"]["seconds"]
    payload = {
        "title": "Lossless compression",
        "about": f"{size:,} characters of {corpus.name}'s test part by an any-order chain network ({seconds / 60:.0f} "
        f"minutes of training), in windows of {loaded.length} that know nothing of each other; one thread. "
        + ("Sizes of tables in bytes, rows that the model has not seen. " if others_rows else "")
        + "The models' own files are not counted. All round trips exact.",
        "partial": f"This is {corpus.partial}." if corpus.partial else "",
        "seed": 0,
        "rows": rows,
        **facts,
        **({"tables, bytes": others_rows} if others_rows else {}),
    }
    record.write(payload)


if __name__ == "__main__":
    typer.run(main)
