"""The contract of a protocol: the order in which the variables of a query are answered (MAC Definition 1).

Training draws from the chain a protocol makes and inference walks it, through the same object, so the two
cannot drift apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from anyorder.query import Chain, Query, ordered, padded_left


@dataclass(frozen=True)
class Protocol(ABC):
    """Turns a query into a chain. A final subclass gives one sort key per variable."""

    name: ClassVar[str]

    random: ClassVar[bool] = False
    """Whether two chains of the same query may differ (then ``generator`` decides)."""

    @abstractmethod
    def keys(
        self, mask: Bool[Tensor, "batch variables"], generator: torch.Generator | None
    ) -> Shaped[Tensor, "batch variables"]:
        """A key per variable; the members of ``mask`` are answered by ascending key, ties by index."""

    def evidence_keys(
        self, mask: Bool[Tensor, "batch variables"], generator: torch.Generator | None
    ) -> Shaped[Tensor, "batch variables"]:
        """The order in which evidence is read: that of the asked variables, unless a protocol says otherwise."""
        return self.keys(mask, generator)

    def chain(self, query: Query, generator: torch.Generator | None = None, context: Sequence[int] = ()) -> Chain:
        """Evidence in the order in which it is read, then the asked variables in that in which they are answered.

        Evidence out of the ``context``, which every question knows, is read before all other.
        """
        if context:
            return self._after_context(query, generator, context)
        sets = torch.cat([query.evidence, query.asked], dim=1)
        if not self.random and len(sets) > 1 and bool((sets == sets[0]).all()):
            # One question, answered by many draws: one row is sorted for all.
            one = self.chain(query.rows(slice(0, 1)), generator)
            return Chain(one.prefix.expand(len(sets), -1), one.order.expand(len(sets), -1), query.variables)
        prefix = ordered(query.evidence, self.evidence_keys(query.evidence, generator), pad_left=True)
        order = ordered(query.asked, self.keys(query.asked, generator))
        return Chain(prefix, order, query.variables)

    def _after_context(self, query: Query, generator: torch.Generator | None, context: Sequence[int]) -> Chain:
        first = torch.zeros(query.variables, dtype=torch.bool, device=query.evidence.device)
        first[list(context)] = True
        chain = self.chain(Query(query.evidence & ~first, query.asked), generator)
        before = self.chain(Query.marginal(query.evidence & first), generator).order
        return Chain(padded_left(torch.cat([before, chain.prefix], dim=1)), chain.order, query.variables)
