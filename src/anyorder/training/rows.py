"""Encoded rows to learn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.variables.encoding import Encoding


@dataclass(frozen=True)
class Rows:
    """Encoded rows: values in model units, which cells exist, and log|det| of the encoding per cell."""

    values: Float[Tensor, "rows variables"]
    observed: Bool[Tensor, "rows variables"]
    log_det: Float[Tensor, "rows variables"]

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: Tensor) -> Rows:
        return Rows(self.values[index], self.observed[index], self.log_det[index])

    def to(self, device: torch.device) -> Rows:
        return Rows(self.values.to(device), self.observed.to(device), self.log_det.to(device))

    def update(self, digest: Digest) -> None:
        for tensor in (self.values, self.observed, self.log_det):
            digest.update(tensor.cpu().contiguous().numpy().tobytes())


class Digest(Protocol):
    """What a hash of the standard library can do."""

    def update(self, data: bytes, /) -> None: ...


class RowSource(Protocol):
    """Rows to learn from: a tensor of them, or a corpus from which windows are cut as they are taken."""

    def __len__(self) -> int: ...

    def take(self, index: Tensor) -> Rows:
        """The rows of these numbers."""

    def to(self, device: torch.device) -> RowSource:
        """These rows on another device."""

    def update(self, digest: Digest) -> None:
        """Tell a hash what the rows are, so that a checkpoint of other data is not resumed."""


def encoded_rows(encoding: Encoding, table: pd.DataFrame) -> Rows:
    """A table as the model sees it."""
    values, observed = encoding.encode(table)
    log_det = encoding.log_det(values)
    return Rows(torch.as_tensor(values).float(), torch.as_tensor(observed), torch.as_tensor(log_det).float())
