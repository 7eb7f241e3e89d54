"""What the commands do with a model of pictures, and the options they take for it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from anyorder.cli import show
from anyorder.cli.options import Count, Evenly, Json, NetworkCalls, Order, Orders, Seed, at_least_one
from anyorder.cli.paths import check_picture, check_writable
from anyorder.cli.pictures import one_picture, read_mask, read_pictures
from anyorder.errors import UserError

if TYPE_CHECKING:
    from anyorder.modalities.images.model import ImageModel

MODALITY, NOUN = "images", "pictures"

PictureOut = Annotated[Path, typer.Option("-o", "--out", metavar="PICTURE", help="where to write the picture")]
Temperature = Annotated[float, typer.Option(help="below 1, draws stay closer to the likeliest pictures")]


def fill(
    model: ImageModel,
    file: Annotated[Path, typer.Argument(metavar="PICTURE", help="a picture file", show_default=False)],
    mask: Annotated[Path, typer.Option(metavar="PICTURE", help="white where to fill in, black where known")],
    out: PictureOut,
    draws: Annotated[
        int,
        typer.Option(callback=at_least_one, help="this many fills, in a row after the picture with its hole"),
    ] = 1,
    seed: Seed = 0,
    calls: NetworkCalls = None,
    temperature: Temperature = 1.0,
    mode: Annotated[str | None, typer.Option(help="the masking mode, such as interior_patch")] = None,
    strip: Annotated[Path | None, typer.Option(metavar="PICTURE", help="draw how the fill comes about")] = None,
    film: Annotated[Path | None, typer.Option(metavar="GIF", help="show how the fill comes about as a film")] = None,
) -> None:
    """A random fill of the pixels that are white in --mask; known pixels are those of the file, to the byte."""
    check_picture(out, exact=draws == 1)
    check_picture(strip)
    check_writable(film)
    if film is not None and film.suffix.lower() != ".gif":
        raise UserError(f"--film writes a GIF: the name must end in .gif, got {str(film)!r}")
    if file.resolve() == mask.resolve():
        raise UserError(f"the picture and --mask are the same file, {str(file)!r}: give two different files")
    from anyorder.data.picture_files import to_bytes, to_levels, write_picture
    from anyorder.modalities.images import plots

    given, known = one_picture(file, model), read_mask(mask, model.shape)
    array = to_levels(given, model.levels)
    way: dict[str, Any] = {"temperature": temperature, "mode": mode, "seed": seed}
    filled = model.fill(array, known, draws=draws, steps=calls, **way)
    # From the file itself: a model of fewer levels holds the known pixels less exactly.
    kept = known if given.ndim == 2 else known[..., None]
    whole = np.where(kept, given, to_bytes(filled, model.levels))
    if draws == 1:
        write_picture(whole[0], out)
    else:
        asked = plots.hidden(plots.shades(given[None], 256), known[None])
        write_picture(plots.grid([np.concatenate([asked, plots.shades(whole, 256)])]), out)
    if strip is None and film is None:
        return
    moments = model.trace(array, known, steps=calls or int((~known).sum()), **way)
    if strip is not None:
        write_picture(plots.strip(moments, model.levels), strip)
    if film is not None:
        plots.write_film(moments, model.levels, film)


def sample(
    model: ImageModel,
    out: PictureOut,
    count: Count = 16,
    seed: Seed = 0,
    calls: NetworkCalls = None,
    order: Order = "model",
    temperature: Temperature = 1.0,
) -> None:
    """A square grid of pictures."""
    check_picture(out)
    from anyorder.data.picture_files import write_picture
    from anyorder.modalities.images import plots

    drawn = model.sample(count, steps=calls, temperature=temperature, seed=seed, order=order)
    shades = plots.shades(drawn, model.levels)
    columns = math.ceil(math.sqrt(count))
    write_picture(plots.grid([shades[start : start + columns] for start in range(0, count, columns)]), out)


def score(
    model: ImageModel,
    file: Annotated[
        Path,
        typer.Argument(metavar="PICTURES", help="a folder of pictures, or an .npz or .npy file", show_default=False),
    ],
    as_json: Json = False,
    orders: Orders = 1,
    windows: Evenly = None,
) -> None:
    """Nats and bits per dimension, averaged over --orders."""
    size = (model.shape[0], model.shape[1])
    pictures = read_pictures(file, levels=model.levels, size=size, colour=len(model.shape) == 3)
    if windows is not None and windows < len(pictures):
        pictures = pictures[np.linspace(0, len(pictures) - 1, windows).astype(int)]
    with show.bar("scoring pictures"):
        nats = model.log_prob(pictures, orders=orders)
    count = len(nats)
    facts: dict[str, Any] = {
        "pictures": count,
        "orders": orders,
        "nll_nats": -float(nats.mean()),
        "standard_error": float(nats.std(ddof=1)) / math.sqrt(count) if count > 1 else None,
        "bits_per_dimension": -float(nats.mean()) / (model.core.variables * math.log(2)),
    }
    show.print_result(facts, as_json=as_json)


def info(model: ImageModel, as_json: Json = False) -> None:
    """Their size and levels, and how it was trained."""
    show.print_card(model.card, as_json=as_json)
