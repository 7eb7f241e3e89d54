"""Every query against an exact answer: the analytic Gaussian, and enumeration over four categorical variables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, multivariate_normal

from anyorder.model import AnyOrderModel
from anyorder.model.likelihood import log_probs
from anyorder.model.sampling import draws
from anyorder.protocols import Canonical, Hashed, Protocol, Random
from anyorder.query import Chain, Query
from anyorder.tasks.coherence import ratio_gap

from models import LEVELS, categorical_model, gaussian_model

SUBSETS = [frozenset(s) for size in range(5) for s in itertools.combinations(range(4), size)]
QUERIES = [(e, u) for e in SUBSETS for u in SUBSETS if u and not e & u]
NETWORKS = {
    "mlp": {"name": "residual_mlp", "width": 32, "blocks": 1},
    "bidirectional": {"name": "bidirectional_transformer", "width": 16, "blocks": 1, "heads": 2},
    "causal": {"name": "causal_transformer", "width": 16, "blocks": 1, "heads": 2},
}
PROTOCOLS = {
    "canonical": Canonical(),
    "reversed": Canonical(order=(3, 2, 1, 0)),
    "random": Random(),
    "hashed": Hashed(),
}


def _mask(members: frozenset[int], rows: int = 1, variables: int = 4) -> torch.Tensor:
    mask = torch.zeros(rows, variables, dtype=torch.bool)
    mask[:, sorted(members)] = True
    return mask


def _gaussian() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    root = rng.normal(size=(4, 4))
    return rng.normal(size=4), root @ root.T + 0.3 * np.eye(4)


def _analytic(mean, covariance, x, evidence, asked):  # type: ignore[no-untyped-def]
    e, u = sorted(evidence), sorted(asked)
    joint = multivariate_normal(mean[e + u], covariance[np.ix_(e + u, e + u)]).logpdf(x[e + u])
    return joint - (multivariate_normal(mean[e], covariance[np.ix_(e, e)]).logpdf(x[e]) if e else 0.0)


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_exact_gaussian_answers_every_query(protocol: Protocol) -> None:
    mean, covariance = _gaussian()
    model = gaussian_model(mean, covariance, protocol, scale=2.5)
    x = np.random.default_rng(0).normal(size=(3, 4)) * 2
    for evidence, asked in QUERIES:
        query = Query(_mask(evidence, 3), _mask(asked, 3))
        found = log_probs(model, torch.as_tensor(x / 2.5), query, orders=3)
        for row in range(3):
            expected = _analytic(2.5 * mean, 2.5**2 * covariance, x[row], evidence, asked)
            np.testing.assert_allclose(found[:, row], expected, atol=1e-6)


def test_exact_gaussian_draws_have_the_conditional_moments() -> None:
    mean, covariance = _gaussian()
    model = gaussian_model(mean, covariance)
    x = torch.tensor([[0.4, -1.0, 2.0, 0.0]], dtype=torch.float64).expand(40_000, -1)
    drawn = draws(model, x, Query(_mask(frozenset({1, 2}), 40_000), _mask(frozenset({0, 3}), 40_000)), seed=1)
    e, u = [1, 2], [0, 3]
    gain = covariance[np.ix_(u, e)] @ np.linalg.inv(covariance[np.ix_(e, e)])
    left = covariance[np.ix_(u, u)] - gain @ covariance[np.ix_(e, u)]
    error = 4 * np.sqrt(np.diag(left) / 40_000)
    assert (np.abs(drawn[:, u].mean(axis=0) - (mean[u] + gain @ (x[0, e].numpy() - mean[e]))) < error).all()
    np.testing.assert_allclose(np.cov(drawn[:, u].T), left, atol=0.05 * np.diag(left).max())
    np.testing.assert_array_equal(drawn[:, e], x[:, e])


@pytest.fixture(scope="module", params=list(NETWORKS))
def trained(request: pytest.FixtureRequest) -> AnyOrderModel:
    return categorical_model(NETWORKS[request.param])


def _all_values(asked: frozenset[int]) -> torch.Tensor:
    grids = [range(LEVELS[i]) if i in asked else [1] for i in range(4)]
    return torch.tensor(list(itertools.product(*grids)), dtype=torch.float64)


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_every_query_sums_to_one(trained: AnyOrderModel, protocol: Protocol) -> None:
    model = AnyOrderModel(trained.encoding, trained.network, [trained.heads.of(i) for i in range(4)], protocol)
    for evidence, asked in QUERIES:
        values = _all_values(asked)
        # One chain for all values: under a random protocol each draw of an order is normalised on its own.
        chain = model.chain(Query(_mask(evidence), _mask(asked)), torch.Generator().manual_seed(0))
        chain = chain.rows(torch.zeros(len(values), dtype=torch.long))
        total = model.step_log_prob(values, chain).double().sum(dim=1).exp().sum().item()
        assert total == pytest.approx(1.0, abs=1e-5), (evidence, asked)


def test_chain_rule_holds_along_one_chain(trained: AnyOrderModel) -> None:
    for evidence, asked in QUERIES:
        values = _all_values(asked)
        chain = trained.chain(Query(_mask(evidence, len(values)), _mask(asked, len(values))))
        joint = trained.step_log_prob(values, chain).sum(dim=1)
        for cut in range(1, len(asked)):
            first = Chain(chain.prefix, chain.order[:, :cut], 4)
            second = Chain(torch.cat([chain.prefix, chain.order[:, :cut]], dim=1), chain.order[:, cut:], 4)
            parts = [trained.step_log_prob(values, part).sum(dim=1) for part in (first, second)]
            torch.testing.assert_close(joint, parts[0] + parts[1], rtol=0, atol=1e-5)


def test_training_learned_something(trained: AnyOrderModel) -> None:
    values = _all_values(frozenset({0, 1, 2, 3}))
    rows = len(values)
    nats = log_probs(trained, values, Query(_mask(frozenset(), rows), _mask(frozenset(range(4)), rows)))[0]
    entropy = -(np.exp(nats) * nats).sum()
    assert entropy < np.log(rows) - 0.2


def test_draws_follow_the_enumerated_law(trained: AnyOrderModel) -> None:
    evidence, asked = frozenset({2}), frozenset({0, 1, 3})
    values = _all_values(asked)
    query = Query(_mask(evidence, len(values)), _mask(asked, len(values)))
    expected = np.exp(log_probs(trained, values, query)[0])
    n = 20_000
    start = torch.ones(n, 4, dtype=torch.float64)
    drawn = draws(trained, start, Query(_mask(evidence, n), _mask(asked, n)), seed=5)
    weights = np.array([24, 8, 0, 1])
    index = {int(code @ weights): i for i, code in enumerate(values.numpy().astype(int))}
    counts = np.bincount([index[int(code)] for code in drawn.astype(int) @ weights], minlength=len(values))
    kept = expected * n >= 5
    observed = np.append(counts[kept], counts[~kept].sum())
    wanted = np.append(expected[kept], expected[~kept].sum()) * n
    wanted = np.maximum(wanted, 1e-9)
    assert chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue > 1e-3


def test_ratio_and_direct_chain_agree_for_a_coherent_model() -> None:
    mean, covariance = _gaussian()
    model = gaussian_model(mean, covariance)
    values = torch.as_tensor(np.random.default_rng(1).normal(size=(5, 4)))
    query = Query(_mask(frozenset({3}), 5), _mask(frozenset({0, 1}), 5))
    np.testing.assert_allclose(ratio_gap(model, values, query), 0.0, atol=1e-9)


def test_ratio_gap_shows_incoherence(trained: AnyOrderModel) -> None:
    values = _all_values(frozenset({0, 1}))
    query = Query(_mask(frozenset({3}), len(values)), _mask(frozenset({0, 1}), len(values)))
    assert np.abs(ratio_gap(trained, values, query)).max() > 1e-6
