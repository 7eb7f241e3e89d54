"""Tables from files and back: CSV with any delimiter, plain or gzipped, and Parquet.

A CSV cell becomes a number only where nothing is lost by it: zip codes with leading zeros and dates stay
texts (the schema still reads dates as dates, and they come back as they were written). Files are written whole or
not at all.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TextIO

import pandas as pd

from anyorder.data.delimited import not_text, read_delimited
from anyorder.data.frames import as_pandas
from anyorder.data.unpacking import opened, read_bytes
from anyorder.errors import UserError
from anyorder.support.atomic import atomic_path
from anyorder.support.boundary import first_line
from anyorder.support.csv_rows import without_formula
from anyorder.support.paths import checked_path

TEXT_SUFFIXES = {".csv": None, ".tsv": "\t", ".tab": "\t", ".txt": None, ".psv": "|"}
PARQUET_SUFFIXES = (".parquet", ".pq")
UNPACKS_TO = 5  # times its size, as a rule: a gzipped file does not say it


def read_table(
    path: str | os.PathLike[str], missing: Sequence[object] = (), *, delimiter: str | None = None
) -> pd.DataFrame:
    """The table in a file; ``-`` reads CSV from standard input. The delimiter is found out unless given."""
    if str(path) == "-":
        return _from_bytes(sys.stdin.buffer.read(), "standard input", missing, delimiter)
    file = checked_path(path)
    suffix, zipped = _suffix(file)
    try:
        if file.is_dir():
            raise UserError(f"cannot read {str(path)!r}: it is a folder, a file was expected")
        if suffix in PARQUET_SUFFIXES:
            return _read_parquet(file)
        delimiter = delimiter or TEXT_SUFFIXES[suffix]
        if not file.is_file():  # a pipe can be read only once
            return _from_bytes(read_bytes(file), repr(str(path)), missing, delimiter)
        size = file.stat().st_size * (UNPACKS_TO if zipped else 1)
        return read_delimited(partial(opened, file), repr(str(path)), missing, delimiter, size)
    except FileNotFoundError:
        raise UserError(f"no such file: {str(path)!r}") from None
    except PermissionError:
        raise UserError(f"cannot read {str(path)!r}: permission denied") from None
    except OSError as error:
        raise UserError(f"cannot read {str(path)!r}: {error.strerror or error}") from None


def _from_bytes(content: bytes, source: str, missing: Sequence[object], delimiter: str | None) -> pd.DataFrame:
    return read_delimited(lambda: io.BytesIO(content), source, missing, delimiter, len(content))


def write_table(frame: Any, path: str | os.PathLike[str], *, escape_formulas: bool = False) -> None:
    """Write a pandas or polars frame in the format of the suffix; ``-`` writes CSV to standard output.

    A spreadsheet calculates a text such as ``=1+1``, whoever wrote it. ``escape_formulas`` puts ``'`` before such texts
    and names in CSV; read again, they have it too.
    """
    table = as_pandas(frame)
    if escape_formulas and (str(path) == "-" or _suffix(checked_path(path))[0] not in PARQUET_SUFFIXES):
        table = _without_formulas(table)
    if str(path) == "-":
        table.to_csv(sys.stdout, index=False, quoting=_quoting(table))
        return
    suffix, zipped = _suffix(checked_path(path))
    with atomic_path(path) as beside:
        if suffix in PARQUET_SUFFIXES:
            with _parquet_errors("write", str(path)):
                table.to_parquet(beside, engine="pyarrow", write_page_checksum=True)
        else:
            with _text_file(beside, zipped) as file:
                table.to_csv(file, index=False, sep=TEXT_SUFFIXES[suffix] or ",", quoting=_quoting(table))


@contextmanager
def _text_file(path: Path, zipped: bool) -> Iterator[TextIO]:
    with ExitStack() as open_files:
        file: Any = open_files.enter_context(path.open("wb"))
        if zipped:  # with neither the time nor the name of the temporary file: the same table, the same bytes
            file = open_files.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
        yield open_files.enter_context(io.TextIOWrapper(file, encoding="utf-8", newline=""))


def _quoting(table: pd.DataFrame) -> Literal[0, 2]:
    """All texts in quotes where one holds a carriage return: some versions of Python leave such a cell without them."""
    columns = [pd.Series(table.columns), *(column for _, column in table.items() if column.dtype.kind not in "biufM")]
    returns = any("\r" in cell for column in columns for cell in column if isinstance(cell, str))
    return csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL


def _without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    def escaped(cell: Any) -> Any:
        return without_formula(cell) if isinstance(cell, str) else cell

    cells = {
        index: column.astype(object).map(escaped) if column.dtype.kind not in "biufM" else column
        for index, (_, column) in enumerate(table.items())
    }
    return pd.DataFrame(cells, index=table.index).set_axis(pd.Index(map(escaped, table.columns), dtype=object), axis=1)


def decoded(content: bytes, source: str) -> str:
    """A text file as the tables are read: UTF-8, or UTF-16 with a mark in front."""
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise not_text(source, error) from None
    if "\0" in text:
        raise UserError(f"cannot read {source}: it is not a text file")
    return text


def _suffix(file: Path) -> tuple[str, bool]:
    suffixes = [suffix.lower() for suffix in file.suffixes]
    zipped = suffixes[-1:] == [".gz"]
    suffix = (suffixes[:-1] if zipped else suffixes)[-1:]
    if suffix and (suffix[0] in TEXT_SUFFIXES or (suffix[0] in PARQUET_SUFFIXES and not zipped)):
        return suffix[0], zipped
    known = ", ".join([*TEXT_SUFFIXES, ".csv.gz", *PARQUET_SUFFIXES])
    raise UserError(f"{str(file)!r}: unknown kind of file; the name should end in one of {known}")


class _parquet_errors:  # noqa: N801 (reads as a clause: with _parquet_errors(...))
    """pyarrow is optional, and its errors are not written for users."""

    def __init__(self, verb: str, path: str) -> None:
        self.verb, self.path = verb, path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ImportError):
            raise UserError("Parquet needs the package pyarrow: pip install pyarrow") from None
        # Not a list of classes: for a damaged file pyarrow and pandas raise nearly anything.
        if isinstance(error, Exception) and not isinstance(error, FileNotFoundError | PermissionError):
            raise UserError(f"cannot {self.verb} {self.path!r} as Parquet: {first_line(error)}") from None


def _read_parquet(file: Path) -> pd.DataFrame:
    if not file.exists():
        raise UserError(f"no such file: {str(file)!r}")
    with _parquet_errors("read", str(file)):
        return pd.read_parquet(file, engine="pyarrow", page_checksum_verification=True)
    raise AssertionError("unreachable")
