"""Picture files: a folder of them as one array, each used or refused by name; and arrays as files.

Files are adapted, and each change is reported: 16-bit levels are scaled to 8 bits, CMYK becomes RGB, transparency is
laid on white, rotated pictures are set upright, larger ones are cut to shape in the middle and scaled down. Pictures
that cannot be read, or are smaller than the others, are refused. Pillow is an extra.
"""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anyorder.data.images import Pictures
from anyorder.errors import UserError
from anyorder.support.atomic import atomic_path

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm")
LEAST = 4  # pixels a side
EXACT = {".png": "PNG", ".bmp": "BMP", ".tif": "TIFF", ".tiff": "TIFF", ".webp": "WEBP"}  # every pixel as it was
WRITTEN = EXACT | {".jpg": "JPEG", ".jpeg": "JPEG"}


@dataclass(frozen=True)
class Folder:
    """``pictures`` in the order of ``names``; ``notes``: what was done to some; ``refused``: why others are not in."""

    pictures: Pictures
    names: tuple[str, ...]
    notes: dict[str, str]
    refused: dict[str, str]


def read_folder(folder: Path, *, size: tuple[int, int] | None = None, colour: bool | None = None) -> Folder:
    """All pictures of a folder and its folders, as ``size`` (height, width), the most frequent one if it is not given.

    ``colour``: three channels or one; three if any picture has colour, where that is not said.
    """
    if not folder.is_dir():
        raise UserError(f"no folder {str(folder)!r}")
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    refused: dict[str, str] = {}
    notes: dict[str, str] = {}
    opened: dict[str, Any] = {}
    for path in files:
        name = str(path.relative_to(folder))
        if path.suffix.lower() not in ENDINGS:
            refused[name] = f"no picture by its ending ({path.suffix or 'none'})"
            continue
        try:
            opened[name], said = read_picture(path)
        except UserError as error:
            refused[name] = str(error)
            continue
        if said:
            notes[name] = said
    usable = {name: picture for name, picture in opened.items() if min(picture.size) >= LEAST}
    if size is None and usable:
        sizes = Counter((picture.height, picture.width) for picture in usable.values())
        # The most frequent; of several the smallest, so that fewer are refused.
        size = min(sizes, key=lambda found: (-sizes[found], found))
    if colour is None:
        colour = any(picture.mode == "RGB" for picture in usable.values())
    kept, names = [], []
    for name, picture in opened.items():
        height, width = size or (LEAST, LEAST)
        if picture.height < height or picture.width < width:
            refused[name] = f"{picture.height} x {picture.width} pixels, smaller than {height} x {width}"
            notes.pop(name, None)
            continue
        if (picture.height, picture.width) != (height, width):
            notes[name] = ", ".join(filter(None, [notes.get(name), "cut in the middle and scaled down"]))
            picture = _fitted(picture, height, width)
        kept.append(np.asarray(picture.convert("RGB" if colour else "L")))
        names.append(name)
    if not kept:
        shown = "; ".join(f"{name}: {why}" for name, why in list(refused.items())[:3])
        raise UserError(f"no picture of {str(folder)!r} can be used ({shown or 'it has no files'})")
    return Folder(np.stack(kept), tuple(names), notes, refused)


def open_picture(path: Path) -> Any:
    """A picture, read in full, so that a broken file is found now."""
    image = pillow()
    try:
        picture = image.open(path)
        picture.load()
        return picture
    except FileNotFoundError:
        raise UserError(f"no file {str(path)!r}") from None
    except image.DecompressionBombError as error:
        raise UserError(f"too large to be safe: {error}") from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise UserError(f"cannot be read as a picture: {error}") from error


def read_picture(path: Path) -> tuple[Any, str]:
    """A picture, upright, in 8 bits, grey or RGB, nothing transparent; and what had to be done for it."""
    return _plain(open_picture(path))


def to_levels(picture: np.ndarray, levels: int) -> np.ndarray:
    """Bytes as they stand in files, 0 .. 255, as 0 .. levels - 1."""
    return np.rint(picture * ((levels - 1) / 255)).astype(np.uint8)


def to_bytes(picture: Any, levels: int) -> np.ndarray:
    """0 .. levels - 1 as bytes for a file; a mean of several levels may lie between them."""
    return np.rint(np.asarray(picture, dtype=np.float64) * (255 / (levels - 1))).clip(0, 255).astype(np.uint8)


def check_written(path: Path, *, exact: bool = False) -> None:
    """The ending must be one that is written; ``exact``: and one that changes no pixel."""
    kinds = EXACT if exact else WRITTEN
    if path.suffix.lower() not in kinds:
        why = " (others change what is known)" if path.suffix.lower() in WRITTEN else ""
        raise UserError(f"cannot write {str(path)!r}: the name must end in one of {', '.join(kinds)}{why}")


def write_picture(picture: Any, path: Path, levels: int = 256) -> None:
    """An array [height, width] or [height, width, 3] of 0 .. levels - 1 as a file, whole or not at all."""
    check_written(path)
    image = pillow().fromarray(to_bytes(picture, levels))
    kind = WRITTEN[path.suffix.lower()]
    content = io.BytesIO()  # Pillow does not notice a disk that takes only the beginning of a JPEG
    image.save(content, format=kind, **({"lossless": True} if kind == "WEBP" else {}))
    with atomic_path(path) as beside:
        beside.write_bytes(content.getvalue())


def _plain(picture: Any) -> tuple[Any, str]:
    from PIL import ImageOps

    image = pillow()
    said = []
    if getattr(picture, "n_frames", 1) > 1:
        said.append("the first frame is used")
        picture.seek(0)
    upright = ImageOps.exif_transpose(picture)
    if upright.size != picture.size:
        said.append("set upright")
    picture = upright
    if picture.mode.startswith("I") or picture.mode == "F":
        values = np.asarray(picture).astype(np.float64)
        most = 65535.0 if picture.mode.startswith("I") else max(float(values.max(initial=1.0)), 1.0)
        picture = image.fromarray(np.rint(values.clip(0, most) * (255 / most)).astype(np.uint8))
        said.append("scaled to 8 bits")
    if picture.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in picture.info:
        layered = picture.convert("RGBA")
        grey = picture.mode in ("LA", "La")
        if layered.getextrema()[3][0] < 255:
            said.append("laid on white")
        white = image.new("RGBA", layered.size, (255, 255, 255, 255))
        picture = image.alpha_composite(white, layered).convert("L" if grey else "RGB")
    if picture.mode in ("CMYK", "YCbCr", "LAB", "HSV", "P"):
        said += ["turned from " + picture.mode + " to RGB"] if picture.mode != "P" else []
        picture = picture.convert("RGB")
    if picture.mode == "1":
        picture = picture.convert("L")
    if picture.mode not in ("L", "RGB"):
        raise UserError(f"the mode {picture.mode} is not known; save it as RGB or grey")
    if picture.mode == "RGB" and _is_grey(picture):
        picture = picture.convert("L")
    return picture, ", ".join(said)


def _is_grey(picture: Any) -> bool:
    array = np.asarray(picture)
    return bool((array[..., 0] == array[..., 1]).all() and (array[..., 1] == array[..., 2]).all())


def _fitted(picture: Any, height: int, width: int) -> Any:
    from PIL import ImageOps

    return ImageOps.fit(picture, (width, height), method=pillow().Resampling.LANCZOS)


def pillow() -> Any:
    """Pillow's Image module, if it is installed."""
    try:
        from PIL import Image
    except ImportError as error:
        raise UserError("reading picture files needs Pillow: pip install 'anyorder[images]'") from error
    return Image
