"""Suffix masking: ordinary continuation, the end given the beginning.

    k ~ Uniform{1, ..., N},    query p(x_(N-k+1..N) | x_(1..N-k))

A quarter of a text, the second half, or all of it from nothing: what a left-to-right model is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from anyorder.masking.base import Masking
from anyorder.query import Query


@dataclass(frozen=True)
class Suffix(Masking):
    """The last k variables are asked, those before are evidence; k is uniform on 1 .. variables."""

    name: ClassVar[str] = "suffix"

    def draw(self, batch: int, variables: int, generator: torch.Generator) -> Query:
        known = torch.randint(variables, (batch, 1), generator=generator, device=generator.device)
        evidence = torch.arange(variables, device=generator.device) < known
        return Query(evidence, ~evidence)
