"""How much a description may ask for: in proportion to the tensors that came with it, or to this machine.

A few words can ask for any amount of memory ("width": 30000) or time ("blocks": 1000000). What a model is made of is
in its file, so whoever builds it from a description counts what is made, before it is made, and stops at a multiple.
What a user asks for comes without tensors: it must fit into memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from anyorder.errors import UserError
from anyorder.support.memory import machine_memory

_SIZED = {torch.empty, torch.zeros, torch.ones, torch.randn, torch.rand}
_METHODS = {Tensor.new_empty, Tensor.new_zeros, Tensor.new_ones}

FREE_NUMBERS = 1 << 24
"""Tables that follow from the description and are in no file (positions, features of each variable): 128 MB of them."""

FREE_TENSORS = 1024

TIMES = 8
"""Beyond what is free, so many times what the file has: some tensors are made twice, or only to compute others."""


@dataclass
class Allowance:
    """What may be made of a file with so many ``numbers`` in so many ``tensors``."""

    numbers: int
    tensors: int
    _numbers_left: int = field(init=False)
    _tensors_left: int = field(init=False)

    def __post_init__(self) -> None:
        self._numbers_left = FREE_NUMBERS + TIMES * self.numbers
        self._tensors_left = FREE_TENSORS + TIMES * self.tensors

    def take(self, shape: Iterable[int]) -> None:
        """Count a tensor that is about to be made."""
        self._numbers_left -= math.prod(shape)
        self._tensors_left -= 1
        if self._numbers_left < 0 or self._tensors_left < 0:
            raise self._refusal()

    def check(self, numbers: int) -> None:
        """Refuse to make something of so many numbers; nothing is counted."""
        if numbers > self._numbers_left:
            raise self._refusal()

    def _refusal(self) -> UserError:
        return UserError(
            f"more is declared than the file holds: {self.numbers} numbers in {self.tensors} tensors are there; "
            "a size in the description is wrong"
        )


TRAINED = 24
"""The bytes that a weight takes while it is trained: itself, its gradient, two moments, its average, its best."""

MOST_TENSORS = 20_000
"""A network that is trained has no more; the deepest known ones have a few thousand."""


@dataclass
class MachineAllowance(Allowance):
    """What may be made to be trained on this machine."""

    numbers: int = field(default_factory=lambda: machine_memory() // TRAINED)
    tensors: int = MOST_TENSORS

    def __post_init__(self) -> None:
        self._numbers_left, self._tensors_left = self.numbers, self.tensors

    def _refusal(self) -> UserError:
        return UserError(
            f"the network is too large to be trained on this machine, which has room for {self.numbers} numbers; "
            f"{self.tensors} tensors are the most: set a smaller width or fewer blocks"
        )


class Counted(TorchFunctionMode):
    """Within, an ``allowance`` is asked before a tensor is made out of nothing. For this thread alone."""

    def __init__(self, allowance: Allowance) -> None:
        super().__init__()
        self.allowance = allowance

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        options = dict(kwargs or {})
        if (shape := _shape(func, args, options)) is not None:
            self.allowance.take(shape)
        return func(*args, **options)


def _shape(func: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> tuple[int, ...] | None:
    """The shape of the tensor that a call is about to make; None where a call makes none out of nothing."""
    if func in _SIZED or func in _METHODS:
        sizes = args[1:] if func in _METHODS else args
        sizes = sizes or (options.get("size", ()),)
        return tuple(sizes[0]) if isinstance(sizes[0], Iterable) else sizes
    if func is torch.full:
        return tuple(args[0] if args else options["size"])
    if func is torch.eye:
        return (args[0], args[-1])
    if func is torch.arange:
        start, end, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        return (int((end - start) / step) + 1,)
    if func is torch.linspace:
        return (int(args[2] if len(args) > 2 else options["steps"]),)
    return None
