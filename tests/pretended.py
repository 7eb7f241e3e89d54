"""A device that is not there: tensors that say they are on ``meta`` and hold their numbers beside, on the CPU.

True meta tensors have no numbers, so that no code gets past the first choice that depends on one. These have, and yet
an operation on one of them and a tensor of the CPU fails as it would on a graphics processor: but for single numbers,
for positions to look up and for copies from one to the other, which torch allows there too. Drawing needs a generator
of the same device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map

META = torch.device("meta")
COPIES = ("_to_copy", "copy_", "_local_scalar_dense")
LOOKED_UP = ("index", "index_put", "index_put_", "_unsafe_index", "_index_put_impl_")


_generators: dict[int, Any] = {}


class Generator(torch.Generator):
    """Draws for the device that is not there."""

    def __init__(self, *_: Any) -> None:
        super().__init__()
        # An operation gets another Python object for it, of torch's own class.
        _generators[self._cdata] = self

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return META


class Pretended(Tensor):
    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> Pretended:
        made: Pretended = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=META,
        )
        made.inner = inner
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatched(func, args, kwargs or {})

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Pretended({self.inner!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = Pretended(self.inner.detach().clone())
        copied: Any = nn.Parameter(made, self.requires_grad) if isinstance(self, nn.Parameter) else made
        memo[id(self)] = copied
        return copied


def dispatched(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Do on the CPU what was asked of the device, if all that takes part is there."""
    name = func.overloadpacket.__name__
    wanted = kwargs.get("device")
    placed = wanted is not None and torch.device(wanted).type == "meta"
    tensors = [one for one in tree_iter((args, kwargs)) if isinstance(one, Tensor)]
    there = [one for one in tensors if isinstance(one, Pretended)]
    here = [one for one in tensors if not isinstance(one, Pretended)]
    looked_up = name in LOOKED_UP
    counted = [args[0], *args[2:3]] if looked_up else here  # positions may be on the CPU
    strangers = [one for one in counted if isinstance(one, Tensor) and not isinstance(one, Pretended) and one.ndim]
    if there and strangers and name not in COPIES:
        raise AssertionError(f"{name}: a tensor of the CPU, {tuple(strangers[0].shape)}, among those of the device")
    generator = kwargs.get("generator")
    if generator is not None and (bool(there) or placed) != (generator._cdata in _generators):
        raise AssertionError(f"{name}: the generator is on another device")
    if placed:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    found = func(*tree_map(_inner, args), **tree_map(_inner, kwargs))
    if name == "_local_scalar_dense" or (name == "_to_copy" and wanted is not None and not placed):
        return found
    if name.endswith("_") and not name.startswith("__") and args and isinstance(args[0], Tensor):
        return args[0]
    return tree_map(lambda one: Pretended(one) if isinstance(one, Tensor) else one, found) if there or placed else found


def _inner(thing: Any) -> Any:
    return thing.inner if isinstance(thing, Pretended) else thing


class _Making(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatched(func, args, kwargs or {})


class _Reading(TorchFunctionMode):
    """``torch.tensor`` and its like build on the CPU before anybody can interfere."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.tensor, torch.as_tensor, torch.asarray) and kwargs.get("device") is not None:
            placed = torch.device(kwargs.pop("device")).type == "meta"
            found = func(*args, **kwargs)
            return Pretended(found) if placed and not isinstance(found, Pretended) else found
        if func is Tensor.new_tensor and isinstance(args[0], Pretended) and "device" not in kwargs:
            return Pretended(torch.tensor(args[1], dtype=kwargs.get("dtype", args[0].dtype)))
        if func is Tensor.tolist and isinstance(args[0], Pretended):  # a device copies for that
            return args[0].inner.tolist()
        return func(*args, **kwargs)


@contextmanager
def pretended_device() -> Iterator[None]:
    """Within, what is made on ``meta`` has numbers, modules can be moved there and back, and generators draw there."""
    to, cpu, generator = nn.Module.to, nn.Module.cpu, torch.Generator

    def moved(module: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
        if args and isinstance(args[0], str | torch.device):
            there = torch.device(args[0]).type == "meta"
            return _moved(module, lambda one: Pretended(_inner(one)) if there else _inner(one))
        return to(module, *args, **kwargs)

    class Made(torch.Generator):
        def __new__(cls, device: Any = "cpu") -> Any:
            return Generator() if torch.device(device).type == "meta" else generator(device)

    nn.Module.to = moved  # type: ignore[method-assign]
    nn.Module.cpu = lambda module: _moved(module, _inner)  # type: ignore[method-assign]
    torch.Generator = Made  # type: ignore[misc, assignment]
    try:
        with _Reading(), _Making():
            yield
    finally:
        nn.Module.to, nn.Module.cpu = to, cpu  # type: ignore[method-assign]
        torch.Generator = generator  # type: ignore[misc]


def _moved(module: nn.Module, move: Callable[[Tensor], Tensor]) -> nn.Module:
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                part._parameters[name] = nn.Parameter(move(parameter.detach()), parameter.requires_grad)
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = move(buffer)
    return module
