"""Pre-norm transformer blocks with an optional key-value cache, shared by both transformers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from anyorder.errors import UserError
from anyorder.networks.positions import Turn


@dataclass
class Cache:
    """Keys and values of one block for the tokens read so far."""

    keys: Float[Tensor, "batch heads tokens head"]
    values: Float[Tensor, "batch heads tokens head"]

    def extend(self, keys: Tensor, values: Tensor) -> None:
        self.keys = torch.cat([self.keys, keys], dim=2)
        self.values = torch.cat([self.values, values], dim=2)


class TransformerBlock(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width, bias=False)
        self.project = nn.Linear(width, width, bias=False)
        self.norm_mlp = nn.LayerNorm(width)
        self.rise = nn.Linear(width, 4 * width)
        self.fall = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        tokens: Float[Tensor, "batch tokens width"],
        visible: Bool[Tensor, "#batch 1 tokens keys"] | None = None,
        *,
        causal: bool = False,
        cache: list[Cache] | None = None,
        layer: int = 0,
        turns: tuple[Turn, Turn] | None = None,
    ) -> Float[Tensor, "batch tokens width"]:
        """``visible`` says which keys a token may look at; ``causal`` is the same as a triangle, but faster.

        With ``cache`` the keys of earlier calls are seen as well, and this call's are appended to it. ``turns`` turn
        queries and keys by their rotary positions.
        """
        batch, count, width = tokens.shape
        mixed = self.queries_keys_values(self.norm_attention(tokens))
        # [batch, tokens, 3 * width] -> three of [batch, heads, tokens, head]
        parts = mixed.view(batch, count, 3, self.heads, width // self.heads)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4).unbind(0)
        if turns is not None:
            queries, keys = turns[0](queries), turns[1](keys)
        if cache is not None:
            if layer == len(cache):
                cache.append(Cache(keys, values))
            else:
                cache[layer].extend(keys, values)
            keys, values = cache[layer].keys, cache[layer].values
        rate = self.dropout.p if self.training else 0.0
        seen = F.scaled_dot_product_attention(queries, keys, values, visible, rate, is_causal=causal)
        tokens = tokens + self.dropout(self.project(seen.transpose(1, 2).reshape(batch, count, width)))
        out: Tensor = tokens + self.dropout(self.fall(F.gelu(self.rise(self.norm_mlp(tokens)))))
        return out


def check_heads(width: int, heads: int) -> None:
    """The heads share out the width."""
    if heads < 1 or width % heads:
        raise UserError(f"a transformer's width must be a multiple of its heads, got width {width} and {heads} heads")


def begin_blocks(blocks: nn.ModuleList) -> None:
    """Small residual branches, the deeper the smaller, so that the untrained stack is close to the identity."""
    for block in blocks:
        assert isinstance(block, TransformerBlock)
        for branch in (block.project, block.fall):
            nn.init.normal_(branch.weight, std=0.02 / (2 * len(blocks)) ** 0.5)
