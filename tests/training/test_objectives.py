"""Objectives against their stated expectations, with an exact Gaussian in place of the network."""

from __future__ import annotations

import itertools
from math import comb

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from anyorder.errors import UserError
from anyorder.masking import Bernoulli, Cardinality, Conditional, Masking, Targets, Univariate, maskings
from anyorder.model import AnyOrderModel
from anyorder.protocols import Canonical, Protocol, Random
from anyorder.training.objectives import Edges, Objective, Parallel, WholeChain, objective_for

from models import categorical_model, gaussian_model

N = 4
DRAWS = 20_000
SUBSETS = [frozenset(s) for size in range(N + 1) for s in itertools.combinations(range(N), size)]
X = np.array([0.7, -1.2, 0.4, 2.0])


def _moments() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(N, N))
    return rng.normal(size=N), root @ root.T + 0.5 * np.eye(N)


@pytest.fixture(scope="module")
def model() -> AnyOrderModel:
    return gaussian_model(*_moments())


def _log_marginal(members: frozenset[int]) -> float:
    mean, covariance = _moments()
    e = sorted(members)
    return float(multivariate_normal(mean[e], covariance[np.ix_(e, e)]).logpdf(X[e])) if e else 0.0


def _step(i: int, e: frozenset[int]) -> float:
    return _log_marginal(e | {i}) - _log_marginal(e)


def _per_row(model: AnyOrderModel, objective: Objective, observed: torch.Tensor | None = None) -> np.ndarray:
    """The weighted sum of every drawn row, for one and the same row of values."""
    values = torch.as_tensor(X).expand(DRAWS, -1).clone()
    observed = torch.ones(DRAWS, N, dtype=torch.bool) if observed is None else observed.expand(DRAWS, -1)
    values[~observed] = torch.nan
    generator = torch.Generator().manual_seed(0)
    scores = objective.scores(model, values, observed, torch.zeros(DRAWS, N), generator)
    kept = torch.where(scores.weight > 0, scores.log_prob * scores.weight, 0.0)
    return np.stack([kept.sum(dim=1).numpy(), scores.weight.sum(dim=1).numpy()])


def _agree(rows: np.ndarray, expected: float) -> None:
    total, weight = rows
    found = total.sum() / weight.sum()
    # The standard error of a ratio of means.
    error = np.std(total - found * weight) / weight.mean() / np.sqrt(DRAWS)
    assert found == pytest.approx(expected, abs=4 * error + 1e-9)


@pytest.mark.parametrize("protocol", [Canonical(), Canonical(order=(2, 0, 3, 1)), Random()], ids=repr)
@pytest.mark.parametrize("masking", [Cardinality(), Bernoulli(0.4)], ids=repr)
def test_edges_estimate_the_marginal_likelihood(model: AnyOrderModel, masking: Masking, protocol: Protocol) -> None:
    """MAC eq. 6: E_M log p(x_e) = C E_D log p(x_i | x_e), C the mean length of a path."""
    if isinstance(masking, Bernoulli):
        law = {e: 0.4 ** len(e) * 0.6 ** (N - len(e)) for e in SUBSETS}
    else:
        law = {e: 1 / (N * comb(N, len(e))) if e else 0.0 for e in SUBSETS}
    length = sum(chance * len(e) for e, chance in law.items())
    expected = sum(chance * _log_marginal(e) for e, chance in law.items()) / length
    _agree(_per_row(model, Edges(masking, protocol)), expected)


def test_closed_form_edges_have_less_noise_than_drawn_ones(model: AnyOrderModel) -> None:
    closed = _per_row(model, Edges(Cardinality(), Canonical()))[0]
    drawn = _per_row(model, Edges(Conditional(Bernoulli(0.0), Cardinality()), Canonical()))[0]
    assert closed.mean() == pytest.approx(drawn.mean(), abs=4 * drawn.std() / np.sqrt(DRAWS))
    assert closed.std() < 0.9 * drawn.std()


@pytest.mark.parametrize("reweight", [False, True])
def test_parallel_is_the_mean_over_unknown_variables(model: AnyOrderModel, reweight: bool) -> None:
    """ARDM eq. 4, and MAC's factor 1 + |e| on its sets."""
    law = {e: (1 + len(e) if reweight else 1) / (N * comb(N, len(e))) for e in SUBSETS if len(e) < N}
    total = sum(law.values())
    expected = sum(chance * np.mean([_step(i, e) for i in range(N) if i not in e]) for e, chance in law.items()) / total
    _agree(_per_row(model, Parallel(Univariate(), Canonical(), reweight)), expected)


def test_whole_chain_counts_evidence_and_asked(model: AnyOrderModel) -> None:
    masking = Conditional(Cardinality(least=0, spare=1))
    total, weight = _per_row(model, WholeChain(masking, Canonical()))
    # Evidence and the rest are everything: each row is one way to write log p(x).
    np.testing.assert_allclose(total, _log_marginal(frozenset(range(N))), atol=1e-8)
    assert (weight == N).all()


@pytest.mark.parametrize("kind", [Parallel, Edges, WholeChain])
def test_missing_cells_neither_count_nor_leak(model: AnyOrderModel, kind: type[Objective]) -> None:
    observed = torch.tensor([[True, False, True, True]])
    total = _per_row(model, kind(Cardinality(), Canonical()), observed)[0]
    assert np.isfinite(total).all()
    values = torch.as_tensor(X).expand(500, -1)
    scores = kind(Cardinality(), Canonical()).scores(
        model, values, observed.expand(500, -1), torch.zeros(500, N), torch.Generator().manual_seed(1)
    )
    if kind is not WholeChain:
        assert (scores.weight[:, 1] == 0).all()
    assert (scores.weight.sum(dim=1) <= 3 + 1e-6).all()


def test_a_row_whose_target_is_missing_does_not_count(model: AnyOrderModel) -> None:
    observed = torch.tensor([[True, True, False, True]])
    for kind in (Parallel, Edges, WholeChain):
        weight = _per_row(model, kind(Targets((2,)), Canonical()), observed)[1]
        assert (weight == (3 if kind is WholeChain else 0)).all()


def test_auto_goes_by_the_kind_of_network(model: AnyOrderModel) -> None:
    assert isinstance(objective_for(model, Cardinality()), Parallel)
    chain = categorical_model({"name": "causal_transformer", "width": 8, "blocks": 1, "heads": 1}, steps=1)
    assert isinstance(objective_for(chain, Cardinality()), WholeChain)
    with pytest.raises(UserError, match="did you mean 'edges'"):
        objective_for(model, Cardinality(), "edge")


def test_what_is_no_option_is_refused(model: AnyOrderModel) -> None:
    for name in ("masking", "protocol", "model"):
        with pytest.raises(UserError, match=f"objective 'parallel' has no option '{name}'"):
            objective_for(model, Cardinality(), **{"name": "parallel", name: 3})
    with pytest.raises(UserError, match="objective: 'name' must be a text"):
        objective_for(model, Cardinality(), name=["parallel"])


@pytest.mark.parametrize("untold", ["x", 3, -0.1, float("nan"), True, None])
def test_the_share_of_untold_modes_is_a_share(model: AnyOrderModel, untold: object) -> None:
    modes = maskings.build({"name": "random_pixels", "height": 2, "width": 2})
    with pytest.raises(UserError, match="untold must be a number in"):
        objective_for(model, modes, "stages", untold=untold)
    assert objective_for(model, modes, "stages", untold=1).untold == 1
