"""SFARM's Figure 3: pixels missing at random, filled by VAE, MIWAE, DDPM with RePaint and ours: numbers and pictures.

    python benchmarks/pictures/fills.py [--minutes 10] [--set fashion_mnist] [--resume] [--json FILE]    (an hour)

All networks are made of the same parts (the U-Net of the preset `small`; the autoencoders are its two halves without
shortcuts) and train for the same time on one thread each, two rows at a time. VAE as in SFARM: trained on complete
pictures. MIWAE: 5 importance samples (with 20 it takes too few steps), pixels hidden at uniformly drawn rates
while it trains, draws by importance resampling among 500 candidates. DDPM: 1,000 noise levels, noise prediction,
averaged weights; RePaint with 100 steps, jumps of 10 and 5 resamplings (the paper: 250, 10, 10 on pictures eighty times
as large). Ours: 64 steps, trained in the seven modes (SFARM) and in the uniform one alone (ARDM); the very models of
modes.py, if that ran for as long. Ten draws of every hole; rows are compared picture by picture.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich.console import Console

from anyorder.baselines import DDPM, MIWAE, VAE, RePaint, Schedule
from anyorder.baselines.observation import HeadCell
from anyorder.baselines.picture_halves import picture_halves
from anyorder.data import images as image_sets
from anyorder.data.images import PictureSet
from anyorder.data.picture_files import write_picture
from anyorder.heads import Bernoulli, DiscretizedLogisticMixture
from anyorder.modalities.images.plots import grid, hidden, shades
from anyorder.networks import UNet
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from holes import FAMILIES, SHARES
from measures import Classifier, classifier_of, fill_scores, some_test, standard_error
from picture_models import ROWS as OURS
from picture_models import trained

from common import Json, Record, Smoke, listed
from smoke_data import MINUTES

TIMES = ("masking", "heads", "networks", "model", "training", "modalities/images", "baselines")
LATENT = 32
REPAINT = RePaint(steps=100, jump=10, resample=5)
RIVAL = "DDPM, RePaint"


@dataclass(frozen=True)
class Effort:
    """How much is done for a fill: draws of each hole, and what the methods spend on a draw."""

    draws: int = 10
    steps: int = 64
    repaint: RePaint = REPAINT
    candidates: int = 500


LITTLE = Effort(draws=2, steps=2, repaint=RePaint(steps=4, jump=2, resample=1), candidates=4)  # of a smoke run
Fill = Callable[[NDArray[np.uint8], NDArray[np.bool_]], NDArray[np.float64]]


def ours(data: PictureSet, minutes: float, seed: int, folder: Path, effort: Effort, *, row: str) -> tuple[Fill, int]:
    model, _ = trained(data, row, OURS[row], minutes, seed=seed, threads=1, folder=folder)

    def fill(pictures: NDArray[np.uint8], known: NDArray[np.bool_]) -> NDArray[np.float64]:
        return model.fill(pictures, known, draws=effort.draws, steps=effort.steps, seed=seed).astype(np.float64)

    return fill, model.card["training"]["parameters"]


def autoencoder(
    data: PictureSet,
    minutes: float,
    seed: int,
    folder: Path,
    effort: Effort,
    *,
    family: type[VAE | MIWAE],
    batch: int,
    **schedule: Any,
) -> tuple[Fill, int]:
    shape = data.training.shape[1:]
    half = (data.levels - 1) / 2
    lattice = Lattice(0.0, 1.0, data.levels, Warp.affine(half, half))
    cell = HeadCell(Bernoulli() if data.levels == 2 else DiscretizedLogisticMixture(1, lattice))
    model = family(
        int(np.prod(shape)),
        latent=LATENT,
        observation=cell,
        halves=picture_halves(shape, LATENT, cell.size, seed=seed, **UNet.presets["small"]),
    )

    def units(pictures: NDArray[np.uint8]) -> torch.Tensor:
        flat = torch.tensor(pictures.reshape(len(pictures), -1)).float()
        return flat if data.levels == 2 else (flat - half) / half

    values = units(data.training)
    model.fit(
        values,
        torch.ones_like(values, dtype=torch.bool),
        Schedule(minutes=minutes, batch=batch, seed=seed, validation_share=0.005, **schedule),
    )

    def fill(pictures: NDArray[np.uint8], known: NDArray[np.bool_]) -> NDArray[np.float64]:
        parts = []
        for start in range(0, len(pictures), 4):
            rows = slice(start, start + 4)
            mask = torch.as_tensor(known[rows].reshape(len(known[rows]), -1))
            hidden_in = units(pictures[rows])
            drawn = model.impute(hidden_in, mask, draws=effort.draws, candidates=effort.candidates, seed=seed)
            parts.append(drawn if data.levels == 2 else drawn * half + half)
        return np.concatenate(parts, axis=1).reshape(effort.draws, *pictures.shape)

    return fill, sum(parameter.numel() for parameter in model.parameters())


def diffusion(data: PictureSet, minutes: float, seed: int, folder: Path, effort: Effort) -> tuple[Fill, int]:
    shape = data.training.shape[1:]
    half = (data.levels - 1) / 2
    model = DDPM(shape, seed=seed, **UNet.presets["small"])
    model.fit((data.training.reshape(len(data.training), -1) - half) / half, minutes=minutes, seed=seed)

    def fill(pictures: NDArray[np.uint8], known: NDArray[np.bool_]) -> NDArray[np.float64]:
        flat = torch.as_tensor((pictures.reshape(len(pictures), -1) - half) / half).float()
        mask = torch.as_tensor(known.reshape(len(known), -1))
        draws = [model.fill(flat, mask, effort.repaint, seed=seed + number) for number in range(effort.draws)]
        levels = torch.stack(draws).double().numpy() * half + half
        return np.rint(levels.clip(0, data.levels - 1)).reshape(effort.draws, *pictures.shape)

    return fill, sum(parameter.numel() for parameter in model.parameters())


ROWS: dict[str, Callable[[PictureSet, float, int, Path, Effort], tuple[Fill, int]]] = {
    RIVAL: diffusion,
    "MIWAE": partial(autoencoder, family=MIWAE, batch=32, draws=5, hide="uniform"),
    "VAE": partial(autoencoder, family=VAE, batch=64, draws=1),
    **{f"anyorder, {row}": partial(ours, row=row) for row in OURS},
}


@dataclass(frozen=True)
class Task:
    """Test pictures of a set, and what is known of them at each rate."""

    name: str
    count: int
    effort: Effort

    def data(self) -> PictureSet:
        found: PictureSet = getattr(image_sets, self.name)()
        return found

    def test(self) -> NDArray[np.uint8]:
        return some_test(self.data(), self.count)

    def known(self, share: int) -> NDArray[np.bool_]:
        sides = self.data().test.shape[1:3]
        return FAMILIES[f"random, {share} %"](self.count, *sides, np.random.default_rng(share))


def run(task: Task, row: str, minutes: float, seed: int, classifier: Classifier | None, folder: Path) -> dict[str, Any]:
    """Train one row and classifier its fills; one fill of each rate is kept in the folder, to be looked at."""
    torch.set_num_threads(1)
    data, test = task.data(), task.test()
    fill, parameters = ROWS[row](data, minutes, seed, folder, task.effort)
    scores, strip = {}, []
    for place, share in enumerate(SHARES):
        known = task.known(share)
        began = time.monotonic()
        drawn = fill(test, known)
        seconds = time.monotonic() - began
        scores[str(share)] = fill_scores(drawn, test, known, data.levels, classifier) | {"seconds": round(seconds, 1)}
        strip.append(drawn[0, place])
    np.save(shown(task, row, folder), np.stack(strip))
    return {"scores": scores, "parameters": parameters}


def shown(task: Task, row: str, folder: Path) -> Path:
    """Where the fills of a row are kept that go into the picture."""
    return folder / f"fills_{task.name}_{list(ROWS).index(row)}.npy"


def main(
    minutes: Annotated[float, typer.Option(help="training budget of every row")] = 10.0,
    name: Annotated[str, typer.Option("--set", help="fashion_mnist, binarized_mnist or mnist")] = "fashion_mnist",
    count: Annotated[int, typer.Option(help="test pictures")] = 24,
    rows: Annotated[str, typer.Option(help="semicolon-separated; all by default")] = "",
    seed: int = 0,
    workers: Annotated[int, typer.Option(min=1, max=2, help="rows at a time")] = 2,
    resume: Annotated[bool, typer.Option(help="do only what the JSON file lacks")] = False,
    models: Annotated[Path, typer.Option(help="where our models and some fills are kept")] = Path("build/pictures"),
    json: Json = None,
    smoke: Smoke = False,
    pictures: Annotated[Path, typer.Option(help="where the grid of fills goes")] = Path("docs/images"),
) -> None:
    """Train and ask, two rows at a time."""
    if count < len(SHARES):
        raise typer.BadParameter(f"at least {len(SHARES)} pictures, one of each rate is drawn", param_hint="--count")
    torch.set_num_threads(1)
    if smoke:
        minutes, name, count, workers = MINUTES, "digits", len(SHARES), 1
    record = Record(json, f"image_fills_{name}.json", smoke=smoke)
    models, pictures = (record.beside(folder) for folder in (models, pictures))
    task = Task(name, count, LITTLE if smoke else Effort())
    data, test = task.data(), task.test()
    options = {"minutes": minutes, "set": name, "count": count, "seed": seed, "draws": task.effort.draws}
    found: dict[str, Any] = record.earlier(options, "by_row") if resume else {}
    wanted = listed(rows, list(ROWS), ";")
    classifier = classifier_of(data, 5) if smoke else classifier_of(data)
    models.mkdir(parents=True, exist_ok=True)
    # A child that is forked from a process with OpenMP threads may hang: these start afresh.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        todo = [row for row in wanted if row not in found]
        jobs = {pool.submit(run, task, row, minutes, seed, classifier, models): row for row in todo}
        for job in as_completed(jobs):
            found[jobs[job]] = job.result() | {"run": record.number}
            Console(width=140).print(f"{jobs[job]}: {found[jobs[job]]}")
            found = {row: found[row] for row in ROWS if row in found}
            record.write(payload(found, options, data))
    drawn = [shown(task, row, models) for row in ROWS]
    if all(path.exists() for path in drawn):
        known = np.stack([task.known(share)[place] for place, share in enumerate(SHARES)])
        above = shades(test[: len(SHARES)], data.levels)
        write_picture(
            grid([above, hidden(above, known), *(shades(np.load(path), data.levels) for path in drawn)], scale=2),
            pictures / f"fills_{name}.png",
        )
        record.write(payload(found, options, data) | {"picture": f"images/fills_{name}.png"})


def beside_rival(found: dict[str, Any]) -> list[dict[str, str]]:
    """The energy scores of the other rows less RePaint's, with standard errors of pairs of pictures."""
    lines = []
    for row, result in found.items():
        if row == RIVAL or RIVAL not in found:
            continue
        line = {"row": row}
        for share in SHARES:
            one, other = (np.array(part["scores"][str(share)]["energies"]) for part in (result, found[RIVAL]))
            line[f"{share} % missing"] = f"{(one - other).mean():+.3f} ± {standard_error(one - other):.3f}"
        lines.append(line)
    return lines


def payload(found: dict[str, Any], options: dict[str, Any], data: PictureSet) -> dict[str, Any]:
    """A table a measure, and the figures behind them."""
    tables = {}
    for measure in ("energy score", "PSNR", "SSIM", "agreement", "seconds"):
        lines = []
        for row, result in found.items():
            cells = {f"{share} % missing": result["scores"][str(share)].get(measure) for share in SHARES}
            lines.append({"row": row, **cells})
        if any(value is not None for line in lines for value in line.values()):
            tables[measure] = lines
    pairs = beside_rival(found)
    if pairs:
        tables[f"energy score less that of {RIVAL}"] = pairs
    return {
        "title": f"SFARM's Figure 3: pixels of {data.name} missing at random",
        "about": f"{options['count']} test pictures, {options['draws']} draws of each hole, {options['minutes']:g} "
        "minutes of training on one thread a row, networks of the same parts. Energy score: lower is better, in units "
        "of the full range; PSNR, SSIM: of the mean of the draws; agreement: how often a small classifier says the "
        "same of a draw as of the truth; seconds: to fill all of them.",
        "seed": options["seed"],
        **tables,
        "details": {"options": options, "by_row": found},
    }


if __name__ == "__main__":
    typer.run(main)
