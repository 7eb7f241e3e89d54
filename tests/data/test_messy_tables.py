"""Twenty files as people export them are read, understood and written back without a word of help."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from anyorder.data.files import read_table, write_table
from anyorder.data.tables import understand_table
from anyorder.data.written import as_written
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Schema
from messy_files import Messy, messy_tables

TABLES = messy_tables(120)
NAMES = {"agent", "region", "version", "postcode", "sex", "kind", "station", "line"}
"""The columns that hold names without an order; all others are numbers, times, levels with an order, yes or no."""


def read(table: Messy, folder: Path) -> pd.DataFrame:
    (folder / table.name).write_bytes(table.content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return read_table(folder / table.name)


def plain(line: str) -> str:
    """A line without spaces around cells, delimiters at its end, and words that programs write for no value."""
    for word in ("NULL", "#N/A"):
        line = line.replace(word, "")
    return line.replace(" ", "").rstrip("\r\n,")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_understood_and_given_back(table: Messy, tmp_path: Path) -> None:
    frame = read(table, tmp_path)
    _, found = understand_table(frame)
    left_out = {each.name for each in found if each.variable is None}
    assert set(table.left_out) <= left_out
    assert left_out <= {*table.left_out, "Kundennummer"}
    variables = tuple(each.variable for each in found if each.variable is not None)
    categorical = {variable.name for variable in variables if variable.kind.value == "categorical"}
    assert categorical <= NAMES
    encoding = Encoding.fit(frame[[variable.name for variable in variables]], Schema(variables))
    values, known = encoding.encode(frame[list(encoding.schema.names)])
    back = encoding.decode(np.where(known, values, np.nan))
    for at, name in enumerate(encoding.schema.names):
        assert [str(cell).strip() for cell in frame[name][known[:, at]]] == [
            str(cell).strip() for cell in back[name][known[:, at]]
        ]
    name, value = table.given
    assert np.isfinite(encoding.encode_value(name, value))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_written_again_as_it_was(table: Messy, tmp_path: Path) -> None:
    """Lines that were skipped (titles, totals) do not come back; every row does, to the letter."""
    frame = read(table, tmp_path)
    _, found = understand_table(frame)
    schema = Schema(tuple(each.variable for each in found if each.variable is not None))
    again = tmp_path / f"again_{table.name.removesuffix('.gz')}"
    write_table(as_written(frame, schema, frame), again, like=frame)
    before, after = table.content, again.read_bytes()
    if table.name.endswith(".gz"):
        import gzip

        before = gzip.decompress(before)
    encoding = "utf-16" if before[:2] == b"\xff\xfe" else "utf-8" if table.name != "hotel.csv" else "cp1252"
    rows = {plain(line) for line in before.decode(encoding).splitlines()}
    new = [plain(line) for line in after.decode(encoding).splitlines()]
    strange = [line for line in new if line not in rows]
    assert strange == []
