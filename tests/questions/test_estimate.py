"""Estimates: floats that know their error, and the errors of means and ratios by simulation."""

from __future__ import annotations

import copy
import json
import math

import numpy as np
import pytest
import torch

import anyorder as ao
from anyorder.questions.estimate import Estimate, mean_of, quotient, weighted_mean
from anyorder.questions.evidence import Between


def test_an_estimate_is_a_float_that_knows_its_error() -> None:
    estimate = Estimate(2.0, 0.5, "draws (4)")
    assert estimate + 1 == 3.0
    assert f"{estimate:.2f}" == "2.00"
    assert (estimate.value, estimate.standard_error, estimate.method) == (2.0, 0.5, "draws (4)")
    assert not estimate.exact
    assert "± 0.5" in repr(estimate)
    assert json.dumps({"x": estimate}) == '{"x": 2.0}'
    assert copy.copy(estimate).standard_error == 0.5
    assert Estimate(3.0).exact
    assert repr(Estimate(3.0)) == "3.0"
    with pytest.raises(AttributeError):
        estimate.value = 3.0  # type: ignore[misc]
    assert estimate.interval(2) == (1.0, 3.0)
    assert ao.Between is Between


def test_errors_of_means_and_ratios_are_those_of_simulation() -> None:
    rng = np.random.default_rng(0)
    found, stated = [], []
    for _ in range(2000):
        w = rng.lognormal(sigma=0.4, size=200)
        mean, error = weighted_mean(w, w + rng.normal(size=200))
        found.append(float(mean))
        stated.append(float(error))
    assert np.mean(stated) == pytest.approx(np.std(found), rel=0.1)
    terms = rng.normal(3, 2, size=400)
    assert mean_of(terms, "m").standard_error == pytest.approx(terms.std(ddof=1) / 20)
    ratio = quotient(Estimate(1.0, 0.02, "m"), Estimate(4.0, 0.1, "m"), "m")
    draws = rng.normal(1.0, 0.02, 100_000) / rng.normal(4.0, 0.1, 100_000)
    assert ratio.value == 0.25
    assert ratio.standard_error == pytest.approx(draws.std(), rel=0.02)
    assert quotient(Estimate(1.0), Estimate(4.0), "m").method == "exact"
    assert math.isclose(torch.tensor(float(ratio)).item(), 0.25)
