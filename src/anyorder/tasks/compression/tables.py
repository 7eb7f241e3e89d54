r"""Lossless compression of the rows of a table with the model's own conditionals and a range coder.

A column comes with a dictionary of its distinct cells, as they stand; of a cell only its index in the dictionary is
coded, at about $-\log_2 p(x_i \mid x_{<i})$ bits along the row's chain. So columns of few distinct values come out
small; where a column's numbers are nearly all distinct, most bytes are dictionary, and little is gained.

For levels the model's probabilities of those that occur are used as they are; for numbers and times each distinct value
gets the mass between the midpoints to its neighbours, so a column of a hundred distinct prices costs what it takes to
tell them apart, and any number whatsoever comes back to the last bit. A long dictionary is coded in two stages.

Cells that the model cannot read (missing, never seen) and whole columns that it does not know are kept aside. What
:mod:`anyorder.tasks.compression.texts` says of floating-point numbers holds here too: encoder and decoder walk the same
steps.
"""

from __future__ import annotations

import contextlib
import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.data.dialect import Dialect
from anyorder.data.frames import as_pandas
from anyorder.distributions.base import Distribution
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.query import Query
from anyorder.support.boundary import field, reading
from anyorder.support.threads import torch_threads
from anyorder.tasks.compression.cell_bytes import distinct_cells, read_cells, write_cells
from anyorder.tasks.compression.coder import DERAILED, Reader, Sealed, Stream, Writer, padded
from anyorder.variables.cells import Series

MAGIC, FORMER = b"AOR2", b"AOR1"
ROWS = 1024  # rows that are walked together: part of the format, since it decides how sums are rounded
ONE_STAGE = 256  # longer dictionaries are coded by blocks
LEAST = 1e-9  # of the probability of a value: what the model rules out can still be written


@dataclass(frozen=True)
class Dictionary:
    """The distinct cells of a column in ascending order of model value, those that the model cannot read last.

    ``values`` are the distinct model values; ``first`` is the first cell of each, and ``index`` is which value each
    cell has, -1 if it cannot be read. Several cells may be one value: 1 and 1.0 among texts.
    """

    cells: Series
    values: Float[np.ndarray, " distinct"]
    first: Int[np.ndarray, " distinct"]
    index: Int[np.ndarray, " cells"]

    @classmethod
    def of(cls, model: AnyOrderModel, name: str, cells: Series) -> tuple[Dictionary, Int[np.ndarray, " cells"]]:
        """The dictionary of these cells, and the order in which it has them."""
        value, readable = np.zeros(len(cells)), np.zeros(len(cells), dtype=bool)
        if name in model.schema and not model.schema.variables[model.schema.index(name)].indicates:
            codec, marks = model.encoding.codec(name), model.schema.missing
            # What the model was not fitted on (words among numbers, say) is kept aside as it is.
            with contextlib.suppress(UserError):
                value, readable, _ = codec.encode_seen(cells, marks)
        order = np.lexsort((value, ~readable))
        values, first, index = np.unique(value[order][readable[order]], return_index=True, return_inverse=True)
        unread = np.full(len(cells) - len(index), -1)
        index = np.concatenate([index.astype(np.int64), unread])
        return cls(cells.iloc[order].reset_index(drop=True), values, first, index), order


def compress_table(model: AnyOrderModel, frame: Any) -> bytes:
    """The rows of a frame; :func:`decompress_table` with the same model gives them back, their index left out.

    The dialect of the text that they were read from comes back too.
    """
    labels = list(frame.columns)
    table = as_pandas(frame).reset_index(drop=True)
    for label in labels:
        if type(label) not in (str, int):
            raise UserError(f"a column is named by a text or a whole number, got {label!r}; rename it")
    names = [str(label) for label in labels]
    blobs: list[bytes] = []
    values: dict[str, np.ndarray] = {}
    indices: dict[str, np.ndarray] = {}
    context: dict[str, np.ndarray] = {}
    checksum = _checksum(len(table))
    for number, name in enumerate(names):
        dictionary, entry = _read(model, name, table.iloc[:, number])
        index = dictionary.index[entry]
        coded = index >= 0
        if name in model.schema.context_names:  # no distribution to code it by: kept aside, and then evidence
            values[name], context[name] = dictionary.values, index
            coded = np.zeros_like(coded)
        # What the coder will not tell: cells that cannot be read, and which of several cells of one value.
        twin = entry[coded] - dictionary.first[index[coded]]
        aside = np.where(coded, -1, entry) if not coded.all() else entry[:0]
        blobs += [write_cells(dictionary.cells, name), _packed(twin if twin.any() else twin[:0]), _packed(aside)]
        checksum = _checksum(entry, checksum)
        if len(dictionary.values) and name not in context:
            values[name], indices[name] = dictionary.values, index
    writer = Writer()
    _code(model, values, indices, context, len(table), writer)
    facts: dict[str, Any] = {"rows": len(table), "columns": labels}  # JSON keeps texts and whole numbers apart
    if dialect := Dialect.of(frame).facts():
        facts["dialect"] = dialect  # earlier releases do not look at it
    return Sealed(facts, padded(writer.words(), len(table)), checksum, tuple(blobs)).written(MAGIC, model)


