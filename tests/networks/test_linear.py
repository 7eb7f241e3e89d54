"""The linear expert: its contract, unknown inputs against a Gaussian oracle, and what a file may not say of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from anyorder.errors import UserError
from anyorder.heads import Bernoulli, Categorical, GaussianMixture
from anyorder.model import layout_of
from anyorder.networks import networks
from anyorder.networks.gaussian import conditional_moments
from anyorder.networks.linear import LinearNetwork
from anyorder.networks.parts.predictors import predictor_moments
from anyorder.support.registry import describe
from anyorder.testing import check_calls_agree, check_no_leak, mixed_layout
from anyorder.variables.schema import Kind, Schema, Variable


def covariance(size: int, generator: torch.Generator) -> Tensor:
    root = torch.randn(size, size, generator=generator, dtype=torch.float64)
    return root @ root.T + 0.5 * torch.eye(size, dtype=torch.float64)


def network(**options: Any) -> LinearNetwork:
    """Random weights for variables of all sorts, none of which looks at itself."""
    made = LinearNetwork(mixed_layout(), **options)
    generator = torch.Generator().manual_seed(0)
    for name in ("weight", "intercept", "mean", "missing", "offsets", "log_scales", "shares"):
        buffer = made.get_buffer(name)
        buffer.copy_(torch.randn(buffer.shape, generator=generator, dtype=torch.float64) / 2)
    made.weight[made.target[:, None] == made.owner] = 0
    made.covariance.copy_(covariance(len(made.owner), generator))
    made.low.fill_(-2)
    made.high.fill_(2)
    return made


def test_network_keeps_the_contract() -> None:
    check_no_leak(network())
    check_calls_agree(network())


def test_numbers_in_the_units_of_the_data_are_on_lines_between_the_knots() -> None:
    numbers = tuple(variable for variable, levels in enumerate(mixed_layout().levels) if not levels)
    made = network(unbent=numbers, knots=9)
    generator = torch.Generator().manual_seed(4)
    # Knots that repeat themselves are steps; beyond the outermost ones nothing changes any more.
    steps = torch.rand(len(numbers), 2, 9, generator=generator, dtype=torch.float64) * torch.tensor(
        [1, 1, 0, 1, 1] + [1] * 4
    )
    made.bend.copy_(steps.cumsum(2) - 2.5)
    check_no_leak(made)
    check_calls_agree(made)
    values = 4 * torch.rand(50, made.layout.variables, generator=generator, dtype=torch.float64) - 2
    inputs, known = made.inputs(values, torch.ones(50, made.layout.variables, dtype=torch.bool))
    assert bool(known.all()) and int(made.in_units.sum()) == len(numbers) == int(made.twice.sum())
    for place, variable in enumerate(numbers):
        expected = np.interp(values[:, variable], *made.bend[place].numpy())
        np.testing.assert_allclose(inputs[:, made.in_units][:, place], expected, rtol=0, atol=1e-12)
        torch.testing.assert_close(inputs[:, made.twice][:, place], values[:, variable])


def test_networks_in_units_are_stacked_if_they_bend_alike() -> None:
    numbers = tuple(variable for variable, levels in enumerate(mixed_layout().levels) if not levels)
    pair = [network(unbent=numbers, knots=5) for _ in range(2)]
    pair[1].weight.mul_(0.5)
    values, known = torch.ones(1, 5), torch.tensor([True, False, True, False, True])
    for _ in range(2):
        found = LinearNetwork.stack(pair).beside(values, known)
        for one, features in zip(pair, found, strict=True):
            torch.testing.assert_close(features, one.beside(values, known[None]), rtol=0, atol=1e-6)
        pair[1].bend[:, 1] *= 2  # now each must be asked with its own


@pytest.mark.parametrize(
    "options", [{"unbent": (9,), "knots": 4}, {"unbent": (0,), "knots": 1}, {"unbent": (1, 0), "knots": 4}]
)
def test_numbers_that_cannot_be_bent_back_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="linear: "):
        network(**options)


def test_many_rows_of_few_sets_are_answered_like_each_alone() -> None:
    made = network()
    generator = torch.Generator().manual_seed(1)
    sets = torch.rand(3, 5, generator=generator) < 0.5
    known = sets[torch.randint(3, (24,), generator=generator)]
    values = torch.randint(2, (24, 5), generator=generator).double()
    together = made.beside(values, known)
    alone = torch.cat([made.beside(values[row : row + 1], known[row : row + 1]) for row in range(24)])
    different = torch.cat([made.beside(values[row::8], known[row::8]) for row in range(8)])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-10)
    order = torch.cat([torch.arange(24)[row::8] for row in range(8)])
    torch.testing.assert_close(together[order], different, rtol=0, atol=1e-10)


def test_predictors_are_marginalised_as_the_joint_gaussian_has_it() -> None:
    # The predictors are further variables of the Gaussian: its own formula must give the same.
    generator = torch.Generator().manual_seed(2)
    inputs, predictors = 6, 3
    mean, within = torch.randn(inputs, generator=generator, dtype=torch.float64), covariance(inputs, generator)
    weight = torch.randn(predictors, inputs, generator=generator, dtype=torch.float64)
    values = torch.randn(40, inputs, generator=generator, dtype=torch.float64)
    known = torch.rand(40, inputs, generator=generator) < 0.5
    known[0], known[1] = False, True
    location, variance = predictor_moments(mean, within, weight, values, known)
    noise = 1e-9 * torch.eye(predictors, dtype=torch.float64)
    joint = torch.cat(
        [torch.cat([within, within @ weight.T], 1), torch.cat([weight @ within, weight @ within @ weight.T + noise], 1)]
    )
    beside = torch.zeros(40, predictors, dtype=torch.bool)
    oracle = conditional_moments(
        torch.cat([mean, weight @ mean]),
        joint,
        torch.cat([values, torch.zeros(40, predictors, dtype=torch.float64)], 1),
        torch.cat([known, beside], 1),
    )
    torch.testing.assert_close(location, oracle[0][:, inputs:], rtol=1e-8, atol=1e-8)
    least = 1e-6 * (weight @ within @ weight.T).diagonal()  # the oracle's own
    torch.testing.assert_close(variance.maximum(least), oracle[1][:, inputs:].square(), rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(location[1], weight @ values[1], rtol=0, atol=1e-9)
    assert float(variance[1].max()) < 1e-9


def plain(*heads: object) -> LinearNetwork:
    kinds = [Kind.CATEGORICAL if head.levels else Kind.CONTINUOUS for head in heads]
    variables = [
        Variable(f"v{number}", kind, tuple(f"l{k}" for k in range(head.levels)))
        for number, (kind, head) in enumerate(zip(kinds, heads, strict=True))
    ]
    return LinearNetwork(layout_of(Schema(tuple(variables)), heads))


def test_a_number_is_a_line_with_all_known_and_its_marginal_with_none() -> None:
    made = plain(GaussianMixture(1), GaussianMixture(1))
    made.high.fill_(9.0)
    made.mean.copy_(torch.tensor([1.0, -1.0]))
    made.covariance.copy_(torch.tensor([[4.0, 1.2], [1.2, 1.0]]))
    made.weight[0, 1], made.intercept[0] = 1.2, 2.2  # E[x0 | x1] = 1 + 1.2 (x1 + 1)
    made.log_scales[0] = 0.5 * math.log(4 - 1.2**2)
    known = torch.tensor([[False, True], [False, False]])
    features = made.beside(torch.tensor([[0.0, 0.5], [0.0, 0.0]], dtype=torch.float64), known)
    torch.testing.assert_close(features[0, 0, 1:], torch.tensor([2.8, 0.5 * math.log(4 - 1.44)], dtype=torch.float64))
    torch.testing.assert_close(features[1, 0, 1:], torch.tensor([1.0, math.log(2)], dtype=torch.float64))


@pytest.mark.parametrize("levels", [2, 3])
def test_logits_are_held_back_where_inputs_are_unknown(levels: int) -> None:
    made = plain(Bernoulli() if levels == 2 else Categorical(3), GaussianMixture(1))
    made.high.fill_(9.0)
    made.weight[:levels, levels - 1] = torch.linspace(-2, 2, levels).double()
    made.intercept[:levels] = torch.linspace(0.5, -0.5, levels).double()
    made.spread[:levels] = made.weight[:levels, levels - 1].square().clamp(min=1e-12)
    known = torch.tensor([[False, True], [False, False]])
    features = made.beside(torch.tensor([[0.0, 0.7], [0.0, 0.0]], dtype=torch.float64), known)[:, 0]
    logits = torch.nn.functional.pad(features[:, :1], (1, 0)) if levels == 2 else features[:, :3]
    all_known = made.weight[:levels, levels - 1] * 0.7 + made.intercept[:levels]
    torch.testing.assert_close(logits[0].softmax(0), all_known.softmax(0))
    if levels == 2:  # without evidence: the mean over the input's own law, within what MacKay's formula can do
        draws = torch.randn(200_000, 1, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
        mean = (draws * made.weight[:2, 1] + made.intercept[:2]).softmax(1).mean(0)
        torch.testing.assert_close(logits[1].softmax(0), mean, rtol=0, atol=0.02)
    # What is then missing to the marginal is added where nothing is known, and only there.
    missing = torch.linspace(-1, 1, levels, dtype=torch.float64)
    made.missing[:levels] = missing
    again = made.beside(torch.tensor([[0.0, 0.7], [0.0, 0.0]], dtype=torch.float64), known)[:, 0]
    moved = torch.nn.functional.pad(again[:, :1], (1, 0)) if levels == 2 else again[:, :3]
    torch.testing.assert_close(moved[0].softmax(0), logits[0].softmax(0))
    held = made.spread[:levels] > 1e-9
    torch.testing.assert_close((moved[1] - logits[1])[held], (missing - missing[0])[held])


def test_beyond_what_was_seen_a_line_does_not_run_on() -> None:
    made = network()
    known = torch.ones(1, 5, dtype=torch.bool)
    values = torch.zeros(1, 5, dtype=torch.float64)
    values[0, 0] = 2.0
    at_the_end = made.beside(values, known)
    values[0, 0] = 1e6
    assert torch.equal(made.beside(values, known), at_the_end)


def test_what_a_line_says_of_a_number_stays_within_what_was_seen() -> None:
    made = plain(GaussianMixture(1), GaussianMixture(1))
    made.low.fill_(-2.0)
    made.high.fill_(3.0)
    made.weight[0, 1] = 4.0
    known = torch.tensor([[False, True]]).expand(3, -1)
    features = made.beside(torch.tensor([[0.0, 2.0], [0.0, 0.5], [0.0, -1.0]], dtype=torch.float64), known)
    assert features[:, 0, 1].tolist() == [3.0, 2.0, -2.0]


def test_is_described_and_loaded_bit_by_bit() -> None:
    made = network()
    again = networks.build(describe(made), layout=made.layout)
    again.load_state_dict(made.state_dict())
    values, known = torch.zeros(4, 5, dtype=torch.float64), torch.rand(4, 5) < 0.5
    assert torch.equal(made.beside(values, known), again.beside(values, known))


@pytest.mark.parametrize(
    ("name", "value"),
    [("weight", math.nan), ("intercept", math.inf), ("spread", 0.0), ("low", 3.0), ("covariance", 5.0)],
)
def test_damaged_numbers_are_refused(name: str, value: float) -> None:
    made = network()
    state = {key: tensor.clone() for key, tensor in made.state_dict().items()}
    state[name].view(-1)[1] = value
    with pytest.raises(UserError, match=r"linear|positive definite"):
        made.load_state_dict(state)


@pytest.mark.parametrize(
    "options",
    [
        {"marks": [[]] * 4},
        {"marks": [[], [3.0], [], [1.0], []]},
        {"marks": [[math.nan], [], [], [], []]},
        {"marks": [[2.0, 1.0], [], [], [], []]},
        {"atoms": [1, 0, 0, 0, 0]},
        {"atoms": [0, 1, 0, 0, 0]},
        {"atoms": [-3, 0, 0, 0, 0]},
        {"logistic": [1, 0, 0, 0, 0]},
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(UserError, match="linear"):
        networks.build({"name": "linear", **options}, layout=mixed_layout())
