"""SFARM's Figure 5: RMSE and NLL of the target against the number of acquired features, on Yacht, Energy, Concrete.

    python benchmarks/acquisition/figure5.py [--splits 5] [--minutes 1] [--resume] [--json FILE]    (two hours)

The first of the 20 standard splits; standardised columns with 0.05 standard deviations of noise, as in SFARM's Table 1
(sfarm_table1.py). Of every test row nothing is known at first; features are acquired one after the other until all
are. The area under a curve is its mean over 0 .. N acquired features.

anyorder     default settings; rewards: information, variance, error, and the histogram of HH-VAEM; a random and a
             fixed order (greedy, for a case of which nothing is known); the oracle is greedy by the squared error
             that the true answers leave; random and fixed order are the plain baselines
VAE, MIWAE   three layers of 32 units; reward: the five-bin histogram of joint draws, as in HH-VAEM
SFARM        the paper's table model (sfarm_table1.py), same reward

The VAE is trained on complete rows, MIWAE with a uniform number of cells hidden. Every model trains for the same time
on one thread at most, but for SFARM, which trains for its 2,000 epochs or until it no longer improves.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from policies import Policy, acquire, at_random, by_reward, in_order, oracle
from predictors import SHARED, Latent, Library, Predictor

import anyorder as ao
from anyorder.baselines import MIWAE, VAE, Schedule
from anyorder.questions.uncertainty import UNCERTAINTIES
from sfarm_table1 import GENERATED, SFARM_MINUTES, load, sfarm

from common import Json, Record, Smoke, listed, print_rows
from smoke_data import MINUTES

TIMES = ("heads", "networks", "model", "training", "questions", "baselines")
SETS = ("yacht", "energy", "concrete")
ROWS = (
    "anyorder, information",
    "anyorder, variance",
    "anyorder, error",
    "anyorder, histogram",
    "anyorder, fixed order",
    "anyorder, random",
    "anyorder, oracle (sees the answers)",
    "VAE, histogram",
    "MIWAE, histogram",
    "SFARM, histogram",
)
DRAWS = 16  # stratified answers behind a gain at least
SAMPLES = 200  # joint draws behind a histogram
FIXED = 256  # stratified answers behind each step of the fixed order


def run(name: str, split: int, minutes: float, sfarm_minutes: float, rewards: tuple[str, ...]) -> dict[str, Any]:
    """All curves of one split."""
    torch.set_num_threads(1)
    train, test = load(name, split)
    if name == GENERATED:
        test = test.iloc[:4]
    target = train.shape[1] - 1
    began = time.monotonic()
    kinds = dict.fromkeys(train.columns, "continuous")
    engine = "neural" if name == GENERATED else "auto"
    fitted = ao.fit(train, minutes=minutes, seed=split, kinds=kinds, engine=engine)
    seconds = {"anyorder": time.monotonic() - began}
    encoded, _ = fitted.core.encoding.encode(test)
    ours = Library(fitted.core, target, DRAWS if name == GENERATED else SHARED)
    truth = test.to_numpy()[:, target]
    features = list(range(target))
    runs: dict[str, tuple[Predictor, Policy, np.ndarray]] = {}
    for reward in rewards:
        runs[f"anyorder, {reward}"] = (ours, by_reward(ours, reward, DRAWS), encoded)
    runs["anyorder, histogram"] = (ours, by_reward(ours, "histogram", SAMPLES), encoded)
    runs["anyorder, fixed order"] = (ours, in_order(ours.fixed_order(features, FIXED)), encoded)
    runs["anyorder, random"] = (ours, at_random(split), encoded)

    def squared(predicted: np.ndarray, code: np.ndarray) -> np.ndarray:
        return (predicted - truth) ** 2

    runs[ROWS[6]] = (ours, oracle(ours, squared), encoded)
    for label, kind, hide in (("VAE", VAE, "none"), ("MIWAE", MIWAE, "uniform")):
        began = time.monotonic()
        model = kind(train.shape[1], seed=split)
        schedule = Schedule(minutes=minutes, hide=hide, seed=split)
        model.fit(train.to_numpy(), np.ones(train.shape, dtype=bool), schedule)
        seconds[label] = time.monotonic() - began
        predictor = Latent(model, target)
        runs[f"{label}, histogram"] = (predictor, by_reward(predictor, "histogram", SAMPLES), test.to_numpy())
    began = time.monotonic()
    paper = ao.fit(train, minutes=sfarm_minutes, seed=split, kinds=kinds, config=sfarm(len(train)))
    seconds["SFARM"] = time.monotonic() - began
    theirs = Library(paper.core, target, DRAWS if name == GENERATED else SHARED)
    its_values, _ = paper.core.encoding.encode(test)
    runs["SFARM, histogram"] = (theirs, by_reward(theirs, "histogram", SAMPLES), its_values)
    out: dict[str, Any] = {"seconds": {label: round(value, 1) for label, value in seconds.items()}, "curves": {}}
    for label, (predictor, policy, values) in runs.items():
        began = time.monotonic()
        predictions, log_probs, _ = acquire(predictor, policy, values, np.ones(values.shape, dtype=bool))
        out["curves"][label] = {
            "rmse": [float(np.sqrt(((mean - truth) ** 2).mean())) for mean in predictions],
            "nll": [float(-nats.mean()) for nats in log_probs],
            "seconds": round(time.monotonic() - began, 1),
        }
    return out


def main(
    splits: Annotated[int, typer.Option(help="the first so many of the 20 standard splits")] = 5,
    minutes: Annotated[float, typer.Option(help="training budget of each model on each split")] = 1.0,
    sfarm_minutes: Annotated[float, typer.Option(help="the most for SFARM, which ends by itself")] = SFARM_MINUTES,
    rewards: Annotated[str, typer.Option(help="of the library, comma-separated")] = "information,variance,error",
    sets: Annotated[str, typer.Option(help="comma-separated; all by default")] = "",
    workers: Annotated[int, typer.Option(help="splits at a time, one thread each")] = 2,
    resume: Annotated[bool, typer.Option(help="do only what the JSON file lacks")] = False,
    json: Json = None,
    smoke: Smoke = False,
    picture: Path = Path("docs/images/acquisition.png"),
) -> None:
    """Run split by split, print the areas and draw the curves."""
    record = Record(json, "acquisition_figure5.json", smoke=smoke)
    names, wanted = listed(sets, SETS), tuple(listed(rewards, list(UNCERTAINTIES)))
    if smoke:
        splits, minutes, sfarm_minutes, names, workers = 1, MINUTES, MINUTES, [GENERATED], 1
    options = {
        "minutes": minutes,
        "sfarm_minutes": sfarm_minutes,
        "rewards": list(wanted),
        "draws": [DRAWS, SHARED, SAMPLES, FIXED],
    }
    found: dict[str, Any] = record.earlier(options, "by_split") if resume else {}
    console = Console(width=150)
    todo = [(name, split) for split in range(splits) for name in names if str(split) not in found.get(name, {})]
    with ProcessPoolExecutor(workers) as pool:
        jobs = {pool.submit(run, name, split, minutes, sfarm_minutes, wanted): (name, split) for name, split in todo}
        for job in as_completed(jobs):
            name, split = jobs[job]
            found.setdefault(name, {})[str(split)] = job.result() | {"run": record.number}
            console.print(f"{name}, split {split}: {found[name][str(split)]['seconds']}")
            record.write(payload(found, options))
    plot(found, record.beside(picture))
    print_rows(payload(found, options)["rows"])


def areas(found: dict[str, Any], name: str, label: str, what: str) -> np.ndarray:
    """The mean of each split's curve."""
    return np.array([np.mean(split["curves"][label][what]) for split in found[name].values()])


