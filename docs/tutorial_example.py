"""Run the tutorial from its first line to its last: python docs/tutorial_example.py

Everything that the tutorial shows as output is what its own commands and code print (seed 0, half a minute of training,
one thread). This runs them in the order of the page, in a folder of their own that holds ``titanic.csv``, writes what
they print into the page, and keeps the pictures that they draw in docs/images. The table comes from the folder that
ANYORDER_DATA names.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import shlex
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anyorder.cli import main

PAGE = Path(__file__).parent / "tutorial.md"
IMAGES = Path(__file__).parent / "images"
BLOCK = re.compile(r"```(?P<language>console|python)\n(?P<code>.*?)```\n(?:\n```text\n(?P<printed>.*?)```\n)?", re.S)


def write_titanic(folder: Path, target: Path) -> None:
    """Unpack the passengers; a missing file is an OSError."""
    with gzip.open(folder / "titanic.csv.gz") as source, target.open("wb") as file:
        shutil.copyfileobj(source, file)


def printed(action: Callable[[], Any]) -> str:
    """What an action prints, remarks and warnings too, without blanks at the ends of lines."""
    text = io.StringIO()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text.write(f"note: {message}\n")

    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text), warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        action()
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def command(line: str) -> str:
    """What a command line prints; SystemExit if it fails."""
    program, *arguments = shlex.split(line)
    assert program == "anyorder", line

    def run() -> None:
        if main(arguments) != 0:
            raise SystemExit(f"failed: {line}")

    return printed(run)


def run(page: str, mend: Callable[[str], str] = str) -> str:
    """Run commands and code in the order of the page; the page with what they print. ``mend`` may change a command."""
    names: dict[str, Any] = {}

    def block(found: re.Match[str]) -> str:
        language, code = found["language"], found["code"]
        if language == "console":
            lines = [line for line in code.splitlines() if line.startswith("$ ")]
            body = "".join(f"{line}\n{command(mend(line[2:]))}" for line in lines)
            return f"```console\n{body}```\n"
        text = printed(lambda: exec(compile(code, "tutorial.md", "exec"), names))
        assert bool(text) == (found["printed"] is not None), f"printed {text!r} after {code!r}"
        return f"```python\n{code}```\n" + (f"\n```text\n{text}```\n" if text else "")

    return BLOCK.sub(block, page)


if __name__ == "__main__":
    data = Path(os.environ["ANYORDER_DATA"]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_titanic(data, Path("titanic.csv"))
        PAGE.write_text(run(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        for picture in Path(folder).glob("tutorial_*.png"):
            shutil.copy(picture, IMAGES / picture.name)
