"""Draws of a blend, each from one member, against the law of that member."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from anyorder.heads.blend import Blend
from anyorder.heads.member_draws import draws_by_member
from blends import HEADS, LATTICE, blend, numbers

DRAWS = 20_000


def said(head: Blend, seed: int = 0) -> torch.Tensor:
    width = max(member.size for member in head.members)
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(head.members), width, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("name", HEADS)
@torch.no_grad()
def test_every_member_draws_from_its_own_law(name: str) -> None:
    head = HEADS[name]
    features, members = said(head), len(head.members)
    member = torch.arange(members).repeat(DRAWS)
    drawn = head.drawn_by(member, features.repeat(DRAWS, 1), torch.Generator().manual_seed(0))
    for number in range(members):
        law = head.member(number, features[number : number + 1])
        own = drawn[number::members].sort().values
        at = own[:: DRAWS // 400].contiguous()
        share = torch.searchsorted(own, at, right=True) / DRAWS
        # Kolmogorov's distance, which is the less on a lattice: beyond 2.2 in one of ten thousand.
        assert float((share - law.cdf(at)).abs().max()) * math.sqrt(DRAWS) < 2.2, number
        if head.ends:  # and the tails, which are a small part of that
            beyond = torch.stack([(own < head.ends[0]).double().mean(), (own > head.ends[1]).double().mean()])
            wanted = law.outside(*head.ends)[:, 0]
            error = (wanted * (1 - wanted) / DRAWS).sqrt() + 1e-9
            assert bool(((beyond - wanted).abs() < 4.5 * error).all()), number


@pytest.mark.parametrize("name", HEADS)
@torch.no_grad()
def test_rows_are_drawn_together_as_each_is_alone(name: str) -> None:
    head, rows = HEADS[name], 60
    tables = head._curves
    assert tables is not None
    generator = np.random.default_rng(0)
    member = generator.integers(0, len(head.members), rows)
    features, levels = said(head).numpy()[member], generator.random((2, rows))
    together = draws_by_member(tables, member, features, levels)
    assert together is not None
    for row in range(rows):
        here = slice(row, row + 1)
        alone = draws_by_member(tables, member[here], features[here], levels[:, here])
        assert alone is not None
        np.testing.assert_allclose(together[here], alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("level", [0.0, 1e-17, 0.5, np.nextafter(1.0, 0.0)])
@pytest.mark.parametrize("name", HEADS)
@torch.no_grad()
def test_levels_next_to_the_ends_are_finite_draws_inside(name: str, level: float) -> None:
    head = HEADS[name]
    tables = head._curves
    assert tables is not None
    members = np.arange(len(head.members))
    for other in (0.0, 0.5, np.nextafter(1.0, 0.0)):
        levels = np.array([[other], [level]]).repeat(len(members), axis=1)
        drawn = draws_by_member(tables, members, said(head).numpy(), levels)
        assert drawn is not None and np.isfinite(drawn).all()
        assert (drawn >= tables.points[0]).all() and (drawn <= tables.points[-1]).all()


@torch.no_grad()
def test_whole_numbers_are_points_of_the_lattice() -> None:
    head = HEADS["whole numbers with factors"]
    drawn = head.drawn_by(torch.arange(len(head.members)).repeat(50), said(head).repeat(50, 1), None)
    torch.testing.assert_close(drawn, LATTICE.nearest(drawn))


@torch.no_grad()
def test_a_law_of_which_next_to_nothing_is_inside_is_drawn_by_search() -> None:
    head = blend(numbers(1.0, 1.0005))
    features = said(head)
    features[:, 4:8] = -20.0
    member = torch.zeros(100, dtype=torch.long)
    tables = head._curves
    assert tables is not None
    assert draws_by_member(tables, member.numpy(), features[member].numpy(), np.full((2, 100), 0.5)) is None
    drawn = head.drawn_by(member, features[member], torch.Generator().manual_seed(0))
    assert float(drawn.min()) >= 1.0 and float(drawn.max()) <= 1.0005 and len(drawn.unique()) > 50
