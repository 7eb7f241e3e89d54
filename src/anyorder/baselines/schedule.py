"""How a baseline is trained: Adam on the bound, scored on held-out rows, the best weights kept, within a budget."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from anyorder.errors import UserError
from anyorder.query import lowest
from anyorder.support.checks import check_fields
from anyorder.support.threads import torch_threads

VALIDATION_DRAWS = 20  # of z per held-out row


@dataclass(frozen=True)
class Schedule:
    """Budgets: ``minutes`` or ``steps``, whichever ends first (None = no such limit).

    ``hide``: ``uniform`` hides further cells of every row of a batch, their number uniform on 0..N-1, so that the
    encoder meets evidence of every size; ``none`` trains on the rows as they are.
    """

    minutes: float | None = 1.0
    steps: int | None = None
    batch: int = 100
    learning_rate: float = 1e-3
    draws: int = 20  # of z per row and step
    hide: Literal["none", "uniform"] = "none"
    validation_share: float = 0.1
    validate_every: int = 100  # steps
    patience: int = 30  # validations without progress before training ends
    clip: float = 10.0
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        if self.minutes is None and self.steps is None:
            raise UserError("training needs a budget: set minutes or steps")
        check_fields(
            self,
            whole=dict.fromkeys(("steps", "batch", "draws", "validate_every", "patience", "threads"), 1),
            positive=("minutes", "learning_rate", "clip"),
            within={"validation_share": "(0, 1)"},
            one_of={"hide": ("none", "uniform")},
        )


class Bounded(Protocol):
    """What is trained: a module with a bound."""

    def bound(
        self,
        values: Float[Tensor, "rows variables"],
        observed: Bool[Tensor, "rows variables"],
        draws: int,
        generator: torch.Generator,
    ) -> Float[Tensor, " rows"]:
        """A lower bound of log p(x_o) of every row."""


def train(model: Bounded, values: Tensor, observed: Tensor, schedule: Schedule) -> None:
    """Leaves the weights that were best on the held-out rows in the model."""
    assert isinstance(model, nn.Module)
    generator = torch.Generator().manual_seed(schedule.seed)
    if len(values) < 2:
        raise UserError(f"a baseline needs at least 2 rows to learn from, got {len(values)}")
    order = torch.randperm(len(values), generator=generator)
    count = max(1, round(schedule.validation_share * len(values)))
    held_out, learned = order[:count], order[count:]
    optimizer = torch.optim.Adam(model.parameters(), lr=schedule.learning_rate, fused=True)
    best, best_state, stale, step = -math.inf, _copy(model), 0, 0
    began = time.monotonic()

    def over() -> bool:
        late = schedule.minutes is not None and time.monotonic() - began > 60 * schedule.minutes
        return late or (schedule.steps is not None and step >= schedule.steps) or stale >= schedule.patience

    with torch_threads(schedule.threads):
        while not over():
            rows = learned[torch.randint(len(learned), (min(schedule.batch, len(learned)),), generator=generator)]
            seen = hidden(observed[rows], schedule.hide, generator)
            loss = -model.bound(values[rows], seen, schedule.draws, generator).mean()
            if not bool(loss.isfinite()):
                raise UserError(f"training diverged at step {step} (loss {loss.item()}); try a smaller learning_rate")
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), schedule.clip)
            optimizer.step()
            step += 1
            if step % schedule.validate_every == 0 or over():
                score = _score(model, values[held_out], observed[held_out], schedule)
                stale = 0 if score > best else stale + 1
                if score > best:
                    best, best_state = score, _copy(model)
    model.load_state_dict(best_state)
    model.eval()


def hidden(
    observed: Bool[Tensor, "rows variables"], law: str, generator: torch.Generator
) -> Bool[Tensor, "rows variables"]:
    """What stays of the observed cells: all of them, or a uniformly drawn set of a uniform size from one up."""
    if law == "none":
        return observed
    noise = torch.rand(observed.shape, generator=generator)
    count = observed.sum(dim=1)
    size = 1 + (torch.rand(count.shape, generator=generator) * count).long()
    return lowest(noise, size, observed)


@torch.no_grad()
def _score(model: Bounded, values: Tensor, observed: Tensor, schedule: Schedule) -> float:
    # Seeded afresh: the same cells hidden and the same noise each time, so that scores compare.
    generator = torch.Generator().manual_seed(schedule.seed + 1)
    seen = hidden(observed, schedule.hide, generator)
    return model.bound(values, seen, VALIDATION_DRAWS, generator).mean().item()


def _copy(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}
