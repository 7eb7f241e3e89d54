"""Filling in what is missing: one best value a cell, or joint draws with honest uncertainty.

A point fill gives each unknown cell its own conditional mean (the most probable level for levels) given the
cells that are known in its row. Draws are joint over all unknown cells of a row, so they agree with each other. Under
rules (:mod:`anyorder.questions.rules`) the columns they speak of are drawn first, by weighted draws that all obey; for
a point fill, the one of them that lies nearest to their mean is taken, since a mean of whole numbers is none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel, row_chunks
from anyorder.model.likelihood import usual_orders
from anyorder.model.sampling import draws
from anyorder.query import Query
from anyorder.questions.ruled_draws import Ruled
from anyorder.questions.rules import Rules
from anyorder.support.advance import tracked
from anyorder.support.checks import checked_seed, whole
from anyorder.support.memory import check_room
from anyorder.support.randomness import seed_further
from anyorder.support.threads import answering
from anyorder.variables.codecs.base import own_words
from anyorder.variables.context import context_mask
from anyorder.variables.encoding import Unseen
from anyorder.variables.place_back import put_back

PARTICLES = 64  # weighted draws of a row under rules
DRAWN_AT_ONCE = 16_384  # rows times draws that are walked together


def fill_point(
    model: AnyOrderModel, frame: pd.DataFrame, unseen: Unseen = "refuse", rules: Rules | None = None
) -> pd.DataFrame:
    """``frame`` with each unknown cell at its conditional mean or most probable level."""
    values, observed, strange = model.encoding.encode_seen(frame, unseen, model.schema.names)
    best = np.zeros_like(values)
    told = observed
    if rules:
        told = observed.copy()
        for some, drawn, weights in _under_rules(model, rules, values, observed, 0):
            values[some] = _most_central(rules, drawn, weights)
            told[some[:, None], rules.columns] = True
    for rows in tracked(row_chunks(model, len(values)), len(values)):
        if not told[rows].all():
            best[rows] = _best(model, torch.as_tensor(values[rows]), torch.as_tensor(told[rows]))
    return _merged(model, frame, np.where(told, values, best), observed, strange)


def fill_draws(
    model: AnyOrderModel,
    frame: pd.DataFrame,
    count: int,
    seed: int,
    unseen: Unseen = "refuse",
    rules: Rules | None = None,
) -> list[pd.DataFrame]:
    """``count`` copies of ``frame``, the unknown cells of each row drawn jointly given the known ones."""
    count, seed = whole("draws", count), checked_seed(seed)
    check_room("draws", count, len(frame) * model.variables, "fill fewer tables, or fewer rows, at a time")
    values, observed, strange = model.encoding.encode_seen(frame, unseen, model.schema.names)
    asked_for = ~context_mask(model.schema)
    unknown = (~observed & asked_for).sum(axis=1)
    # Rows with as many holes side by side, all draws of a row too: a pass then serves as many of them as it can.
    holes = np.argsort(unknown, kind="stable")[np.searchsorted(np.sort(unknown), 1) :]
    drawn = np.repeat(values[None], count, axis=0)
    told = observed
    if rules:
        told = observed.copy()
        for some, particles, weights in _under_rules(model, rules, values, observed, seed, count):
            drawn[:, some] = _resampled(particles, weights, count, seed).transpose(1, 0, 2)
            told[some[:, None], rules.columns] = True
    at_once = max(1, DRAWN_AT_ONCE // count)
    parts = (slice(start, start + at_once) for start in range(0, len(holes), at_once))
    for part in tracked(parts, len(holes)):
        rows = np.repeat(holes[part], count)
        which = np.tile(np.arange(count), len(rows) // count)
        known = torch.as_tensor(told[rows])
        own = seed_further(seed * 1_000_003, part.start)  # for every part, so that no two parts draw alike
        query, orders = Query(known, ~known & torch.as_tensor(asked_for)), usual_orders(model)
        drawn[which, rows] = draws(model, torch.as_tensor(drawn[which, rows]), query, seed=own, orders=orders)
    return [_merged(model, frame, one, observed, strange) for one in drawn]


def _under_rules(
    model: AnyOrderModel, rules: Rules, values: np.ndarray, observed: np.ndarray, seed: int, count: int = 1
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows in which a column of the rules is unknown, each with draws of all such columns [rows, draws, variables],
    and their weights.
    """
    ruled = Ruled(model, rules, {})
    open_ = np.flatnonzero(~observed[:, rules.columns].all(axis=1))
    particles = max(PARTICLES, 4 * count)
    generator = torch.Generator().manual_seed(seed_further(checked_seed(seed), 77))
    for rows in np.array_split(open_, max(1, -(-len(open_) * particles // DRAWN_AT_ONCE))):
        if not len(rows):
            continue
        repeated = np.repeat(rows, particles)
        drawn, _, log_weights = ruled.draws(
            torch.as_tensor(values[repeated]), torch.as_tensor(observed[repeated]), generator
        )
        nats = log_weights.reshape(len(rows), particles).numpy()
        impossible = np.flatnonzero(np.isneginf(nats).all(axis=1))
        if len(impossible):
            said = ", ".join(repr(str(rule)) for rule in rules.rules)
            raise UserError(
                f"row {rows[impossible[0]]}: no way to fill it was found that obeys {said}; look at its known cells, "
                "or fill it without the rules"
            )
        weights = np.exp(nats - nats.max(axis=1, keepdims=True))
        yield rows, drawn.reshape(len(rows), particles, -1).numpy(), weights / weights.sum(axis=1, keepdims=True)


def _resampled(drawn: np.ndarray, weights: np.ndarray, count: int, seed: int) -> np.ndarray:
    """So many draws of each row, in proportion to their weights."""
    generator = np.random.default_rng([seed, 78])
    levels = (np.arange(count) + generator.random((len(drawn), 1))) / count
    chosen = (weights.cumsum(axis=1)[:, None, :] < levels[:, :, None]).sum(axis=2).clip(max=weights.shape[1] - 1)
    chosen = generator.permuted(chosen, axis=1)
    taken: np.ndarray = np.take_along_axis(drawn, chosen[:, :, None], axis=1)
    return taken


def _most_central(rules: Rules, drawn: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The draw of each row that is nearest to the mean of its draws in the columns of the rules."""
    columns = drawn[:, :, rules.columns]
    mean = (weights[:, :, None] * columns).sum(axis=1, keepdims=True)
    distance = ((columns - mean) ** 2).sum(axis=2) + np.where(weights > 0, 0.0, np.inf)
    taken: np.ndarray = drawn[np.arange(len(drawn)), distance.argmin(axis=1)]
    return taken


@answering
@torch.no_grad()
def _best(model: AnyOrderModel, values: torch.Tensor, known: torch.Tensor) -> np.ndarray:
    """Each unknown cell at the best single model value, as its codec sees it."""
    device = model.device
    features = model.features_beside(values.to(device), known.to(device)).cpu()
    best = np.zeros(values.shape)
    for variable in model.schema.answered:
        codec, rows = model.encoding.codecs[variable], np.flatnonzero(~known[:, variable].numpy())
        if not len(rows):
            continue
        distribution = model.heads.distribution(features[rows, variable], variable)
        best[rows, variable] = codec.point(distribution)
    return best


def _merged(
    model: AnyOrderModel, frame: pd.DataFrame, values: np.ndarray, observed: np.ndarray, strange: np.ndarray
) -> pd.DataFrame:
    """The user's own cells where there are any, those that say nothing to the model too, and decoded ones elsewhere."""
    filled = frame.copy()
    for position, codec in enumerate(model.encoding.codecs):
        name = codec.variable.name
        if codec.variable.indicates or codec.variable.context:  # what is unknown of context stays so
            continue
        column = values[:, position]
        if name not in filled.columns:
            filled[name] = codec.decode(column).set_axis(frame.index)
            continue
        known = np.flatnonzero(observed[:, position])
        kept = strange[:, position] | own_words(frame[name], codec.variable, model.schema.missing)
        unknown = np.flatnonzero(~observed[:, position] & ~kept)
        if len(unknown):
            filled[name] = put_back(codec, frame[name], unknown, column[unknown], known, column[known])
    return filled
