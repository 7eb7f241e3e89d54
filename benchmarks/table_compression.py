"""Lossless compression of the rows of a table that a model has not seen, against the compressors people use.

    python benchmarks/table_compression.py --json benchmarks/results/table_compression.json    (three minutes)

Measurements with few decimals, and pixels of few levels. The others compress the same rows as CSV, and Parquet packs
its columns; none of them has read the rows that the model was fitted on. The model's file is not counted, as the
others' programs are not. Every round trip is checked. Texts are in text_engines.py.
"""

from __future__ import annotations

import io
from typing import Annotated, Any

import torch
import typer
from sklearn.datasets import load_breast_cancer, load_digits

import anyorder as ao
from anyorder import compress, decompress

import smoke_data
from common import Json, Record, Smoke, print_rows
from compressors import COMPRESSORS

TIMES = ("heads", "networks", "model", "tasks/compression")


def tables(minutes: float, most: int | None = None) -> list[dict[str, Any]]:
    """Bytes of the unseen half of each table."""
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
        others = {by: compressed(csv) for by, compressed in COMPRESSORS.items()}
        sizes = {"anyorder": len(packed), **others, "Parquet with zstd -19": len(parquet.getvalue())}
        rows.append({"table": f"{name}, {len(unseen)} rows", "CSV": len(csv), **sizes})
    return rows


def main(
    minutes: Annotated[float, typer.Option(help="of fitting each table")] = 1.0,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Compress, check the round trip, print the sizes."""
    torch.set_num_threads(1)
    record = Record(json, smoke=smoke)
    rows = tables(smoke_data.MINUTES if smoke else minutes, 20 if smoke else None)
    print_rows(rows)
    record.write(
        {
            "title": "Lossless compression of tables",
            "about": "Bytes of rows that the model has not seen, half of each table, by a model of the other half "
            f"({minutes:g} minutes of fitting, one thread), whose file is not counted, and by the usual compressors "
            "of the same rows as CSV. All round trips exact.",
            "seed": 0,
            "rows": rows,
        }
    )


if __name__ == "__main__":
    typer.run(main)
