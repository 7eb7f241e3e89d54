"""How to train."""

from __future__ import annotations

from dataclasses import dataclass, field

from anyorder.errors import UserError
from anyorder.support.budgets import MINUTES
from anyorder.support.checks import check_fields
from anyorder.support.threads import most_threads, usual_threads

PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class Options:
    """How to train. Budgets: ``minutes`` or ``steps``, whichever ends first (None = no such limit)."""

    minutes: float | None = MINUTES
    steps: int | None = None
    batch: int = 256
    parts: int = 1  # passes that share out a batch: the same step up to rounding, in less memory
    learning_rate: float = 1e-3
    warmup: int = 100  # steps; Adam's second moments are not to be trusted before
    beta1: float = 0.9  # Adam's memory of the gradient
    beta2: float = 0.99  # and of its square
    weight_decay: float = 1e-3
    clip: float = 1.0  # largest gradient norm
    average: float = 0.998  # decay of the running average of the weights
    validate_every: int = 50  # steps
    validation_queries: int = 2000
    early_stopping: bool = True  # False: the rate never falls, the whole budget is spent, the last weights are kept
    patience: int = 6  # validations without progress before the learning rate falls
    patience_share: float = 0.0  # of the budget that must have passed without progress as well
    noticeable: float = 1e-4  # nats a step: to have gained less than this is no progress
    noise: float = 0.0  # standard errors by which held-out rows must have gained for that to be progress
    falls: int = 3  # falls of the learning rate before training ends
    fall: float = 0.3
    cool_down: float = 0.25  # the last share of the budget, over which the learning rate goes to zero
    checkpoint_every: float = 30.0  # seconds; also at the end
    precision: str = "float32"  # or "bfloat16", for products of matrices: see anyorder.training.speed, as for these two
    recompute: bool = False  # activations are computed again for the gradient: less memory, a third more time
    compile: bool = False  # the network's blocks, by torch.compile
    threads: int = field(default_factory=usual_threads)  # of torch while training: see anyorder.support.threads

    def __post_init__(self) -> None:
        if self.minutes is None and self.steps is None:
            raise UserError("training needs a budget: set minutes or steps")
        for name in ("early_stopping", "recompute", "compile"):
            if not isinstance(getattr(self, name), bool):
                raise UserError(f"{name} must be true or false, got {getattr(self, name)!r}")
        check_fields(
            self,
            whole={
                **dict.fromkeys(("steps", "batch", "parts", "validate_every", "validation_queries"), 1),
                **dict.fromkeys(("patience", "threads"), 1),
                **dict.fromkeys(("warmup", "falls"), 0),
            },
            most={
                **dict.fromkeys(("batch", "parts", "validation_queries"), 1_000_000),
                **dict.fromkeys(("validate_every", "patience", "warmup", "falls"), 1_000_000_000),
                "threads": most_threads(),
            },
            positive=("minutes", "learning_rate", "clip"),
            one_of={"precision": PRECISIONS},
            within={
                **dict.fromkeys(("beta1", "beta2"), "[0, 1)"),
                "weight_decay": "[0, inf)",
                **dict.fromkeys(("noise", "noticeable"), "[0, inf)"),
                "patience_share": "[0, 1]",
                "average": "[0, 1)",
                "fall": "[0, 1]",
                "cool_down": "[0, 1]",
                "checkpoint_every": "[0, inf]",
            },
        )
