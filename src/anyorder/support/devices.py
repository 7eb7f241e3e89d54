"""Where torch computes: a device that was named, once it has shown that it can."""

from __future__ import annotations

import torch

from anyorder.errors import UserError
from anyorder.support.boundary import first_line


def chosen_device(name: str) -> torch.device:
    """The device of that name; ``auto`` is CUDA where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        # In double precision, which the expert and the lattices need; a device without values ("meta") has no sum.
        torch.ones(1, device=device, dtype=torch.float64).sum().item()
    except (RuntimeError, AssertionError, TypeError, ImportError) as error:
        raise UserError(f"device {name!r} cannot be used here ({first_line(error)}); try 'auto' or 'cpu'") from error
    return device
