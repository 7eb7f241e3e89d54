"""``anyorder fit-text``: one model for one corpus."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from anyorder.cli import show
from anyorder.cli.options import Json
from anyorder.cli.paths import check_folder, check_writable
from anyorder.cli.toml import read_toml
from anyorder.errors import UserError


def fit_text(
    corpus: Annotated[
        Path, typer.Argument(metavar="FILE", help="UTF-8 text; .xz and .zip are unpacked", show_default=False)
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="MODEL", help="where to write the model")],
    length: Annotated[int, typer.Option(min=2, help="characters in a window: how far the model sees")] = 250,
    unit: Annotated[str, typer.Option(help="characters, or bytes: any text at all")] = "characters",
    minutes: Annotated[float | None, typer.Option(help="time budget (10 if not given)", show_default=False)] = None,
    preset: Annotated[
        str | None, typer.Option(help="tiny, small (the default), medium, mac", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="the same seed gives the same model")] = 0,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="options from a TOML file")] = None,
    checkpoint: Annotated[Path | None, typer.Option(metavar="FOLDER", help="keep the state of the run here")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on from --checkpoint if it exists")] = False,
    log: Annotated[Path | None, typer.Option(metavar="JSONL", help="write the training curve here")] = None,
    tensorboard: Annotated[Path | None, typer.Option(metavar="FOLDER", help="the curve for TensorBoard")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda")] = "auto",
    as_json: Json = False,
) -> None:
    """Fit one model to a text: it fills holes, continues, scores and draws texts."""
    if resume and checkpoint is None:
        raise UserError("--resume needs --checkpoint FOLDER: the run to go on with")
    if minutes is not None and not minutes > 0:
        raise UserError(f"--minutes must be above 0, got {minutes:g}")
    for path in (out, log):
        check_writable(path)
    check_folder(checkpoint, "--checkpoint")
    check_folder(tensorboard, "--tensorboard")
    from anyorder.modalities.texts.fit import fit_text as fit

    model = fit(
        corpus,
        length=length,
        unit=unit,  # type: ignore[arg-type]  # checked there
        minutes=minutes,
        preset=preset,
        seed=seed,
        config=read_toml(config),
        checkpoint=checkpoint,
        resume=resume,
        log=log,
        tensorboard=tensorboard,
        progress=sys.stderr.isatty() and not as_json,
        device=device,
    )
    model.save(out)
    training, scores = model.card["training"], model.card["scores"]
    if training["interrupted"]:
        sys.stderr.write(f"anyorder: note: interrupted: kept the best of {training['steps']} steps\n")
    result: dict[str, Any] = {
        "model": str(out),
        "characters": model.card["data"]["characters"],
        "symbols": len(model.alphabet.symbols),
        "parameters": training["parameters"],
        "seconds": training["seconds"],
        "steps": training["steps"],
    }
    if as_json:
        show.print_json({**result, "card": model.card})
    else:
        show.print_facts({**result, "score": f"{scores['held_out']:.4f} ({scores['unit']})"})
