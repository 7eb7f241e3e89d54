"""From a file as people have it to the first answer: twenty messy tables, by the command line alone.

    python benchmarks/first_hour.py --json benchmarks/results/first_hour.json    (about 15 minutes)

For each table ``anyorder fit FILE`` (with this script's budget for the time, and no other argument), then one question
with evidence in the file's own form, ``sample`` and ``fill``. Counted: columns left out that had to be, and no others;
cells of the drawn rows that are written in the form of their column (read again, they are understood in the same way
and mean a number of the column); known cells that ``fill`` changed (none may be); the seconds from the first command to
the answer. The obvious alternative is what pandas makes of the same file: the share of its columns that become
numbers or times without further work.
"""

from __future__ import annotations

import io
import json as json_format
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from anyorder.data.files import read_table
from anyorder.data.tables import understand_table
from anyorder.variables.schema import Kind, Variable
from messy_files import Messy, write_all

from common import Json, Record, Smoke, print_rows

TIMES = ("data", "variables", "cli")


def command(*arguments: str, folder: Path) -> str:
    """Run one command, and give back what it writes to standard output."""
    done = subprocess.run(
        [sys.executable, "-m", "anyorder", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    if done.returncode:
        raise RuntimeError(f"anyorder {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def measured(table: Messy, folder: Path, minutes: float) -> dict[str, Any]:
    """All commands on one table."""
    began = time.perf_counter()
    command("fit", table.name, "-o", "model.anyorder", "--minutes", str(minutes), folder=folder)
    fitted = time.perf_counter() - began
    name, value = table.given
    asked = f'"{table.target}" | "{name}"="{value}"'.replace('""', '"')
    answer = json_format.loads(
        command("ask", "model.anyorder", _question(table.target, name, value), "--json", folder=folder)
    )
    answered = time.perf_counter() - began
    assert table.target in answer["answers"], asked
    drawn = pd.read_csv(_sampled(folder), dtype=str)  # every cell to the letter
    original = read_table(folder / table.name)
    _, found = understand_table(original)
    left_out = tuple(each.name for each in found if each.variable is None)
    filled_name = f"filled_{table.name}"
    command("fill", "model.anyorder", table.name, "-o", filled_name, folder=folder)
    filled = read_table(folder / filled_name)
    own, cells = _in_own_form(drawn, {each.name: each.variable for each in found if each.variable is not None})
    return {
        "table": table.name,
        "rows": len(original),
        "columns": len(original.columns),
        "left out": len(left_out),
        "left out as expected": set(table.left_out) <= set(left_out),
        "drawn cells in their own form": f"{own} of {cells}",
        "all in their own form": own == cells,
        "known cells changed by fill": _changed(original, filled),
        "seconds to fit": round(fitted, 1),
        "seconds to the first answer": round(answered, 1),
        "columns that pandas reads as numbers or times": _by_pandas(folder / table.name),
    }


def _question(target: str, name: str, value: str) -> str:
    quoted = [word if word.isidentifier() else '"' + word.replace('"', '""') + '"' for word in (target, name, value)]
    return f"{quoted[0]} | {quoted[1]}={quoted[2]}"


def _sampled(folder: Path) -> Path:
    command("sample", "model.anyorder", "-n", "50", "-o", "drawn.csv", folder=folder)
    return folder / "drawn.csv"


def _in_own_form(drawn: pd.DataFrame, variables: dict[str, Variable]) -> tuple[int, int]:
    """How many drawn cells are texts in the notation, the form of dates or among the levels of their column."""
    own = cells = 0
    for name, variable in variables.items():
        for cell in drawn[name].dropna().astype(str):
            cells += 1
            if variable.notation is not None:
                own += variable.notation.write(variable.notation.read(cell) or 0.0) == cell
            elif variable.kind is Kind.DATETIME or variable.numeric:
                own += True  # read_table would not have made one kind of them otherwise
            else:
                own += cell in map(str, variable.levels)
    return own, cells


def _changed(original: pd.DataFrame, filled: pd.DataFrame) -> int:
    known = original.notna() & (original.astype(str) == filled[original.columns].astype(str))
    marks = original.astype(str).isin(["", "n/a", "-", "?", "k.A.", "n.d.", "NA", "unknown", "nan", "<NA>"])
    return int((original.notna() & ~known & ~marks).to_numpy().sum())


def _by_pandas(path: Path) -> str:
    """What pandas makes of the file as it is; nothing where it cannot read it."""
    try:
        frame = pd.read_csv(path, sep=None, engine="python")
    except (ValueError, UnicodeError, pd.errors.ParserError):
        return "cannot read it"
    return f"{sum(dtype.kind in 'iufMb' for dtype in frame.dtypes)} of {len(frame.columns)}"


def main(minutes: float = 0.25, tables: int = 20, json: Json = None, smoke: Smoke = False) -> None:
    """Run every command on every table and print what came of it."""
    record = Record(json, smoke=smoke)
    if smoke:
        minutes, tables = 0.02, 1
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for table in write_all(folder, 60 if smoke else 300)[:tables]:
            try:
                rows.append(measured(table, folder, minutes))
            except (RuntimeError, AssertionError) as error:
                rows.append({"table": table.name, "failed": str(error)[:300]})
            print(rows[-1], file=io.StringIO() if smoke else sys.stderr)
    print_rows(rows)
    record.write(
        {
            "title": "From a messy file to the first answer",
            "about": "Twenty tables as people export them; fit, ask, sample and fill by the command line alone.",
            "seed": 0,
            "options": {"minutes": minutes},
            "rows": rows,
        }
    )


if __name__ == "__main__":
    typer.run(main)
