"""``anyorder fit-images``: one model for pictures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from anyorder.cli import show
from anyorder.cli.images import is_array, read_pictures
from anyorder.cli.options import Json
from anyorder.cli.paths import check_folder, check_writable
from anyorder.cli.toml import read_toml
from anyorder.errors import UserError


def fit_images(
    pictures: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="a folder of pictures, or an .npz or .npy file", show_default=False)
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="MODEL", help="where to write the model")],
    size: Annotated[
        str | None,
        typer.Option(metavar="HxW", help="of a folder: scale to this, such as 32x32"),
    ] = None,
    grey: Annotated[bool | None, typer.Option("--grey/--colour", help="of a folder: one channel or three")] = None,
    levels: Annotated[int | None, typer.Option(help="values of a pixel: 256 in files, as found in arrays")] = None,
    minutes: Annotated[float | None, typer.Option(help="time budget (10 if not given)", show_default=False)] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="tiny, small (the default), mnist, fashion_mnist, cifar10, 64x64", show_default=False),
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
    """Fit one model to pictures: it fills holes of any shape, scores and draws pictures."""
    if resume and checkpoint is None:
        raise UserError("--resume needs --checkpoint FOLDER: the run to go on with")
    if minutes is not None and not minutes > 0:
        raise UserError(f"--minutes must be above 0, got {minutes:g}")
    for path in (out, log):
        check_writable(path)
    check_folder(checkpoint, "--checkpoint")
    check_folder(tensorboard, "--tensorboard")
    from anyorder.modalities.images.fit import fit_images as fit

    if levels is not None and not 2 <= levels <= 256:
        raise UserError(f"--levels must lie in 2..256, got {levels}")
    array = read_pictures(pictures, levels=levels, size=_size(size), colour=None if grey is None else not grey)
    model = fit(
        array,
        # A file may hold dark pictures alone: its levels are those of a byte all the same.
        levels=levels if levels is not None or is_array(pictures) else 256,
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
        "pictures": model.card["data"]["pictures"],
        "shape": " x ".join(map(str, model.shape)),
        "levels": model.levels,
        "parameters": training["parameters"],
        "seconds": training["seconds"],
        "steps": training["steps"],
    }
    if as_json:
        show.print_json({**result, "card": model.card})
    else:
        show.print_facts({**result, "score": f"{scores['held_out']:.4f} ({scores['unit']})"})


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    height, _, width = text.lower().partition("x")
    if not (height.isdigit() and width.isdigit() and int(height) and int(width)):
        raise UserError(f"--size is height x width, such as 32x32, got {text!r}")
    return int(height), int(width)
