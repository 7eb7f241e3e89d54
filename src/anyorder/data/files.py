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
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from anyorder.data.frames import as_pandas
from anyorder.errors import UserError
from anyorder.support.atomic import atomic_path
from anyorder.variables.cells import LEADING_ZERO, NUMBER, Series, all_match, any_match, missing_cells

TEXT_SUFFIXES = {".csv": None, ".tsv": "\t", ".tab": "\t", ".txt": None, ".psv": "|"}
PARQUET_SUFFIXES = (".parquet", ".pq")
DELIMITERS = (",", ";", "\t", "|")
ALWAYS_MISSING = ("nan", "NaN", "NAN", "<NA>", "NaT", "NULL", "null", "#N/A")
"""Texts that programs write for "no value", whatever the column. NA and None may be meant as texts."""


def read_table(
    path: str | os.PathLike[str], missing: Sequence[object] = (), *, delimiter: str | None = None
) -> pd.DataFrame:
    """The table in a file; ``-`` reads CSV from standard input. The delimiter is found out unless given."""
    if str(path) == "-":
        return _parse(sys.stdin.buffer.read(), "standard input", missing, delimiter)
    file = Path(path)
    suffix, zipped = _suffix(file)
    if file.is_dir():
        raise UserError(f"cannot read {str(path)!r}: it is a folder, a file was expected")
    try:
        if suffix in PARQUET_SUFFIXES:
            return _read_parquet(file)
        content = gzip.decompress(file.read_bytes()) if zipped else file.read_bytes()
    except FileNotFoundError:
        raise UserError(f"no such file: {str(path)!r}") from None
    except PermissionError:
        raise UserError(f"cannot read {str(path)!r}: permission denied") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {str(path)!r}: not a whole gzip file ({error})") from None
    return _parse(content, repr(str(path)), missing, delimiter or TEXT_SUFFIXES[suffix])


def write_table(frame: Any, path: str | os.PathLike[str]) -> None:
    """Write a pandas or polars frame in the format of the suffix; ``-`` writes CSV to standard output."""
    table = as_pandas(frame)
    if str(path) == "-":
        table.to_csv(sys.stdout, index=False)
        return
    suffix, zipped = _suffix(Path(path))
    with atomic_path(path) as beside:
        if suffix in PARQUET_SUFFIXES:
            with _parquet_errors("write", str(path)):
                table.to_parquet(beside)
        else:
            with _text_file(beside, zipped) as file:
                table.to_csv(file, index=False, sep=TEXT_SUFFIXES[suffix] or ",")


@contextmanager
def _text_file(path: Path, zipped: bool) -> Iterator[TextIO]:
    with ExitStack() as open_files:
        file: Any = open_files.enter_context(path.open("wb"))
        if zipped:  # with neither the time nor the name of the temporary file: the same table, the same bytes
            file = open_files.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
        yield open_files.enter_context(io.TextIOWrapper(file, encoding="utf-8", newline=""))


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
        if isinstance(error, ValueError | TypeError | NotImplementedError) or (
            isinstance(error, OSError) and not isinstance(error, FileNotFoundError | PermissionError)
        ):
            raise UserError(f"cannot {self.verb} {self.path!r} as Parquet: {str(error).splitlines()[0]}") from None


def _read_parquet(file: Path) -> pd.DataFrame:
    if not file.exists():
        raise UserError(f"no such file: {str(file)!r}")
    with _parquet_errors("read", str(file)):
        return pd.read_parquet(file)
    raise AssertionError("unreachable")


def _parse(content: bytes, source: str, missing: Sequence[object], delimiter: str | None) -> pd.DataFrame:
    sixteen = content[:2] in (b"\xff\xfe", b"\xfe\xff")  # what a spreadsheet calls "Unicode text"
    if not sixteen and b"\0" in content[:65536]:
        raise UserError(f"cannot read {source}: it is not a text file, a CSV table was expected")
    if sixteen:
        content = content.decode("utf-16", errors="replace").encode()
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        head = content[:65536].decode(errors="strict" if len(content) <= 65536 else "ignore")
    except UnicodeDecodeError as error:
        raise UserError(f"cannot read {source}: not UTF-8 text (at byte {error.start}); save it as UTF-8") from None
    lines = head.splitlines(keepends=True)
    if len(content) > 65536 and len(lines) > 1:
        lines = lines[:-1]  # cut off in the middle
    if not head.strip():
        raise UserError(f"{source} is empty; expected a line of column names and lines of values")
    delimiter = delimiter or sniff(lines)
    names = _header(lines, delimiter, source)
    table = _read_cells(content, delimiter, names, source)
    marks = [str(mark) for mark in missing]
    columns = {name: _typed(table[name], marks, decimal_comma=delimiter == ";") for name in names}
    return pd.DataFrame(columns, index=table.index)


