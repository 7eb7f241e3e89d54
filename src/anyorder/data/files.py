"""Tables from files and back: CSV with any delimiter, plain or packed, Parquet, spreadsheets, JSON lines.

A CSV cell becomes a number only where nothing is lost by it: zip codes with leading zeros and dates stay
texts (the schema still reads dates as dates, and they come back as they were written). What was read from a text is
written in the same dialect. Files are written whole or not at all.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import pandas as pd

from anyorder.data.delimited import read_delimited
from anyorder.data.dialect import KEY, Dialect
from anyorder.data.encodings import Opener, scan
from anyorder.data.frames import as_pandas
from anyorder.data.said import Said, said_in_name, way_to
from anyorder.data.spreadsheets import SPREADSHEETS, read_spreadsheet
from anyorder.data.table_text import Source
from anyorder.data.unpacking import ENDINGS, opened, read_bytes
from anyorder.errors import UserError
from anyorder.support.atomic import atomic_path
from anyorder.support.boundary import first_line
from anyorder.support.csv_rows import without_formula
from anyorder.support.paths import checked_path

TEXT_SUFFIXES = {".csv": None, ".tsv": "\t", ".tab": "\t", ".txt": None, ".psv": "|"}
PARQUET_SUFFIXES = (".parquet", ".pq")
JSON_SUFFIXES = (".jsonl", ".ndjson")
UNPACKS_TO = 5  # times its size, as a rule: a gzipped file does not say it


def read_table(
    path: str | os.PathLike[str],
    missing: Sequence[object] = (),
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: int | str | None = None,
    rows: str | None = None,
    sheet: str | None = None,
) -> pd.DataFrame:
    """The table in a file; ``-`` reads CSV from standard input.

    Whatever is not said is found out, and notices (warnings) say what was done about odd lines. All of it can also be
    said behind the name, as in ``"sales.csv#header=3"`` (see :mod:`anyorder.data.said`).

    Parameters
    ----------
    path
        A file whose ending says what it is.
    missing
        Texts that stand for an unknown cell.
    delimiter
        One character, or ``"\\s+"`` for spaces.
    encoding
        Such as ``"cp1252"``.
    header
        The line of the column names, counted from 1; ``"1-2"`` for several; 0 if there are none.
    rows
        ``"all"``: lines that look like totals, footnotes or repeated column names are rows too.
    sheet
        The sheet of a spreadsheet; by default the first one.

    Returns
    -------
    pandas.DataFrame
        How the text is written is kept in its ``attrs``, for :func:`write_table`.
    """
    name, behind = said_in_name(path, _is_readable)
    said = Said.of(delimiter, encoding, header, rows, sheet).or_else(behind)
    notices: list[str] = []
    table = _read(name, missing, said, notices)
    for notice in notices:
        warnings.warn(notice, UserWarning, stacklevel=2)
    return table


def frame_or_file(thing: Any, missing: Sequence[object] = ()) -> Any:
    """What is given, or the table in the file that it names."""
    return read_table(thing, missing) if isinstance(thing, str | os.PathLike) else thing


def _read(name: str, missing: Sequence[object], said: Said, notices: list[str]) -> pd.DataFrame:
    if name == "-":
        content = sys.stdin.buffer.read()
        stream = Source(lambda: io.BytesIO(content), "standard input", way_to(name, said), len(content))
        return read_delimited(stream, missing, said, notices.append)
    file, source = Path(name), repr(name)
    suffix, packed = _suffix(file)
    if said.sheet is not None and suffix not in SPREADSHEETS:
        raise UserError(
            f"{source} has no sheets, so there is no sheet {said.sheet!r}; only {', '.join(SPREADSHEETS)} files have"
        )
    try:
        if file.is_dir():
            raise UserError(f"cannot read {source}: it is a folder; expected a file")
        if suffix in PARQUET_SUFFIXES:
            return _read_parquet(file)
        if suffix in SPREADSHEETS:
            return read_spreadsheet(file, source, missing, said, notices.append)
        if suffix in JSON_SUFFIXES:
            return _read_json_lines(read_bytes(file), source)
        delimiter = TEXT_SUFFIXES[suffix]
        named = said.delimiter is None and delimiter is not None
        said = said.or_else(Said(delimiter=delimiter))
        size = file.stat().st_size * (UNPACKS_TO if packed else 1)
        reopen: Opener = partial(opened, file)
        if not file.is_file():  # a pipe can be read only once
            content = read_bytes(file)
            size, reopen = len(content), partial(io.BytesIO, content)
        text = Source(reopen, source, way_to(name, said), size, named)
        return read_delimited(text, missing, said, notices.append)
    except FileNotFoundError:
        raise UserError(f"no such file: {source}") from None
    except PermissionError:
        raise UserError(f"cannot read {source}: permission denied") from None
    except OSError as error:
        raise UserError(f"cannot read {source}: {error.strerror or error}") from None


def write_table(frame: Any, path: str | os.PathLike[str], *, escape_formulas: bool = False, like: Any = None) -> None:
    """Write a pandas or polars frame in the format of the suffix; ``-`` writes CSV to standard output.

    A frame that was read from a text is written as that text was: delimiter, quotes, decimal sign, encoding, line ends,
    unless the suffix says otherwise (a ``.tsv`` has tabs). ``like``: the frame whose dialect is taken instead.

    A spreadsheet calculates a text such as ``=1+1``, whoever wrote it. ``escape_formulas`` puts ``'`` before such texts
    and names in CSV; read again, they have it too.
    """
    dialect = Dialect.of(frame if like is None else like)
    table = as_pandas(frame)
    table.attrs.pop(KEY, None)
    if str(path) == "-":
        table = without_formulas(table) if escape_formulas else table
        table.to_csv(sys.stdout, **dialect.csv_options(table))
        return
    suffix, packed = _suffix(checked_path(path))
    if suffix in PARQUET_SUFFIXES:
        with atomic_path(path) as beside, _parquet_errors("write", str(path)):
            table.to_parquet(beside, engine="pyarrow", write_page_checksum=True)
        return
    if suffix not in TEXT_SUFFIXES or packed not in ("", ".gz"):
        known = ", ".join([*TEXT_SUFFIXES, ".csv.gz", *PARQUET_SUFFIXES])
        raise UserError(f"cannot write {str(path)!r}: the name should end in one of {known}")
    table = without_formulas(table) if escape_formulas else table
    delimiter = TEXT_SUFFIXES[suffix] or ("," if dialect.named and suffix == ".csv" else None)
    try:
        _write_text(table, path, dialect, delimiter, zipped=bool(packed))
    except UnicodeEncodeError as error:
        letter = error.object[error.start]
        warnings.warn(
            f"{str(path)!r} is written as UTF-8: {letter!r} cannot be written in {dialect.encoding}, the encoding "
            "of the table that was read",
            UserWarning,
            stacklevel=2,
        )
        _write_text(table, path, replace(dialect, encoding="utf-8"), delimiter, zipped=bool(packed))


def _write_text(
    table: pd.DataFrame, path: str | os.PathLike[str], dialect: Dialect, delimiter: str | None, *, zipped: bool
) -> None:
    with atomic_path(path) as beside, text_file(beside, zipped, dialect.encoding) as file:
        if dialect.mark:
            file.write("\ufeff")
        table.to_csv(file, lineterminator=dialect.newline, **dialect.csv_options(table, delimiter))


@contextmanager
def text_file(path: Path, zipped: bool, encoding: str) -> Iterator[TextIO]:
    """A text file to write, plain or packed."""
    with ExitStack() as open_files:
        file: Any = open_files.enter_context(path.open("wb"))
        if zipped:  # with neither the time nor the name of the temporary file: the same table, the same bytes
            file = open_files.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
        yield open_files.enter_context(io.TextIOWrapper(file, encoding=encoding, newline=""))


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """The table with nothing in it that a spreadsheet would calculate."""

    def escaped(cell: Any) -> Any:
        return without_formula(cell) if isinstance(cell, str) else cell

    cells = {
        index: column.astype(object).map(escaped) if column.dtype.kind not in "biufM" else column
        for index, (_, column) in enumerate(table.items())
    }
    return pd.DataFrame(cells, index=table.index).set_axis(pd.Index(map(escaped, table.columns), dtype=object), axis=1)


def decoded(content: bytes, source: str) -> str:
    """A text file, decoded as tables are."""
    found = scan(lambda: io.BytesIO(content), source)
    if found.notice:
        warnings.warn(f"{found.notice}save it as UTF-8", UserWarning, stacklevel=2)
    text = content.decode(found.codec)
    if "\0" in text:
        raise UserError(f"cannot read {source}: it is not a text file")
    return text


def _suffix(file: Path) -> tuple[str, str]:
    """What a file is by its name, and how it is packed."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    packed = suffixes[-1] if suffixes[-1:] and suffixes[-1] in ENDINGS else ""
    suffix = (suffixes[:-1] if packed else suffixes)[-1:]
    plain = (*PARQUET_SUFFIXES, *SPREADSHEETS)
    if suffix and (suffix[0] in TEXT_SUFFIXES or suffix[0] in JSON_SUFFIXES or (suffix[0] in plain and not packed)):
        return suffix[0], packed
    known = ", ".join([*TEXT_SUFFIXES, ".csv.gz", *plain, *JSON_SUFFIXES])
    raise UserError(f"{str(file)!r}: unknown kind of file; the name should end in one of {known}")


def _is_readable(name: str) -> bool:
    """Whether a name is that of a file that can hold a table."""
    try:
        return name == "-" or bool(_suffix(Path(name)))
    except UserError:
        return False


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


def _read_json_lines(content: bytes, source: str) -> pd.DataFrame:
    """One JSON object a line; numbers, texts and booleans as they are there."""
    rows = []
    for number, line in enumerate(decoded(content, source).splitlines(), start=1):
        try:
            row = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError) as error:
            raise UserError(f"{source}: line {number} is not a JSON object: {first_line(error)}") from None
        if row is not None and not isinstance(row, dict):
            raise UserError(f'{source}: line {number} is not a JSON object such as {{"a": 1}}: {line!r:.60}')
        rows += [row] if row is not None else []
    if not rows:
        raise UserError(f"{source} is empty; expected a JSON object on every line")
    return pd.DataFrame(rows)
