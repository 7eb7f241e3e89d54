"""How quickly questions are ranked: all candidates and draws as one batch, against the loop one would write first.

    python benchmarks/acquisition/speed.py [--minutes 0.5] [--json FILE]    (about five minutes)

Breast cancer: the 30 measurements are candidates about the diagnosis (a class), then about the mean radius (a number,
whose entropy is an integral). The loop draws each candidate's answer, asks for the target given it and takes its
entropy, one draw at a time, with the same model. Both in one process, the quickest of three runs (the loop: of one, on
every eighth draw, times eight).
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from sklearn.datasets import load_breast_cancer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import anyorder as ao
from anyorder.model import AnyOrderModel
from anyorder.questions.gains import Goal, expected_gains
from anyorder.questions.uncertainty import UNCERTAINTIES

from common import Json, Record, Smoke, best_of, print_rows
from smoke_data import MINUTES

TIMES = ("distributions", "heads", "networks", "model", "questions")
GOAL = UNCERTAINTIES["information"]
EVERY = 8


@torch.no_grad()
def loop(
    model: AnyOrderModel, row: torch.Tensor, known: torch.Tensor, target: int, candidates: list[int], draws: int
) -> None:
    """Candidate by candidate, draw by draw."""
    generator = torch.Generator().manual_seed(0)
    for place in candidates:
        entropies = []
        answers = model.heads.distribution(model.features_of(row, known, place).double(), place)
        for _ in range(draws):
            answer = answers.sample(generator)
            values, seen = row.clone(), known.clone()
            values[0, place], seen[0, place] = answer[0], True
            after = model.heads.distribution(model.features_of(values, seen, target).double(), target)
            entropies.append(float(after.entropy()[0]))
        np.mean(entropies)


def main(
    minutes: Annotated[float, typer.Option(help="training budget of each model")] = 0.5,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Fit one model of each engine and time them."""
    torch.set_num_threads(2)
    bunch = load_breast_cancer(as_frame=True)
    table = bunch.data.assign(diagnosis=np.array(["malignant", "benign"])[bunch.target])
    record, sizes = Record(json, "acquisition_speed.json", smoke=smoke), ((30, 256), (10, 256), (30, 64), (30, 1024))
    if smoke:
        table = table.iloc[:60, [0, 1, -1]]
        minutes, sizes = MINUTES, ((2, 16),)
    lines: list[dict[str, Any]] = []
    for engine in ("neural",) if smoke else ("neural", "auto"):
        fitted = ao.fit(table, minutes=minutes, engine=engine)
        model = fitted.core
        row, known = fitted.given({}).exact
        for about in ("diagnosis", "mean radius"):
            target = model.schema.index(about)
            others = [place for place in range(model.variables) if place != target][:30]
            goal = Goal((target,), GOAL)
            for candidates, draws in sizes:
                groups = [(place,) for place in others[:candidates]]
                batch = partial(expected_gains, model, row, known, goal, groups, draws)
                batch()
                seconds = best_of(3, batch)
                line: dict[str, Any] = {"engine": engine, "about": about, "candidates": candidates, "draws": draws}
                line["one batch"] = f"{seconds:.3f} s"
                line["candidates a second"] = f"{candidates / seconds:.0f}"
                if (candidates, draws) == sizes[0]:
                    loop(model, row, known, target, others[:2], 2)
                    began = time.perf_counter()
                    loop(model, row, known, target, others, draws // EVERY)
                    slow = EVERY * (time.perf_counter() - began)
                    settled = best_of(3, partial(fitted.next_question, {}, about))
                    line |= {
                        "next_question": f"{settled:.3f} s",
                        "loop": f"{slow:.1f} s",
                        "ratio": f"{slow / seconds:.0f}",
                    }
                else:
                    line |= {"next_question": "", "loop": "", "ratio": ""}
                lines.append(line)
    print_rows(lines)
    record.write(
        {
            "title": "Ranking questions: one batch against a loop",
            "about": "Breast cancer, nothing known, up to 30 candidates; seconds of the quickest of three runs. "
            "`next_question` adds draws only where the ranking is not settled (at most 256). The loop asks one draw at "
            f"a time, timed on every {EVERY}th draw.",
            "seed": 0,
            "rows": lines,
        },
    )


if __name__ == "__main__":
    typer.run(main)
