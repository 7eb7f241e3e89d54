"""Pre-norm transformer blocks with an optional key-value cache, shared by both transformers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.errors import UserError
from anyorder.networks.parts.dropout import Dropout
from anyorder.networks.parts.positions import Turn

# The sizes of text models. Windows are cut anywhere in a text, so that only distances mean something: rotary.
SIZES: Mapping[str, Mapping[str, Any]] = {
    "tiny": {"width": 64, "blocks": 2, "heads": 2, "positions": "rotary"},
    "small": {"width": 128, "blocks": 4, "heads": 4, "positions": "rotary"},
    "medium": {"width": 256, "blocks": 6, "heads": 8, "positions": "rotary"},
    "mac": {"width": 768, "blocks": 12, "heads": 12, "positions": "rotary"},  # MAC's and ARDM's text8 model
}


class Cache:
    """Keys and values of one block for the tokens read so far, in buffers with room to grow.

    Appending one token at a time to tensors would copy all of them every time.
    """

    def __init__(self, keys: Float[Tensor, "batch heads tokens head"], values: Tensor) -> None:
        self.count = 0
        self._keys, self._values = keys[:, :, :0], values[:, :, :0]
        self.extend(keys, values)

    @property
    def keys(self) -> Float[Tensor, "batch heads tokens head"]:
        return self._keys[:, :, : self.count]

    @property
    def values(self) -> Float[Tensor, "batch heads tokens head"]:
        return self._values[:, :, : self.count]

    def extend(self, keys: Tensor, values: Tensor) -> None:
        """Tokens behind those that are there."""
        end = self.count + keys.shape[2]
        if end > self._keys.shape[2]:
            room = (*keys.shape[:2], max(2 * end, 32), keys.shape[3])
            grown = keys.new_empty(room), values.new_empty(room)
            grown[0][:, :, : self.count], grown[1][:, :, : self.count] = self.keys, self.values
            self._keys, self._values = grown
        self._keys[:, :, self.count : end], self._values[:, :, self.count : end] = keys, values
        self.count = end

    def keep(self, count: int) -> None:
        """The first tokens alone."""
        self.count = count

    def choose(self, index: Int[Tensor, "batch tokens"]) -> None:
        """Keep each row's tokens at these positions, in that order."""
        positions = index[:, None, :, None].expand(-1, self._keys.shape[1], -1, self._keys.shape[3])
        self._keys, self._values = self.keys.gather(2, positions), self.values.gather(2, positions)
        self.count = index.shape[1]


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
        self.dropout = Dropout(dropout)

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
        seen = attention(queries, keys, values, visible, causal=causal, dropout=self.dropout)
        tokens = tokens + self.dropout(self.project(seen.transpose(1, 2).reshape(batch, count, width)))
        out: Tensor = tokens + self.dropout(self.fall(F.gelu(self.rise(self.norm_mlp(tokens)))))
        return out


def attention(
    queries: Float[Tensor, "batch heads tokens head"],
    keys: Float[Tensor, "batch heads keys head"],
    values: Float[Tensor, "batch heads keys head"],
    visible: Bool[Tensor, "#batch 1 tokens keys"] | None,
    *,
    causal: bool,
    dropout: Dropout,
) -> Float[Tensor, "batch heads tokens head"]:
    """softmax(Q K^T / sqrt(d)) V over the keys that each token may look at."""
    if not dropout.active:
        return F.scaled_dot_product_attention(queries, keys, values, visible, is_causal=causal)
    # Written out, since torch's own takes no generator for the weights that it drops.
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
    if causal:
        visible = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if visible is not None:
        scores = scores.masked_fill(~visible, -torch.inf)
    out: Tensor = dropout(scores.softmax(dim=-1)) @ values
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
