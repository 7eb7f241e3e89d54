"""What training a network costs, before anything is trained: one pass of it on torch's ``meta`` device.

Tensors on that device have shapes and no numbers. A pass forward and back counts the operations of every product of
matrices, convolution and attention (by the formulas of ``torch.utils.flop_counter``; all else is a few per cent), and
the bytes that are kept for the gradient, which are those of torch's own attention: a device whose attention keeps no
weights needs less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from anyorder.model import AnyOrderModel
from anyorder.query import Chain
from anyorder.support.allowance import TRAINED
from anyorder.training.options import Options
from anyorder.training.speed import at_speed

ROWS = 2  # of the pass: of a single one, what does not depend on the rows would count too much


@dataclass(frozen=True)
class Cost:
    """What a row costs, forward and back: ``operations``, the ``convolved`` of them, and bytes ``kept`` in between."""

    parameters: int
    operations: float
    convolved: float
    kept: float

    def memory(self, rows: int) -> float:
        """Bytes of a step that passes so many rows at once: what is kept, and every weight as often as training does.

        A weight has a gradient, two moments, a running average and the best one so far beside it.
        """
        return TRAINED * self.parameters + rows * self.kept


def cost_of(model: AnyOrderModel, options: Options, *, staged: bool = False) -> Cost:
    """What a step of this model costs; the model is on ``meta`` afterwards, and its weights are gone.

    ``staged``: it is asked by masking modes.
    """
    model = model.to("meta").train()
    values = torch.zeros(ROWS, model.variables, device="meta")
    own = {weight.untyped_storage()._cdata for weight in [*model.parameters(), *model.buffers()]}
    kept: dict[int, Any] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage  # held, so that no other gets its number
        return tensor

    model.zero_grad()
    counter = _Counter()
    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with at_speed(model, options), counter, hooks:
        nats = model.heads.log_prob_beside(_features(model, values, staged=staged), values)
        (-nats.mean()).backward()
    parameters = sum(weight.numel() for weight in model.parameters())
    bytes_kept = sum(storage.nbytes() for storage in kept.values())
    return Cost(parameters, counter.all / ROWS, counter.convolved / ROWS, bytes_kept / ROWS)


class _Counter(TorchDispatchMode):
    """Adds up the operations of whatever is computed within; torch's own counter is slower and tells them by module."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.all = self.convolved = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if (formula := flop_registry.get(func.overloadpacket)) is not None:
            counted = formula(*args, **(kwargs or {}), out_val=found)
            self.all += counted
            self.convolved += counted if "convolution" in func.overloadpacket.__name__ else 0
        return found


def _features(model: AnyOrderModel, values: Tensor, *, staged: bool) -> Tensor:
    """The features of all variables, as training asks for them."""
    known = torch.zeros(values.shape, dtype=torch.bool, device=values.device)
    if staged:
        modes = torch.zeros(len(values), dtype=torch.long, device=values.device) if model.network.modes else None
        return model.staged_pass(values, known, modes)
    if model.network.objective != "chain":
        return model.one_pass(values, known)
    order = torch.arange(model.variables, device=values.device).expand_as(known)
    return model.network.along(values, Chain(order[:, :0], order, model.variables))
