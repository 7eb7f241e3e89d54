"""The heads of all variables at once, evaluated family by family.

Variables with the same head (all characters, all pixels, all columns with a ten-component mixture) share one
instance, so a pass costs one evaluation per *distinct* head and not one per variable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.distributions.base import Distribution
from anyorder.heads.base import Head
from anyorder.heads.blend import Blend
from anyorder.support.registry import describe


def shared(heads: Sequence[Head]) -> tuple[list[Head], list[int]]:
    """The heads that differ, and which of them answers for each variable."""
    described = {id(head): head for head in heads}  # one head may stand for thousands of pixels: describe it once
    keys = {number: json.dumps(describe(head), sort_keys=True) for number, head in described.items()}
    distinct: dict[str, Head] = {}
    for head in heads:
        distinct.setdefault(keys[id(head)], head)
    index = {key: number for number, key in enumerate(distinct)}
    return list(distinct.values()), [index[keys[id(head)]] for head in heads]


class HeadBank(nn.Module):
    """One head per variable, shared where equal."""

    def __init__(self, heads: Sequence[Head]) -> None:
        super().__init__()
        distinct, assigned = shared(heads)
        self.distinct = nn.ModuleList(distinct)
        self.assigned: Tensor
        self.register_buffer("assigned", torch.tensor(assigned), persistent=False)
        self._numbers = assigned  # the same, to look up a single one without a tensor
        by_head = self.assigned.argsort(stable=True).split(self.assigned.bincount().tolist())
        for which, columns in enumerate(by_head):
            self.register_buffer(f"columns_{which}", columns.clone(), persistent=False)
        self._sharp: Tensor | None = None
        self._inside: list[HeadBank] = []  # in a list, so that its heads are not this module's a second time

    def __len__(self) -> int:
        return len(self.assigned)

    def of(self, variable: int) -> Head:
        """The head of one variable."""
        head = self.distinct[self._numbers[variable]]
        assert isinstance(head, Head)
        return head

    def distribution(self, features: Float[Tensor, "*batch width"], variable: int) -> Distribution:
        """The distribution of one variable, for features of that variable."""
        head = self.of(variable)
        return head(features[..., : head.size])  # type: ignore[no-any-return]  # a module's call is untyped

    def log_prob_beside(
        self, features: Float[Tensor, "batch variables width"], values: Float[Tensor, "batch variables"]
    ) -> Float[Tensor, "batch variables"]:
        """log p of every variable's value under its own features."""
        values = values.to(features.dtype)
        if len(self.distinct) == 1:
            return self.distribution(features, 0).log_prob(values)
        out = torch.zeros_like(values)  # and 0 it stays for context
        for columns, distribution in self._by_columns(features):
            out[:, columns] = distribution.log_prob(values[:, columns])
        return out

    def entropy_at(
        self, features: Float[Tensor, "steps width"], variable: Int[Tensor, " steps"]
    ) -> Float[Tensor, " steps"]:
        """The entropy of each variable named."""
        out = features.new_zeros(len(variable))
        for rows, distribution in self._by_head(features, variable):
            out[rows] = distribution.entropy().to(out.dtype)
        return out

    def log_prob_at(
        self, features: Float[Tensor, "steps width"], variable: Int[Tensor, " steps"], value: Float[Tensor, " steps"]
    ) -> Float[Tensor, " steps"]:
        """log p of single values, each of the variable named beside it."""
        value = value.to(features.dtype)
        out = torch.zeros_like(value)
        for rows, distribution in self._by_head(features, variable):
            out[rows] = distribution.log_prob(value[rows])
        return out

    def sample_at(
        self,
        features: Float[Tensor, "steps width"],
        variable: Int[Tensor, " steps"],
        generator: torch.Generator | None,
        temperature: float = 1.0,
    ) -> Float[Tensor, " steps"]:
        """One draw of each variable named; at a ``temperature`` below 1 they are nearer to the likeliest."""
        out = features.new_zeros(len(variable))
        for rows, distribution in self._by_head(features, variable):
            law = distribution if temperature == 1 else distribution.tempered(temperature)
            out[rows] = law.sample(generator)
        return out

    def member_at(
        self,
        variable: Int[Tensor, " steps"],
        generator: torch.Generator | None,
        gates: Float[Tensor, "steps width"] | None = None,
    ) -> Int[Tensor, " steps"]:
        """Where heads are blends: a member for each variable named, drawn by its weight.

        ``gates``: features of which only those are read that say what the evidence adds to the weights.
        """
        members = max(len(head.blended) for head in self.distinct if isinstance(head, Head))
        weights = torch.zeros(len(variable), members, device=variable.device)
        for number in variable.unique().tolist():
            rows = (variable == number).nonzero()[:, 0]
            head = self._blend(number)
            log_weights = head.log_weights if gates is None else head.weights_for(gates[rows])
            weights[rows] = log_weights.exp().to(weights)
        return torch.multinomial(weights, 1, generator=generator)[:, 0]

    def sharpened_at(self, variable: Int[Tensor, " steps"]) -> Bool[Tensor, " steps"]:
        """Where heads are blends: whether each variable named has a power of the mixture, so that no member has it."""
        if self._sharp is None:
            heads = map(self.of, range(len(self)))
            self._sharp = torch.tensor([isinstance(head, Blend) and head.sharpness != 0 for head in heads])
        return self._sharp.to(variable.device)[variable]

    def sample_member_at(
        self,
        member: int,
        features: Float[Tensor, "steps width"],
        variable: Int[Tensor, " steps"],
        generator: torch.Generator | None,
    ) -> Float[Tensor, " steps"]:
        """One draw of each variable named by this member of its blend, from the member's own features."""
        out = torch.zeros(len(variable), device=variable.device)
        for number in variable.unique().tolist():
            rows = (variable == number).nonzero()[:, 0]
            drawn = self._blend(number).member(member, features[rows]).sample(generator)
            out = out.to(drawn.dtype).index_put((rows,), drawn)
        return out

    def members_of(
        self, variable: int, count: int, generator: torch.Generator | None, gates: Float[Tensor, "one width"] | None
    ) -> Int[Tensor, " count"]:
        """Where heads are blends: members of that of one variable, drawn by their weights given these gates."""
        head = self._blend(variable)
        log_weights = head.log_weights if gates is None else head.weights_for(gates)[0]
        weights = log_weights.exp().float()
        if count == 0:
            return torch.zeros(0, dtype=torch.long, device=weights.device)
        return torch.multinomial(weights, count, replacement=True, generator=generator)

    def sample_members(
        self,
        variable: int,
        member: Int[Tensor, " draws"],
        features: Float[Tensor, "draws width"],
        generator: torch.Generator | None,
    ) -> Float[Tensor, " draws"]:
        """One draw of a variable by each of these members of its blend, from the member's own features."""
        return self._blend(variable).drawn_by(member, features, generator)

    def inside(self) -> HeadBank:
        """Where heads are wrapped in compatibilities (:mod:`.compatible`): those inside."""
        if not self._inside:
            self._inside = [HeadBank([self.of(variable).part(0) for variable in range(len(self))])]
        return self._inside[0].to(self.assigned.device)

    def _blend(self, variable: int) -> Blend:
        head = self.of(variable)
        assert isinstance(head, Blend)
        return head

    def best_at(
        self, features: Float[Tensor, "steps width"], variable: Int[Tensor, " steps"]
    ) -> Float[Tensor, " steps"]:
        """The most probable level of each variable named."""
        out = features.new_zeros(len(variable))
        for rows, distribution in self._by_head(features, variable):
            levels = self.of(int(variable[rows[0]])).levels
            codes = torch.arange(levels, dtype=features.dtype, device=features.device)[:, None].expand(-1, len(rows))
            out[rows] = distribution.log_prob(codes).argmax(dim=0).to(features.dtype)
        return out

    def _by_columns(self, features: Float[Tensor, "batch variables width"]) -> Iterator[tuple[Tensor, Distribution]]:
        for which, family in enumerate(self.distinct):
            assert isinstance(family, Head)
            if not family.size:
                continue
            columns = self.get_buffer(f"columns_{which}")
            yield columns, family(features[:, columns, : family.size])

    def _by_head(self, features: Tensor, variable: Tensor) -> list[tuple[Tensor, Distribution]]:
        if len(variable) and bool((variable == variable[0]).all()):  # one variable, as along a chain that rows share
            alone = self.of(int(variable[0]))
            here = torch.arange(len(variable), device=variable.device)
            return [(here, alone(features[:, : alone.size].contiguous()))]
        which = self.assigned[variable]
        parts: list[tuple[Tensor, Distribution]] = []
        for number, head in enumerate(self.distinct):
            assert isinstance(head, Head)
            rows = (which == number).nonzero()[:, 0]
            if len(rows):
                parts.append((rows, head(features[rows, : head.size])))
        return parts
