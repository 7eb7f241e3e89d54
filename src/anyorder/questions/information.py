r"""Entropy and mutual information, in nats: how much there is to learn, and how much one part tells of another.

$$H(x_{1..k} \mid e) = \sum_t E\,[H(x_t \mid e, x_{<t})], \qquad
I(a; b \mid e) = E_a\,\mathrm{KL}(p(b \mid a, e) \,\|\, E_a\, p(b \mid a, e)).$$

The inner entropies are exact one-dimensional ones; only the outer mean is over the model's own draws. One variable
alone needs no draws. Information is what :mod:`anyorder.questions.gains` calls a gain: never negative, the same both
ways round, and what the two ways differ by is told as doubt. Under ranges densities are those of the weighted mixture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel, row_chunks
from anyorder.model.leave_out import folds
from anyorder.model.likelihood import log_probs
from anyorder.model.sampling import draws as joint_draws
from anyorder.query import Query
from anyorder.questions.doubt import with_doubt
from anyorder.questions.estimate import Estimate, mean_of
from anyorder.questions.gains import Goal, expected_gains, ranged_gains
from anyorder.questions.particles import doubled
from anyorder.questions.uncertainty import Entropy
from anyorder.support.randomness import seed_further
from anyorder.support.threads import answering

if TYPE_CHECKING:
    from anyorder.questions.conditional import Conditional

POOL = 128  # draws of the ranges behind a pooled density
ROWS = 128  # points at which it is taken
MOST_DRAWS, MOST_LISTED = 256, 512  # answers of one side of mutual information that are drawn, or listed
ROWS_OF_RANGES, DRAWS_IN_RANGES = 32, 64  # the same under ranges, and the rows that stand for them


def joint_entropy(conditional: Conditional, names: Sequence[str]) -> Estimate:
    """H(names | evidence), jointly, in the units of the data."""
    asked = _indices(conditional, names)
    if not asked:
        raise UserError("entropy needs names, as in entropy('price', 'tax')")
    if len(asked) == 1:
        entropy = conditional[names[0]].entropy()
        return entropy if isinstance(entropy, Estimate) else Estimate(float(entropy))
    if conditional.ranged:
        rows = _pooled_rows(conditional, asked)
        return mean_of(-_pooled(conditional, rows, asked), f"pooled draws ({ROWS} of {POOL})")
    row, known = conditional.exact
    draws = min(conditional.draws, MOST_DRAWS)
    return _chain_entropy(conditional.model, row, known[0], asked, draws, conditional.seed)


def mutual_information(conditional: Conditional, one: Sequence[str], other: Sequence[str]) -> Estimate:
    """I(one; other | evidence)."""
    first, second = _indices(conditional, one), _indices(conditional, other)
    for index in conditional.given_indices & {*first, *second}:  # a range of its own too
        raise UserError(f"{conditional.model.schema.names[index]!r} is given; ask for another variable")
    if not first or not second or set(first) & set(second):
        raise UserError("mutual information needs two sets of variables with none in common, as in I(price; tax, age)")
    found = _information(conditional, first, second)
    if folds(conditional.model) == 1:
        return found
    return with_doubt(found, lambda: [_information(part, first, second) for part in conditional.by_parts()])


def _information(conditional: Conditional, first: Sequence[int], second: Sequence[int]) -> Estimate:
    goal, model, seed = Goal(tuple(second), Entropy()), conditional.model, conditional.seed
    draws = min(conditional.draws, MOST_DRAWS)
    if conditional.ranged:
        rows = min(conditional.draws, ROWS_OF_RANGES)
        found = ranged_gains(
            model, conditional.particles(), goal, [tuple(first)], rows, min(draws, DRAWS_IN_RANGES), seed
        )
    else:
        found = expected_gains(model, *conditional.exact, goal, [tuple(first)], draws, seed, list_up_to=MOST_LISTED)
    return found[0].estimate()


@answering
@torch.no_grad()
def _chain_entropy(
    model: AnyOrderModel,
    row: Float[Tensor, "1 variables"],
    known: Bool[Tensor, " variables"],
    asked: Sequence[int],
    count: int,
    seed: int,
) -> Estimate:
    """The sum of exact inner entropies down the chain, over draws."""
    generator = torch.Generator().manual_seed(seed)
    orders = torch.Generator(device=model.device).manual_seed(seed)
    total = torch.zeros(count, dtype=torch.float64)
    marks = _marks(model, asked)
    for rows in row_chunks(model, count):
        size = len(total[rows])
        query = Query(known.expand(size, -1).to(model.device), marks.expand(size, -1).to(model.device))
        chain = model.chain(query, orders)
        walk = model.network.walk(row.expand(size, -1).to(model.device).where(chain.evidence, 0.0), chain)
        for step in range(chain.steps):
            target = chain.order[:, step].cpu()
            features = walk.features().double().cpu()
            drawn = torch.zeros(size, dtype=torch.float64)
            for variable in target.unique().tolist():
                here = (target == variable).nonzero()[:, 0]
                distribution = doubled(model, features[here], variable)
                total[rows][here] += entropy_in_units(model, distribution, variable)
                drawn[here] = distribution.sample(generator).double()
            if step < chain.steps - 1:
                walk.tell(drawn.to(model.device))
    return mean_of(total.numpy(), _method(count))


def entropy_in_units(model: AnyOrderModel, distribution: Distribution, variable: int) -> Float[Tensor, " rows"]:
    """The entropy of each distribution of a batch, in the units of the data."""
    nats = distribution.entropy().double()
    if distribution.discrete:
        return nats
    codec = model.encoding.codecs[variable]
    return nats - distribution.expect(lambda z: torch.as_tensor(codec.log_slope(z.double().numpy())))


def _pooled_rows(conditional: Conditional, asked: Sequence[int]) -> Float[Tensor, "rows variables"]:
    """Rows drawn given the ranges, in model units."""
    values, known = conditional.ranged_rows(ROWS)
    marks = _marks(conditional.model, asked)
    query = Query(known.expand(ROWS, -1), marks.expand(ROWS, -1))
    return torch.as_tensor(joint_draws(conditional.model, values, query, seed=seed_further(conditional.seed, 1)))


def _pooled(
    conditional: Conditional, rows: Float[Tensor, "rows variables"], asked: Sequence[int]
) -> NDArray[np.float64]:
    """log p(asked of each row | exact evidence and ranges): the log of a weighted mean over draws of the ranges."""
    particles = conditional.using(draws=POOL, seed=seed_further(conditional.seed, 7)).particles()
    marks = _marks(conditional.model, asked)
    log_weights = (particles.log_weights - particles.log_weights.logsumexp(0)).numpy()
    parts = []
    for some in rows.split(16):
        pairs = torch.where(marks, some[:, None], particles.values).flatten(0, 1)
        query = Query(particles.known.expand(len(pairs), -1), marks.expand(len(pairs), -1))
        nats = log_probs(conditional.model, pairs, query)[0].reshape(len(some), POOL)
        parts.append(np.logaddexp.reduce(nats + log_weights, axis=1))
    return np.concatenate(parts)


def _indices(conditional: Conditional, names: Sequence[str]) -> list[int]:
    indices = [conditional.model.schema.asked(name) for name in names]
    for name, index in zip(names, indices, strict=True):
        if index in conditional.given_indices and (len(names) > 1 or not conditional.ranged):
            raise UserError(f"{name!r} is given; ask for another variable")
    if len(set(indices)) < len(indices):
        raise UserError(f"a variable is named twice in {', '.join(names)}")
    return indices


def _marks(model: AnyOrderModel, indices: Sequence[int]) -> Bool[Tensor, "1 variables"]:
    marks = torch.zeros(1, model.variables, dtype=torch.bool)
    marks[0, list(indices)] = True
    return marks


def _method(count: int) -> str:
    return f"exact steps over draws ({count})"
