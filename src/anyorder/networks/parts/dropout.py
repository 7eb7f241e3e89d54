"""Dropout that draws from a given generator: y = x b / (1 - p), b ~ Bernoulli(1 - p), while training.

Torch's own draws from the generator of the whole process, which other threads and the caller use as well. The source
is named around the pass (:func:`dropout_from`) and belongs to the thread that runs it; nothing is written to the
network, so that one network can be asked by many threads.

Of a pass that several processes share out, each draws b for all rows and takes that of its own (:func:`dropout_of`): so
what is dropped does not depend on how many they are, as long as their generators are in the same state.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from anyorder.errors import UserError

_source: ContextVar[torch.Generator | None] = ContextVar("dropout", default=None)
_share: ContextVar[tuple[slice, int] | None] = ContextVar("share", default=None)


@contextmanager
def dropout_from(generator: torch.Generator) -> Iterator[None]:
    """Within, the dropout of every network that this thread trains draws from ``generator``."""
    token = _source.set(generator)
    try:
        yield
    finally:
        _source.reset(token)


@contextmanager
def dropout_of(own: slice, rows: int) -> Iterator[None]:
    """Within, a pass of these rows drops what it would drop of them in a pass of all ``rows``."""
    token = _share.set((own, rows))
    try:
        yield
    finally:
        _share.reset(token)


class Dropout(nn.Module):
    """Zeroes a share ``p`` of its input while training, and leaves everything as it is otherwise."""

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise UserError(f"dropout must lie in [0, 1), got {p!r}")
        self.p = p

    @property
    def active(self) -> bool:
        return self.training and self.p > 0

    def forward(self, inputs: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        if not self.active:
            return inputs
        source = _source.get()
        if source is None:
            raise RuntimeError(
                "dropout needs a generator: run a network that trains inside dropout_from(generator), or call .eval()"
            )
        return inputs * _kept(inputs, 1 - self.p, source).div_(1 - self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}"


def _kept(inputs: Float[Tensor, "*batch"], share: float, source: torch.Generator) -> Float[Tensor, "*batch"]:
    """1 for what stays, a share of all, and 0 for what is dropped."""
    own, rows = _share.get() or (slice(0, 0), 0)
    # As many rows as the pass has not: steps unrolled, which draw for themselves. All rows: there are no others.
    if own.stop - own.start != len(inputs) or len(inputs) == rows:
        return torch.empty_like(inputs).bernoulli_(share, generator=source)
    return inputs.new_empty(rows, *inputs.shape[1:]).bernoulli_(share, generator=source)[own]
