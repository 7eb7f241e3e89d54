"""Rubin's rules against the published formulae by hand, and against coverage in a simulation."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from anyorder.errors import UserError
from anyorder.model.sampling import draws
from anyorder.networks import GaussianNetwork
from anyorder.query import Query
from anyorder.tasks.pooling import pool, pool_over

from models import gaussian_model


def test_rubins_rules_by_hand() -> None:
    # m = 5: Q = 1..5, so Q-bar = 3 and B = 2.5; U = 2. T = 2 + 1.2 * 2.5 = 5; r = 3 / 2; lambda = 3 / 5.
    pooled = pool([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 2.0, 2.0])
    assert pooled.estimate[0] == pytest.approx(3.0)
    assert pooled.standard_error[0] == pytest.approx(5**0.5)
    # nu = 4 (1 + 2 / 3)^2 = 100 / 9; gamma = (3 / 2 + 2 / (100 / 9 + 3)) / (5 / 2).
    assert pooled.degrees_of_freedom[0] == pytest.approx(100 / 9)
    gamma = (1.5 + 2 / (100 / 9 + 3)) / 2.5
    assert pooled.fraction_missing_information[0] == pytest.approx(gamma)
    assert pooled.relative_efficiency[0] == pytest.approx(1 / (1 + gamma / 5))
    reach = stats.t.ppf(0.975, 100 / 9) * 5**0.5
    np.testing.assert_allclose(pooled.interval(0.95), [[3 - reach, 3 + reach]], rtol=1e-6)


def test_barnard_and_rubin_by_hand() -> None:
    # nu_c = 20: nu_o = 21 / 23 * 20 * (1 - 3 / 5) = 168 / 23; 1 / nu = 9 / 100 + 23 / 168.
    pooled = pool([1.0, 2.0, 3.0, 4.0, 5.0], [2.0] * 5, degrees_of_freedom=20)
    assert pooled.degrees_of_freedom[0] == pytest.approx(1 / (9 / 100 + 23 / 168))
    assert pooled.degrees_of_freedom[0] < min(100 / 9, 20)


def test_nothing_missing_leaves_the_complete_analysis() -> None:
    pooled = pool([[1.0, 2.0]] * 3, [[4.0, 9.0]] * 3, degrees_of_freedom=8)
    np.testing.assert_allclose(pooled.standard_error, [2.0, 3.0])
    np.testing.assert_allclose(pooled.fraction_missing_information, 0.0)
    np.testing.assert_allclose(pooled.relative_efficiency, 1.0)
    np.testing.assert_allclose(pooled.degrees_of_freedom, 9 / 11 * 8)
    assert np.isinf(pool([1.0, 1.0], [1.0, 1.0]).degrees_of_freedom[0])
    np.testing.assert_allclose(pool([1.0, 1.0], [1.0, 1.0]).interval(0.95), [[1 - 1.959964, 1 + 1.959964]], atol=1e-5)


def test_pool_over_reads_what_statsmodels_gives() -> None:
    frames = [pd.DataFrame({"x": [1.0, 2.0, 3.0 + shift]}) for shift in (0.0, 0.3, 0.9)]

    def fitted(frame: pd.DataFrame) -> SimpleNamespace:
        params = pd.Series({"mean": frame["x"].mean(), "double": 2 * frame["x"].mean()})
        error = pd.Series([frame["x"].sem(), 2 * frame["x"].sem()], index=params.index)
        return SimpleNamespace(params=params, bse=error, df_resid=2)

    def by_covariance(frame: pd.DataFrame) -> SimpleNamespace:
        one = fitted(frame)
        return SimpleNamespace(params=one.params, cov_params=lambda: np.diag(one.bse**2), df_resid=2)

    pooled, other = pool_over(frames, fitted), pool_over(frames, by_covariance)
    pairs = pool_over(frames, lambda frame: (frame["x"].mean(), frame["x"].var() / 3), degrees_of_freedom=2)
    assert pooled.names == ("mean", "double")
    assert list(pooled.table().index) == ["mean", "double"]
    np.testing.assert_allclose(pooled.interval(), other.interval())
    np.testing.assert_allclose(pooled.interval()[:1], pairs.interval())
    np.testing.assert_allclose(pooled.interval()[1], 2 * pooled.interval()[0])


def test_mistakes_are_named() -> None:
    with pytest.raises(UserError, match="two filled tables"):
        pool([1.0], [1.0])
    with pytest.raises(UserError, match="not negative"):
        pool([1.0, 2.0], [1.0, -1.0])
    with pytest.raises(UserError, match="both be"):
        pool([1.0, 2.0], [[1.0], [1.0]])
    with pytest.raises(UserError, match="params and bse"):
        pool_over([1, 2], lambda frame: object())


def _slope(rows: np.ndarray) -> tuple[float, float]:
    """The coefficient of v0 in the regression of v2 on v0 and v1, and its squared standard error."""
    design = np.column_stack([np.ones(len(rows)), rows[:, 0], rows[:, 1]])
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ rows[:, 2]
    left = rows[:, 2] - design @ beta
    return beta[1], float(left @ left) / (len(rows) - 3) * inverse[1, 1]


def _moments(rows: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Maximum likelihood where only v0 has holes: moments of the rest from all rows, v0 given it from complete ones."""
    rest = rows[:, 1:]
    design = np.column_stack([np.ones(known.sum()), rest[known]])
    beta, left = np.linalg.lstsq(design, rows[known, 0], rcond=None)[:2]
    noise = left[0] / (known.sum() - 3)
    mean, inner = rest.mean(axis=0), np.cov(rest.T)
    cross = inner @ beta[1:]
    covariance = np.block([[np.atleast_2d(noise + beta[1:] @ cross), cross[None]], [cross[:, None], inner]])
    return np.array([beta[0] + beta[1:] @ mean, *mean]), covariance


def test_coverage_of_a_regression_coefficient() -> None:
    """MCAR: 40 % of a covariate missing, Gaussian imputation from a bootstrap of the rows for each of five tables.

    The 95 % interval must hold in about 95 % of 150 runs: the binomial standard error is 0.018, so from 0.90 up is
    three of them. A single fill that is taken for data must be clearly below, or the test could not tell.
    """
    rng = np.random.default_rng(0)
    covariance = np.array([[1.0, 0.5, 0.6], [0.5, 1.0, 0.5], [0.6, 0.5, 1.0]])
    truth = np.linalg.solve(covariance[:2, :2], covariance[:2, 2])[0]
    root, rows, tables, runs = np.linalg.cholesky(covariance), 100, 5, 150
    model = gaussian_model(np.zeros(3), covariance)
    assert isinstance(model.network, GaussianNetwork)
    held, naive = 0, 0
    for run in range(runs):
        whole = rng.normal(size=(rows, 3)) @ root.T
        known = rng.random(rows) > 0.4
        values = torch.as_tensor(np.where(known[:, None] | [False, True, True], whole, 0.0))
        evidence = torch.as_tensor(known[:, None] | np.array([False, True, True]))
        filled = []
        for table in range(tables):
            again = rng.integers(rows, size=rows)
            model.network.set_moments(*map(torch.as_tensor, _moments(whole[again], known[again])))
            filled.append(draws(model, values, Query(evidence, ~evidence), seed=run * tables + table))
        low, high = pool_over(filled, _slope, degrees_of_freedom=rows - 3).interval(0.95)[0]
        held += low <= truth <= high
        beta, variance = _slope(filled[0])
        naive += abs(beta - truth) <= stats.t.ppf(0.975, rows - 3) * variance**0.5
    assert 0.90 <= held / runs < 1.0
    assert naive / runs < 0.88
