"""Gates: they find who is to be believed when, and keep to fixed weights where nothing speaks against them."""

from __future__ import annotations

import torch
from torch import Tensor

from anyorder.networks.blend import gate_features
from anyorder.training.gates import Gates, JudgedCells, fit_gates

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
    fixed = Gates(torch.full((VARIABLES, 2), 0.5).double().log(), torch.zeros(VARIABLES, 2, 2 + VARIABLES).double())
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
