"""The causal transformer: a chain network. One pass answers every step of a chain (MAC Algorithm 1).

A token carries the variable it holds, its value, and *the variable that comes next*, so one causal stack can
follow any order (the double position of sigma-GPT). Positions are learned vectors, one a variable, or rotary: then a
query is turned by where the next variable is and a key by where its own is, so that attention sees how far each known
value lies from what is asked, wherever both are. The sequence is ``start, path[0], path[1], ...``; the token
before a variable answers for it. There is no position in the sequence, only the causal mask, so padding is
harmless: a padded position in front of the path repeats the start token and is hidden from every other token.
The cost is in proportion to the variables that a query names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.networks.base import ChainNetwork, Walk
from anyorder.networks.parts.attention import Cache
from anyorder.networks.parts.lookahead import Lookahead
from anyorder.networks.parts.transformer import Transformer
from anyorder.query import PAD, Chain, ordered


@dataclass(eq=False)
class CausalTransformer(Transformer, ChainNetwork):
    """Any order, one pass, a cache for sampling."""

    name: ClassVar[str] = "causal_transformer"

    def add_inputs(self) -> None:
        self.start = self.vector()
        if self.rotary is None:
            self.here, self.next = self.table(), self.table()

    def tokens(
        self,
        values: Float[Tensor, "batch tokens"],
        variable: Int[Tensor, "batch tokens"],
        following: Int[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch tokens width"]:
        """Embed (variable, value, next variable); a padded variable becomes the start token."""
        index = variable.clamp(min=0)
        held: Tensor = self.embed(index, values)
        if self.rotary is None:
            held = held + self.here(index)
        held = torch.where((variable == PAD)[..., None], self.start, held)
        return held + self.next(following.clamp(min=0)) if self.rotary is None else held

    def run(
        self,
        values: Float[Tensor, "batch tokens"],
        variable: Int[Tensor, "batch tokens"],
        following: Int[Tensor, "batch tokens"],
        visible: Bool[Tensor, "#batch 1 tokens keys"] | None = None,
        cache: list[Cache] | None = None,
    ) -> Float[Tensor, "batch tokens width"]:
        """The trunk over tokens (variable, value, next variable); without ``visible`` each sees all those before it.

        With something in the ``cache`` already that holds of a single new token only.
        """
        tokens = self.tokens(values, variable, following)
        turns = None if self.rotary is None else (self.rotary(following), self.rotary(variable))
        causal = visible is None and not cache
        for layer, block in enumerate(self.trunk):
            tokens = block(tokens, visible, causal=causal, cache=cache, layer=layer, turns=turns)
        out: Tensor = self.norm(tokens)
        return out

    def along(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Float[Tensor, "batch steps width"]:
        path = torch.cat([chain.prefix, chain.order], dim=1)
        # The last variable of a path is answered for and never looked at: its own token is not needed.
        variable, following = _start_and(path[:, :-1]), _followers(path, chain.prefix.shape[1])
        padded = chain.prefix.shape[1] > 0 and bool((chain.prefix == PAD).any())
        visible = _visible(variable) if padded else None
        trunk = self.run(_values_at(values, variable), variable, following, visible)
        features: Tensor = self.readout(trunk[:, chain.prefix.shape[1] :], chain.order.clamp(min=0))
        return features

    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        if prefix is None:
            index = torch.arange(self.layout.variables, device=known.device)
            prefix = ordered(known, index.expand_as(known), pad_left=True)
        batch, count = prefix.shape
        variables = self.layout.variables
        # All but the last known token form a chain; the last one is copied once per variable that could come next.
        everyone = torch.arange(variables, device=known.device).expand(batch, -1)
        sequence = _start_and(prefix)
        before, last = sequence[:, :count], sequence[:, count:]
        variable = torch.cat([before, last.expand(-1, variables)], dim=1)
        following = torch.cat([_followers(prefix, count), everyone], dim=1)
        visible = _visible(variable)
        copies = torch.arange(count, count + variables, device=known.device)
        # A copy looks at the chain and at itself, never at another copy.
        visible[:, :, copies[:, None], copies] = torch.eye(variables, dtype=torch.bool, device=known.device)
        # Where nothing is known the copy is itself the start token, so the one in front is not there for it.
        visible[:, :, count:, :count] &= (last != PAD)[:, None, :, None]
        trunk = self.run(_values_at(values, variable), variable, following, visible)
        return self.readout.each(trunk[:, count:])

    def walk(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Walk:
        return _CachedWalk(self, values, chain)

    def look_ahead(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Lookahead:
        return _CachedLookahead(self, values, chain)


class _CachedWalk(Walk):
    """Walking with a cache: each step runs one new token."""

    def __init__(self, network: CausalTransformer, values: Tensor, chain: Chain) -> None:
        self.network = network
        self.order = chain.order
        self.step = 0
        self.cache: list[Cache] = []
        count = chain.prefix.shape[1]
        variable = _start_and(chain.prefix)
        following = _followers(torch.cat([chain.prefix, chain.order[:, :1]], dim=1), count)
        visible = _visible(variable)
        # Only where evidence is padded is there anything to hide from the tokens to come.
        self.shown = visible[:, :, -1:, :].clone() if bool((chain.prefix == PAD).any()) else None
        self.trunk = network.run(_values_at(values, variable), variable, following, visible, self.cache)[:, -1:]

    def features(self, rows: Tensor | None = None) -> Tensor:
        here: Tensor | slice = slice(None) if rows is None else rows
        target = self.order[here, self.step : self.step + 1].clamp(min=0)
        features: Tensor = self.network.readout(self.trunk[here], target)
        return features[:, 0]

    def tell(self, value: Tensor) -> None:
        variable = self.order[:, self.step : self.step + 1]
        self.step += 1
        if self.step == self.order.shape[1]:
            return
        following = self.order[:, self.step : self.step + 1]
        # Padding rows have ended; whatever token they add only they themselves could see.
        if self.shown is not None:
            self.shown = torch.cat([self.shown, torch.ones_like(self.shown[..., :1])], dim=-1)
        self.trunk = self.network.run(value[:, None], variable.clamp(min=0), following, self.shown, self.cache)


class _CachedLookahead(Lookahead):
    """Looking ahead with a cache of what is settled.

    A call runs the token settled last and the guesses behind it, and of each of them a copy for every step further on:
    a copy has another next variable and sees the tokens before it and itself. A guess that was wrong leaves its key in
    the cache, hidden: keys know where they stand by themselves, so gaps between them do no harm.
    """

    def __init__(self, network: CausalTransformer, values: Tensor, chain: Chain) -> None:
        super().__init__(chain)
        self.network = network
        self.cache: list[Cache] = []
        self.guesses = values[:, :0]
        sequence = _start_and(chain.prefix)
        count = chain.prefix.shape[1]
        self.variable = sequence[:, count]  # settled last; its token is part of the next call
        self.value = _values_at(values, sequence)[:, count]
        # The evidence before it has yet to be read: the first call does so.
        self.unread = sequence[:, :count]
        self.unread_values = _values_at(values, self.unread)
        # Where nothing is known the start token is the one settled last, so the one in front is not there.
        self.shown = _visible(self.unread)[:, 0, -1:].flatten(1) & (self.variable != PAD)[:, None]

    def look(self, guesses: Tensor, reach: int) -> Tensor:
        self.guesses = guesses
        batch, count = guesses.shape
        own, seen, unread = count + 1, self.shown.shape[1], self.unread.shape[1]
        ahead = self.upcoming(count + reach)
        variable = torch.cat([self.variable[:, None], ahead[:, :count]], dim=1)
        values = torch.cat([self.value[:, None], guesses.to(self.value.dtype)], dim=1)
        # Next variables [batch, token, 0 .. reach-1]; the first is the chain's own, the others are of the copies.
        following = torch.stack([ahead[:, step : step + own] for step in range(reach)], dim=2)
        tokens = own * reach
        position = torch.arange(own, device=variable.device)
        holder = torch.cat([position, position.repeat_interleave(reach - 1)])  # which token each one is or copies
        visible = torch.zeros(batch, tokens, seen + tokens, dtype=torch.bool, device=variable.device)
        visible[:, :, :seen] = self.shown[:, None]
        visible[:, :, seen : seen + own] = position < holder[:, None]
        everyone = torch.arange(tokens, device=variable.device)
        visible[:, everyone, seen + everyone] = True
        target = torch.cat([following[:, :, 0], following[:, :, 1:].flatten(1)], dim=1)
        values, variable, next_ = values[:, holder], variable[:, holder], target
        if unread:  # nothing is cached yet: what was seen are the very tokens in front
            values = torch.cat([self.unread_values, values], dim=1)
            next_ = torch.cat([_followers(self.chain.prefix, unread), target], dim=1)
            before = torch.nn.functional.pad(_visible(self.unread)[:, 0], (0, tokens))
            visible = torch.cat([before, visible], dim=1)
            variable = torch.cat([self.unread, variable], dim=1)
            self.unread = self.unread[:, :0]
        trunk = self.network.run(values, variable, next_, visible[:, None], self.cache)[:, unread:]
        for layer in self.cache:  # copies are for this call alone
            layer.keep(seen + own)
        features: Tensor = self.network.readout(trunk, target.clamp(min=0))
        further = features[:, own:].unflatten(1, (own, reach - 1))
        return torch.cat([features[:, :own, None], further], dim=2)

    def settle(self, right: Tensor, value: Tensor) -> None:
        count = self.guesses.shape[1]
        self.variable = self.upcoming(count + 1).gather(1, right[:, None])[:, 0]
        self.value = value.to(self.value.dtype)
        kept = torch.arange(count + 1, device=right.device) <= right[:, None]
        self.shown = torch.cat([self.shown, kept], dim=1)
        self.reached = (self.reached + right + 1).clamp(max=self.chain.steps)
        longest = int(self.shown.sum(dim=1).max())
        if self.shown.shape[1] > 2 * longest + 16:  # mostly wrong guesses: move the others together
            order = (~self.shown).long().argsort(dim=1, stable=True)[:, :longest]
            self.shown = self.shown.gather(1, order)
            for layer in self.cache:
                layer.choose(order)


def _start_and(path: Int[Tensor, "batch steps"]) -> Int[Tensor, "batch tokens"]:
    """The variables the tokens hold: the start token (padding) in front of the path."""
    return torch.nn.functional.pad(path, (1, 0), value=PAD)


def _followers(path: Int[Tensor, "batch steps"], prefix: int) -> Int[Tensor, "batch steps"]:
    """What each token predicts: the next variable of the path; in front of a padded prefix, its first one."""
    padded = (path[:, :prefix] == PAD).sum(dim=1, keepdim=True)
    positions = torch.arange(path.shape[1], device=path.device).expand_as(path)
    return path.gather(1, positions.maximum(padded).clamp(max=max(path.shape[1] - 1, 0)))


def _values_at(values: Tensor, variable: Int[Tensor, "batch tokens"]) -> Tensor:
    # Zero where there is no variable: padding must not carry the value of variable 0, which may be unknown.
    return values.gather(1, variable.clamp(min=0)).where(variable != PAD, 0.0)


def _visible(variable: Int[Tensor, "batch tokens"]) -> Bool[Tensor, "batch 1 tokens tokens"]:
    """Causal, without padding; the start token is always seen, and so is the token itself if it is no padding."""
    count = variable.shape[1]
    triangle = torch.ones(count, count, dtype=torch.bool, device=variable.device).tril()
    real = variable != PAD
    real[:, :1] = True
    return (triangle & real[:, None, :])[:, None]
