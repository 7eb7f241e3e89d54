"""Local randomness: torch draws from a given generator, in one thread and inside one block of code.

Torch's layers take their initial weights from the generator of the whole process. Seeding that one, even inside
``torch.random.fork_rng``, is seen by every other thread: models built side by side would differ from models built one
after the other, and a caller would find the random state changed. A function mode belongs to its thread alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from anyorder.support.checks import SEEDS

DRAWS = {
    *(torch.bernoulli, torch.multinomial, torch.normal, torch.poisson, torch.rand, torch.rand_like, torch.randint),
    *(torch.randint_like, torch.randn, torch.randn_like, torch.randperm),
    *(Tensor.bernoulli, Tensor.bernoulli_, Tensor.cauchy_, Tensor.exponential_, Tensor.geometric_, Tensor.log_normal_),
    *(Tensor.multinomial, Tensor.normal_, Tensor.random_, Tensor.uniform_),
    # Those of nn.init that pass themselves on to a mode; the others are met at the methods above.
    *(nn.init.kaiming_normal_, nn.init.kaiming_uniform_, nn.init.normal_, nn.init.trunc_normal_, nn.init.uniform_),
}
"""What draws, and takes a generator."""


def seed_further(seed: int, number: int) -> int:
    """The seed that comes ``number`` seeds later: behind the last one come the first."""
    return (seed + number) % SEEDS


def drawn_seed(generator: torch.Generator) -> int:
    """A seed for another generator, drawn from this one of the CPU: the two streams have nothing in common."""
    return int(torch.randint(2**62, (1,), generator=generator))


def row_keys(seed: int, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A number for each row of a table, which depends on the seed and the row's own number alone (SplitMix64).

    The rows with the least keys are a uniform sample, whoever looks at which of them.
    """
    with np.errstate(over="ignore"):
        mixed = rows.astype(np.uint64) + np.uint64(seed % 2**64) * np.uint64(0xD1342543DE82EF95)
        mixed = (mixed + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        return np.asarray(mixed ^ (mixed >> np.uint64(31)), dtype=np.uint64)


class drawing_from(TorchFunctionMode):  # noqa: N801 (used like a function, in a with statement)
    """Within, whatever draws and names no generator draws from this one."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        if func in DRAWS and named.get("generator") is None:
            named["generator"] = self.generator
        return func(*args, **named)
