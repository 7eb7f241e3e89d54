"""Arrays from .npy and .npz files: what the header declares is compared with the file before memory is taken for it."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from anyorder.data.unpacking import RATIO, UNPACKED
from anyorder.errors import UserError
from anyorder.support.boundary import first_line

PREFERRED = ("pictures", "images", "x", "train")  # of several arrays in a file


def read_array(path: Path) -> np.ndarray:
    """The array in an .npy file, or the one in an .npz file that is called like pictures, else its first."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            if path.suffix.lower() != ".npz":
                return _array(file, size)
            with zipfile.ZipFile(file) as archive:
                stored = {name.removesuffix(".npy"): name for name in archive.namelist()}
                names = [name for name in (*PREFERRED, *stored) if name in stored]
                if not names:
                    raise UserError(f"{str(path)!r} contains no array")
                with archive.open(stored[names[0]]) as member:
                    return _array(member, max(UNPACKED, RATIO * size))
    except FileNotFoundError:
        raise UserError(f"no such file: {str(path)!r}") from None
    except Exception as error:
        if isinstance(error, UserError) and str(path) in str(error):
            raise
        # Not a list of classes: a damaged header makes NumPy and zipfile raise nearly anything.
        raise UserError(f"cannot read an array from {str(path)!r}: {first_line(error)}") from error


def _array(stream: IO[bytes], most: int) -> np.ndarray:
    version = npy.read_magic(stream)
    headers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in headers:
        raise UserError(f"version {version} of the format is not supported")
    shape, by_columns, dtype = headers[version](stream)
    if dtype.hasobject:
        raise UserError("it contains Python objects, which may run code: save an array of numbers")
    if not shape:
        raise UserError("it contains a single value; expected an array")
    size = math.prod(shape) * dtype.itemsize
    if not 0 <= size <= most:
        raise UserError(
            f"it declares {size:,} bytes for an array of the shape {shape}, but can contain at most {most:,}"
        )
    content = stream.read(size)
    if len(content) < size:
        raise UserError(f"it is cut off: {len(content):,} of {size:,} bytes")
    return np.frombuffer(content, dtype=dtype).reshape(shape, order="F" if by_columns else "C")
