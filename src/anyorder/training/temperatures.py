r"""How sure a member of a blend may be of levels: a temperature for each of its variables, from held-out cells.

$$\max_T\; \sum_c n_c \log \frac{p(x_c)^{1/T}}{\sum_k p(k)^{1/T}} - \frac{(\log T)^2}{2 \sigma^2}$$

Above 1 a member has been too sure, below 1 not sure enough. Where the parts of several folds answer together, their
mean is less sure than each of them: then a temperature above 1 goes only half of its way.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

SPREAD = 0.3  # of log T around none
LARGEST = math.log(2)
MOST_LEVELS = 64  # beyond, the levels of a variable are left as they are


def fit_temperature(
    log_probs: Float[Tensor, "cells levels"],
    codes: Int[Tensor, " cells"],
    counts: Float[Tensor, " cells"],
    *,
    together: bool,
) -> float:
    """The temperature of these cells; ``together``: whether several parts will answer as one."""
    logs = torch.linspace(-LARGEST, LARGEST, 29, dtype=torch.float64)
    gains = [
        float((counts * at_temperature(log_probs, codes, math.exp(log))).sum()) - (log / SPREAD) ** 2 / 2
        for log in logs.tolist()
    ]
    if not math.isfinite(sum(gains)):
        return 1.0
    best = float(logs[max(range(len(gains)), key=gains.__getitem__)])
    return math.exp(best / 2 if together and best > 0 else best)


def at_temperature(
    log_probs: Float[Tensor, "cells levels"], codes: Int[Tensor, " cells"], temperature: float
) -> Float[Tensor, " cells"]:
    """log p of each cell's own level, once tempered."""
    return (log_probs / temperature).log_softmax(dim=1).gather(1, codes[:, None])[:, 0]
