"""Where increasing functions cross zero: smooth ones in few calls, jumps and plateaus to the least point."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from scipy import optimize, stats
from torch import Tensor

from anyorder.support.roots import (
    SHARP,
    bracket_end,
    crossing_by_sections,
    first_crossing,
    increasing_root,
    least_index,
)

LEVELS = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)


def crossing(function: Callable[[Tensor], Tensor], lower: float, upper: float) -> tuple[Tensor, int]:
    """Where it reaches each of the levels, and the calls that took."""
    calls = 0

    def less(point: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return function(point) - LEVELS

    ends = torch.ones_like(LEVELS)
    return first_crossing(less, lower * ends, upper * ends), calls


def test_a_smooth_function_takes_few_calls() -> None:
    found, calls = crossing(torch.special.ndtr, -9.0, 11.0)
    torch.testing.assert_close(found, torch.special.ndtri(LEVELS), rtol=0, atol=2e-11)
    assert calls < 20  # halving alone takes 44


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_least_point_behind_jumps(scale: float) -> None:
    # Steps of a tenth at 0, 1, ..., 9: every level is reached at the tenth above it, not before.
    found, _ = crossing(lambda point: (torch.floor(point / scale) + 1).clamp(0, 10) / 10, -0.5 * scale, 9.5 * scale)
    expected = scale * torch.ceil(10 * LEVELS - 1e-9).sub(1)
    torch.testing.assert_close(found, expected, rtol=4e-12, atol=4e-12)


def test_a_wide_bracket_and_equal_ends() -> None:
    found, _ = crossing(lambda point: torch.special.ndtr(1000 * point), -1e6, 3.0)
    torch.testing.assert_close(found, torch.special.ndtri(LEVELS) / 1000, rtol=0, atol=4e-12)
    found, _ = crossing(torch.ones_like, 2.0, 2.0)
    assert torch.equal(found, torch.full_like(LEVELS, 2.0))


def test_the_least_point_of_a_plateau() -> None:
    # Flat at one half between 1 and 3: the level one half is reached at 1.
    def function(point: Tensor) -> Tensor:
        return torch.where(point < 1, point / 2, torch.where(point < 3, 0.5, point / 6)).clamp(0, 1)

    found, _ = crossing(function, 0.0, 6.0)
    expected = torch.where(LEVELS <= 0.5, 2 * LEVELS, 6 * LEVELS)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_the_sharpest_answer_is_scipys() -> None:
    # Two normals far apart: a steep cdf, a plateau between them, and a wide bracket.
    def mixture(point: Tensor) -> Tensor:
        return 0.3 * torch.special.ndtr(50 * (point + 4)) + 0.7 * torch.special.ndtr(point - 8)

    found = first_crossing(lambda p: mixture(p) - LEVELS, torch.full_like(LEVELS, -99.0), LEVELS * 0 + 99.0, SHARP)
    for level, point in zip(LEVELS.tolist(), found.tolist(), strict=True):

        def excess(value: float, level: float = level) -> float:
            return float(0.3 * stats.norm.cdf(50 * (value + 4)) + 0.7 * stats.norm.cdf(value - 8)) - level

        if abs(level - 0.3) > 1e-9:  # on the plateau a digit of the cdf decides
            assert point == pytest.approx(optimize.brentq(excess, -99.0, 99.0, xtol=1e-15), rel=1e-12)


def test_a_lower_end_that_is_not_negative_is_the_answer() -> None:
    # For the first element at once, for the second never: it must not be drawn to the upper end.
    lower, upper = torch.tensor([0.0, -1.0, 2.0]).double(), torch.tensor([5.0, 5.0, 5.0]).double()
    found = first_crossing(lambda point: point, lower, upper)
    torch.testing.assert_close(found, torch.tensor([0.0, 0.0, 2.0]).double(), rtol=0, atol=2e-12)
    nowhere = first_crossing(lambda point: point * float("nan"), lower, upper)
    assert torch.equal(nowhere, lower)


@pytest.mark.parametrize("upward", [True, False])
def test_a_bracket_without_an_end_gets_one(upward: bool) -> None:
    roots = torch.tensor([0.5, 7.0, 1e6]).double() * (1 if upward else -1)
    end = bracket_end(lambda point: point - roots, torch.zeros(3, dtype=torch.float64), upward=upward)
    beyond = end / roots
    assert bool(((beyond >= 1) & (beyond <= 2)).all())
    assert bool(((end - roots >= 0) if upward else (end - roots < 0)).all())


def test_increasing_root_is_exact() -> None:
    target = torch.linspace(-3, 3, 61, dtype=torch.float64)
    root = increasing_root(
        lambda x: (x**3 + x - target, 3 * x**2 + 1), torch.full_like(target, -9), torch.full_like(target, 5)
    )
    torch.testing.assert_close(root**3 + root, target, rtol=0, atol=1e-14)


FEW = torch.tensor([1e-9, 0.05, 0.3, 0.5, 0.95, 1 - 1e-9], dtype=torch.float64)


@pytest.mark.parametrize("precision", [1e-12, SHARP])
def test_sections_find_a_smooth_crossing_in_a_handful_of_calls(precision: float) -> None:
    calls = 0

    def less(point: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return torch.special.ndtr(point) - FEW

    found = crossing_by_sections(less, torch.full_like(FEW, -9), torch.full_like(FEW, 11), precision)
    # To the digits that the level has: in the tails a small step of the cdf is a large one of the point.
    torch.testing.assert_close(torch.special.ndtr(found), FEW, rtol=0, atol=2e-12)
    assert calls <= 12  # halving alone takes 44
    torch.testing.assert_close(found[1:5], torch.special.ndtri(FEW)[1:5], rtol=0, atol=2e-12)


def test_sections_find_jumps_plateaus_and_kinks_as_single_points_do() -> None:
    def steps(point: Tensor) -> Tensor:
        return (torch.floor(point / 3) + 1).clamp(0, 10) / 10

    def plateau(point: Tensor) -> Tensor:
        return torch.where(point < 1, point / 2, torch.where(point < 3, 0.5, point / 6)).clamp(0, 1)

    def kinks(point: Tensor) -> Tensor:
        return torch.where(point < 2.3, point / 46, 0.05 + (point - 2.3) * 0.5).clamp(0, 1)

    for function in (steps, plateau, kinks):
        lower, upper = torch.full_like(FEW, -0.5), torch.full_like(FEW, 30.0)
        one, many = (
            search(lambda point, of=function: of(point) - FEW, lower, upper, SHARP)
            for search in (first_crossing, crossing_by_sections)
        )
        torch.testing.assert_close(many, one, rtol=1e-12, atol=1e-12)


def test_sections_keep_a_lower_end_that_is_reached_and_leave_large_batches_alone() -> None:
    lower, upper = torch.tensor([0.0, -1.0, 2.0]).double(), torch.tensor([5.0, 5.0, 5.0]).double()
    found = crossing_by_sections(lambda point: point, lower, upper)
    torch.testing.assert_close(found, torch.tensor([0.0, 0.0, 2.0]).double(), rtol=0, atol=2e-12)
    assert torch.equal(crossing_by_sections(lambda point: point * float("nan"), lower, upper), lower)
    shapes: set[int] = set()

    def seen(point: Tensor) -> Tensor:
        shapes.add(point.ndim)
        return point - 1

    many = torch.zeros(5000, dtype=torch.float64)
    torch.testing.assert_close(crossing_by_sections(seen, many - 1, many + 3), many + 1)
    assert shapes == {1}


@pytest.mark.parametrize(("first", "last"), [(0, 3), (5, 5), (-7, 200), (0, 64), (0, 65), (-(10**6), 10**12)])
def test_the_least_whole_number(first: int, last: int) -> None:
    wanted = torch.randint(first, last + 1, (40,), generator=torch.Generator().manual_seed(0)).double()
    ends = torch.full_like(wanted, first), torch.full_like(wanted, last)
    assert torch.equal(least_index(lambda index: index - wanted, *ends), wanted)
    assert torch.equal(least_index(lambda index: index * 0 - 1, *ends), ends[1])
    assert torch.equal(least_index(lambda index: index * 0 + 1, *ends), ends[0])
