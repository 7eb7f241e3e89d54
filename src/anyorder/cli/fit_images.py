"""``anyorder fit-images``: one model for pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anyorder.cli.configuration import read_toml
from anyorder.cli.pictures import is_array, read_pictures
from anyorder.cli.signatures import spelled_out
from anyorder.cli.training_run import TrainingRun
from anyorder.errors import UserError
from anyorder.support.interrupt import deferred_once_begun


@spelled_out
def fit_images(
    pictures: Annotated[
        Path,
        typer.Argument(metavar="PICTURES", help="a folder of pictures, or an .npz or .npy file", show_default=False),
    ],
    size: Annotated[
        str | None, typer.Option(metavar="HxW", help="scale the pictures of a folder to this, such as 32x32")
    ] = None,
    grey: Annotated[
        bool | None, typer.Option("--grey/--colour", help="read the pictures of a folder in one channel or in three")
    ] = None,
    levels: Annotated[
        int | None, typer.Option(help="values of a pixel (256 for files, as found in arrays, if not given)")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="tiny, small (the default), mnist, fashion_mnist, cifar10, 64x64, mac; or a paper's whole recipe, "
            "such as mac_cifar10 or sfarm_mnist",
            show_default=False,
        ),
    ] = None,
    augment: Annotated[
        str | None,
        typer.Option(help="learn from turned pictures too: mirror, rotate_flip; none by default", show_default=False),
    ] = None,
    *,
    run: TrainingRun,
) -> None:
    """Fit one model to pictures: it fills holes of any shape, scores and draws pictures."""
    if levels is not None and not 2 <= levels <= 256:
        raise UserError(f"--levels must be between 2 and 256, got {levels}")
    from anyorder.modalities.images.fit import fit_images as fit

    array = read_pictures(pictures, levels=levels, size=_size(size), colour=None if grey is None else not grey)
    with deferred_once_begun():  # once training has begun, no signal costs what was trained before it is saved
        model = fit(
            array,
            # A folder may hold only dark pictures: its levels are still those of a byte.
            levels=levels if levels is not None or is_array(pictures) else 256,
            preset=preset,
            augment=augment,
            config=read_toml(run.config),
            **run.arguments(),
        )
        facts = {"pictures": model.card["data"]["pictures"], "shape": " x ".join(map(str, model.shape))}
        run.finish(model, {**facts, "levels": model.levels, "parameters": model.card["training"]["parameters"]})


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    height, _, width = text.lower().partition("x")
    if not (height.isdigit() and width.isdigit() and int(height) and int(width)):
        raise UserError(f"--size is height x width, such as 32x32, got {text!r}")
    return int(height), int(width)
