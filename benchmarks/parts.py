"""Parts of a long comparison: every part file says which code made it, and is made again once that code has changed.

The code of a part is a digest of the files that decide it: the runner and what it imports, the pins of its
environment, and for anyorder all of the library. So a run can be stopped and go on, and can be repeated after a change
of the library without running the peers again, while all rows of the total are from one version of the code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from anyorder.support.atomic import atomic_path

HERE = Path(__file__).resolve().parent
LIBRARY = HERE.parent / "src" / "anyorder"


@cache
def digest(*said: str, files: tuple[Path, ...] = (), library: bool = False) -> str:
    """A short digest of texts and files; of all of the library's code too, if asked. Read once in a run."""
    found = hashlib.sha256(repr(said).encode())
    for path in (*files, *(sorted(LIBRARY.rglob("*.py")) if library else ())):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:12]


def done(path: Path, code: str) -> dict[str, Any] | None:
    """What a finished part says of itself (``path`` is its JSON file); None if it is to be made, or made again."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return said if said.get("code") == code else None


def write(path: Path, said: dict[str, Any]) -> None:
    """Write the JSON file of a part, whole or not at all; it comes last and says that the part is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as beside:
        beside.write_text(json.dumps(said) + "\n", encoding="utf-8")


def of_one_version(parts: Sequence[dict[str, Any]]) -> list[str]:
    """The commits at which the parts were made, each once; a part with changes that were not committed says so."""
    found = {
        f"{part.get('commit')}{' with uncommitted changes' if part.get('uncommitted_changes') else ''}"
        for part in parts
    }
    return sorted(found)
