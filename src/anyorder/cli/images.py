"""What the commands do when the model is one of pictures."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from anyorder.cli import show
from anyorder.errors import UserError

if TYPE_CHECKING:
    from anyorder.modalities.images.model import ImageModel

ARRAYS = (".npz", ".npy")


def is_array(path: Path) -> bool:
    """Whether pictures come as an array rather than as picture files."""
    return path.suffix.lower() in ARRAYS and not path.is_dir()


def read_pictures(
    path: Path, *, levels: int | None, size: tuple[int, int] | None = None, colour: bool | None = None
) -> np.ndarray:
    """A folder of pictures, an array in an .npy or .npz file, or a single picture, as one array.

    Files hold bytes, which become 0 .. ``levels`` - 1 (256 if that is None); an array is taken as it is. What had to be
    done to a file, and which ones cannot be used, is said on standard error.
    """
    from anyorder.data.picture_files import read_folder, to_levels

    if is_array(path):
        return _array(path)
    if path.is_dir():
        found = read_folder(path, size=size, colour=colour)
        for name, note in found.notes.items():
            _say(name, note)
        for name, why in found.refused.items():
            sys.stderr.write(f"anyorder: note: left out: {name}: {why}\n")
        return to_levels(found.pictures, levels or 256)
    if not path.is_file():
        raise UserError(f"no file or folder {str(path)!r}")
    return to_levels(_bytes(path, colour=colour)[None], levels or 256)


def read_mask(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """True where a pixel is known: where the mask is black. What is white is filled in."""
    mask = _bytes(path, colour=False)
    if mask.shape != shape[:2]:
        raise UserError(f"the mask is {mask.shape[0]} x {mask.shape[1]} pixels, the picture {shape[0]} x {shape[1]}")
    if (mask < 128).all():
        raise UserError(f"the mask {str(path)!r} has no white, which is what is filled in: paint the hole white")
    return mask < 128


def one_picture(path: Path, model: ImageModel) -> np.ndarray:
    """A picture file of the model's size, as bytes."""
    picture = _bytes(path, colour=len(model.shape) == 3)
    if picture.shape != model.shape:
        wanted, got = (" x ".join(map(str, shape)) for shape in (model.shape, picture.shape))
        raise UserError(f"{str(path)!r} has {got} values, and the model's pictures {wanted}; scale it first")
    return picture


def _bytes(path: Path, *, colour: bool | None) -> np.ndarray:
    """One picture file; what had to be done to it is said."""
    from anyorder.data.picture_files import read_picture

    picture, note = read_picture(path)
    if note:
        _say(str(path), note)
    return np.asarray(picture if colour is None else picture.convert("RGB" if colour else "L"))


def _say(name: str, note: str) -> None:
    sys.stderr.write(f"anyorder: note: {name}: {note}\n")


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
    """Write the filled picture; with several draws a row of them, behind the picture with its hole.

    What is known is taken from the file itself, since a model of fewer levels holds it less exactly.
    """
    from anyorder.data.picture_files import to_bytes, to_levels, write_picture
    from anyorder.modalities.images import plots as image_plots

    given, known = one_picture(picture, model), read_mask(mask, model.shape)
    array = to_levels(given, model.levels)
    filled = model.fill(array, known, draws=draws, steps=steps, temperature=temperature, mode=mode, seed=seed)
    kept = known if given.ndim == 2 else known[..., None]
    whole = np.where(kept, given, to_bytes(filled, model.levels))
    if draws == 1:
        write_picture(whole[0], out)
    else:
        asked = image_plots.hidden(image_plots.shades(given[None], 256), known[None])
        write_picture(image_plots.grid([np.concatenate([asked, image_plots.shades(whole, 256)])]), out)
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
    from anyorder.data.picture_files import write_picture
    from anyorder.modalities.images import plots as image_plots

    drawn = image_plots.shades(
        model.sample(count, steps=steps, temperature=temperature, seed=seed, order=order), model.levels
    )
    columns = math.ceil(math.sqrt(count))
    rows = [drawn[start : start + columns] for start in range(0, count, columns)]
    write_picture(image_plots.grid(rows), out)


def score_images(model: ImageModel, path: Path, *, orders: int, most: int | None, as_json: bool) -> None:
    """Print nats and bits per dimension of pictures, averaged over orders as SFARM does."""
    size = (model.shape[0], model.shape[1])
    pictures = read_pictures(path, levels=model.levels, size=size, colour=len(model.shape) == 3)
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
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise UserError(f"cannot read an array from {str(path)!r}: {error}") from error
