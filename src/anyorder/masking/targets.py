"""Fixed targets: ordinary prediction.

    evidence = all other variables,  asked = the targets,  with probability one

The one masking under which an any-order model is a plain regressor or classifier. It is the ceiling for that question;
other maskings give up some of it to answer everything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from anyorder.errors import UserError
from anyorder.masking.base import Masking
from anyorder.query import Query


@dataclass(frozen=True)
class Targets(Masking):
    """p(x_targets | all others), always the same question. ``targets`` are indices of variables, from 0."""

    name: ClassVar[str] = "targets"

    targets: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.targets or len(set(self.targets)) != len(self.targets):
            raise UserError(f"targets masking: give at least one target and none twice, got {self.targets!r}")
        if any(not isinstance(target, int) or target < 0 for target in self.targets):
            raise UserError(f"targets masking: targets are variable indices from 0 up, got {self.targets!r}")

    def draw(self, batch: int, variables: int, generator: torch.Generator) -> Query:
        if max(self.targets) >= variables:
            raise UserError(
                f"targets masking: target {max(self.targets)} does not exist; "
                f"with {variables} variables the last one is {variables - 1}"
            )
        asked = torch.zeros(batch, variables, dtype=torch.bool, device=generator.device)
        asked[:, list(self.targets)] = True
        return Query(~asked, asked)