def decompress_table(model: AnyOrderModel, data: bytes) -> pd.DataFrame:
    """The rows that :func:`compress_table` compressed with this model."""
    with reading("the compressed table"):
        return _decompressed(model, Sealed.read(MAGIC, model, data, former=FORMER))


def _decompressed(model: AnyOrderModel, sealed: Sealed) -> pd.DataFrame:
    labels = sealed.facts["columns"]
    rows = sealed.count("rows", 2 * len(labels))
    names = [str(label) for label in labels]
    if len(set(names)) != len(names):
        raise UserError("columns: their names must differ")
    dictionaries: dict[str, Dictionary] = {}
    entries: dict[str, np.ndarray] = {}
    indices: dict[str, np.ndarray] = {}
    context: dict[str, np.ndarray] = {}
    for name, cells, aside in zip(names, sealed.blobs[::3], sealed.blobs[2::3], strict=True):
        dictionaries[name], _ = Dictionary.of(model, name, read_cells(cells, rows))
        # Which cells are coded is known beforehand; the reader tells what they are. Zeros take no memory until they are
        # overwritten, and decoding stops soon where the number of rows is a false one.
        entries[name] = _array(aside) if aside else np.zeros(rows, dtype=np.int64)
        if name in model.schema.context_names and aside:
            entry = entries[name]
            if len(entry) != rows or (rows and not 0 <= entry.min() <= entry.max() < len(dictionaries[name].cells)):
                raise UserError(f"the column {name!r:.80} does not say what is in each of {rows} rows")
            context[name] = dictionaries[name].index[entry]
        elif len(dictionaries[name].values):
            indices[name] = np.where(entries[name] < 0, 0, -1) if aside else np.zeros(rows, dtype=np.int64)
        elif not aside and rows:
            raise UserError(f"the column {name!r:.80} has {rows} rows and nothing that says what is in them")
    values = {name: dictionaries[name].values for name in (*indices, *context)}
    _code(model, values, indices, context, rows, Reader(sealed.stream))
    checksum, columns = _checksum(rows), {}
    for name, twin in zip(names, sealed.blobs[1::3], strict=True):
        dictionary, entry = dictionaries[name], entries[name]
        if name in indices:
            coded = indices[name] >= 0
            entry[coded] = dictionary.first[indices[name][coded]] + (_array(twin) if twin else 0)
        checksum = _checksum(entry, checksum)
        columns[name] = dictionary.cells.iloc[entry].reset_index(drop=True)
    sealed.check(checksum)
    frame = pd.DataFrame(columns, index=pd.RangeIndex(rows))
    frame = frame if names == labels else frame.set_axis(labels, axis=1)
    with field("dialect"):
        return Dialect.read(sealed.facts.get("dialect", {})).put_on(frame)


def _read(model: AnyOrderModel, name: str, series: Series) -> tuple[Dictionary, Int[np.ndarray, " rows"]]:
    """A column's dictionary, and which of its cells every row has."""
    rows = len(series)
    found = distinct_cells(series, name)
    count = int(found.max()) + 1 if rows else 0
    first = np.full(count, rows)
    np.minimum.at(first, found, np.arange(rows))
    dictionary, order = Dictionary.of(model, name, series.iloc[first].reset_index(drop=True))
    rank = np.empty(count, dtype=np.int64)
    rank[order] = np.arange(count)
    return dictionary, rank[found]


def _code(
    model: AnyOrderModel,
    values: dict[str, Float[np.ndarray, " distinct"]],
    indices: dict[str, Int[np.ndarray, " rows"]],
    context: dict[str, Int[np.ndarray, " rows"]],
    rows: int,
    stream: Stream,
) -> None:
    """Take the indices of all cells (or fill them in, where they are not -1), so many rows at a time.

    Those of ``context`` are evidence for the others, where they are not -1.
    """
    variables = {model.schema.index(name): name for name in indices}
    for start in range(0, rows, ROWS):
        part = slice(start, min(start + ROWS, rows))
        size = part.stop - start
        asked = np.zeros((size, model.variables), dtype=bool)
        for variable, name in variables.items():
            asked[:, variable] = indices[name][part] >= 0
        parts = {variable: indices[name][part] for variable, name in variables.items()}
        given, known = np.zeros(asked.shape), np.zeros_like(asked)
        for name, index in context.items():
            variable, own = model.schema.index(name), index[part]
            known[:, variable] = own >= 0
            given[own >= 0, variable] = values[name][own[own >= 0]]
        evidence = (torch.from_numpy(given).float(), torch.from_numpy(known))
        _walk(model, {variable: values[name] for variable, name in variables.items()}, parts, asked, evidence, stream)


