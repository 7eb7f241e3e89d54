"""SFARM's Figure 4 as a table: one uniform masking mode (ARDM) against the mixture of seven, same network, same time.

    python benchmarks/pictures/modes.py [--minutes 10] [--sets fashion_mnist] [--resume] [--json FILE]

Conditional negative log-likelihood of the missing pixels given the known ones, in nats per missing pixel, for several
families of holes. Under a random order it is the sum over the steps t of E[-log p(x_i | known, t more)], with i any of
those that are still missing: as many terms as there are missing pixels, of which ``--steps`` are drawn for every
picture and averaged over all i at once (SFARM eqs. 7 to 11). That is unbiased and takes few passes. ± is the standard
error over pictures. The fills of some test pictures are drawn as a grid.
"""

from __future__ import annotations

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
from anyorder.data import images as image_sets
from anyorder.data.picture_files import write_picture
from anyorder.image_core import encoded
from anyorder.image_plots import grid, hidden, shades
from anyorder.images import ImageModel

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from holes import FAMILIES, GROUPS

from common import earlier, machine, write_results

SETS = {"fashion_mnist": "Fashion-MNIST", "binarized_mnist": "binarised MNIST", "digits": "digits"}
ROWS = {
    "one uniform mode (ARDM)": {"masking": {"name": "modes", "modes": ["random_pixels"]}},
    "seven modes (SFARM)": {},
}


@torch.no_grad()
def conditional(model: ImageModel, pictures: NDArray[np.uint8], known: NDArray[np.bool_], steps: int) -> NDArray[Any]:
    """An unbiased estimate of -log p(missing | known) of every picture under a random order, in nats."""
    values = encoded(model.core, pictures)
    mask = torch.from_numpy(known.reshape(len(known), -1))
    missing = (~mask).sum(dim=1)
    generator = torch.Generator().manual_seed(1)
    total = torch.zeros(len(values), dtype=torch.float64)
    for _ in range(steps):
        more = (torch.rand(len(values), generator=generator) * missing).long()
        rank = torch.rand(mask.shape, generator=generator).masked_fill(mask, 2.0).argsort(1).argsort(1)
        told = mask | (rank < more[:, None])
        for part in torch.arange(len(values)).split(128):
            nats = model.core.log_prob_beside(values[part], told[part]).double()
            left = ~told[part]
            total[part] -= nats.where(left, 0.0).sum(dim=1) / left.sum(dim=1) * missing[part]
    return np.asarray((total / steps).numpy())


def run(name: str, row: str, minutes: float, count: int, steps: int, seed: int, folder: Path) -> dict[str, Any]:
    """Train one row on one set and ask it about every family of holes."""
    data = getattr(image_sets, name)()
    options = {"training": {"threads": 2}, "head": "auto", **ROWS[row]}
    model = ao.fit_images(
        data.training,
        levels=data.levels,
        minutes=minutes,
        validation=data.validation[:512],
        seed=seed,
        config=options,
        log=folder / f"{name}_{len(ROWS[row])}.jsonl",
    )
    model.save(folder / f"{name}_{len(ROWS[row])}.anyorder")
    test = data.test[np.random.default_rng(0).permutation(len(data.test))[:count]]
    scores = {}
    for family, masks in FAMILIES.items():
        known = masks(len(test), *test.shape[1:3], np.random.default_rng(3))
        nats = conditional(model, test, known, steps)
        missing = (~known).reshape(len(test), -1).sum(axis=1)
        mean = nats.sum() / missing.sum()
        error = (nats - mean * missing).std(ddof=1) / missing.mean() / math.sqrt(len(test))
        scores[family] = (float(mean), float(error))
    facts = model.card["training"]
    fills = fill_rows(model, test[:8], data.levels, seed)
    return {
        "scores": scores,
        "steps": facts["steps"],
        "seconds": facts["seconds"],
        "parameters": facts["parameters"],
        "fills": fills,
    }


