"""Picture files: a folder of them as one array, each used or refused by name; and arrays as files.

Files are adapted, and each change is reported: 16-bit levels are scaled to 8 bits, CMYK becomes RGB, transparency is
laid on white, rotated pictures are set upright, larger ones are cut to shape in the middle and scaled down. Pictures
that cannot be read, are smaller than the others, or have more than 64 million pixels by their header, are refused. Of
large pictures only one at a time is in memory, until it is scaled down. Pillow is an extra.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anyorder.data.images import Pictures
from anyorder.errors import UserError
from anyorder.support.atomic import atomic_path
from anyorder.support.boundary import first_line
from anyorder.support.filtered_warnings import warnings_set

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm")
LEAST = 4  # pixels a side
MOST_PIXELS = 64_000_000  # of one picture: what a camera makes; under a gigabyte of memory in any mode
KEPT_PIXELS = 64_000_000  # of pictures that are kept from the first look to the second; others are read again
MOST_BYTES = 1 << 30  # of all pictures of a folder together, if nobody said to which size they should be scaled
STRIP = 1 << 22  # pixels that are converted at a time
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
        raise UserError(f"no such folder: {str(folder)!r}")
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    refused: dict[str, str] = {}
    notes: dict[str, str] = {}
    kept: dict[str, Any] = {}
    sizes: dict[str, tuple[int, int]] = {}
    colours, kept_pixels = False, 0
    for path in files:
        name = str(path.relative_to(folder))
        if path.suffix.lower() not in ENDINGS:
            refused[name] = f"no picture by its ending ({path.suffix or 'none'})"
            continue
        try:
            picture, said = read_picture(path)
        except UserError as error:
            refused[name] = str(error)
            continue
        sizes[name] = picture.height, picture.width
        colours = colours or (min(picture.size) >= LEAST and picture.mode == "RGB")
        if said:
            notes[name] = said
        if size is not None and min(picture.height - size[0], picture.width - size[1]) >= 0:
            picture = _fitted(picture, *size)
        if kept_pixels + picture.height * picture.width <= KEPT_PIXELS:
            kept_pixels += picture.height * picture.width
            kept[name] = picture
    if size is None:
        size = _most_frequent(folder, sizes.values(), 3 if colours or colour else 1)
    height, width = size
    colour = colours if colour is None else colour
    channels = (3,) if colour else ()
    fitting = [name for name, (high, wide) in sizes.items() if high >= height and wide >= width]
    for name in sizes.keys() - set(fitting):
        refused[name] = f"{sizes[name][0]} x {sizes[name][1]} pixels, smaller than {height} x {width}"
        notes.pop(name, None)
    array = np.empty((len(fitting), height, width, *channels), dtype=np.uint8)
    names: list[str] = []
    for name in fitting:
        try:
            picture = kept.pop(name) if name in kept else read_picture(folder / name)[0]
        except UserError as error:  # since it was first looked at
            refused[name] = str(error)
            notes.pop(name, None)
            continue
        if sizes[name] != size:
            notes[name] = ", ".join(filter(None, [notes.get(name), "cut in the middle and scaled down"]))
        array[len(names)] = np.asarray(_fitted(picture, height, width).convert("RGB" if colour else "L"))
        names.append(name)
    if not names:
        shown = "; ".join(f"{name}: {why}" for name, why in list(refused.items())[:3])
        raise UserError(f"no picture in {str(folder)!r} can be used ({shown or 'it has no files'})")
    return Folder(array[: len(names)], tuple(names), notes, refused)


def _most_frequent(folder: Path, sizes: Collection[tuple[int, int]], channels: int) -> tuple[int, int]:
    """The most frequent size; of several the smallest, so that fewer are refused."""
    counts = Counter(size for size in sizes if min(size) >= LEAST)
    if not counts:
        return LEAST, LEAST
    height, width = min(counts, key=lambda found: (-counts[found], found))
    amount = len(sizes) * height * width * channels
    if amount > MOST_BYTES:
        raise UserError(
            f"the pictures in {str(folder)!r} take {amount / 1e9:.1f} GB at {height} x {width} pixels, their most "
            "frequent size: choose the size that they are scaled to (--size, such as 64x64)"
        )
    return height, width


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Whatever Pillow raises, in words."""
    try:
        with warnings_set("ignore"):  # of odd tags, and of sizes that are refused here anyway
            yield
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(f"no such file: {str(path)!r}") from None
    except Exception as error:
        # Not a list of classes: the readers of some formats raise nearly anything for a damaged file.
        raise UserError(f"cannot be read as a picture: {first_line(error)}") from error


