"""Encoded rows on the disk: more of them than memory holds, each a record of floats that is read when it is drawn.

A record is the row's values, NaN where a cell is unknown, and the log-slopes of those variables that are not discrete.
Batches read their rows one by one from a file without a name, which is gone when nobody holds it any more. What the
system keeps of it in memory is its cache of files: it is given up when memory is needed, and belongs to no process.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from anyorder.errors import UserError
from anyorder.support.advance import checked
from anyorder.support.atomic import REFUSALS
from anyorder.support.notes import notes_heard
from anyorder.training.rows import Digest, Rows
from anyorder.variables.encoding import Encoding


class StoredRows:
    """Rows to learn from, in a file; see :class:`~anyorder.training.rows.RowSource`.

    Parameters
    ----------
    encoding
        What makes numbers of the rows.
    frames
        The rows, piece by piece.
    folder
        Where the file is to be; that of the system's temporary files, if nothing is said.
    """

    def __init__(self, encoding: Encoding, frames: Iterable[pd.DataFrame], folder: Path | None = None) -> None:
        self.variables = len(encoding.schema)
        self.sloping = [at for at, variable in enumerate(encoding.schema.variables) if not variable.discrete]
        self.width = 4 * (self.variables + len(self.sloping))
        self.device = torch.device("cpu")
        self.count = 0
        seen = hashlib.sha256(json.dumps(encoding.to_json(), sort_keys=True).encode())
        try:
            # Closed with the last copy of this object: whoever trains holds one.
            self.file: IO[bytes] = tempfile.TemporaryFile(prefix="anyorder-rows-", dir=folder, buffering=0)  # noqa: SIM115
            for frame in frames:
                checked()
                values, observed = _encoded(encoding, frame)
                slopes = encoding.log_det(values)[:, self.sloping]
                records = np.concatenate([np.where(observed, values, np.nan), slopes], axis=1).astype(np.float32)
                _write(self.file, records)
                seen.update(records.tobytes())
                self.count += len(frame)
        except OSError as error:
            if error.errno not in REFUSALS:
                raise
            raise UserError(
                f"the rows to learn from cannot be kept in {str(folder or tempfile.gettempdir())!r}: {error.strerror}; "
                "make room there, name another folder in TMPDIR, or learn from fewer rows with the option training_rows"
            ) from error
        self.seen = seen.hexdigest()

    def __len__(self) -> int:
        return self.count

    def take(self, index: Tensor) -> Rows:
        """The rows of these numbers."""
        handle, width = self.file.fileno(), self.width
        read = b"".join(os.pread(handle, width, width * row) for row in index.tolist())
        records = torch.from_numpy(np.frombuffer(read, dtype=np.float32).reshape(len(index), -1).copy())
        values = records[:, : self.variables]
        observed = ~values.isnan()
        log_det = torch.zeros_like(values)
        log_det[:, self.sloping] = records[:, self.variables :]
        return Rows(values.nan_to_num(nan=0.0), observed, log_det).to(self.device)

    def to(self, device: torch.device) -> StoredRows:
        """These rows for another device: they stay where they are until they are taken."""
        other = object.__new__(StoredRows)
        other.__dict__.update(self.__dict__, device=device)
        return other

    def update(self, digest: Digest) -> None:
        """Tell a hash what the rows are."""
        digest.update(self.seen.encode())


def _encoded(encoding: Encoding, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Values and which are known; a level that the encoding was not fitted to is an unknown cell."""
    try:
        with notes_heard():
            return encoding.encode(frame, "missing")
    except UserError as error:
        raise UserError(
            f"{error}. No such cell was among the rows that the schema was made from: say what the column is, with "
            "kinds or bounds, or look at more rows, with the option schema_rows"
        ) from error


def _write(file: IO[bytes], records: np.ndarray) -> None:
    """All of it: a disk that is nearly full takes a part first."""
    rest = memoryview(records.tobytes())
    while rest:
        rest = rest[file.write(rest) :]
