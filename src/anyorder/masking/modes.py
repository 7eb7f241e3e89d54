"""A mixture of masking modes (SFARM eq. 2): every row has a mode of its own, which the network may be given.

p(z_0, ..., z_S) = sum_m weight_m p(z_0, ..., z_S | m),    uniform weights in SFARM
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from anyorder.errors import UserError
from anyorder.masking.base import Masking, Stage
from anyorder.masking.observed import check_weights
from anyorder.masking.two_stage import TwoStage
from anyorder.query import Query


@dataclass(frozen=True)
class Modes(Masking):
    """``modes`` are two-stage maskings of one size of picture; ``weights`` are equal if there are none."""

    name: ClassVar[str] = "modes"
    staged: ClassVar[bool] = True

    modes: tuple[TwoStage, ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.modes or not all(isinstance(mode, TwoStage) for mode in self.modes):
            raise UserError("modes masking: give one or more two-stage maskings, such as left_to_right")
        if len({(mode.height, mode.width, mode.channels, mode.together) for mode in self.modes}) > 1:
            raise UserError("modes masking: all modes must be of pictures of one size")
        if self.weights and len(self.weights) != len(self.modes):
            raise UserError(f"modes masking: got {len(self.weights)} weights for {len(self.modes)} modes")
        if self.weights:
            check_weights("modes masking", self.weights)

    @property
    def mode_names(self) -> tuple[str, ...]:
        return tuple(mode.name for mode in self.modes)

    def draw(self, batch: int, variables: int, generator: torch.Generator) -> Query:
        evidence = torch.zeros(batch, variables, dtype=torch.bool, device=generator.device)
        asked = torch.zeros_like(evidence)
        for index, rows in self._rows(batch, generator):
            query = self.modes[index].draw(len(rows), variables, generator)
            evidence[rows], asked[rows] = query.evidence, query.asked
        return Query(evidence, asked)

    def stage(self, batch: int, variables: int, generator: torch.Generator) -> Stage:
        """A state of a trajectory for every row, each in a mode of its own."""
        known = torch.zeros(batch, variables, dtype=torch.bool, device=generator.device)
        following = torch.zeros_like(known)
        mode = torch.zeros(batch, dtype=torch.long, device=generator.device)
        for index, rows in self._rows(batch, generator):
            part = self.modes[index].stage(len(rows), variables, generator)
            known[rows], following[rows], mode[rows] = part.known, part.next, index
        return Stage(known, following, mode)

    def _rows(self, batch: int, generator: torch.Generator) -> list[tuple[int, torch.Tensor]]:
        weights = torch.tensor(self.weights or (1.0,) * len(self.modes), dtype=torch.float64, device=generator.device)
        choice = torch.multinomial(weights, batch, replacement=True, generator=generator) if batch else weights[:0]
        return [(index, (choice == index).nonzero()[:, 0]) for index in range(len(self.modes))]
