"""``anyorder fit-text``: one model for one corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anyorder.cli.configuration import read_toml
from anyorder.cli.signatures import spelled_out
from anyorder.cli.training_run import TrainingRun
from anyorder.support.interrupt import deferred_once_begun


@spelled_out
def fit_text(
    corpus: Annotated[
        Path, typer.Argument(metavar="FILE", help="UTF-8 text; .gz, .xz and .zip are unpacked", show_default=False)
    ],
    length: Annotated[int, typer.Option(min=2, help="characters in a window: how far the model sees")] = 250,
    unit: Annotated[str, typer.Option(help="characters, or bytes for any text at all")] = "characters",
    preset: Annotated[
        str | None,
        typer.Option(
            help="size of the network: tiny, small (the default), medium or mac; or a paper's network, masks and "
            "training for text8: mac_text8 or ardm_text8",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="auto (the default: a network and counts together), counts (in seconds), or neural", show_default=False
        ),
    ] = None,
    *,
    run: TrainingRun,
) -> None:
    """Fit one model to a text: it fills holes, continues, scores and draws texts."""
    from anyorder.modalities.texts.fit import fit_text as fit

    with deferred_once_begun():  # once training has begun, no signal costs what was trained before it is saved
        model = fit(
            corpus,
            length=length,
            unit=unit,  # type: ignore[arg-type]  # checked there
            preset=preset,
            engine=engine,  # type: ignore[arg-type]  # checked there
            config=read_toml(run.config),
            **run.arguments(),
        )
        facts = {"characters": model.card["data"]["characters"], "symbols": len(model.alphabet.symbols)}
        run.finish(model, {**facts, "parameters": model.card["training"]["parameters"]})
