"""Coherence of models that have it and of models that do not; mixtures over fixed orders by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import torch

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.model.likelihood import log_probs, order_protocols
from anyorder.query import Query
from anyorder.tasks.coherence import coherence, mixture_log_prob

from models import LEVELS, categorical_model, categorical_table, gaussian_model

MEAN = np.array([0.5, -1.0, 2.0])
COVARIANCE = np.array([[1.0, 0.6, -0.4], [0.6, 2.0, 0.3], [-0.4, 0.3, 1.5]])


@pytest.fixture(scope="module")
def trained() -> AnyOrderModel:
    return categorical_model({"name": "residual_mlp", "width": 16, "blocks": 1}, steps=40)


def test_the_gaussian_agrees_with_itself() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)), columns=["v0", "v1", "v2"])
    frame.iloc[::4, 1] = np.nan
    found = coherence(gaussian_model(MEAN, COVARIANCE, scale=2.0), frame)
    assert found.spread < 1e-6
    assert found.gap_size < 1e-6
    assert all(abs(gain) < 1e-6 for gain, _ in found.gain.values())


def test_a_trained_network_does_not_and_the_numbers_say_by_how_much(trained: AnyOrderModel) -> None:
    frame = categorical_table(80, seed=9)
    found = coherence(trained, frame)
    assert found.spread > 1e-3
    assert found.gap_size > 1e-3
    assert found.gain[1] == (0.0, 0.0)
    values, observed = trained.encoding.encode(frame)
    nats = log_probs(trained, torch.as_tensor(values), Query.marginal(torch.as_tensor(observed)), orders=8)
    for orders, (gain, _) in found.gain.items():
        mean = np.log(np.exp(nats[:orders]).mean(axis=0))
        assert gain == pytest.approx(float((mean - nats[0]).mean()), abs=1e-9)
        # Jensen: the log of the mean is never below the mean of the logs.
        assert (mean >= nats[:orders].mean(axis=0) - 1e-12).all()
    assert found.to_json()["gain"]["8"]["gain"] == found.gain[8][0]


def test_orders_are_fixed_in_advance(trained: AnyOrderModel) -> None:
    orders = order_protocols(trained, 4, seed=3)
    assert orders[0] is trained.protocol
    assert orders == order_protocols(trained, 4, seed=3)
    assert orders[:3] == order_protocols(trained, 3, seed=3)  # more orders only add to the list
    assert not any(protocol.random for protocol in orders)
    frame = categorical_table(20)
    values, observed = (torch.as_tensor(part) for part in trained.encoding.encode(frame))
    together = log_probs(trained, values, Query.marginal(observed), orders=4, seed=3)
    alone = log_probs(trained, values[7:8], Query.marginal(observed[7:8]), orders=4, seed=3)
    np.testing.assert_allclose(alone[:, 0], together[:, 7], atol=1e-6)  # a row's answer does not depend on its company


@pytest.mark.parametrize("evidence", [[], [2], [0, 3]])
def test_a_mixture_over_fixed_orders_is_normalised(trained: AnyOrderModel, evidence: list[int]) -> None:
    everything = torch.tensor(list(itertools.product(*map(range, LEVELS))), dtype=torch.float64)
    keep = (everything[:, evidence] == 1).all(dim=1)
    values = everything[keep]
    known = torch.zeros(values.shape, dtype=torch.bool)
    known[:, evidence] = True
    nats = log_probs(trained, values, Query(known, ~known), orders=5, seed=1)
    assert np.exp(mixture_log_prob(nats)).sum() == pytest.approx(1.0, abs=1e-5)
    # And it is not merely one of its parts: the orders do differ.
    assert nats.std(axis=0).max() > 1e-3


def test_mistakes_are_named(trained: AnyOrderModel) -> None:
    with pytest.raises(UserError, match="has none"):
        coherence(trained, categorical_table(5).iloc[:0])
    with pytest.raises(UserError, match="from 1 up"):
        coherence(trained, categorical_table(5), orders=(0,))
