"""Which column to ask for next when the target is a class: breast cancer, chronic kidney disease, adult.

    python benchmarks/acquisition/classes.py [--minutes 1] [--json FILE]    (about twenty minutes)

Accuracy and log-loss of the class on test rows against the number of acquired columns and, for kidney disease, against
what they cost. Nothing is known at first; a cell that is missing in the test table cannot be acquired. Kidney disease
has 10 % of its cells really missing, in training too. A quarter of the rows is the test part; of adult, 4,000 rows are
trained on and 200 tested. The plain baselines are a random column and one fixed order for all rows.

The costs are ours, for the sake of the example: what can be asked or seen costs 1, a urine test 4, a blood test 8.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer
from sklearn.datasets import load_breast_cancer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from policies import acquire, at_random, by_reward, in_order, oracle
from predictors import SHARED, Array, Library

import anyorder as ao

from common import Json, Record, Smoke, listed, print_rows
from smoke_data import MINUTES

TIMES = ("heads", "networks", "model", "training", "questions")
URINE = ("sg", "al", "su", "rbc", "pc", "pcc", "ba")
BLOOD = ("bgr", "bu", "sc", "sod", "pot", "hemo", "pcv", "wbcc", "rbcc", "ane")
MOST = {"breast cancer": 8, "kidney": 14, "adult": 10}
TARGETS = {"breast cancer": "diagnosis", "kidney": "class", "adult": "income"}
DRAWS = 16
TESTED = 200
MOST_COST = 30


def tables(name: str, seed: int) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Training and test rows, or None where the file is not at hand."""
    rng = np.random.default_rng(seed)
    if name == "breast cancer":
        bunch = load_breast_cancer(as_frame=True)
        table = bunch.data.assign(diagnosis=np.array(["malignant", "benign"])[bunch.target])
    else:
        folder = Path(os.environ.get("ANYORDER_DATA", ""))
        path = folder / {"kidney": "chronic_kidney_disease.csv.gz", "adult": "adult_train.csv.gz"}[name]
        if not path.exists():
            return None
        table = pd.read_csv(path, na_values=["?"], skipinitialspace=True)
        table = table.rename(columns={table.columns[-1]: TARGETS[name]})
    table = table.iloc[rng.permutation(len(table))].reset_index(drop=True)
    test = min(TESTED, len(table) // 4)
    return table.iloc[test : test + 4000].reset_index(drop=True), table.iloc[:test].reset_index(drop=True)


def run(name: str, minutes: float, seed: int, smoke: bool) -> dict[str, Any] | None:
    """Curves of every policy on one set."""
    found = tables(name, seed)
    if found is None:
        return None
    train, test = found
    most = MOST[name]
    if smoke:
        train, test, most = train.iloc[:60, -4:], test.iloc[:4, -4:], 2
    fitted = ao.fit(train, minutes=minutes, seed=seed, engine="neural" if smoke else "auto")
    core, target = fitted.core, fitted.schema.index(TARGETS[name])
    values, there = core.encoding.encode(test, "missing")
    predictor = Library(core, target, DRAWS if smoke else SHARED)
    truth = values[:, target].astype(int)
    features = [place for place in range(core.variables) if place != target]
    costs = np.array([_cost(name, column) for column in core.schema.names])

    def wrong(predicted: Array, codes: Array) -> Array:
        return -np.log(np.maximum(predicted[np.arange(len(codes)), codes.astype(int)], 1e-12))

    policies = {
        "information": by_reward(predictor, "information", DRAWS),
        "error": by_reward(predictor, "error", DRAWS),
        "fixed order": in_order(predictor.fixed_order(features, 64, most)),
        "random": at_random(seed),
        "oracle (sees the answers)": oracle(predictor, wrong),
    }
    if len(set(costs.tolist())) > 1:
        plain = policies["information"]
        policies["information per cost"] = lambda values, known, step: plain(values, known, step) / costs
    out: dict[str, Any] = {"rows": [len(train), len(test)], "curves": {}}
    for label, policy in policies.items():
        predictions, log_probs, order = acquire(predictor, policy, values, there, most)
        spent = np.cumsum(np.where(order >= 0, costs[order], 0.0), axis=1)
        right = np.array([p.argmax(axis=1) == truth for p in predictions])
        losses = -np.array(log_probs)
        out["curves"][label] = {
            "accuracy": right.mean(axis=1).tolist(),
            "log_loss": losses.mean(axis=1).tolist(),
            "by_cost": [float(part) for part in by_cost(losses, spent)],
            "first": core.schema.names[int(np.bincount(order[:, 0][order[:, 0] >= 0]).argmax())],
        }
    predicted, log_probs_all = predictor.predicted(values, there & (np.arange(core.variables) != target))
    out["all columns"] = {
        "accuracy": float((predicted.argmax(axis=1) == truth).mean()),
        "log_loss": float(-log_probs_all.mean()),
    }
    return out


def _cost(name: str, column: str) -> float:
    if name != "kidney":
        return 1.0
    return 4.0 if column in URINE else 8.0 if column in BLOOD else 1.0


def main(
    minutes: Annotated[float, typer.Option(help="training budget of each set")] = 1.0,
    sets: Annotated[str, typer.Option(help="comma-separated; all by default")] = "",
    seed: int = 0,
    threads: Annotated[int, typer.Option(min=1)] = 2,
    json: Json = None,
    smoke: Smoke = False,
    picture: Path = Path("docs/images/acquisition_classes.png"),
) -> None:
    """Run set by set, print areas and draw the curves."""
    torch.set_num_threads(threads)
    record, names = Record(json, "acquisition_classes.json", smoke=smoke), listed(sets, list(TARGETS))
    if smoke:
        minutes, names = MINUTES, ["breast cancer"]  # it comes with scikit-learn
    found: dict[str, Any] = {}
    for name in names:
        curves = run(name, minutes, seed, smoke)
        if curves is not None:
            found[name] = curves
            record.write(payload(found, minutes, seed))
    print_rows(payload(found, minutes, seed)["rows"])
    plot(found, record.beside(picture))


def payload(found: dict[str, Any], minutes: float, seed: int) -> dict[str, Any]:
    """The table as the documentation shows it, and every curve."""
    rows = []
    for name, facts in found.items():
        for label, curve in facts["curves"].items():
            steps = MOST[name] + 1
            row: dict[str, Any] = {"set": name, "policy": label, "asked first": curve["first"]}
            row["log-loss, mean"] = f"{np.mean(curve['log_loss'][:steps]):.3f}"
            row["accuracy, mean"] = f"{np.mean(curve['accuracy'][:steps]):.3f}"
            for count in (1, 3, 5):
                if count < len(curve["accuracy"]):
                    row[f"accuracy, {count} known"] = f"{curve['accuracy'][count]:.3f}"
            row["log-loss by cost, mean"] = f"{np.mean(curve['by_cost']):.3f}" if name == "kidney" else "-"
            rows.append(row)
    return {
        "title": "What to ask for next, about a class",
        "about": "Test accuracy and log-loss (nats) of the class against the number of acquired columns, nothing known "
        f"at first; means over the first {MOST} acquisitions. The last column is the mean log-loss over budgets of 0 "
        f"to {MOST_COST}, each row having spent what it could (what can be asked or seen costs 1, a urine test 4, a "
        "blood test 8: costs of our own). Cells that are missing in the test table cannot be acquired. One model for "
        f"each set, {minutes:g} minutes of training.",
        "picture": "images/acquisition_classes.png",
        "seed": seed,
        "rows": rows,
        "details": found,
    }


def by_cost(losses: Array, spent: Array) -> Array:
    """The mean loss when each row has spent what it could of 0, 1, ... units, by its own order."""
    paid = np.concatenate([np.zeros((len(spent), 1)), spent], axis=1)
    places = np.stack([(paid <= budget).sum(axis=1) - 1 for budget in range(MOST_COST + 1)])
    return np.asarray(losses[places, np.arange(len(paid))].mean(axis=1))


def plot(found: dict[str, Any], path: Path) -> None:
    """Log-loss against columns, a panel a set; the last one against cost."""
    from anyorder.support.plotting import BLUE, INK, ORANGE, RED, SOFT, new_figure, style

    colours = dict(
        zip(
            ("information", "error", "fixed order", "random", "oracle (sees the answers)", "information per cost"),
            (BLUE, ORANGE, INK, SOFT, SOFT, RED),
            strict=True,
        )
    )
    panels = [(name, "columns") for name in found] + [("kidney", "cost")] * ("kidney" in found)
    figure = new_figure(3.4 * len(panels), 3.4)
    handles: dict[str, Any] = {}
    for place, (name, against) in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), place + 1)
        style(axes)
        for label, curve in found[name]["curves"].items():
            dash = ":" if label.startswith("oracle") else "-"
            heights = curve["by_cost" if against == "cost" else "log_loss"]
            (handles[label],) = axes.plot(heights, color=colours[label], linestyle=dash, label=label)
        axes.set_xlim(0, MOST_COST if against == "cost" else MOST[name])
        axes.set_ylim(bottom=0)
        axes.set_title(f"{name}: log-loss", loc="left", fontsize=10, color=INK)
        axes.set_xlabel("spent" if against == "cost" else "acquired columns", fontsize=9)
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)


if __name__ == "__main__":
    typer.run(main)
