"""Run the example of the page on measuring and draw its picture: python docs/measuring_example.py

What the page shows is what this prints (seed 0, one minute of training). The wine that is asked about is not in the
table that the model learns from; its own values are the answers.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))
from quickstart_example import run, write_wine

PICTURE = Path(__file__).parent / "images" / "next.png"
ASKED = 70  # the row of the wine that is set aside
BEFORE = (
    "anyorder fit wine.csv -o wine.anyorder --minutes 1 --seed 0",
    'anyorder next wine.anyorder --about cultivar --given "alcohol=12.3" --plot next.png',
)
INTERVIEW = ("interview", "wine.anyorder", "--about", "proline", "--least", "0.03")
PROMPT = re.compile(r"  (\S+)[^\n]*: $")
LAST = "continues) "


def interview(wine: pd.Series) -> None:
    """Answer in a terminal whatever is asked, with the values of this wine."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "anyorder", *INTERVIEW]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen = ""
    while process.poll() is None or seen:
        try:
            seen += os.read(master, 4096).decode(errors="ignore")
        except OSError:  # the other side is closed
            break
        sys.stdout.write(seen if (asked := PROMPT.search(seen)) or seen.endswith(LAST) else "")
        if asked:
            os.write(master, f"{wine[asked[1]]}\n".encode())
        elif seen.endswith(LAST):
            os.write(master, b"\n")
        else:
            continue
        seen = ""
    sys.stdout.write(seen)
    process.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_wine(Path("wine.csv"))
        table = pd.read_csv("wine.csv")
        table.drop(index=ASKED).to_csv("wine.csv", index=False)
        run(list(BEFORE))
        sys.stdout.write(f"$ anyorder {' '.join(INTERVIEW)}\n")
        sys.stdout.flush()
        interview(table.loc[ASKED])
        sys.stdout.write(f"\nthe wine itself: {table.loc[ASKED].to_dict()}\n")
        PICTURE.write_bytes(Path("next.png").read_bytes())