def payload(found: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The table as the documentation shows it, and every curve."""
    rows = []
    names = [name for name in (*SETS, GENERATED) if name in found]
    there = next(iter(found[names[0]].values()))["curves"]
    for label in [label for label in ROWS if label in there]:
        row: dict[str, Any] = {"model, reward": label}
        for name in names:
            area = areas(found, name, label, "rmse")
            row[f"RMSE, {name}"] = show(area)
        row["RMSE, mean"] = f"{np.mean([areas(found, name, label, 'rmse').mean() for name in names]):.3f}"
        row["over fixed order"] = over_fixed(found, names, label)
        row["NLL, mean"] = f"{np.mean([areas(found, name, label, 'nll').mean() for name in names]):.3f}"
        rows.append(row)
    most = max((len(by_split) for by_split in found.values()), default=0)
    return {
        "title": "What to measure next: SFARM's Figure 5",
        "about": "Area under the curve of the target's test RMSE (and NLL, nats) against the number of acquired "
        "features, nothing known at first, all at the end (lower is better); mean ± standard error over the first "
        f"{most} of the 20 standard splits, standardised columns with 0.05 standard deviations of noise. Every "
        f"model trains for {options['minutes']:g} minutes at most on one thread, but for SFARM, which does its 2,000 "
        f"epochs or stops when it no longer improves. Gains by {SHARED:,} stratified answers shared out to the cases, "
        f"{DRAWS} each or more; histograms by {SAMPLES} joint draws of each "
        f"case. The fixed order is the greedy one for a case of which nothing is known, by {FIXED} answers; the oracle "
        "tries the true answers and keeps what leaves the least squared error: no method, since it sees them.",
        "picture": "images/acquisition.png",
        "seed": "the number of the split",
        "rows": rows,
        "details": {"options": options, "by_split": found},
    }


def over_fixed(found: dict[str, Any], names: list[str], label: str) -> str:
    """How much greater the RMSE area is than that of the fixed order, in pairs of the same split and model."""
    shared = [split for split in found[names[0]] if all(split in found[name] for name in names)]
    each = {
        one: [np.mean([np.mean(found[name][split]["curves"][one]["rmse"]) for name in names]) for split in shared]
        for one in (label, ROWS[4])
    }
    return show(np.array(each[label]) - np.array(each[ROWS[4]]))


def show(values: np.ndarray) -> str:
    if len(values) < 2:
        return f"{values.mean():.3f}"
    return f"{values.mean():.3f} ± {values.std(ddof=1) / len(values) ** 0.5:.3f}"


def plot(found: dict[str, Any], path: Path) -> None:
    """RMSE above, NLL below, a column a set."""
    from anyorder.support.plotting import BLUE, INK, ORANGE, RED, SOFT, new_figure, style

    looks = {
        ROWS[0]: (BLUE, "-", 2.2),
        ROWS[3]: (BLUE, "--", 1.2),
        ROWS[4]: (INK, "-", 1.2),
        ROWS[5]: (SOFT, "-", 1.2),
        ROWS[6]: (SOFT, ":", 1.2),
        ROWS[7]: (RED, "-", 1.2),
        ROWS[8]: (ORANGE, "-", 1.2),
        ROWS[9]: (RED, "--", 1.2),
    }
    names = [name for name in (*SETS, GENERATED) if name in found]
    figure = new_figure(3.6 * len(names), 5.6)
    for column, name in enumerate(names):
        for line, what in enumerate(("rmse", "nll")):
            axes = figure.add_subplot(2, len(names), line * len(names) + column + 1)
            style(axes)
            for label, (colour, dash, width) in looks.items():
                if label not in next(iter(found[name].values()))["curves"]:
                    continue
                curves = np.array([split["curves"][label][what] for split in found[name].values()])
                mean, steps = curves.mean(axis=0), np.arange(curves.shape[1])
                axes.plot(steps, mean, color=colour, linestyle=dash, linewidth=width, label=label)
                if len(curves) > 1:
                    error = curves.std(axis=0, ddof=1) / len(curves) ** 0.5
                    axes.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.12, linewidth=0)
            axes.set_title(f"{name}: {what.upper()}", loc="left", fontsize=10, color=INK)
            if line:
                axes.set_xlabel("acquired features", fontsize=9)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)


if __name__ == "__main__":
    typer.run(main)
