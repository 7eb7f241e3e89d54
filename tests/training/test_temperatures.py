"""Temperatures of members, from cells whose true one is known."""

from __future__ import annotations

import pytest
import torch

from anyorder.training.temperatures import fit_temperature


@pytest.mark.parametrize("true", [0.6, 1.0, 1.7])
def test_temperatures_find_how_sure_a_member_may_be(true: float) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(4_000, 3, generator=generator, dtype=torch.float64)
    codes = torch.multinomial((logits / true).softmax(1), 1, generator=generator)[:, 0]
    counts = torch.ones(4_000, dtype=torch.float64)
    said = logits.log_softmax(1)
    assert fit_temperature(said, codes, counts, together=False) == pytest.approx(true, rel=0.08)
    half = fit_temperature(said, codes, counts, together=True)
    assert half == pytest.approx(true**0.5 if true > 1 else true, rel=0.08)


def test_a_few_cells_leave_a_member_as_it_is() -> None:
    said = torch.tensor([[-0.1, -2.3]] * 3, dtype=torch.float64).log_softmax(1)
    found = fit_temperature(said, torch.tensor([0, 1, 0]), torch.ones(3, dtype=torch.float64), together=False)
    assert found == pytest.approx(1.0, abs=0.2)
