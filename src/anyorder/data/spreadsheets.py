"""Sheets of Excel and OpenDocument files, read as if they had been saved as CSV.

A cell becomes the text that stands for it: a number as Python writes it, a date as ISO writes it. So a sheet has the
same titles, units and totals looked for, and its columns the same meaning, as a text with these cells. pandas reads the
file, by a package for each kind of it that need not be there.
"""

from __future__ import annotations

import csv
import datetime
import io
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from anyorder.data.delimited import read_delimited
from anyorder.data.dialect import Dialect
from anyorder.data.said import Said, way_to
from anyorder.data.table_text import Say, Source
from anyorder.data.unpacking import RATIO, UNPACKED
from anyorder.errors import UserError
from anyorder.support.boundary import first_line

SPREADSHEETS = {".xlsx": "openpyxl", ".xlsm": "openpyxl", ".xls": "xlrd", ".ods": "odfpy"}
"""Endings, and the package that pandas needs to read such a file."""


def read_spreadsheet(file: Path, source: str, missing: Sequence[object], said: Said, say: Say) -> pd.DataFrame:
    """The table in one sheet: the one that is said, else the first."""
    _check_size(file)
    package = SPREADSHEETS[file.suffix.lower()]
    try:
        with pd.ExcelFile(file) as book:
            names = [str(name) for name in book.sheet_names]
            sheet = _chosen(names, said.sheet, file, say)
            cells = book.parse(sheet, header=None, dtype=object, keep_default_na=False, na_values=[])
    except ImportError:
        extra = "'anyorder[excel]'" if package == "openpyxl" else package
        raise UserError(f"reading {source} needs the package {package}: pip install {extra}") from None
    except UserError:
        raise
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # noqa: BLE001 (for a damaged file these packages raise nearly anything)
        raise UserError(f"cannot read {source} as a spreadsheet: {first_line(error)}") from None
    where = f"{source}, sheet {sheet!r}" if len(names) > 1 else source
    text = _as_csv(cells)
    if not text.strip():
        raise UserError(f"{where} is empty; expected a row of column names and rows of values")
    content = text.encode()
    plain = replace(said, delimiter=",", encoding="utf-8", sheet=None)
    way = way_to(str(file), replace(said, sheet=sheet if len(names) > 1 else None))
    table = read_delimited(Source(lambda: io.BytesIO(content), where, way, len(content)), missing, plain, say)
    return Dialect().put_on(table)


def _chosen(names: Sequence[str], said: str | None, file: Path, say: Say) -> str:
    source, listed = repr(str(file)), ", ".join(map(repr, names))
    if said is not None:
        if said not in names:
            raise UserError(f"{source} has no sheet {said!r}; it has {listed}")
        return said
    if not names:
        raise UserError(f"{source} has no sheets")
    if len(names) > 1:
        way = way_to(str(file), Said())
        say(f"{source} has the sheets {listed}; {names[0]!r} is read. For another one, use {way(names[1])}")
    return names[0]


def _check_size(file: Path) -> None:
    """Refuse a file that unpacks to too much: what these packages read is packed, and they know no limit."""
    limit = max(UNPACKED, RATIO * file.stat().st_size)
    if not zipfile.is_zipfile(file):
        return
    with zipfile.ZipFile(file) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size > limit:
        raise UserError(
            f"{str(file)!r} unpacks to more than {limit / 1e6:,.0f} MB; save the sheet as CSV and name that file"
        )


def _as_csv(cells: pd.DataFrame) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
    for row in cells.itertuples(index=False, name=None):
        writer.writerow([_text(cell) for cell in row])
    return text.getvalue()


def _text(cell: Any) -> str:
    if cell is None or cell is pd.NaT or (isinstance(cell, float) and cell != cell):
        return ""
    if isinstance(cell, datetime.datetime):
        midnight = (cell.hour, cell.minute, cell.second, cell.microsecond) == (0, 0, 0, 0)
        return cell.date().isoformat() if midnight else cell.isoformat(sep=" ")
    return str(cell).replace("\r\n", "\n").replace("\r", "\n")
