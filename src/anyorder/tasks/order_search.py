r"""A canonical order learned from held-out rows: the search that MAC leaves open (its section 6), then fine-tuning.

A trained mask network answers along every order, so orders can be compared without retraining. An order is as good
as the mean over random marginal queries (M_card) of held-out rows of

$$\log p(x_u) = \sum_t \log p(x_{u_t} \mid x_{u_{<t}}),\qquad u \text{ in that order.}$$

Hill climbing from the model's own order: move one variable to another position (often the next one), keep the move if
it is better by more than one standard error (over rows) of the *paired* difference on the same queries.
Choosing the best of many noisy moves flatters the winner, so the gain that is reported comes from rows the search
never saw.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.masking import Cardinality, Masking
from anyorder.model import AnyOrderModel, row_chunks
from anyorder.protocols import Canonical
from anyorder.query import Query, random_subset
from anyorder.support.checks import checked_seed
from anyorder.tasks.calibration import mean_over_rows
from anyorder.training.loop import Trainer
from anyorder.training.objectives import objective_for
from anyorder.training.options import Options
from anyorder.training.rows import encoded_rows
from anyorder.variables.context import context_mask

QUERIES = 512  # for the search, and as many to report the gain


@dataclass(frozen=True, repr=False)
class LearnedOrder:
    """``order`` lists the variables as they are to be answered. ``gain``: nats per query over the order the search
    began with, on rows the search did not see; ``search_gain``: on those it did, which flatters.
    """

    order: tuple[int, ...]
    names: tuple[str, ...]
    gain: float
    standard_error: float
    search_gain: float
    proposals: int
    accepted: int

    def __repr__(self) -> str:
        gain = f"gains {self.gain:.3g} ± {self.standard_error:.2g} nats a query"
        return f"LearnedOrder({', '.join(self.names)}; {gain})"

    @property
    def worth_it(self) -> bool:
        """Whether the unseen rows agree, by more than one standard error."""
        return self.gain > self.standard_error


def learn_order(model: AnyOrderModel, frame: pd.DataFrame, *, seed: int = 0, rounds: int = 300) -> LearnedOrder:
    """Search the canonical order on rows not used in training; half of them are kept to report the gain."""
    if len(frame) < 4:
        raise UserError(f"an order is searched on at least 4 rows, two to search and two to check; got {len(frame)}")
    if rounds < 1:
        raise UserError(f"rounds must be 1 or more, got {rounds}")
    rng = np.random.default_rng(checked_seed(seed))
    shuffled = frame.iloc[rng.permutation(len(frame))]
    half = len(frame) // 2
    (search, seen), (check, unseen) = (
        _queries(model, part, rng) for part in (shuffled.iloc[:half], shuffled.iloc[half:])
    )
    start = _own_order(model)
    best, accepted = start, 0
    first = current = marginal_log_prob(model, *search, best)
    for _ in range(rounds if model.variables > 1 else 0):
        proposal = _moved(best, rng)
        found = marginal_log_prob(model, *search, proposal)
        gain, error = mean_over_rows(found - current, seen)
        if gain > error:
            best, current, accepted = proposal, found, accepted + 1
    difference = marginal_log_prob(model, *check, best) - marginal_log_prob(model, *check, start)
    gain, error = mean_over_rows(difference, unseen)
    names = tuple(model.schema.names[variable] for variable in best)
    return LearnedOrder(best, names, gain, error, float((current - first).mean()), rounds, accepted)


def fine_tune(
    model: AnyOrderModel,
    training: pd.DataFrame,
    validation: pd.DataFrame,
    order: tuple[int, ...],
    options: Options,
    *,
    seed: int = 0,
    masking: Masking | None = None,
) -> AnyOrderModel:
    """A copy of the model, trained further on the steps that this order walks (MAC's own distribution of queries)."""
    tuned = copy.deepcopy(model)
    tuned.protocol = Canonical(order=order)
    tuned.former_digest = None  # it is no longer what was in an old file
    objective = objective_for(tuned, masking or Cardinality())
    trainer = Trainer(
        tuned,
        objective,
        encoded_rows(tuned.encoding, training),
        encoded_rows(tuned.encoding, validation),
        options,
        seed=checked_seed(seed),
    )
    trainer.run()
    return trainer.finish()


@torch.no_grad()
def marginal_log_prob(
    model: AnyOrderModel, values: Float[Tensor, "queries variables"], query: Query, order: tuple[int, ...]
) -> Float[np.ndarray, " queries"]:
    """log p(x_asked) along ``order`` in model units: the change of units is the same for every order."""
    protocol = Canonical(order=order)
    out = np.zeros(len(values))
    for rows in row_chunks(model, len(values)):
        part = query.rows(rows)
        part = Query(part.evidence.to(model.device), part.asked.to(model.device))
        steps = model.step_log_prob(values[rows].to(model.device), protocol.chain(part, context=model.schema.context))
        out[rows] = steps.double().sum(dim=1).cpu().numpy()
    return out


def _own_order(model: AnyOrderModel) -> tuple[int, ...]:
    if isinstance(model.protocol, Canonical):
        return tuple(model.protocol.sequence(model.variables))
    return tuple(range(model.variables))


def _queries(
    model: AnyOrderModel, frame: pd.DataFrame, rng: np.random.Generator
) -> tuple[tuple[Tensor, Query], Int[np.ndarray, " queries"]]:
    """Rows, repeated in turn, and for each a uniform number of its known cells, at random; and which row it is.

    Context is known throughout, and not among them.
    """
    array, observed = model.encoding.encode(frame)
    index = np.arange(QUERIES) % len(frame)
    array, observed = array[index], observed[index]
    context = context_mask(model.schema)
    cells = observed & ~context
    size = torch.from_numpy(np.floor(rng.random(len(index)) * cells.sum(axis=1)).astype(np.int64) + 1)
    asked = random_subset(torch.as_tensor(cells), size, rng)
    return (torch.as_tensor(array), Query(torch.as_tensor(observed & context), asked)), index


def _moved(order: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...]:
    """One variable taken out and put in elsewhere; half of the time just one position on."""
    moved = list(order)
    source = int(rng.integers(len(moved)))
    if rng.random() < 0.5:
        target = source + 1 if source + 1 < len(moved) else source - 1
    else:
        target = int((source + rng.integers(1, len(moved))) % len(moved))
    moved.insert(target, moved.pop(source))
    return tuple(moved)