def open_picture(path: Path) -> Any:
    """A picture, read in full, so that a broken file is found now; one that is too large is refused by its header."""
    image = pillow()
    with _reading(path):
        picture = image.open(path)
        if picture.width * picture.height > MOST_PIXELS:
            picture.close()
            raise UserError(
                f"too large: {picture.height} x {picture.width} pixels, at most {MOST_PIXELS / 1e6:.0f} million are "
                "read; scale it down first"
            )
        picture.load()
        return picture


def read_picture(path: Path) -> tuple[Any, str]:
    """A picture, upright, in 8 bits, grey or RGB, nothing transparent; and what had to be done for it."""
    with _reading(path):
        return _plain(open_picture(path))
    raise AssertionError("unreachable")


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
    size = picture.size
    ImageOps.exif_transpose(picture, in_place=True)
    if picture.size != size:
        said.append("set upright")
    if picture.mode.startswith("I") or picture.mode == "F":
        values = np.asarray(picture)
        whole = picture.mode.startswith("I")
        most = 65535.0 if whole else max(float(np.max(values, initial=1.0, where=np.isfinite(values))), 1.0)
        levels = np.empty(values.shape, dtype=np.uint8)
        for rows in _strips(*values.shape):
            strip = np.nan_to_num(values[rows].astype(np.float64), nan=0.0).clip(0, most)
            levels[rows] = np.rint(strip * (255 / most))
        picture = image.fromarray(levels)
        said.append("scaled to 8 bits")
    if picture.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in picture.info:
        flat = image.new("L" if picture.mode in ("LA", "La") else "RGB", picture.size)
        clear = False
        for rows in _strips(picture.height, picture.width):
            layered = picture.crop((0, rows.start, picture.width, min(rows.stop, picture.height))).convert("RGBA")
            clear = clear or layered.getextrema()[3][0] < 255
            white = image.new("RGBA", layered.size, (255, 255, 255, 255))
            flat.paste(image.alpha_composite(white, layered).convert(flat.mode), (0, rows.start))
        if clear:
            said.append("laid on white")
        picture = flat
    if picture.mode in ("CMYK", "YCbCr", "LAB", "HSV", "P"):
        said += ["turned from " + picture.mode + " to RGB"] if picture.mode != "P" else []
        picture = picture.convert("RGB")
    if picture.mode == "1":
        picture = picture.convert("L")
    if picture.mode not in ("L", "RGB"):
        raise UserError(f"the colour mode {picture.mode} is not supported; save it as RGB or grey")
    if picture.mode == "RGB" and _is_grey(picture):
        picture = picture.convert("L")
    return picture, ", ".join(said)


def _strips(height: int, width: int) -> Iterator[slice]:
    """A few rows after the others, so that no second copy of a large picture is made."""
    step = max(1, STRIP // max(width, 1))
    return (slice(start, start + step) for start in range(0, height, step))


def _is_grey(picture: Any) -> bool:
    array = np.asarray(picture)
    return bool((array[..., 0] == array[..., 1]).all() and (array[..., 1] == array[..., 2]).all())


def _fitted(picture: Any, height: int, width: int) -> Any:
    from PIL import ImageOps

    if picture.size == (width, height):
        return picture
    return ImageOps.fit(picture, (width, height), method=pillow().Resampling.LANCZOS)


def pillow() -> Any:
    """Pillow's Image module, if it is installed."""
    try:
        from PIL import Image
    except ImportError as error:
        raise UserError("reading picture files needs Pillow: pip install 'anyorder[images]'") from error
    return Image
