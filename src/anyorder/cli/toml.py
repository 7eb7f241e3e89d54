"""Options from a TOML file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from anyorder.errors import UserError


def read_toml(path: Path | None) -> dict[str, Any]:
    """The file's content; empty where none is named."""
    if path is None:
        return {}
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UserError(f"--config: the file {str(path)!r} {what}; name a TOML file with options")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{str(path)!r} is not valid TOML: {error}") from error
