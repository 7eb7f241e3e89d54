"""Parts of a table written one by one, each whole or not at all, with a record of how it came to be beside it.

The record ``_part-0.parquet.json`` says what was done, by which model, with which options and to which input. A part
whose record says just what is to be done now is there already. Names that begin with ``_`` are no data to whoever reads
folders of Parquet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyorder.data.dialect import Dialect
from anyorder.data.files import PARQUET_SUFFIXES, TEXT_SUFFIXES, text_file, without_formulas
from anyorder.data.parts import arrow
from anyorder.errors import UserError
from anyorder.support.atomic import REFUSALS, WriteError, atomic_path

GROUP = 1 << 18  # rows of a row group

MORE = "the parts before it are finished, and the same call goes on from there once it can write"

Write = Callable[[Any], None]
"""Takes rows of a part, which follow those before."""


def record_of(path: Path) -> Path:
    """Where the record of a part is."""
    return path.with_name(f"_{path.name}.json")


def is_made(path: Path, record: Mapping[str, Any]) -> bool:
    """Whether this part is there, and its record is this one."""
    try:
        found = json.loads(record_of(path).read_text(encoding="utf-8"))
        return bool(found.pop("bytes") == path.stat().st_size and found == json.loads(json.dumps(record)))
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return False


@contextmanager
def written_part(
    path: Path, schema: Any, record: Mapping[str, Any], *, dialect: Dialect | None = None, escape: bool = False
) -> Iterator[Write]:
    """A part to which rows are handed piece by piece; at the end it has its name, and its record.

    ``escape``: as ``escape_formulas`` of :func:`~anyorder.data.files.write_table`.
    """
    with refused_by_disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        record_of(path).unlink(missing_ok=True)  # a record is never beside a part that it does not describe
        suffixes = path.name.lower()
        with atomic_path(path) as beside:
            if suffixes.endswith(PARQUET_SUFFIXES):
                with _parquet(beside, schema) as write:
                    yield write
            else:
                with _text(beside, suffixes, schema, dialect or Dialect(), escape=escape) as write:
                    yield write
        whole = {**record, "bytes": path.stat().st_size}
        with atomic_path(record_of(path)) as beside:
            beside.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@contextmanager
def refused_by_disk(path: Path) -> Iterator[None]:
    """Within, a disk that is full, or closed to the user, is a ``WriteError`` that names this file."""
    try:
        yield
    except (WriteError, OSError) as error:
        if isinstance(error, OSError):
            if error.errno not in REFUSALS:
                raise
            said = f"cannot write {str(path)!r}: {error.strerror}"
        elif MORE in (said := str(error)):
            raise
        raise WriteError(f"{said}; {MORE}") from error


@contextmanager
def _parquet(path: Path, schema: Any) -> Iterator[Write]:
    import pyarrow.parquet as pq

    pa, waiting = arrow(), list[Any]()

    def write(rows: Any) -> None:
        waiting.append(rows)
        if sum(map(len, waiting)) >= GROUP:
            flush()

    def flush() -> None:
        writer.write_table(pa.concat_tables(waiting).combine_chunks())
        waiting.clear()

    with path.open("wb") as file:  # a file of Python's tells why it cannot be written
        writer = pq.ParquetWriter(file, schema, write_page_checksum=True)
        try:
            yield write
            if waiting:
                flush()
        except BaseException:
            waiting.clear()
            raise
        finally:
            writer.close()


@contextmanager
def _text(path: Path, name: str, schema: Any, dialect: Dialect, *, escape: bool) -> Iterator[Write]:
    packed = name.endswith(".gz")
    suffix = Path(name.removesuffix(".gz")).suffix
    if suffix not in TEXT_SUFFIXES:
        raise UserError(f"cannot write {str(path)!r}: expected a name that ends in .parquet, .csv or .csv.gz")
    begun = False
    encoding = dialect.encoding if dialect.encoding.lower().startswith("utf") else "utf-8"
    with text_file(path, packed, encoding) as file:
        if dialect.mark:
            file.write("\ufeff")

        def write(rows: Any) -> None:
            nonlocal begun
            table = rows.to_pandas()
            table = without_formulas(table) if escape else table
            options = dialect.csv_options(table, TEXT_SUFFIXES[suffix])
            table.to_csv(file, header=not begun, lineterminator=dialect.newline, **options)
            begun = True

        yield write
        if not begun:
            write(schema.empty_table())