def fill_rows(model: ImageModel, test: NDArray[np.uint8], levels: int, seed: int) -> list[Any]:
    """One fill of each of some holes, for the picture."""
    rows = []
    for family in ("left half", "lower half", "patch inside", "all around a patch", "random, 90 %"):
        known = FAMILIES[family](len(test), *test.shape[1:3], np.random.default_rng(4))
        rows.append((family, known, model.fill(test, known, steps=64, seed=seed)[0]))
    return rows


def main(
    minutes: Annotated[float, typer.Option(help="training budget of every row")] = 10.0,
    sets: Annotated[str, typer.Option(help="comma-separated")] = "fashion_mnist,binarized_mnist",
    count: Annotated[int, typer.Option(help="test pictures")] = 500,
    steps: Annotated[int, typer.Option(help="terms drawn for every picture and family")] = 8,
    seed: int = 0,
    resume: Annotated[bool, typer.Option(help="do only what the JSON file lacks")] = False,
    models: Annotated[Path, typer.Option(help="where trained models and their curves go")] = Path("build/pictures"),
    json: Annotated[Path, typer.Option(help="written after every row")] = Path("benchmarks/results/image_modes.json"),
    pictures: Annotated[Path, typer.Option(help="where the grids of fills go")] = Path("docs/images"),
) -> None:
    """Run row by row."""
    torch.set_num_threads(2)
    models.mkdir(parents=True, exist_ok=True)
    options = {"minutes": minutes, "count": count, "steps": steps, "seed": seed}
    found: dict[str, Any] = earlier(json, options, "by_set") if resume else {}
    console = Console(width=140)
    for name in [part.strip() for part in sets.split(",")]:
        grids = {}
        for row in ROWS:
            if resume and row in found.get(name, {}):
                continue
            result = run(name, row, minutes, count, steps, seed, models)
            grids[row] = result.pop("fills")
            found.setdefault(name, {})[row] = result
            console.print(f"{name}, {row}: {result}")
            write_results(json, payload(found, options))
        if len(grids) == len(ROWS):
            draw(name, grids, pictures / f"modes_{name}.png")


def draw(name: str, grids: dict[str, Any], path: Path) -> None:
    """Of each family of holes: what is known, then the fills of both rows."""
    data = getattr(image_sets, name)()
    test = data.test[np.random.default_rng(0).permutation(len(data.test))[:8]]
    rows = [shades(test, data.levels)]
    for place in range(len(next(iter(grids.values())))):
        known = next(iter(grids.values()))[place][1]
        rows.append(hidden(shades(test, data.levels), known))
        rows += [shades(fills[place][2], data.levels) for fills in grids.values()]
    write_picture(grid(rows, scale=2), path)


def payload(found: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The tables as the documentation shows them, and the figures behind them."""
    tables: dict[str, Any] = {}
    for name, rows in found.items():
        lines = []
        for family in FAMILIES:
            line: dict[str, Any] = {"holes": family}
            for row, result in rows.items():
                mean, error = result["scores"][family]
                line[row] = f"{mean:.4f} ± {error:.4f}"
            lines.append(line)
        if len(rows) == len(ROWS):
            one, seven = (rows[row]["scores"] for row in ROWS)
            for line, family in zip(lines, FAMILIES, strict=True):
                line["seven over one"] = f"{seven[family][0] / one[family][0] - 1:+.1%}"
            for group, members in GROUPS.items():
                ratio = np.mean([seven[family][0] / one[family][0] for family in members])
                lines.append({"holes": f"mean of {group}", "seven over one": f"{ratio - 1:+.1%}"})
        tables[SETS[name]] = lines
    return {
        "title": "SFARM's Figure 4 as a table: masking modes",
        "about": f"Conditional NLL in nats per missing pixel (lower is better) on {options['count']} test pictures; "
        f"preset `small`, {options['minutes']:g} minutes on two threads each, the same options.",
        "command": f"python benchmarks/pictures/modes.py --minutes {options['minutes']:g}",
        "seed": options["seed"],
        "machine": machine(),
        **tables,
        "details": {"options": options, "by_set": found},
    }


if __name__ == "__main__":
    typer.run(main)
