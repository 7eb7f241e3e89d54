"""Networks: three calls that agree, no leak, every parameter in use, and the closed-form Gaussian."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from anyorder.errors import UserError
from anyorder.networks import (
    BidirectionalTransformer,
    CausalTransformer,
    GaussianNetwork,
    Network,
    ResidualMLP,
    networks,
)
from anyorder.networks.gaussian import conditional_moments, fit_moments
from anyorder.networks.layout import Layout
from anyorder.networks.parts.positions import Rotary
from anyorder.support.registry import describe
from anyorder.testing import (
    check_calls_agree,
    check_gradients,
    check_no_leak,
    check_own_randomness,
    mixed_layout,
    random_chain,
    random_values,
    randomised,
)

MAKERS = {
    "mlp": lambda layout: ResidualMLP(layout, width=16, blocks=2, dropout=0.2),
    "mlp with expert": lambda layout: _with_expert(layout),
    "bidirectional": lambda layout: BidirectionalTransformer(layout, width=16, blocks=2, heads=2),
    "causal": lambda layout: CausalTransformer(layout, width=16, blocks=2, heads=2),
    "bidirectional, rotary": lambda layout: BidirectionalTransformer(
        layout, width=16, blocks=2, heads=2, positions="rotary"
    ),
    "causal, rotary": lambda layout: CausalTransformer(layout, width=16, blocks=2, heads=2, positions="rotary"),
}


def _with_expert(layout: Layout) -> ResidualMLP:
    network = ResidualMLP(layout, width=16, blocks=2, expert=True)
    network.set_moments(torch.tensor([0.3, -0.2]), torch.tensor([[1.0, 0.6], [0.6, 2.0]]))
    return network


@pytest.fixture(params=list(MAKERS))
def network(request: pytest.FixtureRequest) -> Network:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = MAKERS[request.param](mixed_layout())
    return randomised(made, torch.Generator().manual_seed(1))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_unknown_value_leaks(network: Network, seed: int) -> None:
    check_no_leak(network, seed)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_beside_along_and_walk_agree(network: Network, seed: int) -> None:
    check_calls_agree(network, seed)


def test_one_variable_alone_is_answered_as_among_all(network: Network) -> None:
    """With and without gradients: what is not asked for need not be computed, but must not matter."""
    generator = torch.Generator().manual_seed(2)
    values = random_values(network.layout, 40, generator)
    known = torch.rand(40, 5, generator=generator) < 0.5
    target = torch.randint(5, (40,), generator=generator)
    chain = random_chain(network.layout, 40, generator)
    expected = network.beside(values, known)[torch.arange(40), target]
    along = network.along(values, chain)
    torch.testing.assert_close(network.at(values, known, target), expected)
    with torch.no_grad():
        torch.testing.assert_close(network.at(values, known, target), expected)
        torch.testing.assert_close(network.along(values, chain)[chain.counted], along[chain.counted])


def test_what_it_draws_is_its_own(network: Network) -> None:
    check_own_randomness(network)


def test_every_parameter_matters(network: Network) -> None:
    check_gradients(network)


def test_leak_check_catches_a_leak() -> None:
    class Leaky(ResidualMLP):
        def beside(self, values, known, prefix=None):  # type: ignore[no-untyped-def]
            return super().beside(values, known) + values.nan_to_num().sum(dim=1)[:, None, None]

    with pytest.raises(AssertionError, match="beside reads"):
        check_no_leak(Leaky(mixed_layout(), width=8).double().eval())


def test_known_values_do_matter(network: Network) -> None:
    generator = torch.Generator().manual_seed(3)
    values = random_values(network.layout, 4, generator)
    known = torch.zeros(4, 5, dtype=torch.bool)
    known[:, 0] = True
    moved = values.clone()
    moved[:, 0] += 1.0
    assert not torch.allclose(network.beside(values, known)[:, 1:], network.beside(moved, known)[:, 1:])


def test_padding_does_not_change_a_row(network: Network) -> None:
    generator = torch.Generator().manual_seed(4)
    values = random_values(network.layout, 12, generator)
    chain = random_chain(network.layout, 12, generator)
    together = network.along(values, chain)
    for row in range(12):
        alone = chain.rows(slice(row, row + 1))
        prefix, order = alone.prefix[:, alone.prefix[0] >= 0], alone.order[:, alone.order[0] >= 0]
        trimmed = type(chain)(prefix, order, chain.variables)
        if order.shape[1]:
            apart = network.along(values[row : row + 1], trimmed)
            torch.testing.assert_close(apart[0], together[row, : order.shape[1]], rtol=0, atol=1e-10)


def test_rotary_products_depend_on_distances_alone() -> None:
    layout = Layout((2,) * 20, (2,) * 20, (0,) * 20, (4, 5))
    rotary = Rotary(layout, 8)
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 1, 1, 1, 8, generator=generator)

    def product(asked: int, held: int) -> float:
        places = torch.tensor([[asked], [held]])
        return float((rotary(places[:1])(query) * rotary(places[1:])(key)).sum())

    # On a grid of 4 x 5: one row down and two to the right, from different places.
    assert product(7, 0) == pytest.approx(product(12, 5), abs=1e-5) == pytest.approx(product(9, 2), abs=1e-5)
    assert abs(product(7, 0) - product(8, 0)) > 1e-3
    assert abs(product(7, 0) - product(2, 0)) > 1e-3
    # No variable, no turn.
    nowhere = rotary(torch.tensor([[-1]]))
    torch.testing.assert_close(nowhere(query), query)


def test_unknown_positions_and_odd_heads_are_refused() -> None:
    with pytest.raises(UserError, match="did you mean 'rotary'"):
        CausalTransformer(mixed_layout(), width=16, heads=2, positions="rotari")
    with pytest.raises(UserError, match="even size"):
        CausalTransformer(mixed_layout(), width=15, heads=3, positions="rotary")


def test_begin_starts_at_the_heads_broad_distribution() -> None:
    layout = mixed_layout()
    starts = torch.arange(5 * layout.width, dtype=torch.float32).reshape(5, layout.width) / 10
    for size, row in zip(layout.sizes, range(5), strict=True):
        starts[row, size:] = 0
    network = ResidualMLP(layout, width=16).eval()
    torch.nn.init.zeros_(network.leave.weight)
    network.begin(starts)
    features = network.beside(torch.zeros(1, 5), torch.zeros(1, 5, dtype=torch.bool))
    torch.testing.assert_close(features[0], starts)


def test_networks_are_rebuilt_from_their_description(network: Network) -> None:
    again = networks.build(describe(network), layout=network.layout)
    assert type(again) is type(network) and describe(again) == describe(network)
    again.double().eval().load_state_dict(network.state_dict())
    generator = torch.Generator().manual_seed(5)
    values, chain = random_values(network.layout, 6, generator), random_chain(network.layout, 6, generator)
    assert torch.equal(again.along(values, chain), network.along(values, chain))


def test_rows_that_know_the_same_have_the_moments_they_have_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    mean, root = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((5,), (5, 5)))
    covariance = root @ root.T + torch.eye(5, dtype=torch.float64)
    sets = torch.tensor([[False] * 5, [True] * 5, [True, False, True, False, False]])
    known = sets.repeat(500, 1)
    values = torch.randn(len(known), 5, generator=generator, dtype=torch.float64)
    values = values.where(known, torch.nan)  # what is unknown is not looked at
    together = conditional_moments(mean, covariance, values, known)
    parts = [conditional_moments(mean, covariance, values[rows], known[rows]) for rows in torch.arange(1500).split(100)]
    for one, other in zip(together, zip(*parts, strict=True), strict=True):
        torch.testing.assert_close(one, torch.cat(other), rtol=1e-10, atol=1e-12)


def test_conditional_moments_equal_the_formula() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    covariance, mean = root @ root.T + np.eye(6), rng.normal(size=6)
    values, known = rng.normal(size=(40, 6)), rng.random((40, 6)) < 0.5
    location, deviation = conditional_moments(*map(torch.as_tensor, (mean, covariance, values, known)))
    for row in range(40):
        inside, outside = np.flatnonzero(known[row]), np.flatnonzero(~known[row])
        gain = covariance[np.ix_(outside, inside)] @ np.linalg.pinv(covariance[np.ix_(inside, inside)])
        expected = mean[outside] + gain @ (values[row, inside] - mean[inside])
        variance = np.diag(covariance[np.ix_(outside, outside)] - gain @ covariance[np.ix_(inside, outside)])
        np.testing.assert_allclose(location[row, outside], expected, atol=1e-10)
        np.testing.assert_allclose(deviation[row, outside], np.sqrt(variance), atol=1e-10)


def test_em_finds_the_moments_behind_missing_cells() -> None:
    rng = np.random.default_rng(1)
    truth = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.3], [0.0, 0.3, 1.0]])
    values = rng.multivariate_normal([1.0, -1.0, 0.5], truth, size=4000)
    observed = rng.random(values.shape) < 0.7
    # Missing at random given the first column: a plain mean of what is there would be biased by about 0.3.
    observed[:, 1] &= ~((values[:, 0] > 1.0) & observed[:, 0] & (rng.random(4000) < 0.7))
    mean, covariance = fit_moments(torch.as_tensor(values), torch.as_tensor(observed))
    np.testing.assert_allclose(mean, [1.0, -1.0, 0.5], atol=0.07)
    np.testing.assert_allclose(covariance, truth, atol=0.08)


def test_gaussian_network_answers_with_its_moments() -> None:
    layout = Layout(levels=(0, 0), sizes=(2, 2), groups=(0, 1), grid=(2,))
    network = GaussianNetwork(layout)
    network.set_moments(torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 0.5], [0.5, 1.0]]))
    features = network.beside(torch.tensor([[2.0, torch.nan]]), torch.tensor([[True, False]]))
    assert features[0, 1].tolist() == pytest.approx([2.5, 0.5 * np.log(0.75)])


def test_untrained_mlp_with_expert_is_the_gaussian() -> None:
    layout = Layout((0, 0), (2, 2), (0, 1), (2,), locations=((0,), (0,)), log_scales=((1,), (1,)))
    network = ResidualMLP(layout, width=8, expert=True).eval()
    torch.nn.init.zeros_(network.leave.weight)
    network.begin(torch.zeros(2, 2))
    network.set_moments(torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 0.5], [0.5, 1.0]]))
    features = network.beside(torch.tensor([[2.0, 9.0]]), torch.tensor([[True, False]]))
    assert features[0, 1].tolist() == pytest.approx([2.5, 0.5 * np.log(0.75)], abs=1e-6)


def test_a_new_network_is_one_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "constant.py").write_text(
        "from dataclasses import dataclass\n"
        "from typing import ClassVar\n"
        "from anyorder.networks.base import MaskNetwork\n\n\n"
        "@dataclass(eq=False)\n"
        "class Constant(MaskNetwork):\n"
        "    name: ClassVar[str] = 'constant'\n"
        "    answer: float = 0.5\n\n"
        "    def beside(self, values, known, prefix=None):\n"
        "        return values.new_full((*values.shape, self.layout.width), self.answer)\n"
    )
    package = importlib.import_module("anyorder.networks")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    try:
        made = networks.build({"name": "constant", "answer": 2.0}, layout=mixed_layout())
        check_no_leak(made)
        check_calls_agree(made)
        assert describe(made) == {"name": "constant", "answer": 2.0}
    finally:
        sys.modules.pop("anyorder.networks.constant", None)
