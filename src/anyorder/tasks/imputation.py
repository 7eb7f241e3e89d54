"""Filling in what is missing: one best value a cell, or joint draws with honest uncertainty.

A point fill gives each unknown cell its own conditional mean (the most probable level for levels) given the
cells that are known in its row. Draws are joint over all unknown cells of a row, so they agree with each other.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from anyorder.model import AnyOrderModel, row_chunks
from anyorder.model.likelihood import usual_orders
from anyorder.model.sampling import draws
from anyorder.query import Query
from anyorder.support.advance import tracked
from anyorder.support.checks import checked_seed, whole
from anyorder.support.memory import check_room
from anyorder.support.randomness import seed_further
from anyorder.support.threads import answering
from anyorder.variables.encoding import Unseen
from anyorder.variables.place_back import put_back

DRAWN_AT_ONCE = 16_384  # rows times draws that are walked together


def fill_point(model: AnyOrderModel, frame: pd.DataFrame, unseen: Unseen = "refuse") -> pd.DataFrame:
    """``frame`` with each unknown cell at its conditional mean or most probable level."""
    values, observed, strange = model.encoding.encode_seen(frame, unseen, model.schema.names)
    best = np.zeros_like(values)
    for rows in tracked(row_chunks(model, len(values)), len(values)):
        if not observed[rows].all():
            best[rows] = _best(model, torch.as_tensor(values[rows]), torch.as_tensor(observed[rows]))
    return _merged(model, frame, np.where(observed, values, best), observed, strange)


def fill_draws(
    model: AnyOrderModel, frame: pd.DataFrame, count: int, seed: int, unseen: Unseen = "refuse"
) -> list[pd.DataFrame]:
    """``count`` copies of ``frame``, the unknown cells of each row drawn jointly given the known ones."""
    count, seed = whole("draws", count), checked_seed(seed)
    check_room("draws", count, len(frame) * model.variables, "fill fewer tables, or fewer rows, at a time")
    values, observed, strange = model.encoding.encode_seen(frame, unseen, model.schema.names)
    unknown = (~observed).sum(axis=1)
    # Rows with as many holes side by side, all draws of a row too: a pass then serves as many of them as it can.
    holes = np.argsort(unknown, kind="stable")[np.searchsorted(np.sort(unknown), 1) :]
    drawn = np.repeat(values[None], count, axis=0)
    at_once = max(1, DRAWN_AT_ONCE // count)
    parts = (slice(start, start + at_once) for start in range(0, len(holes), at_once))
    for part in tracked(parts, len(holes)):
        rows = np.repeat(holes[part], count)
        known = torch.as_tensor(observed[rows])
        own = seed_further(seed * 1_000_003, part.start)  # for every part, so that no two parts draw alike
        query, orders = Query(known, ~known), usual_orders(model)
        completed = draws(model, torch.as_tensor(values[rows]), query, seed=own, orders=orders)
        drawn[np.tile(np.arange(count), len(rows) // count), rows] = completed
    return [_merged(model, frame, one, observed, strange) for one in drawn]


@answering
@torch.no_grad()
def _best(model: AnyOrderModel, values: torch.Tensor, known: torch.Tensor) -> np.ndarray:
    """Each unknown cell at the best single model value, as its codec sees it."""
    device = model.device
    features = model.features_beside(values.to(device), known.to(device)).cpu()
    best = np.zeros(values.shape)
    for variable, codec in enumerate(model.encoding.codecs):
        rows = np.flatnonzero(~known[:, variable].numpy())
        if not len(rows):
            continue
        distribution = model.heads.distribution(features[rows, variable], variable)
        best[rows, variable] = codec.point(distribution)
    return best


def _merged(
    model: AnyOrderModel, frame: pd.DataFrame, values: np.ndarray, observed: np.ndarray, strange: np.ndarray
) -> pd.DataFrame:
    """The user's own cells where there are any, those the model never saw too, and decoded ones elsewhere."""
    filled = frame.copy()
    for position, codec in enumerate(model.encoding.codecs):
        name = codec.variable.name
        if codec.variable.indicates:
            continue
        column = values[:, position]
        if name not in filled.columns:
            filled[name] = codec.decode(column).set_axis(frame.index)
            continue
        known = np.flatnonzero(observed[:, position])
        unknown = np.flatnonzero(~observed[:, position] & ~strange[:, position])
        if len(unknown):
            filled[name] = put_back(codec, frame[name], unknown, column[unknown], known, column[known])
    return filled
