r"""Every hidden cell against its own conditional: where it falls in it, how likely it is, how far off.

For a cell x of the variable X given the known cells of its row, with F the exact one-dimensional conditional cdf:

    below = P(X < x | known),  at = P(X = x | known)      (0 on a line)
    place = below + u at,      u uniform on (0, 1)        the randomised probability integral transform
    depth = |2 place - 1|                                 the least level whose central interval holds x

Under the true conditionals place and depth are uniform on (0, 1), whatever the kind. Levels without an order are put
in the order of their probability, so `below` is the mass of the more likely ones and depth = place: the least level
whose set of likeliest levels holds x. Nothing here samples, but for the u of a cell that has mass.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.quadrature import composite
from anyorder.model import AnyOrderModel, row_chunks
from anyorder.query import random_subset
from anyorder.questions.particles import doubled
from anyorder.variables.codecs import Codec, LatticeCodec, LevelCodec
from anyorder.variables.schema import Kind, Variable

NODES = 24  # Gauss-Legendre nodes on either side of x, where the quantile function is smooth
WIDEST = 2000  # lattice points up to which a ranked score is summed and not integrated
AT_ONCE = 200_000  # numbers of one grid of points x cells
TINY = 1e-6  # tail mass beyond which a lattice is not summed

Array = np.ndarray


@dataclass(frozen=True)
class Judged:
    """One entry per judged cell. ``row`` counts the rows of the masks; ``crps`` is NaN where it was not asked for."""

    row: Int[np.ndarray, " cells"]
    variable: Int[np.ndarray, " cells"]
    known: Int[np.ndarray, " cells"]  # how many cells of the row were known
    below: Float[np.ndarray, " cells"]
    at: Float[np.ndarray, " cells"]
    log_prob: Float[np.ndarray, " cells"]  # nats, in the units of the data
    crps: Float[np.ndarray, " cells"]
    ordered: Bool[np.ndarray, " cells"]

    def place(self, seed: int) -> Float[np.ndarray, " cells"]:
        """The randomised probability integral transform."""
        return np.asarray(self.below + np.random.default_rng(seed).random(len(self.below)) * self.at).clip(0.0, 1.0)

    def depth(self, seed: int) -> Float[np.ndarray, " cells"]:
        """The least level whose central interval (set of likeliest levels) holds the cell."""
        place = self.place(seed)
        return np.where(self.ordered, np.abs(2 * place - 1), place)

    def tail(self) -> Float[np.ndarray, " cells"]:
        """How probable a value at least as extreme is: two-sided for numbers, levels at most as likely for others."""
        side = 2 * np.minimum(self.below + self.at, 1 - self.below)
        return np.where(self.ordered, side, 1 - self.below).clip(0.0, 1.0)


def has_order(variable: Variable) -> bool:
    """Whether smaller and greater mean something for its values."""
    return variable.kind not in (Kind.CATEGORICAL, Kind.BOOLEAN)


def random_known(
    observed: Bool[np.ndarray, "rows variables"], rng: np.random.Generator
) -> Bool[np.ndarray, "rows variables"]:
    """For each row a number of known cells, uniform on 0 .. observed - 1, and that many of its cells at random."""
    size = np.floor(rng.random(len(observed)) * observed.sum(axis=1)).astype(np.int64)
    return random_subset(torch.as_tensor(observed), torch.from_numpy(size), rng).numpy()


@torch.no_grad()
def judge(
    model: AnyOrderModel,
    values: Float[np.ndarray, "rows variables"],
    known: Bool[np.ndarray, "rows variables"],
    asked: Bool[np.ndarray, "rows variables"],
    *,
    crps: bool = False,
) -> Judged:
    """Each asked cell given the known cells of its row, the others marginalised out; one pass a row."""
    log_det = model.encoding.log_det(values)
    parts: list[Judged] = []
    for rows in row_chunks(model, len(values)):
        part = torch.as_tensor(values[rows]).to(model.device)
        features = model.features_beside(part, torch.as_tensor(known[rows]).to(model.device))
        for variable, codec in enumerate(model.encoding.codecs):
            here = np.flatnonzero(asked[rows, variable])
            if not len(here):
                continue
            # In double precision: single has no digits left of an upper tail of 1e-8.
            distribution = doubled(model, features[here, variable].cpu(), variable)
            found = _cells(distribution, codec, part[here, variable].double().cpu(), crps)
            below, at, log_prob, score = (np.asarray(numbers, dtype=np.float64) for numbers in found)
            row = here + rows.start
            parts.append(
                Judged(
                    row,
                    np.full(len(row), variable),
                    known[row].sum(axis=1),
                    below,
                    at,
                    log_prob + log_det[row, variable],
                    score,
                    np.full(len(row), has_order(codec.variable)),
                )
            )
    if not parts:
        empty = np.zeros(0)
        whole = empty.astype(np.int64)
        return Judged(whole, whole, whole, empty, empty, empty, empty, empty.astype(bool))
    return Judged(*(np.concatenate([getattr(part, entry.name) for part in parts]) for entry in fields(Judged)))


def _cells(distribution: Distribution, codec: Codec, value: Tensor, crps: bool) -> tuple[Array, Array, Array, Array]:
    if isinstance(codec, LevelCodec):
        return _levels(distribution, codec, value)
    log_prob = distribution.log_prob(value).double()
    upto = distribution.cdf(value).double()
    at = distribution.mass_at(value).double()
    score = np.full(len(value), np.nan)
    if crps:
        score = _ranked_score(distribution, codec, value, upto.numpy())
    return (upto - at).clamp(min=0.0).numpy(), at.numpy(), log_prob.numpy(), score


def _levels(distribution: Distribution, codec: LevelCodec, value: Tensor) -> tuple[Array, Array, Array, Array]:
    count = len(codec.variable.levels)
    codes = torch.arange(count, dtype=torch.float64)
    table = distribution.log_prob(codes[:, None].expand(-1, len(value))).double().numpy()  # [levels, cells]
    mass = np.exp(table)
    code, cell = np.rint(value.numpy()).astype(np.int64), np.arange(len(value))
    own = mass[code, cell]
    if has_order(codec.variable):
        where = codec.measure(np.arange(count, dtype=np.float64))
        where = where if np.isfinite(where).all() else np.arange(count, dtype=np.float64)  # ordered texts: by rank
        order = where.argsort(kind="stable")
        rank = order.argsort(kind="stable")
        reached = mass[order].cumsum(axis=0)
        below = reached[rank[code], cell] - own
        step = (np.arange(count - 1)[:, None] >= rank[code]).astype(np.float64)
        score = (np.diff(where[order])[:, None] * (reached[:-1] - step) ** 2).sum(axis=0)
    else:
        # Ties are broken by code, so that the levels still have one order.
        ahead = (mass > own) | ((mass == own) & (np.arange(count)[:, None] < code))
        below = (mass * ahead).sum(axis=0)
        # The energy score under the distance "another level": half the Brier score.
        score = 0.5 * (1 - 2 * own + (mass**2).sum(axis=0))
    return below.clip(0.0, 1.0), own, table[code, cell], score


def _ranked_score(distribution: Distribution, codec: Codec, value: Tensor, upto: Array) -> Array:
    r"""$\int (F(y) - 1[x \le y])^2 dy$ in the units of the data (days for times)."""
    actual = codec.measure(value.numpy())
    if isinstance(codec, LatticeCodec):
        ends = distribution.quantile(torch.tensor([[TINY], [1 - TINY]], dtype=torch.float64).expand(2, len(value)))
        low, high = codec.measure(ends.double().numpy())
        low, high = np.minimum(low, actual), np.maximum(high, actual)
        if np.isfinite(high - low).all() and (high - low).max() <= WIDEST:
            return _lattice_score(distribution, codec, actual, np.rint(low), int((high - low).max()) + 2)
    # The mean pinball loss, 2 int (1[x <= q_t] - t) (q_t - x) dt, in two parts that meet where q_t = x.
    nodes, weights = (part.numpy()[:, None] for part in composite(torch.tensor([0.0, 1.0]).double(), count=NODES))
    left = nodes * upto
    right = upto + nodes * (1 - upto)
    levels = torch.as_tensor(np.concatenate([left, right]).clip(1e-12, 1 - 1e-12))
    reached = codec.measure(distribution.quantile(levels).double().numpy())
    lower = (weights * upto * 2 * left * np.maximum(actual - reached[:NODES], 0.0)).sum(axis=0)
    upper = (weights * (1 - upto) * 2 * (1 - right) * np.maximum(reached[NODES:] - actual, 0.0)).sum(axis=0)
    return np.asarray(lower + upper)


def _lattice_score(distribution: Distribution, codec: LatticeCodec, actual: Array, start: Array, count: int) -> Array:
    total = np.zeros(len(actual))
    for points in np.array_split(np.arange(count), max(1, count * len(actual) // AT_ONCE + 1)):
        at = start + points[:, None] * float(codec.step)
        reached = distribution.cdf(torch.as_tensor(codec.from_measure(at))).double().numpy()
        total += codec.step * ((reached - (at >= actual)) ** 2).sum(axis=0)
    return total
