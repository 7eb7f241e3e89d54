"""SFARM's Figure 4 as a table: one uniform masking mode (ARDM) against the mixture of seven, same network, same time.

    python benchmarks/pictures/modes.py --set fashion_mnist [--minutes 10] [--json FILE]    (half an hour)

Conditional negative log-likelihood of the missing pixels given the known ones, in nats per missing pixel, for several
families of holes. Under a random order it is the sum over the steps t of E[-log p(x_i | known, t more)], with i any of
those that are still missing: as many terms as there are missing pixels, of which ``--steps`` are drawn for every
picture and averaged over all i at once (SFARM eqs. 7 to 11). That is unbiased and takes few passes. ± is the standard
error over pictures; that of the ratio is of pairs, since both rows see the same pictures, holes and steps. The same
stands beside it for answers in 32, 8 and one calls of the network, the pixels of a call independent given those before
(SFARM's fewer steps): what a fill in so few calls has for a likelihood. The first call is where the holes look least
like pixels missing at random. And scores of fills in 32 calls, which is what a person gets: the energy score, PSNR and
SSIM of their mean, and how often a small classifier says the same of a fill as of the truth. Both rows train at the
same time, one thread each; models that are there already are only asked. The uniform mode is the baseline. Some fills
are drawn as a grid.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray

from anyorder.data import images as image_sets
from anyorder.data.picture_files import write_picture
from anyorder.modalities.images.model import ImageModel
from anyorder.modalities.images.plots import grid, hidden, shades

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from conditional_likelihood import conditional
from holes import FAMILIES, GROUPS
from measures import Classifier, classifier_of, fill_scores, some_test, standard_error
from picture_models import ONE, ROWS, SEVEN, trained

from common import Json, Record, Smoke, print_rows
from smoke_data import MINUTES

TIMES = ("masking", "networks", "model", "training", "modalities/images")
FACTS = ("steps", "seconds", "parameters")
FILLED, DRAWS, CALLS = 32, 8, 32  # pictures, fills of each, network calls: behind an energy score
LIKELIHOODS: dict[str, int | None] = {"all": None, "32 calls": 32, "8 calls": 8, "one call": 1}
# Measures, and what their ratios are called.
MEASURES = {
    "all": "seven over one",
    "32 calls": "in 32 calls",
    "8 calls": "in 8 calls",
    "one call": "in one call",
    "energy": "energy score of fills",
}


def run(row: str, options: dict[str, Any], folder: Path, classifier: Classifier | None) -> dict[str, Any]:
    """Ask one row, trained on one set, about every family of holes."""
    torch.set_num_threads(1)
    count, steps, seed = options["count"], options["steps"], options["seed"]
    data = getattr(image_sets, options["set"])()
    model, _ = trained(data, row, ROWS[row], options["minutes"], seed=seed, threads=1, folder=folder)
    test = some_test(data, count)
    measured: dict[str, Any] = {}
    for family, masks in FAMILIES.items():
        known = masks(len(test), *test.shape[1:3], np.random.default_rng(3))
        drawn = model.fill(
            test[:FILLED], known[:FILLED], draws=options["draws"], steps=options["calls"], seed=seed
        ).astype(np.float64)
        measured[family] = {
            "missing": (~known).reshape(len(test), -1).sum(axis=1).tolist(),
            **{
                what: conditional(model, test, known, min(steps, calls or steps), calls=calls).round(3).tolist()
                for what, calls in LIKELIHOODS.items()
            },
            "fills": fill_scores(drawn.astype(np.float64), test[:FILLED], known[:FILLED], data.levels, classifier),
        }
    return {
        "measured": measured,
        **{fact: model.card["training"][fact] for fact in FACTS},
        "shown": fill_rows(model, test[:8], 2 * options["calls"], seed),
    }


def fill_rows(model: ImageModel, test: NDArray[np.uint8], calls: int, seed: int) -> list[Any]:
    """What is known and one fill, of each of some holes, for the picture."""
    rows = []
    for family in ("left half", "lower half", "patch inside", "all around a patch", "random, 90 %"):
        known = FAMILIES[family](len(test), *test.shape[1:3], np.random.default_rng(4))
        rows.append((known, model.fill(test, known, steps=calls, seed=seed)[0]))
    return rows


def main(
    name: Annotated[str, typer.Option("--set", help="binarized_mnist, mnist or digits as well")] = "fashion_mnist",
    minutes: Annotated[float, typer.Option(help="training budget of either row")] = 10.0,
    count: Annotated[int, typer.Option(help="test pictures")] = 150,
    steps: Annotated[int, typer.Option(help="terms drawn for every picture and family")] = 8,
    seed: int = 0,
    models: Annotated[Path, typer.Option(help="where models and their curves are kept")] = Path("build/pictures"),
    json: Json = None,
    smoke: Smoke = False,
    pictures: Annotated[Path, typer.Option(help="where the grid of fills goes")] = Path("docs/images"),
) -> None:
    """Train both rows and ask them."""
    torch.set_num_threads(1)
    workers, draws, calls = len(ROWS), DRAWS, CALLS
    if smoke:
        name, minutes, count, steps, workers, draws, calls = "digits", MINUTES, 8, 1, 1, 2, 2
    record = Record(json, f"image_modes_{name}.json", smoke=smoke)
    models, pictures = (record.beside(folder) for folder in (models, pictures))
    options: dict[str, Any] = {"set": name, "minutes": minutes, "count": count, "steps": steps, "seed": seed}
    options |= {"draws": draws, "calls": calls}
    data = getattr(image_sets, name)()
    classifier = classifier_of(data, 5) if smoke else classifier_of(data)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        jobs = {row: pool.submit(run, row, options, models, classifier) for row in ROWS}
        rows = {row: job.result() for row, job in jobs.items()}
    draw(name, {row: result.pop("shown") for row, result in rows.items()}, pictures / f"modes_{name}.png")
    found = {row: summed(result) for row, result in rows.items()} | {"ratios": ratios(rows[ONE], rows[SEVEN])}
    print_rows(table(found))
    record.write(payload(found, options, data.name))


def summed(result: dict[str, Any]) -> dict[str, Any]:
    """Nats per missing pixel of every family, with standard errors over pictures, and the scores of its fills."""
    scores = {}
    for family, one in result["measured"].items():
        missing = np.array(one["missing"], dtype=np.float64)
        scores[family] = {}
        for what in LIKELIHOODS:
            nats = np.array(one[what])
            mean = nats.sum() / missing.sum()
            scores[family][what] = (mean, standard_error(nats - mean * missing) / missing.mean())
        scores[family]["fills"] = {what: value for what, value in one["fills"].items() if what != "energies"}
    return {"scores": scores} | {fact: result[fact] for fact in FACTS}


def ratios(one: dict[str, Any], seven: dict[str, Any]) -> dict[str, Any]:
    """Seven modes over one less 1, of every family and of groups of them, with standard errors of pairs."""
    out: dict[str, Any] = {}
    for what in MEASURES:
        parts = {}
        for family in FAMILIES:
            first, second = (of_pictures(row["measured"][family], what) for row in (one, seven))
            ratio = second.sum() / first.sum()
            # Linearised: what each picture adds to the ratio of the two sums.
            parts[family] = (ratio - 1, (second - ratio * first) / first.mean())
        for group, members in GROUPS.items():
            # The families share their pictures, so their errors are added picture by picture.
            parts[f"mean of {group}"] = tuple(
                np.mean([parts[member][place] for member in members], axis=0) for place in (0, 1)
            )
        for family, (change, each) in parts.items():
            out.setdefault(family, {})[what] = (float(change), standard_error(each))
    return out


def of_pictures(measured: dict[str, Any], what: str) -> NDArray[np.float64]:
    """A measure of each picture."""
    return np.array(measured["fills"]["energies"] if what == "energy" else measured[what])


def draw(name: str, grids: dict[str, Any], path: Path) -> None:
    """Of each family of holes: what is known, then the fills of both rows."""
    data = getattr(image_sets, name)()
    test = some_test(data, 8)
    rows = [shades(test, data.levels)]
    for place in range(len(next(iter(grids.values())))):
        known = next(iter(grids.values()))[place][0]
        rows.append(hidden(shades(test, data.levels), known))
        rows += [shades(fills[place][1], data.levels) for fills in grids.values()]
    write_picture(grid(rows, scale=2), path)


def table(rows: dict[str, Any]) -> list[dict[str, str]]:
    """A line a family of holes."""
    lines = []
    for family, change in rows["ratios"].items():
        line = {"holes": family}
        for row in ROWS:
            scores = rows[row]["scores"].get(family)  # a group of families has only ratios
            line[row] = "" if scores is None else "{:.4f} ± {:.4f}".format(*scores["all"])
        for what, title in MEASURES.items():
            line[title] = f"{change[what][0]:+.1%} ± {change[what][1]:.1%}"
        lines.append(line)
    return lines


def fill_table(rows: dict[str, Any]) -> list[dict[str, Any]]:
    """A line a family of holes: how good the fills of both rows are."""
    lines = []
    for family in FAMILIES:
        line: dict[str, Any] = {"holes": family}
        for what in ("energy score", "PSNR", "SSIM", "agreement"):
            values = [rows[row]["scores"][family]["fills"].get(what) for row in ROWS]
            if None not in values:
                line[f"{what}, one / seven modes"] = " / ".join(f"{value:g}" for value in values)
        lines.append(line)
    return lines


def payload(found: dict[str, Any], options: dict[str, Any], title: str) -> dict[str, Any]:
    """The tables as the documentation shows them, and the figures behind them."""
    name = options["set"]
    return {
        "title": f"SFARM's Figure 4 as a table: masking modes on {title}",
        "about": f"Conditional NLL in nats per missing pixel (lower is better) on {options['count']} test pictures; "
        f"preset `small`, {options['minutes']:g} minutes on one thread each, both at the same time, the same options. "
        "In so many calls: answered in as many equal groups of pixels, those of a group independent given the ones "
        f"before; one by one elsewhere. Fills: {options['draws']} in {options['calls']} calls of each of {FILLED} of "
        "the pictures; energy score (lower is better), PSNR and SSIM of their mean, agreement of a small classifier on "
        "fill and truth. "
        "± of a ratio is of pairs of pictures. Every row is one training: how far two trainings of one row are apart "
        "has not been measured.",
        "picture": f"images/modes_{name}.png",
        "seed": options["seed"],
        "conditional NLL": table(found),
        "fills": fill_table(found),
        "details": {"options": options, "rows": found},
    }


if __name__ == "__main__":
    typer.run(main)
