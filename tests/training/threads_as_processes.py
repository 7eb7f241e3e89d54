"""Processes that are threads of this one: they add, agree and tell as those of torch.distributed do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor

from anyorder.errors import UserError
from anyorder.support.processes import Processes

T = TypeVar("T")


@dataclass
class Meeting:
    count: int
    brought: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.barrier = threading.Barrier(self.count, timeout=60)
        self.brought = [None] * self.count

    def exchange(self, number: int, thing: Any) -> list[Any]:
        self.brought[number] = thing
        self.barrier.wait()
        found = list(self.brought)
        self.barrier.wait()
        return found


@dataclass(frozen=True)
class Threads(Processes):
    def add(self, tensor: Tensor) -> None:
        everyone = self.control.exchange(self.number, tensor.clone())
        tensor.copy_(torch.stack(everyone).sum(dim=0))

    def told(self, words: bytes | None = None) -> bytes:
        said: bytes = self.control.exchange(self.number, words)[0] or b""
        if not said and not self.leads:
            raise UserError("the first process of this run has failed: what it said is the reason")
        return said


def together(count: int, work: Callable[[Processes], T]) -> list[T | BaseException]:
    """What every one of so many comes to, or what it raises."""
    meeting = Meeting(count)
    found: list[Any] = [None] * count

    def one(number: int) -> None:
        try:
            found[number] = work(Threads(number, count, meeting))
        except BaseException as error:  # noqa: BLE001 (it is what the test looks at)
            found[number] = error

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found
