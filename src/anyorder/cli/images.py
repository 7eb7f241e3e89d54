"""What the commands do when the model is one of pictures."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from anyorder import show
from anyorder.errors import UserError

if TYPE_CHECKING:
    from anyorder.images import ImageModel

ARRAYS = (".npz", ".npy")


def read_pictures(path: Path, *, size: tuple[int, int] | None = None, colour: bool | None = None) -> np.ndarray:
    """A folder of pictures, an array in an .npy or .npz file, or a single picture, as one array.

    What had to be done to a file, and which ones cannot be used, is said on standard error.
    """
    from anyorder.data.picture_files import open_picture, read_folder

    if path.is_dir():
        found = read_folder(path, size=size, colour=colour)
        for name, note in found.notes.items():
            sys.stderr.write(f"anyorder: note: {name}: {note}\n")
        for name, why in found.refused.items():
            sys.stderr.write(f"anyorder: note: left out: {name}: {why}\n")
        return found.pictures
    if path.suffix.lower() in ARRAYS:
        return _array(path)
    if not path.is_file():
        raise UserError(f"no file or folder {str(path)!r}")
    return np.asarray(open_picture(path))[None]


def read_mask(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """True where a pixel is known: where the mask is black. What is white is filled in."""
    from anyorder.data.picture_files import open_picture

    mask = np.asarray(open_picture(path).convert("L"))
    if mask.shape != shape[:2]:
        raise UserError(f"the mask is {mask.shape[0]} x {mask.shape[1]} pixels, the picture {shape[0]} x {shape[1]}")
    return mask < 128


def one_picture(path: Path, model: ImageModel) -> np.ndarray:
    """A picture file in the levels of the model."""
    from anyorder.data.picture_files import open_picture

    picture = np.asarray(open_picture(path).convert("RGB" if len(model.shape) == 3 else "L"))
    if picture.shape != model.shape:
        wanted, got = (" x ".join(map(str, shape)) for shape in (model.shape, picture.shape))
        raise UserError(f"{str(path)!r} has {got} values, and the model's pictures {wanted}; scale it first")
    return np.rint(picture * ((model.levels - 1) / 255)).astype(np.uint8)


def fill_image(
    model: ImageModel,
    picture: Path,
    mask: Path,
    *,
    out: Path,
    draws: int,
    steps: int | None,
    temperature: float,
    mode: str | None,
    strip: Path | None,
    film: Path | None,
    seed: int,
) -> None:
    """Write the filled picture; with several draws a row of them, behind the picture with its hole."""
    from anyorder import image_plots
    from anyorder.data.picture_files import write_picture

    array, known = one_picture(picture, model), read_mask(mask, model.shape)
    filled = model.fill(array, known, draws=draws, steps=steps, temperature=temperature, mode=mode, seed=seed)
    if draws == 1:
        write_picture(filled[0], out, model.levels)
    else:
        asked = image_plots.hidden(image_plots.shades(array[None], model.levels), known[None])
        write_picture(image_plots.grid([np.concatenate([asked, image_plots.shades(filled, model.levels)])]), out)
    if strip is None and film is None:
        return
    moments = model.trace(
        array, known, steps=steps or int((~known).sum()), temperature=temperature, mode=mode, seed=seed
    )
    if strip is not None:
        write_picture(image_plots.strip(moments, model.levels), strip)
    if film is not None:
        image_plots.write_film(moments, model.levels, film)


def sample_images(
    model: ImageModel, count: int, *, out: Path, steps: int | None, temperature: float, seed: int, order: str
) -> None:
    """Write a square grid of pictures drawn from nothing."""
    from anyorder import image_plots
    from anyorder.data.picture_files import write_picture

    drawn = image_plots.shades(
        model.sample(count, steps=steps, temperature=temperature, seed=seed, order=order), model.levels
    )
    columns = math.ceil(math.sqrt(count))
    rows = [drawn[start : start + columns] for start in range(0, count, columns)]
    write_picture(image_plots.grid(rows), out)


def score_images(model: ImageModel, path: Path, *, orders: int, most: int | None, as_json: bool) -> None:
    """Print nats and bits per dimension of pictures, averaged over orders as SFARM does."""
    pictures = read_pictures(path, size=(model.shape[0], model.shape[1]), colour=len(model.shape) == 3)
    if path.suffix.lower() not in ARRAYS and model.levels < 256:
        pictures = np.rint(pictures * ((model.levels - 1) / 255)).astype(np.uint8)
    if most is not None and most < len(pictures):
        pictures = pictures[np.linspace(0, len(pictures) - 1, most).astype(int)]
    nats = model.log_prob(pictures, orders=orders)
    count = len(nats)
    error = float(nats.std(ddof=1)) / math.sqrt(count) if count > 1 else None
    facts: dict[str, Any] = {
        "pictures": count,
        "orders": orders,
        "nll_nats": -float(nats.mean()),
        "standard_error": error,
        "bits_per_dimension": -float(nats.mean()) / (model.core.variables * math.log(2)),
    }
    (show.print_json if as_json else show.print_facts)(facts)


def _array(path: Path) -> np.ndarray:
    try:
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        with found:
            names = [name for name in ("pictures", "images", "x", "train", *found.files) if name in found.files]
            if not names:
                raise UserError(f"{str(path)!r} holds no array")
            return np.asarray(found[names[0]])
    except FileNotFoundError:
        raise UserError(f"no file {str(path)!r}") from None
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read an array from {str(path)!r}: {error}") from error
