"""Where torch computes: a device that was named, once it has shown that it can."""

from __future__ import annotations

import torch

from anyorder.errors import UserError
from anyorder.support.boundary import first_line
from anyorder.support.starts import place_on_machine


def chosen_device(name: str) -> torch.device:
    """The device of that name; ``auto`` is CUDA where there is one. Of processes started together each has its own."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and (number := place_on_machine()) is not None:
        if number >= torch.cuda.device_count():
            raise UserError(
                f"there is no graphics processor for process {number + 1} of this machine, which has "
                f"{torch.cuda.device_count()}: start fewer (torchrun --nproc-per-node), or give device 'cpu'"
            )
        name = f"cuda:{number}"
        torch.cuda.set_device(number)  # also for what NCCL does of itself
    try:
        device = torch.device(name)
        # In double precision, which the expert and the lattices need; a device without values ("meta") has no sum.
        torch.ones(1, device=device, dtype=torch.float64).sum().item()
    except (RuntimeError, AssertionError, TypeError, ImportError) as error:
        raise UserError(f"device {name!r} cannot be used here ({first_line(error)}); try 'auto' or 'cpu'") from error
    return device
