"""Tables larger than memory, worked off block by block: filled and scored, a part of output for each one of input.

A block is so many rows of the table, cut at numbers of rows that the model alone decides on (:func:`block_rows`), never
at the ends of files. Every block is one answer, computed from its rows, its number and the seed and nothing else. So
the same rows in the same order give the same bits whether they come in one file or in seven, however often the work
was interrupted, and whoever does which of the blocks. It could not be the row alone: a product of matrices rounds a row
in a way that depends on how many there are, and rows one by one would take a hundred times as long. What a row is
answered by is therefore its number in the table: a table whose rows are in another order has the same answers up to
rounding, but other draws.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from anyorder.data.part_files import is_made, record_of, refused_by_disk, written_part
from anyorder.data.parts import Part, PartedTable, arrow, plain_type
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel, row_chunks
from anyorder.model.versions import digest
from anyorder.questions.conditional import Conditional
from anyorder.questions.row_log_probs import row_log_probs
from anyorder.questions.rules import Rules
from anyorder.support.advance import tracked
from anyorder.support.atomic import check_room_in
from anyorder.support.checks import checked_seed, whole
from anyorder.support.installed import version_of
from anyorder.support.notes import note, notes_heard
from anyorder.support.paths import checked_path
from anyorder.support.threads import usual_threads
from anyorder.tasks.imputation import fill_draws, fill_point
from anyorder.variables.codecs import Codec
from anyorder.variables.encoding import Unseen
from anyorder.variables.schema import Kind

ROWS_AT_ONCE = 1 << 14  # of a block, about
PART_ROWS = 1_000_000  # of a part of drawn rows
MOST_PARTS = 100_000  # files in a folder
INDEX = re.compile(r"__index_level_\d+__")  # labels of rows, as pandas writes them into Parquet
NUMBER = re.compile(r"\d[\d,.]*")


@dataclass(frozen=True)
class PartsDone:
    """What was written: where, how many rows in how many parts, and how many of these were there already.

    Parameters
    ----------
    folder
        Where the parts are.
    rows
        How many rows of the table they answer for.
    parts
        How many parts there are.
    kept
        How many of them had been made before, and were left as they are.

    Examples
    --------
    >>> from anyorder.tasks.parts import PartsDone
    >>> PartsDone("filled", rows=2_000_000, parts=8, kept=3)
    PartsDone(folder='filled', rows=2000000, parts=8, kept=3)
    """

    folder: str
    rows: int
    parts: int
    kept: int


@dataclass(frozen=True)
class PartScores:
    """The log-likelihood of a table in parts, in nats per row.

    Parameters
    ----------
    rows
        How many rows were scored.
    mean, standard_error
        Of a row; no error (NaN) for a single row.
    written
        The parts that hold the score of every row, if they were asked for.

    Examples
    --------
    >>> from anyorder.tasks.parts import PartScores
    >>> PartScores(rows=2, mean=-3.5, standard_error=0.5)
    PartScores(rows=2, mean=-3.5, standard_error=0.5, written=None)
    """

    rows: int
    mean: float
    standard_error: float
    written: PartsDone | None = None


@dataclass
class Moments:
    """The mean and the spread of numbers that come block by block."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, numbers: np.ndarray) -> None:
        """Some numbers more."""
        if not len(numbers):
            return
        own, together = float(numbers.mean()), self.count + len(numbers)
        apart = own - self.mean
        self.squares += float(((numbers - own) ** 2).sum()) + apart**2 * self.count * len(numbers) / together
        self.mean += apart * len(numbers) / together
        self.count = together

    @property
    def standard_error(self) -> float:
        """How far the mean may be off."""
        return math.sqrt(self.squares / (self.count - 1) / self.count) if self.count > 1 else math.nan


