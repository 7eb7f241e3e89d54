"""A film of one episode: the kitchen above, below it the nine numbers of each action in two colours.

Every number of an action is either given by the operator or added by the model; bars go up and down from the line of 0
to the bounds of 1 and -1. A GIF, since every browser plays it and nothing but Pillow is needed.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyorder.data.picture_files import pillow
from anyorder.errors import UserError
from anyorder.support.atomic import atomic_path
from anyorder.support.plotting import BLUE, GRID, INK, ORANGE

Picture = NDArray[np.uint8]
Numbers = NDArray[np.floating]

GIVEN, ADDED = ORANGE, BLUE
LABELS = (*(f"joint {index}" for index in range(1, 8)), "finger 1", "finger 2")
WORDS = ("from the operator", "from the model")
HEIGHT = 96  # pixels of the part with the bars
TOP, BOTTOM = 22, 16  # of them for the legend and the names
COLOURS = 64  # of the GIF; the fewer, the smaller
STRIDES = (2, 3, 4, 6, 8)  # one in so many pictures is kept: the first that makes the film small enough
SECONDS = 0.08  # of a step of the kitchen
MOST = 1_500_000  # bytes


def write_film(
    path: str | Path,
    pictures: Sequence[Picture],
    given: Numbers,
    added: Numbers,
    *,
    most: int = MOST,
    seconds: float = SECONDS,
) -> int:
    """Write the film of an episode at its own speed and return its size in bytes.

    Parameters
    ----------
    pictures
        One ``[height, width, 3]`` for every step, all of one size.
    given, added
        The two parts of each action, ``[steps, 9]``: every number stands in one of them, the other has NaN there.
    most
        The size that the film may have; pictures are left out until it fits.
    """
    given, added = (np.asarray(part, dtype=np.float64) for part in (given, added))
    _check(pictures, given, added)
    for stride in STRIDES:
        chosen = range(0, len(pictures), stride)
        frames = [_frame(pictures[index], given[index], added[index]) for index in chosen]
        film = _gif(frames, round(1000 * seconds * stride))
        if len(film) <= most:
            with atomic_path(path) as beside:
                beside.write_bytes(film)
            return len(film)
    raise UserError(
        f"the film has {len(film):,} bytes with one picture in {stride}, more than {most:,}: take smaller pictures"
    )


def bars(given: Numbers, added: Numbers, width: int) -> Picture:
    """The lower part of a picture: one bar for each number of an action."""
    draw, image = _canvas(width)
    height = (HEIGHT - TOP - BOTTOM) // 2  # of a bar of 1
    middle = TOP + height
    column = width / len(given)
    draw.line([(0, middle), (width, middle)], fill=GRID)
    for index, (one, other) in enumerate(zip(given, added, strict=True)):
        value, colour = (one, GIVEN) if np.isfinite(one) else (other, ADDED)
        end = middle - round(float(np.clip(value, -1.0, 1.0)) * height)
        left, right = round((index + 0.25) * column), round((index + 0.75) * column)
        draw.rectangle([left, min(end, middle), right, max(end, middle)], fill=colour)
        draw.text(((index + 0.5) * column, HEIGHT - BOTTOM / 2), LABELS[index], fill=INK, anchor="mm", font_size=8)
    for word, colour, where in zip(WORDS, (GIVEN, ADDED), (0.02, 0.4), strict=True):
        draw.rectangle([where * width, 6, where * width + 9, 15], fill=colour)
        draw.text((where * width + 14, 11), word, fill=INK, anchor="lm", font_size=11)
    return np.asarray(image)


def _check(pictures: Sequence[Picture], given: Numbers, added: Numbers) -> None:
    steps = len(pictures)
    if not steps or any(np.shape(one) != np.shape(pictures[0]) or np.ndim(one) != 3 for one in pictures):
        raise UserError("a film needs pictures [height, width, 3] of one size, one for each step")
    for name, part in (("given", given), ("added", added)):
        if part.shape != (steps, len(LABELS)):
            raise UserError(f"{name!r} must be [{steps}, {len(LABELS)}], a row for each picture; got {part.shape}")
    if (np.isfinite(given) == np.isfinite(added)).any():
        step, index = np.argwhere(np.isfinite(given) == np.isfinite(added))[0]
        raise UserError(
            f"step {step}, {LABELS[index]}: a number is either given or added; the other of the two has NaN there"
        )


def _canvas(width: int) -> tuple[Any, Any]:
    from PIL import ImageDraw

    image = pillow().new("RGB", (width, HEIGHT), "white")
    return ImageDraw.Draw(image), image


def _frame(picture: Picture, given: Numbers, added: Numbers) -> Any:
    below = bars(given, added, picture.shape[1])
    return pillow().fromarray(np.concatenate([np.asarray(picture, dtype=np.uint8), below]))


def _gif(frames: Sequence[Any], milliseconds: int) -> bytes:
    """One palette for all and no dithering: what does not move then stays the same, and costs nothing."""
    some = [np.asarray(frame) for frame in frames[:: max(1, len(frames) // 6)]]
    palette = pillow().fromarray(np.concatenate(some)).quantize(COLOURS)
    plain = [frame.quantize(palette=palette, dither=pillow().Dither.NONE) for frame in frames]
    file = io.BytesIO()
    plain[0].save(file, "GIF", save_all=True, append_images=plain[1:], duration=milliseconds, loop=0, optimize=False)
    return file.getvalue()
