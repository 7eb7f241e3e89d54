"""VAE and MIWAE: against the closed form of a linear-Gaussian decoder, bounds that behave, and no leak."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, t

from anyorder.baselines import MIWAE, VAE, LatentModel, Schedule
from anyorder.baselines.observation import observation_models
from anyorder.baselines.schedule import hidden
from anyorder.errors import UserError

VARIABLES, LATENT = 5, 2


def linear_model(kind: type[LatentModel] = MIWAE, seed: int = 0) -> tuple[LatentModel, np.ndarray, np.ndarray]:
    """x = W z + b + noise, an encoder that knows nothing of it, and the Gaussian that x has exactly."""
    rng = np.random.default_rng(seed)
    loadings, offset = rng.normal(size=(VARIABLES, LATENT)), rng.normal(size=VARIABLES)
    log_scale = rng.uniform(-1.0, -0.3, VARIABLES)
    model = kind(VARIABLES, latent=LATENT, layers=0, seed=seed).double()
    last = model.decode[-1]
    with torch.no_grad():
        weight = np.zeros((VARIABLES, 2, LATENT))
        weight[:, 0] = loadings
        last.weight.copy_(torch.as_tensor(weight.reshape(-1, LATENT)))
        last.bias.copy_(torch.as_tensor(np.column_stack([offset, log_scale]).reshape(-1)))
    return model, offset, loadings @ loadings.T + np.diag(np.exp(2 * log_scale))


def closed_form(mean, covariance, x, evidence, asked):  # type: ignore[no-untyped-def]
    e, both = np.flatnonzero(evidence), np.flatnonzero(evidence | asked)
    if not asked.any():
        return 0.0
    joint = multivariate_normal(mean[both], covariance[np.ix_(both, both)]).logpdf(x[both])
    return joint - (multivariate_normal(mean[e], covariance[np.ix_(e, e)]).logpdf(x[e]) if len(e) else 0.0)


def random_queries(rows: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    evidence = rng.random((rows, VARIABLES)) < 0.5
    evidence[0] = False
    asked = ~evidence & (rng.random((rows, VARIABLES)) < 0.7)
    asked[np.arange(rows), np.where(~evidence, 1, 0).argmax(axis=1)] |= ~evidence.all(axis=1)
    return evidence, asked


@pytest.mark.parametrize("kind", [VAE, MIWAE])
def test_conditional_log_prob_agrees_with_the_closed_form(kind: type[LatentModel]) -> None:
    model, mean, covariance = linear_model(kind)
    x = np.random.default_rng(2).multivariate_normal(mean, covariance, size=12)
    evidence, asked = random_queries(12)
    exact = np.array([closed_form(mean, covariance, *row) for row in zip(x, evidence, asked, strict=True)])
    runs = np.array([model.conditional_log_prob(x, evidence, asked, draws=20_000, seed=s) for s in range(8)])
    error = runs.std(axis=0, ddof=1)
    assert error.max() < 0.15
    np.testing.assert_array_less(np.abs(runs.mean(axis=0) - exact), 4 * error / math.sqrt(8) + 0.01)


def test_a_cell_in_neither_set_is_marginalised_out() -> None:
    model, mean, covariance = linear_model()
    x = np.random.default_rng(3).multivariate_normal(mean, covariance, size=4)
    evidence = np.zeros((4, VARIABLES), bool)
    asked = evidence.copy()
    asked[:, 1] = True
    found = model.conditional_log_prob(x, evidence, asked, draws=40_000)
    exact = multivariate_normal(mean[1], covariance[1, 1]).logpdf(x[:, 1])
    np.testing.assert_allclose(found, exact, atol=0.05)


def test_asking_nothing_costs_nothing() -> None:
    model, _, _ = linear_model()
    nothing = np.zeros((3, VARIABLES), bool)
    assert (model.conditional_log_prob(np.ones((3, VARIABLES)), ~nothing, nothing, draws=100) == 0).all()


def test_imputation_has_the_conditional_moments() -> None:
    model, mean, covariance = linear_model()
    e, u = [0, 3], [1, 2, 4]
    x = np.tile(np.random.default_rng(4).multivariate_normal(mean, covariance), (1, 1))
    observed = np.zeros((1, VARIABLES), bool)
    observed[:, e] = True
    drawn = model.impute(np.where(observed, x, np.nan), observed, draws=6000, candidates=60_000)[:, 0]
    gain = covariance[np.ix_(u, e)] @ np.linalg.inv(covariance[np.ix_(e, e)])
    spread = covariance[np.ix_(u, u)] - gain @ covariance[np.ix_(e, u)]
    centre = mean[u] + gain @ (x[0, e] - mean[e])
    np.testing.assert_array_less(np.abs(drawn[:, u].mean(axis=0) - centre), 5 * np.sqrt(np.diag(spread) / 6000))
    np.testing.assert_allclose(np.cov(drawn[:, u].T), spread, atol=0.1 * np.diag(spread).max())
    assert (drawn[:, e] == x[0, e]).all()


def test_the_importance_weighted_bound_rises_with_draws_to_the_likelihood() -> None:
    model, mean, covariance = linear_model()
    x = torch.as_tensor(np.random.default_rng(5).multivariate_normal(mean, covariance, size=20))
    observed = torch.ones_like(x, dtype=torch.bool)
    observed[:10, 2] = False
    exact = np.mean(
        [
            closed_form(mean, covariance, r, np.zeros(5, bool), o)
            for r, o in zip(x.numpy(), observed.numpy(), strict=True)
        ]
    )
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        rising = []
        for draws in (1, 5, 50, 2000):
            repeats = 4000 // draws
            rising.append(np.mean([model.bound(x, observed, draws, generator).mean().item() for _ in range(repeats)]))
    assert all(np.diff(rising) > 0) and rising[-1] < exact + 0.05
    assert exact - rising[-1] < 0.2 * (exact - rising[0])
    vae, _, _ = linear_model(VAE)
    one = vae.bound(x, observed, 4000, generator).mean().item()
    assert one == pytest.approx(rising[0], rel=0.05)  # the ELBO is the bound of a single draw


@pytest.mark.parametrize("kind", [VAE, MIWAE])
@pytest.mark.parametrize("observation", list(observation_models))
def test_nothing_unobserved_leaks(kind: type[LatentModel], observation: str) -> None:
    model = kind(VARIABLES, latent=3, observation=observation, seed=1)
    rng = np.random.default_rng(6)
    x = rng.normal(size=(6, VARIABLES))
    evidence, asked = random_queries(6)
    for other in (rng.normal(size=x.shape), np.full(x.shape, np.nan)):
        moved = np.where(evidence | asked, x, other)
        assert np.array_equal(
            model.conditional_log_prob(x, evidence, asked, draws=50),
            model.conditional_log_prob(moved, evidence, asked, draws=50),
        )
        hole = np.where(evidence, x, other)
        assert np.array_equal(model.impute(x, evidence, draws=2), model.impute(hole, evidence, draws=2))
        assert torch.equal(
            *(
                model.bound(torch.as_tensor(v).float(), torch.as_tensor(evidence), 3, torch.Generator().manual_seed(0))
                for v in (x, hole)
            )
        )
    seen = np.where(evidence, x + 1, x)
    assert not np.allclose(
        model.conditional_log_prob(x, evidence, asked, draws=50),
        model.conditional_log_prob(seen, evidence, asked, draws=50),
    )


def test_training_never_reads_what_is_not_observed() -> None:
    rng = np.random.default_rng(7)
    x = rng.normal(size=(60, VARIABLES))
    observed = rng.random(x.shape) < 0.7
    schedule = Schedule(minutes=None, steps=12, validate_every=4)
    first = MIWAE(VARIABLES).fit(x, observed, schedule)
    second = MIWAE(VARIABLES).fit(np.where(observed, x, np.nan), observed, schedule)
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(("kind", "hide"), [(VAE, "none"), (MIWAE, "uniform")])
def test_fitting_comes_near_the_true_conditional(kind: type[LatentModel], hide: str) -> None:
    _, mean, covariance = linear_model(seed=3)
    rng = np.random.default_rng(8)
    train, test = rng.multivariate_normal(mean, covariance, size=1500), rng.multivariate_normal(mean, covariance, 200)
    scale = train.std(axis=0)
    schedule = Schedule(minutes=None, steps=500, learning_rate=5e-3, hide=hide, draws=10)  # type: ignore[arg-type]
    model = kind(VARIABLES, latent=LATENT, layers=1, seed=0)
    model.fit((train - mean) / scale, np.ones(train.shape, bool), schedule)
    evidence, asked = random_queries(200, seed=9)
    found = model.conditional_log_prob((test - mean) / scale, evidence, asked, draws=2000)
    found = found - np.where(asked, np.log(scale), 0.0).sum(axis=1)
    exact = np.array([closed_form(mean, covariance, *row) for row in zip(test, evidence, asked, strict=True)])
    apart = np.array(
        [
            closed_form(mean, np.diag(np.diag(covariance)), *row)
            for row in zip(test, np.zeros_like(evidence), asked, strict=True)
        ]
    )
    # Half-way at the least from independent columns to the truth, and not beyond it.
    assert exact.mean() - 0.5 * (exact.mean() - apart.mean()) < found.mean() < exact.mean() + 0.05


def test_student_cells_are_scipys() -> None:
    parameters = torch.tensor([[0.3, -0.4, 1.0]], dtype=torch.float64)
    values = torch.linspace(-4, 4, 9, dtype=torch.float64)
    freedom = 3 + math.log1p(math.e)
    law = t(freedom, 0.3, math.exp(-0.4))
    found = observation_models["student"].log_prob(values, parameters)
    np.testing.assert_allclose(found, law.logpdf(values.numpy()), atol=1e-10)
    drawn = observation_models["student"].sample(parameters.expand(20_000, -1), torch.Generator().manual_seed(0))
    for level in (0.05, 0.5, 0.9):
        share = (drawn.numpy() < law.ppf(level)).mean()
        assert abs(share - level) < 4 * math.sqrt(level * (1 - level) / 20_000)


def test_hidden_cells_are_a_uniform_set_of_a_uniform_size() -> None:
    observed = torch.ones(40_000, 4, dtype=torch.bool)
    observed[:, 3] = False
    kept = hidden(observed, "uniform", torch.Generator().manual_seed(0))
    assert not bool(kept[:, 3].any())
    sizes = torch.bincount(kept.sum(dim=1), minlength=4) / 40_000
    np.testing.assert_allclose(sizes, [0, 1 / 3, 1 / 3, 1 / 3], atol=0.012)
    np.testing.assert_allclose(kept[:, :3].double().mean(dim=0), 2 / 3, atol=0.012)
    assert torch.equal(hidden(observed, "none", torch.Generator()), observed)


def test_users_mistakes_are_named() -> None:
    model = VAE(3)
    ones = np.ones((2, 3), bool)
    with pytest.raises(UserError, match="both evidence and asked"):
        model.conditional_log_prob(np.zeros((2, 3)), ones, ones)
    with pytest.raises(UserError, match="same shape"):
        model.impute(np.zeros((2, 4)), ones)
    with pytest.raises(UserError, match="NaN"):
        model.fit(np.full((2, 3), np.nan), ones)
    with pytest.raises(UserError, match="did you mean 'gaussian'"):
        VAE(3, observation="gausian")
    with pytest.raises(UserError, match="budget"):
        Schedule(minutes=None)
