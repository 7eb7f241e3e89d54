"""How to train."""

from __future__ import annotations

import math
from dataclasses import dataclass

from anyorder.errors import UserError


@dataclass(frozen=True)
class Options:
    """How to train. Budgets: ``minutes`` or ``steps``, whichever ends first (None = no such limit)."""

    minutes: float | None = 2.0
    steps: int | None = None
    batch: int = 256
    learning_rate: float = 1e-3
    warmup: int = 100  # steps; Adam's second moments are not to be trusted before
    weight_decay: float = 1e-3
    clip: float = 1.0  # largest gradient norm
    average: float = 0.998  # decay of the running average of the weights
    validate_every: int = 50  # steps
    validation_queries: int = 2000
    patience: int = 6  # validations without progress before the learning rate falls
    falls: int = 3  # falls of the learning rate before training ends
    fall: float = 0.3
    cool_down: float = 0.25  # the last share of the budget, over which the learning rate goes to zero
    checkpoint_every: float = 30.0  # seconds; also at the end
    threads: int = 1  # of torch while training: see anyorder.support.threads

    def __post_init__(self) -> None:
        if self.minutes is None and self.steps is None:
            raise UserError("training needs a budget: set minutes or steps")
        for name in ("minutes", "steps", "batch", "learning_rate", "clip", "validate_every", "validation_queries"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise UserError(f"{name} must be greater than zero, got {value!r}")
        for name, least in (("threads", 1), ("patience", 1), ("falls", 0), ("warmup", 0), ("weight_decay", 0)):
            if getattr(self, name) < least:
                raise UserError(f"{name} must be {least} or more, got {getattr(self, name)!r}")
        for name in ("fall", "cool_down"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"{name} must lie in [0, 1], got {getattr(self, name)!r}")
        if not 0 <= self.average < 1:
            raise UserError(f"average must lie in [0, 1), got {self.average!r}")
