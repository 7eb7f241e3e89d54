"""Run the commands of the quick start and draw the picture of the first page: python docs/quickstart_example.py

Everything the quick start shows as output is what this prints (seed 0, one minute of training).
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path

from anyorder.cli import main

PICTURE = Path(__file__).parent / "images" / "wine.png"
PAGE = Path(__file__).parent / "quickstart.md"


def commands() -> list[str]:
    """The lines of the quick start that begin with ``$ ``, in order."""
    return [line[2:] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("$ ")]


def write_wine(path: Path) -> None:
    """The wine data that comes with scikit-learn, with the names of the three cultivars."""
    from sklearn.datasets import load_wine

    frame = load_wine(as_frame=True).frame
    names = {0: "barolo", 1: "grignolino", 2: "barbera"}
    frame = frame.rename(columns={"target": "cultivar", "od280/od315_of_diluted_wines": "od280"})
    frame["cultivar"] = frame["cultivar"].map(names)
    frame.iloc[::9, 3] = None  # some holes, as real tables have
    frame.to_csv(path, index=False)


def run(lines: list[str]) -> None:
    """Type these commands."""
    for line in lines:
        sys.stdout.write(f"$ {line}\n")
        sys.stdout.flush()
        program, *arguments = shlex.split(line)
        if program == "anyorder" and main(arguments) != 0:
            raise SystemExit(f"failed: {line}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_wine(Path("wine.csv"))
        run(commands())
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_bytes(Path("wine.png").read_bytes())