def sniff(lines: Sequence[str]) -> str:
    r"""The delimiter under which the lines have as many fields as the header; ``\s+`` for aligned numbers."""
    best, best_score = ",", (0.0, 0, 0)
    for delimiter in DELIMITERS:
        rows = [row for row in csv.reader(lines[:200], delimiter=delimiter, skipinitialspace=True) if row]
        width = len(rows[0]) if rows else 0
        agree = sum(len(row) == width for row in rows) / max(len(rows), 1)
        if width <= 1 or (agree, width) < best_score[:2]:
            continue
        score = (agree, width, _numeric_columns(rows[1:], width, delimiter))  # the last one breaks ties
        if score > best_score:
            best, best_score = delimiter, score
    if best_score[1]:
        return best
    rows = [line.split() for line in lines[:200] if line.strip()]
    cells = pd.Series([cell for row in rows[1:] for cell in row], dtype="str")
    aligned = len(rows) > 1 and len({len(row) for row in rows}) == 1 and len(rows[0]) > 1
    return r"\s+" if aligned and cells.str.fullmatch(NUMBER).mean() >= 0.5 else ","


def _numeric_columns(rows: Sequence[Sequence[str]], width: int, delimiter: str) -> int:
    """How many columns hold only numbers, with a decimal comma where the delimiter leaves room for it."""
    whole = [row for row in rows if len(row) == width]
    pattern = rf"{NUMBER}|[+-]?\d+,\d+" if delimiter == ";" else NUMBER
    columns = (pd.Series([row[index] for row in whole], dtype="str") for index in range(width))
    return sum(all_match(column[column.str.strip() != ""], pattern) for column in columns) if whole else 0


def _header(lines: Sequence[str], delimiter: str, source: str) -> list[str]:
    if delimiter == r"\s+":
        names = next(line.split() for line in lines if line.strip())
    else:
        names = next(row for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if row)
    names = [name.strip() or f"column {index}" for index, name in enumerate(names, start=1)]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise UserError(f"{source}: column names must differ; repeated: {', '.join(map(repr, repeated))}")
    decimal = [name for name in names if "." in name and all_match(pd.Series([name], dtype="str"), NUMBER)]
    if decimal:
        raise UserError(f"{source}: the first line should hold the column names, but {decimal[0]!r} looks like a value")
    return names


def _read_cells(content: bytes, delimiter: str, names: list[str], source: str) -> pd.DataFrame:
    """Every cell as text; lines of another length than the header's are refused, not padded or cut."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # "loss of data": a line is too long
            table = pd.read_csv(
                io.BytesIO(content),
                sep=delimiter,
                header=0,
                names=names,
                dtype="str",
                index_col=False,
                keep_default_na=False,
                na_values=[],
                skipinitialspace=True,
                encoding="utf-8",
            )
    except pd.errors.ParserWarning:
        raise UserError(f"{source}: some lines have more fields than the {len(names)} column names") from None
    except pd.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. ").removeprefix("C error: ").strip()
        raise UserError(f"cannot read {source} as a table with {len(names)} columns: {reason}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"cannot read {source}: not UTF-8 text ({error.reason}); save it as UTF-8") from None
    if not len(table):
        raise UserError(f"{source} has column names but no rows")
    if len(names) > 1 and bool((table.iloc[:, -1] == "").any()):
        _refuse_short_lines(content, delimiter, len(names), source)
    return table


def _refuse_short_lines(content: bytes, delimiter: str, width: int, source: str) -> None:
    """pandas fills a short line with empty cells; it is more likely a damaged file."""
    lines = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="")
    blank = delimiter == r"\s+"
    rows = (line.split() for line in lines) if blank else csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    for number, row in enumerate(row for row in rows if row):
        if len(row) < width:  # rows are counted as everywhere, by the labels of the table, from 0
            raise UserError(f"{source}: row {number - 1} has {len(row)} fields, the header has {width}")


def _typed(texts: Series, marks: Sequence[str], *, decimal_comma: bool) -> Series:
    """Numbers and booleans where that loses nothing, else the texts themselves, with missing cells as NaN."""
    missing = missing_cells(texts, [*ALWAYS_MISSING, *marks])
    sure = ~missing_cells(texts, [*ALWAYS_MISSING, *marks], words=True)
    cells = texts[sure]
    if decimal_comma and len(cells) and all_match(cells, r"[+-]?\d+(?:,\d+)?") and any_match(cells, r".*,.*"):
        texts, cells = texts.str.replace(",", "."), cells.str.replace(",", ".")
    if len(cells) and all_match(cells, NUMBER) and any_match(cells, r".*\d.*") and not any_match(cells, LEADING_ZERO):
        whole = _whole(cells)
        if whole is not None and sure.all():
            return whole
        if whole is not None:
            return whole.astype("Int64").reindex(texts.index)
        if not any_match(cells, r"[+-]?\d{17,}"):  # a long id would lose its last digits
            number = pd.Series(np.nan, index=texts.index)
            number[sure] = cells.to_numpy(dtype=object).astype(np.float64)
            return number
    if not missing.all() and all_match(texts[~missing], "True|False"):
        truth = (texts == "True").astype("boolean" if missing.any() else "bool")
        return truth.mask(missing) if missing.any() else truth
    out = texts.astype(object)
    out[missing] = None
    return out.astype("str")


def _whole(cells: Series) -> Series | None:
    """The cells as int64 if they are all whole numbers that fit."""
    if not all_match(cells, r"-?\d{1,19}"):
        return None
    try:
        return cells.astype("int64")
    except OverflowError:
        return None
