"""The normaliser of an energy head: quadrature against importance sampling, as ACE does it, for bias and time.

    python benchmarks/energy_normaliser.py --json benchmarks/results/energy_normaliser.json    (about two minutes)

Energies of several sharpnesses on random proposals; log p(x) at one draw of each. The truth is a grid of 400,001
points; the plain baseline is importance sampling with ACE's 20 draws. Bar: quadrature within 1e-5 of it everywhere.
Importance sampling overestimates log p: the log of a mean of draws is on average below the log of their expectation.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
import typer
from rich.console import Console
from rich.table import Table

from anyorder.heads.energy import Energy, EnergyDistribution

from common import Json, Record, Smoke, best_of

TIMES = ("heads", "distributions")
BAR = 1e-5
GRID = 400_001


def head(sharpness: float, normaliser: str = "quadrature", draws: int = 20) -> Energy:
    """The same weights whatever the normaliser; ``sharpness`` scales what enters and leaves the energy."""
    made = Energy(normaliser=normaliser, evaluation_draws=draws).eval()
    with torch.no_grad():
        made.network.read_value.weight.mul_(sharpness)
        made.network.leave.weight.mul_(10 * sharpness)
    return made


@torch.no_grad()
def truth(distribution: EnergyDistribution, value: torch.Tensor) -> torch.Tensor:
    """log p on the fine grid, element by element, in float64."""
    out = []
    for row in range(len(value)):
        one = distribution._double()._flat_rows(slice(row, row + 1))
        reach = 9 * one.proposal.log_scales.exp()
        low, high = float((one.proposal.means - reach).min()), float((one.proposal.means + reach).max())
        grid = torch.linspace(low, high, GRID, dtype=torch.float64)
        tilted = torch.cat([one._log_tilted(part[None])[0] for part in grid.split(20_000)])
        log_z = torch.trapezoid(tilted.exp(), grid).log()
        out.append(one._log_tilted(value[row].double().view(1, 1))[0, 0] - log_z)
    return torch.stack(out)


@torch.no_grad()
def score(made: Energy, features: torch.Tensor) -> torch.Tensor:
    """What is timed."""
    return made(features).log_prob(torch.zeros(len(features)))


def main(
    rows: int = 24,
    timed: int = 512,
    runs: int = 3,
    repeated: int = 50,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Error and time of each normaliser, and the bar."""
    torch.set_num_threads(1)
    record = Record(json, smoke=smoke)
    if smoke:
        rows, timed, runs, repeated = 2, 16, 1, 2
    ways = [("quadrature", 0), *(("importance", draws) for draws in (20, 100, 1000, 10_000))]
    results: list[dict[str, object]] = []
    worst = 0.0
    table = Table("sharpness", "normaliser", "bias", "rms", "largest", "ms a row", "ratio")
    for sharpness in (1.0, 3.0, 10.0):
        exact = head(sharpness)
        features = exact.start() + 0.5 * torch.randn(timed, exact.size, generator=torch.Generator().manual_seed(0))
        some = exact(features[:rows])
        value = some.sample(torch.Generator().manual_seed(1))
        expected = truth(some, value)
        quick = 0.0
        for normaliser, draws in ways:
            made = head(sharpness, normaliser, max(draws, 1))
            repeats = 1 if not draws else max(2, min(repeated, 20_000 // draws))
            asked = made(features[:rows])
            with torch.no_grad():
                # Each repeat draws afresh: the bias is the mean over repeats, not the luck of one.
                found = torch.stack([replace(asked, seed=seed).log_prob(value).double() for seed in range(repeats)])
                error = found - expected
                many = timed if draws <= 1000 else timed // 8
                work = partial(score, made, features[:many])
                seconds = best_of(runs, work)
            milliseconds = 1000 * seconds / many
            quick = milliseconds if normaliser == "quadrature" else quick
            bias, largest = float(error.mean()), float(error.abs().max())
            worst = max(worst, largest) if normaliser == "quadrature" else worst
            name = normaliser if not draws else f"{normaliser}, {draws} draws"
            spread = float(error.square().mean().sqrt())
            row = {
                "sharpness": sharpness,
                "normaliser": normaliser,
                "draws": draws,
                "bias": bias,
                "rms": spread,
                "largest": largest,
            }
            results.append({**row, "milliseconds_per_row": milliseconds, "time_over_quadrature": milliseconds / quick})
            table.add_row(
                f"{sharpness:g}",
                name,
                f"{bias:.2g}",
                f"{spread:.2g}",
                f"{largest:.2g}",
                f"{milliseconds:.3f}",
                f"{milliseconds / quick:.2f}",
            )
    console = Console()
    console.print(table)
    console.print(f"bar: quadrature within {BAR:g} of the grid: {'met' if worst < BAR else 'MISSED'} ({worst:.2g})")
    facts = {"rows": rows, "grid": GRID, "bar": BAR, "quadrature_largest_error": worst, "met": worst < BAR}
    about = "log p at one draw of each of some energies: error against a fine grid in float64, and milliseconds a row."
    record.write({"title": "The normaliser of an energy head", "about": about, "seed": 0, **facts, "results": results})
    if worst >= BAR:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
