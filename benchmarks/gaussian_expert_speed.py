"""The Gaussian expert along a chain: one Cholesky factor a row against one for every step.

    python benchmarks/gaussian_expert_speed.py --json benchmarks/results/gaussian_expert_speed.json    (seconds)

Scoring a row of N columns with a residual MLP and its expert needs the expert's moments before each of N steps. The
obvious way, the baseline, factorises the known block of every step; the factor of the whole path already holds all of
them.
"""

from __future__ import annotations

from functools import partial

import torch
import typer
from rich.console import Console
from rich.table import Table
from torch import Tensor

from anyorder.networks.gaussian import conditional_moments, moments_along
from anyorder.protocols import Canonical
from anyorder.query import Chain, Query

from common import Json, Record, Smoke, best_of

TIMES = ("networks",)


def every_step(mean: Tensor, covariance: Tensor, values: Tensor, chain: Chain) -> None:
    """The obvious way: a factor of its own for every step."""
    for step in chain.unroll(1024):
        conditional_moments(mean, covariance, values[step.row], step.known)


def main(
    rows: int = 64,
    runs: int = 3,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Time both for several numbers of columns and print the ratio."""
    torch.set_num_threads(2)
    record = Record(json, smoke=smoke)
    sizes = (3, 5) if smoke else (10, 30, 100)
    table, results = Table("columns", "every step", "one factor", "ratio"), []
    for variables in sizes:
        generator = torch.Generator().manual_seed(0)
        root = torch.randn(variables, variables, generator=generator, dtype=torch.float64)
        covariance, mean = root @ root.T + torch.eye(variables), torch.zeros(variables, dtype=torch.float64)
        values = torch.randn(rows, variables, generator=generator, dtype=torch.float64)
        chain = Canonical().chain(Query.marginal(torch.ones(rows, variables, dtype=torch.bool)))

        slow = best_of(runs, partial(every_step, mean, covariance, values, chain))
        quick = best_of(runs, partial(moments_along, mean, covariance, values, chain.order))
        results.append({"columns": variables, "every step (s)": slow, "one factor (s)": quick, "ratio": slow / quick})
        table.add_row(str(variables), f"{slow:.4f} s", f"{quick:.4f} s", f"{slow / quick:.0f}")
    Console(width=100).print(table)
    about = f"Moments before every step of {rows} rows: one Cholesky factor a row against one a step."
    record.write({"title": "The Gaussian expert along a chain", "about": about, "seed": 0, "rows": results})


if __name__ == "__main__":
    typer.run(main)
