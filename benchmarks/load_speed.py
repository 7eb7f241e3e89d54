"""Loading a model of many variables that are alike: the file of today against the layout of version 1.

    python benchmarks/load_speed.py [--json benchmarks/results/load_speed.json]

Version 1 had an entry in its header for every pixel or character; version 2 has one for all. Both files hold the same
model, are read by the same code, and answer alike.
"""

from __future__ import annotations

import string
import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from safetensors import safe_open

from anyorder.data.text import Alphabet
from anyorder.modalities.images.core import image_model
from anyorder.modalities.texts.core import text_model
from anyorder.model import AnyOrderModel
from anyorder.model.checkpoint import load_model, save_model, write_tensors
from anyorder.model.versions import as_version_1
from anyorder.protocols import Canonical, Random

from common import best_of, machine, print_rows, write_results

# The sizes of the preset "tiny", so that the words weigh more than the weights.
UNET = {"name": "unet", "channels": 16, "blocks": 1, "levels": 2, "modes": 7}
TRANSFORMER = {"name": "causal_transformer", "width": 64, "blocks": 2, "heads": 2, "positions": "rotary"}


def pictures(side: int, head: str) -> AnyOrderModel:
    """An untrained model of colour pictures in 256 levels."""
    return image_model((side, side, 3), 256, UNET, Random(), head=head, components=5, seed=0)


def texts(length: int) -> AnyOrderModel:
    """An untrained model of texts in small letters and spaces."""
    return text_model(Alphabet(tuple(string.ascii_lowercase + " ")), length, TRANSFORMER, Canonical(), seed=0)


def compared(label: str, model: AnyOrderModel, runs: int, folder: Path) -> dict[str, Any]:
    """Bytes of the header and seconds to load, in both versions."""
    now, before = folder / "version_2.anyorder", folder / "version_1.anyorder"
    save_model(model, {}, now)
    header = {"kind": "model", "description": as_version_1(model.description()), "card": {}}
    write_tensors(before, model.state_dict(), header, version=1)
    seconds, older = (best_of(runs, partial(load_model, path)) for path in (now, before))
    return {
        "model": label,
        "variables": model.variables,
        "header (bytes)": header_bytes(now),
        "load (s)": round(seconds, 4),
        "version 1: header (bytes)": header_bytes(before),
        "version 1: load (s)": round(older, 4),
        "ratio of seconds": round(older / seconds, 1),
    }


def header_bytes(path: Path) -> int:
    """The length of the JSON that describes the model."""
    with safe_open(path, framework="pt") as file:
        return len(file.metadata()["header"].encode())


def main(
    runs: int = 5,
    smoke: Annotated[bool, typer.Option("--smoke", help="a few seconds: does the script still run?")] = False,
    json: Annotated[Path | None, typer.Option(help="write the results here")] = None,
) -> None:
    """Save both versions of three models, load them and print the ratios."""
    torch.set_num_threads(2)
    side, length, runs = (4, 20, 1) if smoke else (32, 250, runs)
    models = {
        f"pictures {side} x {side} x 3, mixture of logistics": pictures(side, "mixture"),
        f"pictures {side} x {side} x 3, a logit for each level": pictures(side, "categorical"),
        f"texts of {length} characters": texts(length),
    }
    with tempfile.TemporaryDirectory() as folder:
        rows = [compared(label, model, runs, Path(folder)) for label, model in models.items()]
    print_rows(rows)
    if json is not None:
        payload = {
            "title": "Loading a model of many variables that are alike",
            "about": "Untrained models of the preset tiny, each saved in both versions of the file and loaded by the "
            f"same code; the quickest of {runs}.",
            "command": "python benchmarks/load_speed.py",
            "machine": machine(),
            "rows": rows,
        }
        write_results(json, payload)


if __name__ == "__main__":
    typer.run(main)
