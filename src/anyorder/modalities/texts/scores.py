r"""How well a model knows a text: bits per character, jointly, of marginals and of holes.

joint        $-\log_2 p(x)$ of whole windows that do not overlap, each from nothing, over their length N
marginal     u ~ M_card: $-\log_2 p(x_u)$ over N (as MAC counts), and over the characters asked
conditional  $-\log_2 p(x_u \mid x_{rest})$ over the characters asked, each a hole with the same chance
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.data.text import Windows
from anyorder.errors import UserError
from anyorder.masking import Cardinality
from anyorder.model.likelihood import log_prob
from anyorder.query import Query
from anyorder.support.checks import inside

if TYPE_CHECKING:
    from anyorder.modalities.texts.model import TextModel


@dataclass(frozen=True)
class TextScores:
    """All in bits per character; ``errors`` are their standard errors over windows, None of a single one."""

    joint: float
    marginal_per_length: float
    marginal: float
    conditional: float
    errors: dict[str, float] | None
    windows: int
    length: int


def score_text(
    model: TextModel, text: str, *, most: int | None = None, holes: float = 0.3, orders: int = 1, seed: int = 0
) -> TextScores:
    """Scores of a text by its windows, all of them or ``most``, evenly spread; a short text is one window."""
    if not inside(holes, "(0, 1)"):
        raise UserError(f"holes must lie between 0 and 1, got {holes!r}")
    codes = torch.from_numpy(model.alphabet.check(text))
    if len(codes) == 0:
        raise UserError("there is no text to score")
    size = min(len(codes), model.length)
    windows = Windows(codes, size).spread(most)
    generator = torch.Generator().manual_seed(seed)
    marginal = Cardinality().draw(len(windows), size, generator).asked
    hole = torch.rand(windows.shape, generator=generator) < holes
    hole[torch.arange(len(windows)), torch.randint(size, (len(windows),), generator=generator)] |= ~hole.any(dim=1)
    nothing = torch.zeros_like(hole)
    asked = {"joint": (nothing, ~nothing), "marginal": (nothing, marginal), "conditional": (~hole, hole)}
    means, errors = {}, {}
    for name, (known, wanted) in asked.items():
        bits = _bits(model, windows, known, wanted, orders, seed)
        means[name], errors[name] = bits_per(bits, wanted.sum(dim=1).double())
        if name == "marginal":
            over = torch.full_like(bits, float(size))
            means["marginal_per_length"], errors["marginal_per_length"] = bits_per(bits, over)
    return TextScores(**means, errors=errors if len(windows) > 1 else None, windows=len(windows), length=size)


def _bits(
    model: TextModel, windows: Tensor, known: Tensor, asked: Tensor, orders: int, seed: int
) -> Float[Tensor, " windows"]:
    spare = (0, model.length - windows.shape[1])
    query = Query(*(torch.nn.functional.pad(mask, spare) for mask in (known, asked)))
    return torch.from_numpy(
        -log_prob(model.core, torch.nn.functional.pad(windows, spare), query, orders=orders, seed=seed)
    ) / math.log(2)


def bits_per(bits: Float[Tensor, " windows"], count: Float[Tensor, " windows"]) -> tuple[float, float]:
    """Bits per ``count``: sum over sum, and the standard error of that."""
    mean = float(bits.sum() / count.sum())
    if len(bits) == 1:
        return mean, math.nan
    return mean, float((bits - mean * count).std() / count.mean() / math.sqrt(len(bits)))
