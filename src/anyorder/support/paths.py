"""Paths as a user gives them, checked before the system is asked about them."""

from __future__ import annotations

import os
from pathlib import Path

from anyorder.errors import UserError


def checked_path(path: object) -> Path:
    """``path`` as a ``Path``, where it can be the name of a file at all."""
    if not isinstance(path, str | os.PathLike):
        raise UserError(f"a path must be a text or a pathlib.Path, got {path!r:.80} ({type(path).__name__})")
    text = os.fspath(path)
    if not isinstance(text, str):
        raise UserError(
            f"a path must be a text or a pathlib.Path, got the bytes {text!r:.80}; decode it with os.fsdecode"
        )
    if "\0" in text:
        raise UserError(f"a path cannot contain a null character, got {text!r:.80}")
    return Path(path)
