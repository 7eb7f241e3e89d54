"""SFARM's Figures 7 and 8: how good samples are against the number of steps and the time they take.

    python benchmarks/pictures/steps.py --model MODEL [--set fashion_mnist] [--count 128]    (about twenty minutes)

Samples from nothing in 2, 8, 32, 128 and 512 network calls: equal groups of pixels in random order, the budget of the
dynamic programme, and (for few calls) surest first. The Frechet distance is taken between features of a small
classifier that is trained here (it is not the FID), against test pictures; that of as many training pictures shows what
can be reached, and equal groups are the baseline.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

import anyorder as ao
from anyorder.data import images as image_sets
from anyorder.data.picture_files import to_bytes, write_picture
from anyorder.modalities.images.model import ImageModel
from anyorder.modalities.images.plots import grid, shades
from anyorder.modalities.images.surprise import elements
from anyorder.model.few_steps import Budget, even

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from measures import classifier_of, features, frechet, inception_distance

from common import Json, Record, Smoke
from smoke_data import MINUTES

TIMES = ("networks", "model", "modalities/images")
STEPS = (2, 8, 32, 128, 512)
SURE = 8  # steps up to which the surest pixels are looked for: every call asks for the entropies of all that are left


def main(
    model: Annotated[Path | None, typer.Option(help="trained on the set", show_default=False)] = None,
    name: Annotated[str, typer.Option("--set", help="a set with labels")] = "fashion_mnist",
    count: Annotated[int, typer.Option(help="samples of each kind")] = 128,
    seed: int = 0,
    json: Json = None,
    smoke: Smoke = False,
    pictures: Annotated[Path, typer.Option(help="where the samples go, a row a number of steps")] = Path("docs/images"),
) -> None:
    """Draw, time and classifier."""
    torch.set_num_threads(2)
    budgets = STEPS
    if smoke:
        name, count, budgets = "digits", 4, (2, 4)
    record = Record(json, f"image_steps_{name}.json", smoke=smoke)
    pictures = record.beside(pictures)
    data = getattr(image_sets, name)()
    if smoke:
        loaded = ao.fit_images(data.training, levels=data.levels, minutes=MINUTES, seed=seed, config={"preset": "tiny"})
    elif model is None:
        raise typer.BadParameter("a trained model is needed", param_hint="--model")
    else:
        loaded = ao.load(model)
    assert isinstance(loaded, ImageModel)
    classifier = classifier_of(data, 5) if smoke else classifier_of(data)
    assert classifier is not None
    real = features(classifier, data.test[:5000].astype(float), data.levels)[0]
    best = frechet(features(classifier, data.training[:count].astype(float), data.levels)[0], real)
    lines: list[dict[str, Any]] = []
    shown = []
    pixels = elements(loaded.core)
    for steps in budgets:
        ways = {
            "equal groups": {"steps": Budget(even(pixels, steps), pixels, math.nan)},
            "measured budget": {"steps": loaded.budget(data.validation[: 8 if smoke else 256], steps)},
        }
        if steps <= SURE:
            ways["surest first"] = {"steps": steps, "order": "confidence"}
        line: dict[str, Any] = {"steps": steps, "surest first": "-"}
        for way, options in ways.items():
            began = time.perf_counter()
            drawn = loaded.sample(count, seed=seed, **options)  # type: ignore[arg-type]  # options of several kinds in one mapping
            seconds = time.perf_counter() - began
            line[way] = round(frechet(features(classifier, drawn.astype(float), data.levels)[0], real), 3)
            if way == "equal groups":
                line["seconds a sample"] = round(seconds / count, 4)
                real_fid = inception_distance(to_bytes(drawn, data.levels), to_bytes(data.test[:5000], data.levels))
                if real_fid is not None:
                    line["FID"] = round(real_fid, 2)
                shown.append(shades(drawn[:12], data.levels))
        lines.append(line)
        Console(width=120).print(line)
        record.write(payload(lines, loaded, data.name, name, count, best, seed))
        write_picture(grid(shown), pictures / f"steps_{name}.png")


def payload(
    lines: list[dict[str, Any]], model: ImageModel, title: str, name: str, count: int, best: float, seed: int
) -> dict[str, Any]:
    training = model.card["training"]
    return {
        "title": f"SFARM's Figures 7 and 8: steps, time and quality on {title}",
        "about": f"Frechet distance of {count} samples to 5,000 test pictures in the features of a small classifier "
        f"trained here (not the FID); lower is better, and {best:.1f} is that of as many training pictures. The model "
        f"trained for {training['seconds'] / 60:.0f} minutes ({training['parameters']:,} parameters).",
        "picture": f"images/steps_{name}.png",
        "seed": seed,
        "rows": lines,
    }


if __name__ == "__main__":
    typer.run(main)