@dataclass(frozen=True)
class Work:
    """What is done with every block, and all that decides on the result besides the rows themselves."""

    task: str
    model: AnyOrderModel
    options: Mapping[str, Any]
    schema: Any  # of the rows of output
    answer: Callable[[int, int, Any], Any]  # number of the block, of its first row, its rows -> rows of output
    size: int  # rows of a block
    each: int = 1  # rows of output for a row
    suffix: str = ""  # of the parts of output, where it is not that of the input
    escape: bool = False
    said: set[str] = field(default_factory=set)

    def blocks(self, rows: int) -> list[tuple[int, int]]:
        """The first row of every block, and the one behind its last."""
        return [(start, min(start + self.size, rows)) for start in range(0, rows, self.size)]

    def done(self, number: int, first: int, rows: Any) -> Any:
        """The answer to one block; what it notes is said once, whatever the numbers in it."""
        with notes_heard() as heard:
            found = self.answer(number, first, rows)
        for text in heard:
            if (kind := NUMBER.sub("", text)) not in self.said:
                self.said.add(kind)
                note(text, stacklevel=6)
        return found


def block_rows(model: AnyOrderModel) -> int:
    """How many rows a block has: as many passes of the network as make about :data:`ROWS_AT_ONCE` rows."""
    at_once = next(row_chunks(model, ROWS_AT_ONCE)).stop
    return int(at_once) * max(1, ROWS_AT_ONCE // int(at_once))


def block_seed(seed: int, number: int) -> int:
    """The seed of a block: unlike that of any other block, and of any other seed's blocks."""
    words = f"anyorder block {checked_seed(seed)} {number}".encode()
    return int.from_bytes(hashlib.blake2b(words, digest_size=7).digest(), "little")


def fill_parts(
    model: AnyOrderModel,
    table: PartedTable,
    out: str | Path,
    *,
    draws: int | None = None,
    seed: int = 0,
    unseen: Unseen = "refuse",
    rules: Rules | None = None,
    escape_formulas: bool = False,
) -> PartsDone:
    """The table with its unknown cells filled, into a folder, one part for each of the table's."""
    names = checked_columns(model, table, unseen)
    schema = _filled_schema(model, table)
    if draws is not None:
        draws, seed = whole("draws", draws), checked_seed(seed)
        if "draw" in schema.names:
            raise UserError("the table already has a column 'draw', and draws= adds one of that name: rename it first")
        schema = arrow().schema([("draw", arrow().int64()), *schema])
    fillers = [one.name for one in model.schema.variables if not one.indicates and not one.context]

    def answer(number: int, first: int, rows: Any) -> Any:
        frame = table.frame(rows, names, first)
        if draws is None:
            return _as_rows(fill_point(model, frame, unseen, rules), rows, schema, fillers)
        drawn = fill_draws(model, frame, draws, block_seed(seed, number), unseen, rules)
        tables = [_as_rows(one.assign(draw=which), rows, schema, [*fillers, "draw"]) for which, one in enumerate(drawn)]
        beside = np.arange(len(drawn) * len(frame)).reshape(len(drawn), len(frame)).T.ravel()
        return arrow().concat_tables(tables).take(beside)

    said = [str(rule) for rule in rules.rules] if rules else []
    options = {"draws": draws, "seed": seed if draws else 0, "unseen": unseen, "rules": said, "missing": table.missing}
    work = Work(
        "fill",
        model,
        options,
        schema,
        naming(model, table, unseen, answer),
        block_rows(model),
        draws or 1,
        escape=escape_formulas,
    )
    return _work_off(work, table, out)


def score_parts(
    model: AnyOrderModel,
    table: PartedTable,
    out: str | Path | None = None,
    *,
    given: Sequence[str] = (),
    orders: int | None = None,
    seed: int = 0,
    unseen: Unseen = "refuse",
) -> PartScores:
    """The log-likelihood of the table's rows: their mean, and with ``out`` that of each row, in parts."""
    names = checked_columns(model, table, unseen)
    for name in given:
        model.schema.index(name)
    pa = arrow()
    schema = pa.schema([("log_prob", pa.float64())])

    def answer(number: int, first: int, rows: Any) -> Any:
        frame = table.frame(rows, names, first)
        scores = row_log_probs(model, frame, list(given) or None, orders=orders, seed=seed, unseen=unseen)
        return pa.table({"log_prob": scores["log_prob"].to_numpy()})

    options = {"given": list(given), "orders": orders, "seed": seed, "unseen": unseen, "missing": table.missing}
    work = Work("score", model, options, schema, naming(model, table, unseen, answer), block_rows(model))
    moments, written = Moments(), None
    if out is None:
        for _, _, scores in _answers(work, table, range(len(work.blocks(table.rows)))):
            moments.add(scores.column("log_prob").to_numpy())
    else:
        written = _work_off(work, table, out)
        # Summed up by blocks in any case, so that the parts make no difference to the last digit.
        scored = PartedTable(out)
        for scores in scored.blocks(work.blocks(scored.rows)):
            moments.add(scores.column("log_prob").cast(pa.float64()).to_numpy())
    return PartScores(moments.count, moments.mean, moments.standard_error, written)


def sample_parts(
    conditional: Conditional,
    count: int,
    out: str | Path,
    *,
    seed: int = 0,
    holes: bool = False,
    part_rows: int = PART_ROWS,
    suffix: str = ".parquet",
    said: Mapping[str, Any] | None = None,
    escape_formulas: bool = False,
) -> PartsDone:
    """``count`` rows drawn given what is known, into a folder. ``said``: what is known, for the records."""
    count, part_rows, seed = whole("n", count), whole("part_rows", part_rows), checked_seed(seed)
    if (files := -(-count // part_rows)) > MOST_PARTS:
        raise UserError(
            f"{count:,} rows in parts of {part_rows:,} would be {files:,} files, and {MOST_PARTS:,} is the most; "
            "draw fewer rows, or more in a part (part_rows)"
        )
    model = conditional.model
    few = conditional.sample(min(count, 2), seed=0, holes=holes)
    schema = arrow().schema([(str(name), _drawn_type(model, str(name), few)) for name in few.columns])

    def answer(number: int, first: int, rows: int) -> Any:
        drawn = conditional.sample(rows, seed=block_seed(seed, number), holes=holes)
        frame = pd.DataFrame({str(name): drawn[name] for name in drawn.columns})
        return arrow().table([_cells(frame[name], schema.field(name).type) for name in schema.names], schema=schema)

    starts = range(0, count, part_rows)
    digits = max(5, len(str(files)))
    parts = [
        Part(f"part-{at:0{digits}}{suffix}", Path(), min(part_rows, count - start), start)
        for at, start in enumerate(starts)
    ]
    options = {"seed": seed, "holes": holes, "given": dict(said or {}), "count": count}
    work = Work("sample", model, options, schema, answer, block_rows(model), escape=escape_formulas)
    return _work_off(work, parts, out)


def _work_off(work: Work, source: PartedTable | Sequence[Part], out: str | Path) -> PartsDone:
    """Every part of the output that is not there yet, one after the other."""
    folder = checked_path(out)
    parts = source.parts if isinstance(source, PartedTable) else source
    paths = [folder / part.name for part in parts]
    _check_folder(folder, paths, source)
    threads = min(torch.get_num_threads(), usual_threads())
    facts = {
        "task": work.task,
        "made_by": f"anyorder {version_of('anyorder')}",
        "model": digest(work.model.description(), work.model.state_dict()),
        "options": json.loads(json.dumps(work.options, default=str)),
        "threads": threads,
        "block": work.size,
    }

    def record(part: Part) -> dict[str, Any]:
        return {**facts, "input": _input(part, parts, work.size), "first_row": part.first, "rows": part.rows}

    made = [record_of(path).exists() and is_made(path, record(part)) for part, path in zip(parts, paths, strict=True)]
    wanted = sorted(
        {
            number
            for part, there in zip(parts, made, strict=True)
            if not there
            for number in range(part.first // work.size, (part.end - 1) // work.size + 1)
        }
    )
    todo = [at for at, there in enumerate(made) if not there]
    with ExitStack() as open_part:
        write: Callable[[Any], None] | None = None
        for start, stop, answer in _answers(work, source, wanted):
            while todo and (part := parts[todo[0]]).first < stop:
                path = paths[todo[0]]
                if write is None:
                    like = source.dialect(part) if isinstance(source, PartedTable) and source.text else None
                    write = open_part.enter_context(
                        written_part(path, work.schema, record(part), dialect=like, escape=work.escape)
                    )
                first, last = max(start, part.first), min(stop, part.end)
                with refused_by_disk(path):
                    write(answer.slice((first - start) * work.each, (last - first) * work.each))
                if part.end > stop:
                    break
                open_part.close()
                write = None
                todo.pop(0)
    return PartsDone(str(folder), parts[-1].end, len(parts), sum(made))


def _answers(
    work: Work, source: PartedTable | Sequence[Part], numbers: Sequence[int]
) -> Iterator[tuple[int, int, Any]]:
    """The answers to the blocks of these numbers, each with its first row and the one behind its last."""
    total = source.rows if isinstance(source, PartedTable) else source[-1].end
    blocks = work.blocks(total)
    ranges = [blocks[number] for number in numbers]
    read: Iterator[Any] = (
        source.blocks(ranges) if isinstance(source, PartedTable) else (stop - start for start, stop in ranges)
    )
    lengths = [0, *np.cumsum([stop - start for start, stop in ranges]).tolist()]
    cuts = (slice(first, last) for first, last in itertools.pairwise(lengths))
    for _, number, (start, stop), rows in zip(tracked(cuts, lengths[-1]), numbers, ranges, read, strict=False):
        yield start, stop, work.done(number, start, rows)


def _input(part: Part, parts: Sequence[Part], size: int) -> str:
    """What a part was made from: the bytes of all parts that share a block with it, and where they stand."""
    first, last = part.first // size * size, -(-part.end // size) * size
    near = [one for one in parts if one.first < last and one.end > first]
    facts = [[one.first - part.first, one.rows, one.digest if one.path.name else ""] for one in near]
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()


def _check_folder(folder: Path, paths: Sequence[Path], source: PartedTable | Sequence[Part]) -> None:
    """Refuse a folder that is no place for these parts, before any work."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"the parts of a table go into a folder, but {str(folder)!r} is a file: choose another name")
    if isinstance(source, PartedTable):
        ours = {part.path.resolve() for part in source.parts}
        if any(folder.resolve() in (path, *path.parents) for path in ours):
            raise UserError(f"{str(folder)!r} holds the table that is read: choose another folder to write to")
        place = Path(source.place)
        if place.is_dir() and place.resolve() in folder.resolve().parents:
            raise UserError(f"{str(folder)!r} is in the folder that is read: choose one outside of it")
    there = next(one for one in (folder, *folder.absolute().parents) if one.is_dir())
    check_room_in(there)
    if folder.is_dir():
        wanted = {path.resolve() for path in paths}
        endings = tuple({path.suffix for path in paths})
        for path in sorted(folder.rglob("*")):
            hidden = any(name[0] in "._" for name in path.relative_to(folder).parts)
            if path.is_file() and not hidden and path.name.endswith(endings) and path.resolve() not in wanted:
                raise UserError(
                    f"{str(folder)!r} holds {str(path)!r}, which is no part of this table: choose an empty folder"
                )


def checked_columns(model: AnyOrderModel, table: PartedTable, unseen: Unseen) -> list[str]:
    """The columns that the model knows, once it is clear what to make of the others."""
    names = [name for name in table.names if name in model.schema]
    if not names:
        raise UserError(
            f"{table.place!r} has none of the columns of the model ({', '.join(map(repr, model.schema.names[:5]))})"
        )
    empty = table.frame(
        table.schema.empty_table().select(
            [
                one.name
                for one in table.schema
                if not arrow().types.is_nested(one.type) and not INDEX.fullmatch(one.name)
            ]
        )
    )
    model.encoding.encode(empty, unseen)  # refuses and notes columns that are unknown
    return names


def naming(
    model: AnyOrderModel, table: PartedTable, unseen: Unseen, answer: Callable[[int, int, Any], Any]
) -> Callable[[int, int, Any], Any]:
    """``answer``, whose refusals name the part and the row in it."""

    def named(number: int, first: int, rows: Any) -> Any:
        try:
            return answer(number, first, rows)
        except UserError as error:
            parts = table.within(first, first + len(rows))
            known = [name for name in table.names if name in model.schema]
            for part, start, stop in parts:
                frame = table.frame(rows.slice(start - first, stop - start), known, start - part.first)
                try:
                    with notes_heard():
                        model.encoding.encode(frame, unseen)
                except UserError as own:
                    raise UserError(f"the part {str(part.path)!r}: {own}") from error
            where = ", ".join(repr(str(part.path)) for part, _, _ in parts[:3])
            raise UserError(f"rows {first} to {first + len(rows) - 1} of the table ({where}): {error}") from error

    return named


def _filled_schema(model: AnyOrderModel, table: PartedTable) -> Any:
    """The columns of the filled table, in types that hold what may be filled in; the same ones for all parts."""
    pa, fields = arrow(), list[Any]()
    for one in table.schema:
        codec = model.encoding.codec(one.name) if one.name in model.schema else None
        fields.append((one.name, one.type if codec is None else _filled_type(codec, one.type)))
    for variable, codec in zip(model.schema.variables, model.encoding.codecs, strict=True):
        if variable.name not in table.names and not variable.indicates and not variable.context:
            fields.append((variable.name, _own_type(codec)))
    return pa.schema(fields)


def _filled_type(codec: Codec, kind: Any) -> Any:
    """The type of a column once it is filled."""
    types, variable = arrow().types, codec.variable
    if types.is_null(kind):
        return _own_type(codec)
    if types.is_integer(kind):
        fractions = variable.kind in (Kind.CONTINUOUS, Kind.SPIKED) or any(
            isinstance(level, float) and not level.is_integer() for level in variable.levels
        )
        return arrow().float64() if fractions else kind
    return kind


def _own_type(codec: Codec) -> Any:
    """The type of a column of which the table has no cell."""
    decoded = codec.decode(np.zeros(1))
    return plain_type(arrow().array(decoded, from_pandas=True).type)


def _drawn_type(model: AnyOrderModel, name: str, few: Any) -> Any:
    if name in model.schema and not model.schema[name].indicates:
        return _own_type(model.encoding.codec(name))
    return plain_type(arrow().array(list(few[name]), from_pandas=True).type)


def _as_rows(filled: pd.DataFrame, rows: Any, schema: Any, fillers: Sequence[str]) -> Any:
    """The filled columns, and the others as they were read."""
    columns = []
    for one in schema:
        if one.name not in fillers:
            columns.append(rows.column(one.name))
        elif arrow().types.is_decimal(one.type):  # numbers as the file has them, to the last digit
            import pyarrow.compute as pc

            columns.append(
                pc.coalesce(
                    rows.column(one.name), _cells(filled[one.name], arrow().float64()).cast(one.type, safe=False)
                )
            )
        else:
            columns.append(_cells(filled[one.name], one.type))
    return arrow().table(columns, schema=schema)


def _cells(column: Any, kind: Any) -> Any:
    """A column in Arrow, in this type."""
    pa = arrow()
    try:
        if isinstance(column, pd.Series):
            return pa.array(column, type=kind, from_pandas=True)
        return pa.array(list(column), type=kind, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        try:
            return pa.array(column, from_pandas=True).cast(kind, safe=False)
        except pa.ArrowException:
            raise UserError(
                f"column {column.name!r}: what is filled in does not fit among its cells, which are {kind}; write the "
                "column in the type that the model was fitted on"
            ) from None
