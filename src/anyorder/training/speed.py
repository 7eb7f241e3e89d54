"""What makes the steps of a large network lighter: bfloat16, activations computed again, compiled blocks.

All three hold while a trainer runs and for its own network alone; what is validated, saved and asked later computes as
ever. Where one of them is not to be had, a run ends before its first step.

- ``precision = "bfloat16"``: products of matrices and convolutions with 8 bits of mantissa (torch's autocast); weights,
  their gradients and sums, features and heads keep float32.
- ``recompute``: the network keeps the inputs of its blocks and not what is computed within them, and computes that
  again for the gradient: about a third more time, and memory for one block in place of all (Chen et al. 2016).
- ``compile``: ``torch.compile`` of every block, which needs a C++ compiler and a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.networks.parts.dropout import Dropout
from anyorder.support.boundary import first_line
from anyorder.training.options import Options

ASKED = ("beside", "along", "staged")  # how a network is asked in training


def check_speed(model: AnyOrderModel, options: Options) -> None:
    """Refuse what this network or this device cannot do."""
    network, device = model.network, model.device.type
    if options.precision == "bfloat16" and not has_bfloat16(device):
        raise UserError(f"precision = 'bfloat16' is not to be had on this device ({device}); leave it out")
    for name in ("recompute", "compile"):
        if not getattr(options, name):
            continue
        if not network.repeated:
            raise UserError(f"{name}: the network {network.name!r} has no blocks for that; leave it out")
        if any(part.p > 0 for part in network.modules() if isinstance(part, Dropout)):
            raise UserError(
                f"{name}: dropout draws from the run's own generator, which knows nothing of it; "
                "set dropout = 0 in [network], or leave it out"
            )
    if options.compile:
        try:
            torch.compile(lambda x: x + 1)(torch.zeros(2, device=model.device))
        except Exception as error:  # whatever is missing: a compiler, a backend for this device
            raise UserError(
                f"compile: torch.compile cannot be used here ({first_line(error)}); leave it out"
            ) from error


def has_bfloat16(device: str) -> bool:
    """Whether torch can multiply in bfloat16 on a device of this type."""
    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.amp.is_autocast_available(device))


@contextmanager
def at_speed(model: AnyOrderModel, options: Options) -> Iterator[None]:
    """Within, the network computes as the options say."""
    network = model.network
    with ExitStack() as undone:
        if options.precision == "bfloat16":
            for name in ASKED:
                _replaced(network, name, partial(_in_bfloat16, getattr(network, name)), undone)
        for block in network.repeated:
            if options.recompute:
                _replaced(block, "forward", partial(_again, block.forward), undone)
            if options.compile:
                block.compile()
                undone.callback(setattr, block, "_compiled_call_impl", None)
        yield


def _replaced(thing: Any, name: str, function: Callable[..., Any], undone: ExitStack) -> None:
    """Give one object a function of its own in place of its class's, until ``undone``."""
    setattr(thing, name, function)
    undone.callback(delattr, thing, name)


def _in_bfloat16(ask: Callable[..., Tensor], values: Tensor, *rest: Any) -> Tensor:
    with torch.autocast(values.device.type, torch.bfloat16):
        return ask(values, *rest).to(values.dtype)


def _again(forward: Callable[..., Tensor], *inputs: Any, **named: Any) -> Tensor:
    """The block's result; what is computed on the way is not kept but computed once more for the gradient."""
    from torch.utils.checkpoint import checkpoint

    out: Tensor = checkpoint(forward, *inputs, use_reentrant=False, preserve_rng_state=False, **named)
    return out
