"""Processes that train one model together, as ``torchrun`` starts them: who they are and what they agree on.

The first one decides: its clock, its disk and its user are those of the run. The others learn from it by
:meth:`Processes.told`, and all of them add up numbers by :meth:`Processes.add`. What is added goes by gloo between CPUs
and by NCCL between graphics processors; what is told goes by gloo.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from anyorder.errors import UserError
from anyorder.support.starts import started_together

# As long as they wait for each other at most: the first one may grow trees for hours. One that has died is noticed at
# once, since its connections close.
PATIENCE = timedelta(days=7)
AT_ONCE = 2**28  # bytes that are told in one piece


@dataclass(frozen=True)
class Processes:
    """``number`` of ``count`` processes; the first is number 0. ``control`` is the group that CPU tensors go by."""

    number: int = 0
    count: int = 1
    control: Any = None

    @property
    def leads(self) -> bool:
        """Whether this is the process that decides and writes."""
        return self.number == 0

    def share(self, rows: int) -> slice:
        """The rows of so many that are this process's own: neighbours, as many as the others have or one more."""
        return slice(self.number * rows // self.count, (self.number + 1) * rows // self.count)

    def add(self, tensor: Tensor) -> None:
        """Put the sum over all processes in place of ``tensor``, with the same bits in each of them."""
        if self.count > 1:
            with _others_may_have_ended():
                dist.all_reduce(tensor, group=self.control if tensor.device.type == "cpu" else None)

    def agreed(self, stop: bool, seconds: float) -> tuple[bool, float]:
        """Whether any of them wants to stop, and the clock of the first."""
        if self.count == 1:
            return stop, seconds
        both = torch.tensor([float(stop), seconds if self.leads else 0.0], dtype=torch.float64)
        self.add(both)
        return bool(both[0] > 0), float(both[1])

    def told(self, words: bytes | None = None) -> bytes:
        """What the first process tells all others; nothing (``b""``) is what it says when it fails."""
        if self.count == 1:
            return words or b""
        with _others_may_have_ended():
            size = torch.tensor([len(words or b"")])
            dist.broadcast(size, 0, group=self.control)
            said = torch.frombuffer(bytearray(words), dtype=torch.uint8) if self.leads and words else None
            told = torch.empty(int(size), dtype=torch.uint8) if said is None else said
            for piece in told.split(AT_ONCE):
                dist.broadcast(piece, 0, group=self.control)
        if not len(told) and not self.leads:
            raise UserError("the first process of this run has failed: what it said is the reason")
        return told.numpy().tobytes() if said is None else words or b""


ALONE = Processes()
_joined: list[Processes] = []


def joined() -> Processes:
    """The processes that this one trains with: those of torch.distributed, or those that torchrun has started."""
    if not dist.is_available():
        return ALONE
    if not dist.is_initialized():
        _joined.clear()
        if not started_together():
            return ALONE
        both = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(both, timeout=PATIENCE)
        atexit.register(_part)
    if not _joined:
        # A group of its own: that of the caller may know graphics processors alone, or lose patience soon.
        control = dist.new_group(backend="gloo", timeout=PATIENCE)
        _joined.append(Processes(dist.get_rank(), dist.get_world_size(), control))
    return _joined[0]


def _part() -> None:
    if dist.is_initialized():
        with suppress(RuntimeError):
            dist.destroy_process_group()


@contextmanager
def _others_may_have_ended() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise UserError(
            "another process of this run has ended or cannot be reached; what it said is the reason, "
            "and with a checkpoint the run can be resumed"
        ) from error


def add_all(processes: Processes, tensors: Sequence[Tensor], most: int = 2**24) -> None:
    """Put sums over all processes in place of these tensors, as few messages as hold ``most`` numbers each."""
    if processes.count == 1:
        return
    together: list[Tensor] = []
    for place, tensor in enumerate(tensors):
        together.append(tensor)
        following = tensors[place + 1] if place + 1 < len(tensors) else None
        held = sum(one.numel() for one in together)
        if following is None or following.dtype != tensor.dtype or held + following.numel() > most:
            flat = torch.cat([one.reshape(-1) for one in together])
            processes.add(flat)
            for one, summed in zip(together, flat.split([one.numel() for one in together]), strict=True):
                one.copy_(summed.view_as(one))
            together = []
