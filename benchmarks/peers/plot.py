"""The picture of the comparison: CRPS of every method over that of the best peer, table by table.

python benchmarks/peers/plot.py [--json benchmarks/results/peers.json] [--out docs/images/peers.png]    (seconds)
"""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import Annotated, Any

import matplotlib.pyplot as plt
import numpy as np
import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common import Record, Smoke
from methods import METHODS, PEERS
from report import wide
from sets import MECHANISMS, SETS
from table_sets import label

TIMES = ()  # it draws what was measured
COLOURS = {
    "mean/mode": "#bdbdbd",
    "hot deck": "#8c8c8c",
    "linear chain": "#c9b458",
    "pylace": "#17becf",
    "utrees K=10": "#7fc99b",
    "utrees": "#2a9d5c",
    "miceforest": "#8a5fbf",
    "BayesianRidge": "#e0a100",
    "random forest": "#8c564b",
    "mostlyai-engine": "#2f7fc1",
    "anyorder neural": "#f4a3a3",
    "anyorder trees": "#e36a6a",
    "anyorder auto": "#b3001b",
    "anyorder 15 s": "#ff7f0e",
}
PEERS_JSON = Path("benchmarks/results/peers.json")
FARTHEST = 4.0
"""Ratios beyond this are drawn at the edge."""


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """One panel a mechanism, one line a table, one dot a method; the line at 1 is the best peer."""
    ratios = wide(rows, "crps")
    ratios = ratios.div(ratios.reindex(columns=PEERS).min(axis=1), axis=0)
    sets = [name for name in reversed(SETS) if name in ratios.index.get_level_values("set")]
    mechanisms = [name for name in MECHANISMS if name in ratios.index.get_level_values("mechanism")]
    size = (1.5 + 4 * len(mechanisms), 1.6 + 0.6 * len(sets))
    figure, panels = plt.subplots(1, len(mechanisms), figsize=size, sharey=True, layout="constrained", squeeze=False)
    titles = {
        "mcar": "hidden completely at random",
        "mar": "hidden at random given other columns",
        "varied": "every row hides a share of its own",
    }
    methods = [name for name in METHODS if name in ratios]
    for panel, mechanism in zip(panels[0], mechanisms, strict=True):
        panel.axvline(1.0, color="#444444", linewidth=0.8, zorder=1)
        for place, name in enumerate(sets):
            if place % 2:
                panel.axhspan(place - 0.5, place + 0.5, color="#f3f3f3", zorder=0)
            if (name, mechanism) not in ratios.index:
                continue
            for offset, method in enumerate(methods):
                ratio = min(ratios.loc[(name, mechanism), method], FARTHEST)  # NaN where it failed: no dot
                ours = method.startswith("anyorder")
                shape = {"marker": "D" if ours else "o", "s": 42 if ours else 30, "zorder": 4 if ours else 3}
                height = place + 0.36 * (1 - 2 * offset / max(len(methods) - 1, 1))
                panel.scatter(ratio, height, color=COLOURS[method], edgecolor="white", linewidth=0.5, **shape)
        panel.set_xscale("log")
        ticks = [0.6, 0.8, 1, 1.5, 2, 3, FARTHEST]
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
        panel.set_xlim(0.58, FARTHEST * 1.06)
        panel.set_ylim(-0.5, len(sets) - 0.5)
        panel.set_title(titles[mechanism], fontsize=10)
        panel.set_xlabel("CRPS over that of the best peer (left is better)")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0, 0].set_yticks(range(len(sets)), [f"{name} ({label(name)})" for name in sets])
    handles = [
        plt.Line2D([], [], linestyle="", marker="D" if m.startswith("anyorder") else "o", color=COLOURS[m], label=m)
        for m in methods
    ]
    columns = 3 if len(mechanisms) == 1 else 5  # as many as there is room for below the panels
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def made_up() -> list[dict[str, Any]]:
    """Scores of every method on every table, for a smoke run."""
    rng = np.random.default_rng(0)
    tables = [(name, mechanism, method) for name in SETS for mechanism in MECHANISMS for method in METHODS]
    return [dict(zip(("set", "mechanism", "method"), table, strict=True), crps=rng.random()) for table in tables]


def main(
    json: Annotated[Path, typer.Option(help="the result file")] = PEERS_JSON,
    out: Annotated[Path, typer.Option(help="the picture")] = Path("docs/images/peers.png"),
    smoke: Smoke = False,
) -> None:
    """Draw the picture from the committed results."""
    # A smoke run reads no results: its --json only says where the picture goes.
    record = Record(json if json != PEERS_JSON else None, smoke=smoke)
    draw(made_up() if smoke else json_format.loads(json.read_text(encoding="utf-8"))["details"], record.beside(out))


if __name__ == "__main__":
    typer.run(main)
