"""Pictures that the commands read: a folder, a single file, an array, or the mask of a hole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from anyorder.cli.show import note
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

    Files hold bytes, which become 0 .. ``levels`` - 1 (256 if that is None); an array is taken as it is. A note says
    what had to be changed in a file, and which files cannot be used.
    """
    from anyorder.data.arrays import read_array
    from anyorder.data.picture_files import read_folder, to_levels

    if is_array(path):
        return read_array(path)
    if path.is_dir():
        found = read_folder(path, size=size, colour=colour)
        for name, change in found.notes.items():
            note(f"{name}: {change}")
        for name, reason in found.refused.items():
            note(f"left out: {name}: {reason}")
        return to_levels(found.pictures, levels or 256)
    if not path.is_file():
        raise UserError(f"no such file or folder: {str(path)!r}")
    return to_levels(_bytes(path, colour=colour)[None], levels or 256)


def read_mask(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """True where a pixel is known, which is where the mask is black; white pixels are to be filled in."""
    mask = _bytes(path, colour=False)
    if mask.shape != shape[:2]:
        raise UserError(f"the mask is {mask.shape[0]} x {mask.shape[1]} pixels, the picture {shape[0]} x {shape[1]}")
    if (mask < 128).all():
        raise UserError(
            f"the mask {str(path)!r} has no white pixel, so there is nothing to fill in: paint the hole white"
        )
    return mask < 128


def one_picture(path: Path, model: ImageModel) -> np.ndarray:
    """A picture file of the model's size, as bytes."""
    picture = _bytes(path, colour=len(model.shape) == 3)
    if picture.shape != model.shape:
        wanted, got = (" x ".join(map(str, shape)) for shape in (model.shape, picture.shape))
        raise UserError(f"{str(path)!r} is {got}, but the model's pictures are {wanted}: scale it first")
    return picture


def _bytes(path: Path, *, colour: bool | None) -> np.ndarray:
    """One picture file; a note says what had to be changed in it."""
    from anyorder.data.picture_files import read_picture

    picture, change = read_picture(path)
    if change:
        note(f"{path}: {change}")
    return np.asarray(picture if colour is None else picture.convert("RGB" if colour else "L"))
