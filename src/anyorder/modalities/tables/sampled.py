"""What a fit takes from a table that is larger than memory: two uniform samples of its rows.

The *schema rows* are few enough for a frame. What the columns are, their levels, quantiles and normal scores, what is
held out, the regressions and the trees: all of that comes from them. The *training rows* are more, all of them if there
is time to look at that many; they stay on the disk, and networks learn from them. Whether a row is in a sample follows
from the seed and its number in the table, so it does not depend on how the table is divided, and the schema rows are
training rows too, but for those that are held out.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from jaxtyping import Int

from anyorder.data.delimited import read_delimited
from anyorder.data.part_files import refused_by_disk
from anyorder.data.parts import PartedTable, arrow
from anyorder.data.said import Said, way_to
from anyorder.data.table_text import Source
from anyorder.modalities.tables.options import TableOptions
from anyorder.support.advance import tracked
from anyorder.support.bars import told_by_rows
from anyorder.support.randomness import row_keys
from anyorder.training.stored_rows import StoredRows
from anyorder.variables.encoding import Encoding

READ = 1 << 17  # rows at a time
ENCODED = 1 << 15  # rows at a time
SEEN_A_SECOND = 20_000  # rows that a small network looks at in a second, about


@dataclass(frozen=True)
class SampledTable:
    """A table in parts, as a fit sees it: ``frame`` with the schema rows, ``numbers`` of these in the table.

    ``file`` holds the training rows and their numbers, in Arrow's format; None where the schema rows are all there are.
    """

    table: PartedTable
    frame: pd.DataFrame
    numbers: Int[np.ndarray, " rows"]
    training: int
    file: IO[bytes] | None

    @classmethod
    def of(
        cls, table: PartedTable, options: TableOptions, seed: int, folder: Path | None, progress: bool | None
    ) -> SampledTable:
        """Read the table once."""
        pa = arrow()
        most = options.training_rows or _rows_in_time(options, table.rows)
        schema_share = min(1.0, options.schema_rows / table.rows)
        training_share = min(1.0, max(most, options.schema_rows) / table.rows)
        rows, numbers, training = list[Any](), list[np.ndarray](), 0
        file = _unnamed(folder) if schema_share < 1 else None
        cuts = [slice(start, min(start + READ, table.rows)) for start in range(0, table.rows, READ)]
        read = table.blocks([(cut.start, cut.stop) for cut in cuts])
        with told_by_rows("reading rows", progress), refused_by_disk(Path(folder or tempfile.gettempdir())):
            stored = None if file is None else pa.ipc.new_stream(file, table.schema.append(_number_field()))
            for cut, block in zip(tracked(cuts, table.rows), read, strict=False):
                every = np.arange(cut.start, cut.stop)
                place = row_keys(seed, every) / 2.0**64  # uniform on 0 .. 1
                few = np.flatnonzero(place < schema_share) if schema_share < 1 else np.arange(len(every))
                rows.append(block.take(few))
                numbers.append(every[few])
                if stored is not None:
                    more = np.flatnonzero(place < training_share) if training_share < 1 else np.arange(len(every))
                    stored.write_table(block.take(more).append_column(_number_field(), pa.array(every[more])))
                    training += len(more)
            if stored is not None:
                stored.close()
        frame = cls._as_read(table, pa.concat_tables(rows).combine_chunks())
        return cls(table, frame, np.concatenate(numbers), training, file)

    @staticmethod
    def _as_read(table: PartedTable, rows: Any) -> pd.DataFrame:
        """The rows as they would be read from one file that has no others."""
        if not table.text:
            return table.frame(rows, nullable=False)
        dialect = table.dialect(table.parts[0])
        text = io.StringIO()
        texts = rows.to_pandas()
        texts.to_csv(text, **dialect.csv_options(texts))
        content = text.getvalue().encode()
        title = repr(table.place)
        source = Source(partial(io.BytesIO, content), title, way_to(table.place, Said()), len(content), named=True)
        said = Said(delimiter=dialect.delimiter, every_row=True)
        return read_delimited(source, table.missing, said, lambda notice: None)

    def stored(self, encoding: Encoding, held_out: Collection[int], folder: Path | None) -> StoredRows:
        """The training rows in this encoding, without those at these positions of the frame."""
        return StoredRows(encoding, self._frames(encoding, self.numbers[np.asarray(held_out, dtype=np.int64)]), folder)

    def _frames(self, encoding: Encoding, without: np.ndarray) -> Iterator[pd.DataFrame]:
        assert self.file is not None
        self.file.seek(0)
        names = [name for name in self.table.names if name in encoding.schema]
        with arrow().ipc.open_stream(self.file) as stream:
            for batch in stream:
                kept = np.flatnonzero(~np.isin(batch.column(batch.num_columns - 1).to_numpy(), without))
                rows = arrow().Table.from_batches([batch]).take(kept)
                for start in range(0, len(rows), ENCODED):
                    yield self.table.frame(rows.slice(start, ENCODED), names)

    def facts(self) -> dict[str, Any]:
        """What a card says of it."""
        found = {"rows": self.table.rows, "parts": len(self.table.parts), "schema_rows": len(self.frame)}
        if self.file is not None:
            found["training_rows"] = self.training
        return found


def _rows_in_time(options: TableOptions, rows: int) -> int:
    """As many rows as there is time, or as there are steps, to look at."""
    training = options.training
    looks = [rows]
    if training.minutes is not None:
        looks.append(int(60 * training.minutes * SEEN_A_SECOND))
    if training.steps is not None:
        looks.append(training.steps * training.batch)
    return min(looks)


def _unnamed(folder: Path | None) -> IO[bytes]:
    return tempfile.TemporaryFile(prefix="anyorder-sample-", dir=folder)  # it lives as long as the fit


def _number_field() -> Any:
    return arrow().field("anyorder row number", arrow().int64())
