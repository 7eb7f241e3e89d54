"""SFARM's Table 2: negative log-likelihood of binarised MNIST after one hour on two cores, with its learning curve.

    python benchmarks/pictures/likelihood.py [--minutes 60] [--rows NAMES] [--resume] [--json FILE]

Rows: the U-Net of the preset `mnist`, trained in the uniform mode alone (ARDM) and in the seven modes (SFARM), and the
chain transformer over pixels, in random order and in MAC's orders (lexicographic, strided). The likelihood of a mask
network is a sum over 784 steps, of which some are drawn for every test picture (unbiased; see modes.py); the chain
transformer's is exact, all steps in one pass. Marginal: M_card, over the number of pixels. The printed SFARM (78.12)
took 300 epochs on a GPU.
"""

from __future__ import annotations

import json as json_module
import math
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich.console import Console

import anyorder as ao
from anyorder.data.images import binarized_mnist
from anyorder.image_core import encoded
from anyorder.images import ImageModel
from anyorder.masking import Cardinality
from anyorder.networks import ChainNetwork
from anyorder.query import Query

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from measures import some_test
from modes import conditional

from common import earlier, machine, write_results

CHAIN = {"name": "causal_transformer", "positions": "rotary", "width": 128, "blocks": 4, "heads": 4}
MARGINAL = {"name": "conditional", "evidence": {"name": "cardinality", "least": 0, "spare": 1}}
ROWS: dict[str, dict[str, Any]] = {
    "U-Net, uniform mode (ARDM)": {"preset": "mnist", "masking": {"name": "modes", "modes": ["random_pixels"]}},
    "U-Net, seven modes (SFARM)": {"preset": "mnist"},
    "chain transformer, random order": {"network": CHAIN, "masking": MARGINAL, "protocol": {"name": "random"}},
    "chain transformer, MAC, lexicographic": {
        "network": CHAIN,
        "masking": MARGINAL,
        "protocol": {"name": "canonical"},
    },
    "chain transformer, MAC, strided": {
        "network": CHAIN,
        "masking": MARGINAL,
        "protocol": {"name": "canonical", "stride": 28},
    },
}


@torch.no_grad()
def along(model: ImageModel, pictures: NDArray[np.uint8], query: Query) -> NDArray[Any]:
    """Exact -log p of each picture's asked pixels, by one pass of a chain network."""
    values, generator = encoded(model.core, pictures), torch.Generator().manual_seed(0)
    nats = []
    for part in torch.arange(len(values)).split(16):
        chain = model.core.chain(query.rows(part), generator)
        nats.append(-model.core.step_log_prob(values[part], chain).double().sum(dim=1))
    return np.asarray(torch.cat(nats).numpy())


def run(row: str, minutes: float, count: int, seed: int, folder: Path) -> dict[str, Any]:
    data = binarized_mnist()
    file = "".join(character if character.isalnum() else "_" for character in row)
    options = {**ROWS[row], "training": {"threads": 2, "batch": 16 if "chain" in row else 32, "learning_rate": 1e-3}}
    model = ao.fit_images(
        data.training,
        levels=2,
        minutes=minutes,
        validation=data.validation[:512],
        seed=seed,
        config=options,
        log=folder / f"{file}.jsonl",
    )
    model.save(folder / f"{file}.anyorder")
    test = some_test(data, count)
    everything = torch.ones(count, 784, dtype=torch.bool)
    marginal = Cardinality().draw(count, 784, torch.Generator().manual_seed(7))
    if isinstance(model.core.network, ChainNetwork):
        joint = along(model, test, Query.marginal(everything))
        part = along(model, test, marginal)
    else:
        joint = conditional(model, test, np.zeros((count, 28, 28), dtype=bool), 16)
        part = _marginal(model, test, marginal, 16)
    curve = [json_module.loads(line) for line in (folder / f"{file}.jsonl").read_text().splitlines()]
    return {
        "joint": (float(joint.mean()), float(joint.std(ddof=1) / math.sqrt(count))),
        "marginal": float(part.mean()),
        "steps": model.card["training"]["steps"],
        "seconds": model.card["training"]["seconds"],
        "parameters": model.card["training"]["parameters"],
        "curve": [(point["seconds"], -784 * point["validation"]) for point in curve],
    }


@torch.no_grad()
def _marginal(model: ImageModel, pictures: NDArray[np.uint8], query: Query, steps: int) -> NDArray[Any]:
    """An unbiased estimate of -log p of the asked pixels under a random order, the others never known."""
    values, generator = encoded(model.core, pictures), torch.Generator().manual_seed(1)
    size = query.asked.sum(dim=1)
    total = torch.zeros(len(values), dtype=torch.float64)
    for _ in range(steps):
        stop = (torch.rand(len(values), generator=generator) * size).long()
        rank = torch.rand(query.asked.shape, generator=generator).masked_fill(~query.asked, 2.0).argsort(1).argsort(1)
        told = query.asked & (rank < stop[:, None])
        left = query.asked & ~told
        for part in torch.arange(len(values)).split(128):
            nats = model.core.log_prob_beside(values[part], told[part]).double()
            total[part] -= nats.where(left[part], 0.0).sum(dim=1) / left[part].sum(dim=1) * size[part]
    return np.asarray((total / steps).numpy())


def main(
    minutes: Annotated[float, typer.Option(help="training budget of every row")] = 60.0,
    count: Annotated[int, typer.Option(help="test pictures")] = 500,
    rows: Annotated[str, typer.Option(help="semicolon-separated; all by default")] = "",
    seed: int = 0,
    resume: Annotated[bool, typer.Option(help="do only what the JSON file lacks")] = False,
    models: Annotated[Path, typer.Option(help="where trained models and curves go")] = Path("build/pictures"),
    json: Annotated[Path, typer.Option(help="written after every row")] = Path("benchmarks/results/image_nll.json"),
) -> None:
    """Train and score row by row."""
    torch.set_num_threads(2)
    models.mkdir(parents=True, exist_ok=True)
    options = {"minutes": minutes, "count": count, "seed": seed}
    found: dict[str, Any] = earlier(json, options, "by_row") if resume else {}
    for row in [part.strip() for part in rows.split(";") if part.strip()] or list(ROWS):
        if resume and row in found:
            continue
        found[row] = run(row, minutes, count, seed, models)
        Console(width=140).print(f"{row}: {found[row]['joint']}")
        write_results(json, payload(found, options))


def payload(found: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    lines = []
    for row, result in found.items():
        mean, error = result["joint"]
        lines.append(
            {
                "row": row,
                "test NLL, nats": f"{mean:.2f} ± {error:.2f}",
                "joint, bits per pixel": round(mean / 784 / math.log(2), 4),
                "marginal, bits per pixel": round(result["marginal"] / 784 / math.log(2), 4),
                "parameters": result["parameters"],
                "steps": result["steps"],
                "training s": result["seconds"],
            }
        )
    return {
        "title": "SFARM's Table 2: binarised MNIST",
        "about": f"{options['count']} test pictures; {options['minutes']:g} minutes of training on two threads a row. "
        "Printed by SFARM: 78.12 nats (300 epochs on a GPU, several orders averaged).",
        "command": f"python benchmarks/pictures/likelihood.py --minutes {options['minutes']:g}",
        "seed": options["seed"],
        "machine": machine(),
        "rows": lines,
        "details": {"options": options, "by_row": found},
    }


if __name__ == "__main__":
    typer.run(main)
