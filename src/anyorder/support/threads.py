"""A chosen number of torch threads inside a block of code.

Small networks gain little from several threads, and on a busy machine threads that wait for each other can be many
times slower than one. Results are repeatable only for the same number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Use ``count`` threads inside, and as many as before outside."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
