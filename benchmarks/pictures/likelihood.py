"""SFARM's Table 2: negative log-likelihood of binarised MNIST after an hour, with its learning curve; and MAC's orders.

    python benchmarks/pictures/likelihood.py [--set binarized_mnist] [--minutes 60] [--resume] [--json FILE]    (hours)

Rows: a U-Net, trained in the uniform mode alone (ARDM) and in the seven modes (SFARM), and the chain transformer over
pixels, in random order and in MAC's orders (lexicographic, strided by the width of a picture). The likelihood of a mask
network is a sum over all pixels' steps, of which some are drawn for every test picture (conditional_likelihood.py); the
chain transformer's is exact for the order it takes, all steps in one pass. Of fewer pictures all steps are taken, in
several orders, and the probabilities of the orders are averaged (SFARM eq. 14). Marginal: M_card, over the number of
pixels. Two rows train at a time, one thread each, or one on two threads (`--workers 1`); models that are there already
are only asked, and rows of other budgets stay in the file (`--resume`), each with its own minutes.
The uniform mode is the baseline.
"""

from __future__ import annotations

import math
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich.console import Console

from anyorder.data import images as image_sets
from anyorder.masking import Cardinality
from anyorder.modalities.images.core import encoded
from anyorder.modalities.images.model import ImageModel
from anyorder.networks import ChainNetwork
from anyorder.query import Query

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from conditional_likelihood import conditional
from measures import some_test, standard_error
from picture_models import ROWS as MODES
from picture_models import trained

from common import Json, Record, Smoke, listed, print_rows
from smoke_data import MINUTES

