"""Gates: they find who is to be believed when, and keep to fixed weights where nothing speaks against them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from anyorder.networks.blend import gate_features
from anyorder.training.gates import Gates, JudgedCells, fit_gates, thinned

VARIABLES = 4


def cells(count: int, slope: float, *, seed: int = 0) -> tuple[JudgedCells, Tensor]:
    """Cells that the first of two members made with a probability that rises by ``slope`` with the share known."""
    generator = torch.Generator().manual_seed(seed)
    known = torch.rand(count, VARIABLES, generator=generator) < torch.rand(count, 1, generator=generator)
    variable = torch.randint(VARIABLES, (count,), generator=generator)
    known[torch.arange(count), variable] = False
    features = gate_features(known)
    share = torch.sigmoid(slope * features[:, 0])
    first = torch.rand(count, generator=generator) < share
    x = torch.randn(count, generator=generator, dtype=torch.float64) + torch.where(first, 3.0, -3.0)
    nats = torch.stack([-(x - 3).square() / 2, -(x + 3).square() / 2])
    return JudgedCells(nats, variable, features, torch.ones(count, dtype=torch.float64)), share


def test_gates_find_the_weights_that_made_the_cells() -> None:
    seen, share = cells(20_000, 4.0)
    gates = fit_gates(seen, VARIABLES)
    torch.testing.assert_close(gates.weights(seen).exp()[:, 0], share.double(), rtol=0, atol=0.06)


def test_weights_of_a_cell_add_up_to_one() -> None:
    seen, _ = cells(200, 1.0)
    weights = fit_gates(seen, VARIABLES).weights(seen).exp()
    torch.testing.assert_close(weights.sum(1), torch.ones(200, dtype=torch.float64))


def test_where_nothing_depends_on_the_evidence_gates_lose_next_to_nothing() -> None:
    seen, _ = cells(1000, 0.0)
    fresh, _ = cells(20_000, 0.0, seed=1)
    gates = fit_gates(seen, VARIABLES)
    even, none = torch.full((VARIABLES, 2), 0.5).double().log(), torch.zeros(VARIABLES).double()
    fixed = Gates(even, torch.zeros(VARIABLES, 2, 2 + VARIABLES).double(), none)
    assert float((gates.log_prob(fresh) - fixed.log_prob(fresh)).mean()) > -0.02


def test_a_variable_with_few_cells_follows_the_others() -> None:
    seen, _ = cells(5_000, 4.0)
    few = (seen.variable != 3) | (torch.arange(len(seen)) < 8)
    gates = fit_gates(seen.take(few.nonzero()[:, 0]), VARIABLES)
    known = torch.tensor([[True, True, True, False], [False] * 4])
    much, little = (gate_features(known) @ (gates.slopes[3, 0] - gates.slopes[3, 1])).tolist()
    assert much - little > 2.0


def test_members_that_cells_rule_out_get_no_weight() -> None:
    seen, _ = cells(2_000, 0.0)
    worse = JudgedCells(torch.cat([seen.nats, seen.nats[:1] - 5.0]), seen.variable, seen.features, seen.counts)
    assert float(fit_gates(worse, VARIABLES).weights(worse).exp()[:, 2].mean()) < 0.02


def levels(count: int, sharpness: float, *, seed: int = 0) -> JudgedCells:
    """Cells of three levels, made by a power of the even mixture of two members that rises with the share known."""
    generator = torch.Generator().manual_seed(seed)
    plain, _ = cells(count, 0.0, seed=seed)
    said = 2 * torch.randn(2, count, 3, generator=generator, dtype=torch.float64)
    said = said.log_softmax(-1)
    power = (sharpness * (plain.features[:, 0] + 0.5)).exp()
    mixed = said.exp().mean(0) ** power[:, None]
    code = torch.multinomial(mixed / mixed.sum(1, keepdim=True), 1, generator=generator)[:, 0]
    own = [plain.variable == variable for variable in range(VARIABLES)]
    return JudgedCells(
        said.gather(2, code.expand(2, -1)[..., None])[..., 0],
        plain.variable,
        plain.features,
        plain.counts,
        {variable: said[:, here] for variable, here in enumerate(own)},
        {variable: code[here] for variable, here in enumerate(own)},
    )


@pytest.mark.parametrize("sharpness", [0.8, -0.8])
def test_the_power_that_made_the_cells_is_found(sharpness: float) -> None:
    found = fit_gates(levels(40_000, sharpness), VARIABLES).sharpness
    torch.testing.assert_close(found, torch.full_like(found, sharpness), rtol=0, atol=0.12)


def test_a_power_that_cells_do_not_ask_for_is_left_out() -> None:
    seen = levels(40_000, 0.0)
    assert int((fit_gates(seen, VARIABLES).sharpness == 0).sum()) >= VARIABLES - 1  # one may gain by chance
    few = fit_gates(levels(40, 0.0), VARIABLES).sharpness
    assert float(few.abs().max()) < 0.5


def test_numbers_have_no_power() -> None:
    seen, _ = cells(2_000, 1.0)
    assert not bool(fit_gates(seen, VARIABLES).sharpness.any())


def test_some_cells_keep_what_is_said_of_their_levels() -> None:
    seen = levels(200, 0.5)
    index = torch.tensor([150, 3, 77, 20, 21, 199])
    gates = fit_gates(seen, VARIABLES)
    torch.testing.assert_close(gates.log_prob(seen.take(index)), gates.log_prob(seen)[index])


def test_fewer_cells_keep_those_that_count_and_the_sums() -> None:
    seen = levels(10_000, 0.5)
    counts = torch.where(torch.arange(10_000) % 50 == 7, 1.0, 0.03).double()
    seen = replace(seen, counts=counts)
    some = thinned(seen, 3_000)
    assert 2_990 <= len(some) <= 3_001
    assert int((some.counts == 1.0).sum()) == int((counts == 1.0).sum())
    torch.testing.assert_close(some.counts.sum(), counts.sum(), rtol=0.01, atol=0)
    whole = float((counts * seen.nats[0]).sum())
    assert float((some.counts * some.nats[0]).sum()) == pytest.approx(whole, rel=0.05)
    assert thinned(seen, 10_000) is seen
