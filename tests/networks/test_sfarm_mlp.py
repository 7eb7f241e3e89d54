"""SFARM's network: the contract of every network, and the step it is told of."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import anyorder as ao
from anyorder.errors import UserError
from anyorder.networks import Network, networks
from anyorder.networks.layout import Layout
from anyorder.networks.sfarm_mlp import SFARMPerceptron
from anyorder.support.registry import describe
from anyorder.testing import check_calls_agree, check_gradients, check_no_leak, mixed_layout, random_values, randomised


@pytest.fixture
def network() -> Network:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = SFARMPerceptron(mixed_layout())
    return randomised(made, torch.Generator().manual_seed(1))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_keeps_the_contract(network: Network, seed: int) -> None:
    check_no_leak(network, seed)
    check_calls_agree(network, seed)


def test_every_parameter_matters(network: Network) -> None:
    check_gradients(network)


def test_begins_at_the_heads_broad_distribution() -> None:
    layout = mixed_layout()
    network = SFARMPerceptron(layout)
    torch.nn.init.zeros_(network.leave.weight)
    starts = torch.arange(5 * layout.width, dtype=torch.float32).reshape(5, layout.width)
    network.begin(starts)
    assert torch.equal(network.beside(torch.zeros(1, 5), torch.zeros(1, 5, dtype=torch.bool))[0], starts)


def test_is_built_by_name_and_is_as_the_paper_says() -> None:
    network = networks.build({"name": "sfarm_mlp"}, layout=mixed_layout())
    assert describe(network) == {"name": "sfarm_mlp", "width": 32, "layers": 3, "time": 32}
    assert [part.out_features for part in network.trunk if isinstance(part, torch.nn.Linear)] == [32, 32, 32]
    with pytest.raises(UserError, match="even number"):
        SFARMPerceptron(mixed_layout(), time=3)


def test_the_step_is_the_number_of_known_variables_plus_one() -> None:
    layout = Layout(levels=(0,) * 4, sizes=(2,) * 4, groups=(0, 1, 2, 3), grid=(4,))
    network = SFARMPerceptron(layout, time=4).double()
    known = torch.tensor([[True, False, True, False], [False, False, False, False]])
    angles = np.outer([3, 1], [1.0, 1e-4])
    np.testing.assert_allclose(network._step(known), np.hstack([np.sin(angles), np.cos(angles)]), atol=1e-7)
    # Zero values with other bits: only the mask and the step can tell the two rows apart.
    features = network.beside(torch.zeros(2, 4, dtype=torch.float64), known)
    assert not torch.allclose(features[0], features[1])


def test_values_beyond_reach_stay_finite(network: Network) -> None:
    values = random_values(network.layout, 3, torch.Generator().manual_seed(2))
    values[:, 0] = 1e30
    assert bool(network.beside(values, torch.ones(3, 5, dtype=torch.bool)).isfinite().all())


def test_fits_a_table_with_a_gaussian_head() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    frame = pd.DataFrame({"a": x, "b": 0.9 * x + np.sqrt(1 - 0.81) * rng.normal(size=400)})
    config = {
        "engine": "neural",
        "encoding": "standard",
        "folds": 1,  # one network, not a blend of one for every fold
        "network": {"name": "sfarm_mlp"},
        "heads": {"continuous": {"name": "gaussian"}},
        "protocol": {"name": "random"},
        "training": {"minutes": None, "steps": 400, "validation_queries": 200},
    }
    model = ao.fit(frame, seed=0, config=config)
    assert isinstance(model.core.network, SFARMPerceptron)
    assert describe(model.core.heads.of(0))["name"] == "gaussian"
    truth = -0.5 * np.log(2 * np.pi * np.e * (1 - 0.81))
    assert model.log_prob(frame, given=["a"]).mean() == pytest.approx(truth, abs=0.15)