@torch.no_grad()
def _walk(
    core: AnyOrderModel,
    values: dict[int, Float[np.ndarray, " distinct"]],
    indices: dict[int, Int[np.ndarray, " rows"]],
    asked: Bool[np.ndarray, "rows variables"],
    evidence: tuple[Float[Tensor, "rows variables"], Bool[Tensor, "rows variables"]],
    stream: Stream,
) -> None:
    given, known = evidence
    chain = core.chain(Query(known, torch.from_numpy(asked)), torch.Generator().manual_seed(0))
    with torch_threads(1):
        walk = core.network.walk(given, chain)
        for step in range(chain.steps):
            target = chain.order[:, step]
            decoded = torch.zeros(len(asked))
            for variable in sorted(set(target.tolist()) - {-1}):
                row = (target == variable).nonzero()[:, 0]
                distribution = core.heads.distribution(walk.features(row), variable)
                index = row.numpy()
                levels, here = core.heads.of(variable).levels, indices[variable]
                here[index] = _coded(distribution, levels, values[variable], here[index], stream)
                decoded[row] = torch.from_numpy(values[variable][here[index]]).float()
            walk.tell(decoded)


def _coded(
    distribution: Distribution,
    levels: int,
    values: Float[np.ndarray, " distinct"],
    indices: Int[np.ndarray, " rows"],
    stream: Stream,
) -> Int[np.ndarray, " rows"]:
    """The indices of one variable's cells among its distinct values."""
    count, rows = len(values), len(indices)
    if levels:
        nats = distribution.log_prob(_spread(values, rows)).double().exp()
        return _settled(stream.code(indices, _shares(nats.T.numpy())))
    edges = np.concatenate([[-math.inf], (values[1:] + values[:-1]) / 2, [math.inf]])
    if count <= ONE_STAGE:
        return _settled(stream.code(indices, _shares(np.diff(_below(distribution, _spread(edges, rows)), axis=0).T)))
    size = math.isqrt(count - 1) + 1
    bounds = np.append(edges[:-1:size], math.inf)
    shares = _shares(np.diff(_below(distribution, _spread(bounds, rows)), axis=0).T)
    block = _settled(stream.code(indices // size, shares))
    # Within each row's own block; the last one may be shorter, and has nothing behind its end.
    inner = np.minimum(block * size + np.arange(size + 1)[:, None], count)
    mass = np.diff(_below(distribution, torch.from_numpy(edges[inner])), axis=0)
    shares = _shares(mass.T, count > inner[:-1].T)
    found = _settled(block * size + stream.code(indices - block * size, shares))
    if len(found) and found.max() >= count:
        raise UserError(DERAILED)
    return found


def _settled(found: Any) -> Int[np.ndarray, " rows"]:
    return np.asarray(found, dtype=np.int64)


def _spread(values: Float[np.ndarray, " count"], rows: int) -> Float[Tensor, "count rows"]:
    return torch.from_numpy(values)[:, None].expand(-1, rows)


def _below(distribution: Distribution, edges: Float[Tensor, "count rows"]) -> Float[np.ndarray, "count rows"]:
    """The distribution function, which need not be asked at the two ends of the line."""
    inside = edges.isfinite()
    kind = torch.get_default_dtype()
    found = distribution.cdf(edges.where(inside, 0.0).to(kind)).double()
    ends = (edges > 0).double()
    return np.asarray(torch.where(inside, found, ends).nan_to_num().clamp(0, 1).numpy())


def _shares(mass: Float[np.ndarray, "rows count"], real: Any = None) -> Float[np.ndarray, "rows count"]:
    """Probabilities of what occurs, none of them zero."""
    mass = np.nan_to_num(np.clip(mass, 0, None))
    total = mass.sum(axis=1, keepdims=True)
    mass = np.where(total > 0, mass / np.where(total > 0, total, 1.0), 1.0 / mass.shape[1])
    mass = mass + LEAST
    if real is not None:
        mass = np.where(real, mass, 0.0)
    return np.ascontiguousarray(mass / mass.sum(axis=1, keepdims=True))


def _checksum(content: int | Int[np.ndarray, " rows"], before: int = 0) -> int:
    """Checksum of the dictionary entry of every cell; the file's own checksum covers the dictionaries."""
    return zlib.crc32(np.asarray(content, dtype="<i4").tobytes(), before)


def _packed(numbers: Int[np.ndarray, " rows"]) -> bytes:
    return numbers.astype("<i4").tobytes()


def _array(data: bytes) -> Int[np.ndarray, " rows"]:
    return np.frombuffer(data, dtype="<i4").astype(np.int64)
