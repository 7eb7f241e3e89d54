"""Pictures of pictures: grids of fills, strips of how one comes to be (SFARM Figure 1), and films of it.

All of them are arrays of bytes that :func:`anyorder.data.picture_files.write_picture` writes; no plotting library is
needed, and a pixel of the model is a square of whole pixels.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, UInt8

from anyorder.data.picture_files import pillow, to_bytes
from anyorder.modalities.images.model import Moment
from anyorder.support.atomic import atomic_path

GAP = 2
PAPER = 255
UNKNOWN = (196, 210, 224)  # a pale blue that no grey picture has


def shades(pictures: Any, levels: int) -> UInt8[np.ndarray, "pictures height width 3"]:
    """Levels as bytes in three channels."""
    array = to_bytes(pictures, levels)
    return np.repeat(array[..., None], 3, axis=-1) if array.ndim == 3 else array


def hidden(
    pictures: UInt8[np.ndarray, "pictures height width 3"], known: Bool[np.ndarray, "pictures height width"]
) -> UInt8[np.ndarray, "pictures height width 3"]:
    """Mark the pixels that are not known with a colour of their own."""
    return np.where(known[..., None], pictures, np.array(UNKNOWN, dtype=np.uint8))


def grid(
    rows: Sequence[UInt8[np.ndarray, "pictures height width 3"]], scale: int = 3
) -> UInt8[np.ndarray, "height width 3"]:
    """Rows of pictures, one below the other, each pixel ``scale`` wide."""
    lines = []
    for row in rows:
        cells = [np.pad(picture, ((GAP, GAP), (GAP, GAP), (0, 0)), constant_values=PAPER) for picture in row]
        lines.append(np.concatenate(cells, axis=1))
    most = max(line.shape[1] for line in lines)
    padded = [np.pad(line, ((0, 0), (0, most - line.shape[1]), (0, 0)), constant_values=PAPER) for line in lines]
    return np.concatenate(padded).repeat(scale, axis=0).repeat(scale, axis=1)


def strip(moments: Sequence[Moment], levels: int, columns: int = 10, scale: int = 3) -> UInt8[np.ndarray, "h w 3"]:
    """What there is at some moments, above what the model then expects of the whole (SFARM Figure 1)."""
    chosen = [moments[index] for index in np.unique(np.linspace(0, len(moments) - 1, columns).round().astype(int))]
    known = np.stack([_whole(moment) for moment in chosen])
    above = hidden(shades(np.stack([moment.picture for moment in chosen]), levels), known)
    below = shades(np.stack([moment.expected for moment in chosen]), levels)
    return grid([above, below], scale)


def write_film(moments: Sequence[Moment], levels: int, path: Path, scale: int = 6, milliseconds: int = 80) -> None:
    """An animated GIF of a picture coming to be; the last frame stays for a while."""
    frames = []
    for moment in moments:
        frame = hidden(shades(moment.picture[None], levels), _whole(moment)[None])
        frames.append(pillow().fromarray(grid([frame], scale)))
    durations = [milliseconds] * (len(frames) - 1) + [1500]
    content = io.BytesIO()
    frames[0].save(
        content, format="GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=False
    )
    with atomic_path(path) as beside:
        beside.write_bytes(content.getvalue())


def _whole(moment: Moment) -> Bool[np.ndarray, "height width"]:
    """Which pixels are there: in colour, those of which all channels are."""
    return moment.known if moment.known.ndim == 2 else np.asarray(moment.known.all(axis=-1))
