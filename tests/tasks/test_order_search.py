"""The search for an order against an oracle that knows the best one, and against one to which orders are all alike."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import torch

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.protocols import Canonical
from anyorder.query import Query
from anyorder.tasks.order_search import fine_tune, learn_order, marginal_log_prob
from anyorder.training.options import Options

from models import categorical_model, categorical_table, gaussian_model

MEAN = np.zeros(4)
COVARIANCE = np.eye(4) + 0.9 * (np.ones((4, 4)) - np.eye(4))


def _forgetful(wants: tuple[int, ...]) -> AnyOrderModel:
    """A Gaussian that is wrong (too wide) about a variable whenever one later in ``wants`` is known already.

    The right answer for v given variables that come before it in ``wants`` is kept, so walking in that order is
    exact and every inversion costs: the best order is ``wants`` and no other.
    """
    model = gaussian_model(MEAN, COVARIANCE)
    exact = model.network.beside
    rank = torch.tensor(wants).argsort()

    def beside(values, known, prefix=None):  # type: ignore[no-untyped-def]
        features = exact(values, known, prefix).clone()
        inverted = (known[:, None, :] & (rank[None, :, None] < rank[None, None, :])).sum(dim=2)
        features[..., 1] += 0.5 * inverted
        return features

    model.network.beside = beside  # type: ignore[method-assign,assignment]
    return model


def _rows(count: int, seed: int = 0) -> pd.DataFrame:
    drawn = np.random.default_rng(seed).multivariate_normal(MEAN, COVARIANCE, count)
    return pd.DataFrame(drawn, columns=[f"v{i}" for i in range(4)])


@pytest.mark.parametrize("wants", [(3, 2, 1, 0), (1, 3, 0, 2)])
def test_the_best_order_is_found(wants: tuple[int, ...]) -> None:
    model, frame = _forgetful(wants), _rows(300)
    found = learn_order(model, frame, seed=0, rounds=60)
    assert found.order == wants
    assert found.names == tuple(f"v{i}" for i in wants)
    assert found.worth_it
    values, observed = (torch.as_tensor(part) for part in model.encoding.encode(frame))
    scores = {
        order: marginal_log_prob(model, values, Query.marginal(observed), order).mean()
        for order in itertools.permutations(range(4))
    }
    assert max(scores, key=lambda order: scores[order]) == wants


def test_a_coherent_model_gains_nothing() -> None:
    found = learn_order(gaussian_model(MEAN, COVARIANCE), _rows(100), rounds=40)
    assert abs(found.gain) < 1e-8
    assert abs(found.search_gain) < 1e-8


def test_the_search_begins_at_the_models_own_order() -> None:
    model = _forgetful((2, 0, 3, 1))
    model.protocol = Canonical(order=(2, 0, 3, 1))
    found = learn_order(model, _rows(200), rounds=30)
    assert (found.order, found.accepted, found.gain) == ((2, 0, 3, 1), 0, 0.0)


def test_fine_tuning_walks_the_new_order_and_leaves_the_old_model_alone() -> None:
    model = categorical_model({"name": "residual_mlp", "width": 16, "blocks": 1}, steps=20)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    training, validation, test = (categorical_table(300, seed=seed) for seed in (1, 2, 3))
    options = Options(minutes=None, steps=150, batch=64, validation_queries=200, learning_rate=3e-3)
    tuned = fine_tune(model, training, validation, (3, 1, 0, 2), options)
    assert tuned.protocol == Canonical(order=(3, 1, 0, 2))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    values, observed = (torch.as_tensor(part) for part in model.encoding.encode(test))
    scores = [marginal_log_prob(one, values, Query.marginal(observed), (3, 1, 0, 2)).mean() for one in (model, tuned)]
    assert scores[1] > scores[0] + 0.05  # 20 steps leave much to learn


def test_mistakes_are_named() -> None:
    model = gaussian_model(MEAN, COVARIANCE)
    with pytest.raises(UserError, match="at least 4 rows"):
        learn_order(model, _rows(3))
    with pytest.raises(UserError, match="rounds"):
        learn_order(model, _rows(9), rounds=0)
