"""A table in many files: a folder or a pattern of Parquet or CSV parts, read block by block and never as a whole.

The parts follow each other in the order of their names, numbers in names by their size, so that ``part-10`` comes after
``part-9``. Every row then has a number in the table, and what is cut for reading is cut at such numbers alone: a block
may begin in one part and end three parts later. So whoever works on blocks sees the same ones however the rows are
divided among files.

All parts are looked at before any row is: how many rows each has, and whether all have the same columns. Types that
differ as those of one column do from file to file (whole numbers here, fractions there; nothing but empty cells) become
the wider one; anything else is refused by the name of its file. The cells of CSV parts stay texts, as in the file:
what a text means is known to the model.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd

from anyorder.data.delimited import ALWAYS_MISSING
from anyorder.data.dialect import Dialect
from anyorder.data.files import PARQUET_SUFFIXES, TEXT_SUFFIXES
from anyorder.data.said import Said, way_to
from anyorder.data.table_text import Source, TableText
from anyorder.data.unpacking import opened
from anyorder.errors import UserError
from anyorder.support.advance import checked
from anyorder.support.boundary import first_line
from anyorder.support.paths import checked_path

ROWS = 1 << 14  # that a file hands over at a time
BUFFER = 1 << 20  # bytes of a Parquet column that are read at a time
READ = 1 << 22  # bytes that are hashed at a time
PATTERN = re.compile(r"[*?\[]")
PACKED = ".gz"
MOST_NAMED = 3
NULLABLE = {
    **{f"{sign}int{bits}": f"{sign.upper()}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": "boolean",
}
"""Arrow's types, and pandas' that hold the same cells with holes among them."""


@dataclass(frozen=True)
class Part:
    """One file of the table: what it is called in there, its rows, and the number of the first of them."""

    name: str
    path: Path
    rows: int
    first: int = 0
    cells: tuple[tuple[str, str], ...] = ()  # columns that the names of its folders hold: year=2024/part-0.parquet

    @property
    def end(self) -> int:
        """The number of the row behind its last."""
        return self.first + self.rows

    @cached_property
    def digest(self) -> str:
        """A hash of all its bytes."""
        found = hashlib.blake2b(digest_size=16)
        with refusing(self.path), self.path.open("rb") as file:
            while block := file.read(READ):
                checked()
                found.update(block)
        return found.hexdigest()


def in_parts(place: object) -> bool:
    """Whether this names a table in many files: a folder, or a pattern such as ``sales/*.parquet``."""
    if not isinstance(place, str | os.PathLike):
        return False
    path = checked_path(place)
    return path.is_dir() or (PATTERN.search(str(path)) is not None and not path.exists())


class PartedTable:
    """The parts of a table, of which a block is in memory at a time.

    Parameters
    ----------
    place
        A folder (with the folders in it; names that begin with ``_`` or ``.`` are passed over), a pattern, or one
        file.
    missing
        Texts that stand for an unknown cell.

    Examples
    --------
    >>> from anyorder.data.parts import PartedTable
    >>> parts = folder / "parts"
    >>> parts.mkdir()
    >>> frame.head(30).to_parquet(parts / "part-0.parquet")
    >>> frame.tail(20).to_parquet(parts / "part-1.parquet")
    >>> table = PartedTable(parts)
    >>> table.rows, [part.first for part in table.parts]
    (50, [0, 30])
    """

    def __init__(self, place: str | os.PathLike[str], missing: Sequence[object] = ()) -> None:
        self.arrow = arrow()
        self.place = str(place)
        self.missing = tuple(map(str, missing))
        paths = _paths(checked_path(place))
        self.text = _is_text(paths[0][1])
        for _, path in paths[1:]:
            if _is_text(path) is not self.text:
                raise UserError(
                    f"{self.place!r} has both Parquet and CSV ({str(paths[0][1])!r}, {str(path)!r}): "
                    "give a pattern that names one kind, such as '*.parquet'"
                )
        self._texts: dict[str, TableText] = {}
        parts, schemas, first = list[Part](), list[Any](), 0
        for name, path in paths:
            checked()
            part = Part(name, path, 0, first, _cells_of_folders(name))
            rows, schema = self._look_into(part)
            if not rows:
                raise UserError(f"the part {str(path)!r} has no rows: remove it, or write it anew")
            parts.append(replace(part, rows=rows))
            schemas.append(schema)
            first += rows
        if len({tuple(name for name, _ in part.cells) for part in parts}) > 1:
            raise UserError(f"the folders of {self.place!r} do not all have the same names (year=2024/month=5/...)")
        self.parts = tuple(parts)
        self.rows = first
        self.schema = self._joint(schemas)
        alike = all(self.schema.field(one.name).type.equals(plain_type(one.type)) for one in schemas[0])
        self.metadata = schemas[0].metadata if alike else None

    def __len__(self) -> int:
        return self.rows

    def __repr__(self) -> str:
        return f"PartedTable({self.place!r}: {self.rows:,} rows in {len(self.parts)} parts)"

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.schema.names)

    def dialect(self, part: Part) -> Dialect:
        """How a CSV part is written."""
        return self._text(part).dialect(".", named=True)

    def frame(
        self, rows: Any, names: Sequence[str] | None = None, first: int = 0, *, nullable: bool = True
    ) -> pd.DataFrame:
        """Arrow's rows in pandas, in dtypes that depend on the columns alone; ``first``: the number of the first.

        Without ``nullable``, in the dtypes that pandas itself would read these rows in.
        """
        pa = self.arrow
        found = rows if names is None else rows.select(list(names))
        for at, field in enumerate(found.schema):
            if pa.types.is_decimal(field.type):
                found = found.set_column(at, field.name, found.column(at).cast(pa.float64()))
        types = {pa.type_for_alias(name): pd.api.types.pandas_dtype(dtype) for name, dtype in NULLABLE.items()}
        if not nullable:
            found = found.replace_schema_metadata(self.metadata)  # what pandas notes of its dtypes
        frame: pd.DataFrame = found.to_pandas(types_mapper=types.get if nullable else None)
        return frame.set_axis(pd.RangeIndex(first, first + len(frame)))

    def blocks(self, ranges: Sequence[tuple[int, int]]) -> Iterator[Any]:
        """The rows from one number to another, for each of these ranges, which ascend."""
        source: Iterator[Any] = iter(())
        held, first = None, 0  # rows that were read already, and the number of the first of them
        for start, stop in ranges:
            if held is None or not first <= start <= first + len(held):
                source, held, first = self._from(start), self.schema.empty_table(), start
            some = [held.slice(start - first)]
            while sum(map(len, some)) < stop - start:
                piece = next(source, None)
                if piece is None:
                    raise UserError(f"{self.place!r} was changed while it was read: start again")
                some.append(piece)
            together = self.arrow.concat_tables(some)
            del some
            yield together.slice(0, stop - start)
            held, first = together.slice(stop - start), stop

    def within(self, first: int, stop: int) -> list[tuple[Part, int, int]]:
        """The parts that have rows of this range, and from which to which number."""
        return [
            (part, max(first, part.first), min(stop, part.end))
            for part in self.parts
            if part.first < stop and part.end > first
        ]

    def _from(self, row: int) -> Iterator[Any]:
        """The table from this row on, piece by piece."""
        for part in self.parts:
            if part.end > row:
                skip = max(0, row - part.first)
                pieces = self._texts_of(part, skip) if self.text else self._parquet(part, skip)
                with refusing(part.path):
                    for piece in pieces:
                        checked()
                        yield self._conformed(part, piece)

    def _look_into(self, part: Part) -> tuple[int, Any]:
        """How many rows a part has, and of which types its columns are."""
        pa = self.arrow
        if self.text:
            with refusing(part.path):
                text = self._text(part)
                rows = text.reading(lambda: sum(len(piece) for piece in text.pieces(ROWS)))
            return rows, pa.schema([(name, pa.large_string()) for name in text.head.names])
        with refusing(part.path), self._opened(part) as file:
            return int(file.metadata.num_rows), file.schema_arrow

    def _opened(self, part: Part) -> Any:
        import pyarrow.parquet as pq

        if not part.path.exists():
            raise UserError(f"no such file: {str(part.path)!r}")
        return pq.ParquetFile(part.path, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True)

    def _parquet(self, part: Part, skip: int) -> Iterator[Any]:
        pa = self.arrow
        with self._opened(part) as file:
            counts = [file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups)]
            group = 0
            while group < len(counts) and skip >= counts[group]:
                skip -= counts[group]
                group += 1
            rest = list(range(group, len(counts)))
            for batch in file.iter_batches(batch_size=ROWS, row_groups=rest, use_threads=False):
                if skip >= len(batch):
                    skip -= len(batch)
                    continue
                yield pa.Table.from_batches([batch.slice(skip)])
                skip = 0

    def _text(self, part: Part) -> TableText:
        if part.name not in self._texts:
            title = repr(str(part.path))
            reopen = partial(opened, part.path)
            sign = TEXT_SUFFIXES[_suffix(part.path)]
            source = Source(reopen, title, way_to(str(part.path), Said()), part.path.stat().st_size, sign is not None)
            text = TableText(source, Said(delimiter=sign), lambda notice: None)
            text.headers = []  # every line is a row
            self._texts[part.name] = text
        return self._texts[part.name]

    def _texts_of(self, part: Part, skip: int) -> Iterator[Any]:
        pa = self.arrow
        nothing = {"", *ALWAYS_MISSING, *self.missing}
        for piece in self._text(part).pieces(ROWS):
            if skip >= len(piece):
                skip -= len(piece)
                continue
            columns = {}
            for name, cells in piece.iloc[skip:].items():
                # With a word for unknown in it a text is left to the model: NA may be a level.
                columns[str(name)] = pa.array(
                    cells.mask(cells.isin(nothing)).to_numpy(dtype=object), from_pandas=True, type=pa.large_string()
                )
            skip = 0
            yield pa.table(columns)

    def _conformed(self, part: Part, piece: Any) -> Any:
        """A piece with the columns of the table, in their types."""
        pa = self.arrow
        cells = dict(part.cells)
        columns = []
        for field in self.schema:
            if field.name in cells and field.name not in piece.schema.names:
                column: Any = pa.array([cells[field.name]] * len(piece)).cast(field.type)
            else:
                column = piece.column(field.name).cast(field.type)
            columns.append(column)
        return pa.table(columns, schema=self.schema)

    def _joint(self, schemas: Sequence[Any]) -> Any:
        """The schema that all parts have, or a refusal by the name of the part that has another."""
        pa = self.arrow
        first = schemas[0]
        for name in first.names:
            if first.names.count(name) > 1:
                raise UserError(f"the part {str(self.parts[0].path)!r} has two columns {name!r}: rename one of them")
        types = {field.name: plain_type(field.type) for field in first}
        for part, schema in zip(self.parts, schemas, strict=True):
            if set(schema.names) != set(first.names) or len(schema.names) != len(first.names):
                more = [name for name in schema.names if name not in first.names]
                less = [name for name in first.names if name not in schema.names]
                said = [f"it has {_listed(more)} besides"] if more else []
                said += [f"it lacks {_listed(less)}"] if less else []
                raise UserError(
                    f"the part {str(part.path)!r} has other columns than {str(self.parts[0].path)!r}: "
                    f"{' and '.join(said) or 'one of them twice'}; parts of one table have the same columns"
                )
            for field in schema:
                joint = _joined(types[field.name], plain_type(field.type))
                if joint is None:
                    raise UserError(
                        f"the part {str(part.path)!r} has another schema than {str(self.parts[0].path)!r}: its column "
                        f"{field.name!r} is {field.type}, and was {types[field.name]} so far; write it with the "
                        "type that the others have"
                    )
                types[field.name] = joint
        for position, (name, _) in enumerate(self.parts[0].cells):
            values = {part.cells[position][1] for part in self.parts}
            if name not in types:
                types[name] = (
                    pa.int64() if all(re.fullmatch(r"-?\d{1,18}", one) for one in values) else pa.large_string()
                )
        return pa.schema(list(types.items()))


def arrow() -> Any:
    """The package pyarrow."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise UserError("tables in many files need the package pyarrow: pip install pyarrow") from None
    assert pyarrow.parquet
    return pa


def plain_type(kind: Any) -> Any:
    """The type of the cells themselves: dictionaries are their values, and all texts are of one type."""
    pa = arrow()
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.large_string()
    return kind


class refusing:  # noqa: N801 (reads as a clause: with refusing(path))
    """Within, what is wrong with this file is a ``UserError`` that names it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, UserError) or not isinstance(error, Exception):
            return
        if isinstance(error, OSError) and error.strerror:
            raise UserError(f"cannot read the part {str(self.path)!r}: {error.strerror}") from error
        raise UserError(f"cannot read the part {str(self.path)!r}: {first_line(error)}") from error


def _paths(place: Path) -> list[tuple[str, Path]]:
    """The files and what they are called in the table, in their order."""
    if place.is_dir():
        root = place
        found = [Path(folder) / name for folder, _, names in os.walk(place) for name in names]
    elif PATTERN.search(str(place)) and not place.exists():
        root = Path(*_before_pattern(place))
        found = [path for path in map(Path, glob.glob(str(place), recursive=True)) if path.is_file()]
    elif place.exists():
        root, found = place.parent, [place]
    else:
        raise UserError(f"no such file or folder: {str(place)!r}")
    named = [(path.relative_to(root).as_posix(), path) for path in found]
    seen = [(name, path) for name, path in named if not any(each[0] in "._" for each in name.split("/"))]
    parts = [(name, path) for name, path in seen if _suffix(path)]
    if place.is_file() and not parts:
        raise UserError(f"{str(place)!r} is neither Parquet nor CSV, which alone are read in parts")
    if not parts:
        others = f" (but {_listed([name for name, _ in seen])})" if seen else ""
        raise UserError(f"there is no Parquet or CSV file in {str(place)!r}{others}")
    return sorted(parts, key=lambda part: _order(part[0]))


def _before_pattern(place: Path) -> list[str]:
    parts: list[str] = []
    for part in place.parts[:-1]:
        if PATTERN.search(part):
            break
        parts.append(part)
    return parts


def _order(name: str) -> list[tuple[int, int, str]]:
    """Numbers by their size, everything else by its letters."""
    return [(0, int(piece), "") if piece.isdigit() else (1, 0, piece) for piece in re.split(r"(\d+)", name) if piece]


def _suffix(path: Path) -> str:
    name = path.name.lower().removesuffix(PACKED)
    suffix = Path(name).suffix
    if suffix in PARQUET_SUFFIXES and not path.name.lower().endswith(PACKED):
        return suffix
    return suffix if suffix in TEXT_SUFFIXES and suffix != ".txt" else ""


def _is_text(path: Path) -> bool:
    return _suffix(path) in TEXT_SUFFIXES


def _cells_of_folders(name: str) -> tuple[tuple[str, str], ...]:
    """Columns that are in the names of folders, as Hive and Spark write them."""
    found = [folder.partition("=") for folder in name.split("/")[:-1]]
    return tuple((column, value) for column, equals, value in found if equals and column)


def _joined(one: Any, other: Any) -> Any:
    """The type that holds both; None where there is none."""
    types = arrow().types
    if one.equals(other) or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    whole, fraction = types.is_integer, types.is_floating
    if whole(one) and whole(other):
        return arrow().int64()
    if (whole(one) or fraction(one)) and (whole(other) or fraction(other)):
        return arrow().float64()
    if types.is_timestamp(one) and types.is_timestamp(other) and one.tz == other.tz:
        return arrow().timestamp("us", one.tz)
    return None


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:MOST_NAMED])) + (", ..." if len(names) > MOST_NAMED else "")
