"""``anyorder sample``: rows drawn from the model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anyorder.cli.options import ModelFile, Seed
from anyorder.cli.paths import check_table
from anyorder.cli.tables import check_names, load, write
from anyorder.errors import UserError
from anyorder.grammar import parse_evidence


def sample(
    model: ModelFile,
    count: Annotated[int, typer.Option("-n", "--count", help="how many rows")] = 100,
    given: Annotated[str, typer.Option(metavar="EVIDENCE", help="e.g. 'rooms=6, river=yes'", show_default=False)] = "",
    seed: Seed = 0,
    holes: Annotated[
        bool, typer.Option("--holes", help="leave cells empty as in the data (fit with --missingness joint)")
    ] = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="TABLE", help="standard output if none")] = None,
) -> None:
    """Draw full rows, with what is given kept fixed."""
    if count < 1:
        raise UserError(f"-n must be at least 1, got {count}")
    evidence = parse_evidence(given)
    check_table(out)
    loaded = load(model)
    check_names(loaded, evidence)
    write(loaded.given(evidence).sample(count, seed=seed, holes=holes), out)
