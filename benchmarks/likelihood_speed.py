"""Exact joint log-likelihoods of 64 variables: a chain network in one pass against an unrolled mask transformer.

    python benchmarks/likelihood_speed.py --json benchmarks/results/likelihood_speed.json    (under a minute)

The baseline is the mask transformer, a pass for every variable. Both networks have the same width, blocks and heads
(parameter counts are printed) and score the same strings; weights do not matter for time. The ratio is of the best of a
few runs, taken in turns in one process.
"""

from __future__ import annotations

import torch
import typer
from rich.console import Console
from rich.table import Table

from anyorder.networks import BidirectionalTransformer, CausalTransformer, Network
from anyorder.networks.layout import Layout
from anyorder.protocols import Canonical
from anyorder.query import Query

from common import Json, Record, Smoke, best_of

TIMES = ("networks",)


@torch.no_grad()
def main(
    variables: int = 64,
    levels: int = 27,
    width: int = 128,
    blocks: int = 4,
    strings: int = 64,
    runs: int = 3,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Time both and print the ratio."""
    torch.set_num_threads(2)
    record = Record(json, smoke=smoke)
    if smoke:
        variables, width, blocks, strings, runs = 8, 16, 1, 4, 1
    torch.manual_seed(0)
    layout = Layout((levels,) * variables, (levels,) * variables, (0,) * variables, (variables,))
    networks: dict[str, Network] = {
        "chain (one pass)": CausalTransformer(layout, width=width, blocks=blocks, heads=4).eval(),
        "mask (unrolled)": BidirectionalTransformer(layout, width=width, blocks=blocks, heads=4).eval(),
    }
    values = torch.randint(levels, (strings, variables)).float()
    chain = Canonical().chain(Query.marginal(torch.ones(strings, variables, dtype=torch.bool)))
    table = Table("network", "parameters", "seconds", "strings a second")
    results = {}
    for name, network in networks.items():
        seconds = best_of(runs, lambda network=network: network.along(values, chain))
        parameters = sum(p.numel() for p in network.parameters())
        results[name] = {"parameters": parameters, "seconds": seconds, "strings_a_second": strings / seconds}
        table.add_row(name, f"{parameters:,}", f"{seconds:.3f}", f"{strings / seconds:,.0f}")
    ratio = results["mask (unrolled)"]["seconds"] / results["chain (one pass)"]["seconds"]
    Console(width=100).print(
        table, f"exact joint likelihood of {variables} variables: {ratio:.0f} times faster along the chain"
    )
    payload = {
        "title": f"Exact joint likelihood of {variables} variables",
        "about": f"{strings} strings, transformers of width {width} with {blocks} blocks, untrained (time does not "
        "depend on the weights); one process, best of a few runs.",
        "seed": 0,
        "rows": [{"network": name, **numbers} for name, numbers in results.items()],
        "ratio": round(ratio, 1),
    }
    record.write(payload)


if __name__ == "__main__":
    typer.run(main)