TIMES = ("masking", "networks", "model", "training", "modalities/images")
CHAIN = {"name": "causal_transformer", "positions": "rotary", "width": 128, "blocks": 4, "heads": 4}
STEPS = 16  # terms drawn for every picture of a mask network
ORDERS, AVERAGED = 5, 32  # of so many pictures all terms, in so many orders
MARGINAL = {"name": "conditional", "evidence": {"name": "cardinality", "least": 0, "spare": 1}}
UNET = "U-Net, "
ROWS: dict[str, dict[str, Any]] = {
    **{UNET + row: options for row, options in MODES.items()},
    "chain transformer, random order": {"network": CHAIN, "masking": MARGINAL, "protocol": {"name": "random"}},
    "chain transformer, MAC, lexicographic": {
        "network": CHAIN,
        "masking": MARGINAL,
        "protocol": {"name": "canonical"},
    },
    "chain transformer, MAC, strided": {
        "network": CHAIN,
        "masking": MARGINAL,
        "protocol": {"name": "canonical", "stride": "width"},
    },
}
PRESETS = {"binarized_mnist": "small", "digits": "tiny"}  # of the U-Net
PRINTED = {
    "binarized_mnist": " Printed by SFARM: 78.12 nats, of our preset `mnist` after 300 epochs on a GPU, the "
    "probabilities of several orders averaged. The test NLL here is the mean of -log p over orders, never below that."
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


def over_orders(model: ImageModel, pictures: NDArray[np.uint8]) -> dict[str, tuple[float, float]]:
    """-log of the mean probability over orders (SFARM eq. 14), beside the mean of -log p over the same orders."""
    nats = np.stack([-model.log_prob(pictures, seed=order) for order in range(ORDERS)])
    averaged = -(np.logaddexp.reduce(-nats, axis=0) - math.log(ORDERS))
    parts = {"averaged": averaged, "single": nats.mean(axis=0)}
    return {name: (float(part.mean()), standard_error(part)) for name, part in parts.items()}


def run(name: str, row: str, minutes: float, count: int, seed: int, folder: Path, threads: int) -> dict[str, Any]:
    """Train one row, or take it as it was trained, and score it on test pictures."""
    torch.set_num_threads(threads)
    data = getattr(image_sets, name)()
    test = some_test(data, count)
    count, pixels = len(test), test[0].size
    options = {**ROWS[row], "preset": PRESETS[name]}
    if "network" in options:
        options["training"] = {"learning_rate": 1e-3}
    if options.get("protocol", {}).get("stride") == "width":
        options["protocol"] = {**options["protocol"], "stride": test.shape[2]}
    kept = row.removeprefix(UNET)  # as modes.py calls it
    model, curve = trained(data, kept, options, minutes, seed=seed, threads=threads, folder=folder)
    everything = torch.ones(count, pixels, dtype=torch.bool)
    marginal = Cardinality().draw(count, pixels, torch.Generator().manual_seed(7))
    if isinstance(model.core.network, ChainNetwork):
        joint = along(model, test, Query.marginal(everything))
        part = along(model, test, marginal)
    else:
        nothing = np.zeros(test.shape, dtype=bool)
        joint = conditional(model, test, nothing, STEPS)
        part = conditional(model, test, nothing, STEPS, asked=marginal.asked.numpy())
    return {
        "pixels": pixels,
        "joint": (float(joint.mean()), standard_error(joint)),
        "marginal": (float(part.mean()), standard_error(part)),
        "orders": over_orders(model, test[:AVERAGED]),
        "minutes": minutes,
        "steps": model.card["training"]["steps"],
        "parameters": model.card["training"]["parameters"],
        "curve": [(seconds, -pixels * score) for seconds, score in curve],
    }


def main(
    name: Annotated[str, typer.Option("--set", help="binarized_mnist or digits")] = "binarized_mnist",
    minutes: Annotated[float, typer.Option(help="training budget of every row")] = 60.0,
    count: Annotated[int, typer.Option(help="test pictures at most")] = 500,
    rows: Annotated[str, typer.Option(help="semicolon-separated; all by default")] = "",
    seed: int = 0,
    workers: Annotated[int, typer.Option(min=1, max=2, help="rows at a time")] = 2,
    resume: Annotated[bool, typer.Option(help="do only what the JSON file lacks")] = False,
    models: Annotated[Path, typer.Option(help="where models and curves are kept")] = Path("build/pictures"),
    json: Json = None,
    smoke: Smoke = False,
    pictures: Annotated[Path, typer.Option(help="where the learning curves go")] = Path("docs/images"),
) -> None:
    """Train and score; the file is written after every row."""
    torch.set_num_threads(2 // workers)
    wanted = listed(rows, list(ROWS), ";")
    if smoke:
        name, minutes, count, workers, wanted = "digits", MINUTES, 2, 1, [next(iter(ROWS)), list(ROWS)[-1]]
    record = Record(json, f"image_nll_{name}.json", smoke=smoke)
    models, pictures = (record.beside(folder) for folder in (models, pictures))
    options = {"set": name, "count": count, "seed": seed, "threads": 2 // workers}
    found: dict[str, Any] = record.earlier(options, "by_row") if resume else {}
    # A child that is forked from a process with OpenMP threads may hang: these start afresh.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        todo = [row for row in wanted if found.get(row, {}).get("minutes") != minutes]
        jobs = {pool.submit(run, name, row, minutes, count, seed, models, 2 // workers): row for row in todo}
        for job in as_completed(jobs):
            found[jobs[job]] = job.result() | {"run": record.number}
            Console(width=140).print(f"{jobs[job]}: {found[jobs[job]]['joint']}")
            found = {row: found[row] for row in ROWS if row in found}
            record.write(payload(found, options))
    plot(found, pictures / f"likelihood_{name}.png")
    print_rows(payload(found, options)["rows"])


def payload(found: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The table as the documentation shows it, and every curve."""
    lines = []
    for row, result in found.items():
        bit = result["pixels"] * math.log(2)
        joint, marginal = ((mean / bit, error / bit) for mean, error in (result["joint"], result["marginal"]))
        orders = result.get("orders", {})  # not measured in the oldest rows
        lines.append(
            {
                "row": row,
                "test NLL, nats": "{:.2f} ± {:.2f}".format(*result["joint"]),
                "joint, bits per pixel": "{:.4f} ± {:.4f}".format(*joint),
                "marginal, bits per pixel": "{:.4f} ± {:.4f}".format(*marginal),
                f"{ORDERS} orders averaged, nats": "{:.2f} ± {:.2f}".format(*orders["averaged"]) if orders else "-",
                "the same orders one by one": "{:.2f} ± {:.2f}".format(*orders["single"]) if orders else "-",
                "parameters": result["parameters"],
                "minutes": f"{result['curve'][-1][0] / 60:.0f} of {result['minutes']:g}",  # it may end by itself
                "steps": result["steps"],
            }
        )
    name = options["set"]
    return {
        "title": f"SFARM's Table 2 and MAC's orders: {name.replace('_', ' ')}",
        "about": f"At most {options['count']} test pictures; trained on {options['threads']} thread(s) a row, two rows "
        f"at a time if it is one; U-Net of the preset `{PRESETS[name]}`. The marginal is over all pixels of a picture, "
        f"asked or not. Orders averaged: minus the log of the mean probability over {ORDERS} orders, {AVERAGED} "
        f"pictures, and the mean of -log p over the same orders beside it.{PRINTED.get(name, '')}",
        "picture": f"images/likelihood_{name}.png",
        "seed": options["seed"],
        "rows": lines,
        "details": {"options": options, "by_row": found},
    }


def plot(found: dict[str, Any], path: Path) -> None:
    """What each row's own objective said of validation pictures while it trained."""
    from anyorder.support.plotting import BLUE, INK, ORANGE, RED, SOFT, new_figure, style

    figure = new_figure(6.4, 3.6)
    axes = figure.add_subplot()
    style(axes)
    for (row, result), colour in zip(found.items(), (SOFT, BLUE, ORANGE, RED, INK), strict=False):
        seconds, nats = np.array(result["curve"]).T
        axes.plot(seconds / 60, nats, color=colour, label=row, linewidth=1.4)
    axes.set_xscale("log")
    last = [result["curve"][-1][1] for result in found.values()]
    axes.set_ylim(0.9 * min(last), 1.8 * max(last))
    axes.set_xlabel("minutes of training", fontsize=9)
    axes.set_title("nats a picture, by each row's own objective", loc="left", fontsize=10, color=INK)
    axes.legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)


if __name__ == "__main__":
    typer.run(main)
