"""Modules built without initial weights, for those that are then read from a file.

Drawing the weights of a large network takes longer than reading them, and moves torch's global random state. What is
made can be counted on the way, before memory is taken for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from anyorder.support.allowance import Allowance
from anyorder.support.randomness import DRAWS

_FILLING = {draw for draw in DRAWS if draw.__name__.endswith("_")}
_MAKING = {torch.randn, torch.rand}
_SIZED = {torch.empty, torch.zeros, torch.ones, torch.randn, torch.rand}
_METHODS = {Tensor.new_empty, Tensor.new_zeros, Tensor.new_ones}


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


class WeightsUnset(TorchFunctionMode):
    """Within, tensors that torch would fill with random numbers hold what was in memory. For this thread alone.

    Draws that are more than a filling (a permutation) are made, from a generator that is thrown away. What is drawn
    from a generator of one's own is drawn as ever: it may be no weight. An ``allowance`` is asked before one is made.
    """

    def __init__(self, allowance: Allowance | None = None) -> None:
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
        if self.allowance is not None and (shape := _shape(func, args, options)) is not None:
            self.allowance.take(shape)
        if options.get("generator") is None:
            if func in _FILLING or getattr(func, "__module__", None) == "torch.nn.init":
                return args[0] if args else options["tensor"]
            if func in _MAKING:
                options.pop("generator", None)
                func = torch.empty
            elif func in DRAWS:
                options["generator"] = torch.Generator()
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
