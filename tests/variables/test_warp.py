"""A warp is a strictly increasing bijection, and normal scores make columns of many shapes look standard normal."""

from __future__ import annotations

import dataclasses
import json
import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats

from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp


def columns() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(1)
    return {
        "normal": draw.normal(3, 2, 5000),
        "ten rows": draw.normal(size=10),
        "three rows": draw.normal(size=3),
        "cauchy": draw.standard_cauchy(10000),
        "lognormal": draw.lognormal(size=2000),
        "very skewed": draw.lognormal(0, 3, size=2000),
        "absurdly skewed": draw.lognormal(0, 8, size=2000),
        "uniform": draw.uniform(size=1000),
        "two clusters": np.r_[draw.normal(-50, 1, 500), draw.normal(50, 0.1, 500)],
        "atom": np.r_[np.zeros(700), draw.normal(size=300)],
        "nearly constant": np.r_[np.zeros(1000), 1.0],
        "two values": draw.integers(0, 2, 1000) * 1.0,
        "two rows": np.array([1.0, 2.0]),
        "whole numbers": draw.poisson(30, 1000) * 1.0,
        "huge offset": 1e12 + draw.normal(size=1000) * 1e-2,
        "tiny scale": draw.normal(size=1000) * 1e-12,
        "outliers": np.r_[draw.normal(size=1000), 1e12, -1e9],
        "long": draw.normal(size=200_000),
    }


COLUMNS = columns()
FITTED = {name: Warp.normal_scores(column) for name, column in COLUMNS.items()}
WARPS = {
    **FITTED,
    "affine": Warp.affine(-2.0, 0.3),
    "by hand": Warp((0.0, 1.0, 3.0), (-1.0, 2.0, 2.5), (0.5, 4.0, 0.1)),
}


def places(name: str, count: int = 4001) -> torch.Tensor:
    """Points across and beyond the knots, and the data themselves."""
    warp = WARPS[name]
    span = warp.x[-1] - warp.x[0]
    line = torch.linspace(warp.x[0] - span, warp.x[-1] + span, count, dtype=torch.float64)
    return torch.cat([line, torch.from_numpy(COLUMNS[name])]).unique() if name in COLUMNS else line


@pytest.mark.parametrize("name", WARPS)
def test_round_trip_and_order(name: str) -> None:
    x = places(name)
    z = WARPS[name].forward(x)
    assert z.dtype == torch.float64
    assert torch.isfinite(z).all()
    assert (z.diff() >= 0).all()
    # Strictly, as soon as the points are apart by more than rounding at the size of x and z.
    apart = (x.diff() / x.abs().max() > 1e-13) & (x.diff() * min(WARPS[name].slope) * 1e-3 > 1e-14)
    assert (z.diff()[apart] > 0).all()
    scale = torch.from_numpy(np.diff(np.quantile(x.numpy(), [0.1, 0.9])))
    assert ((WARPS[name].inverse(z) - x).abs() / torch.maximum(x.abs(), scale)).max() < 1e-9
    back = torch.linspace(-8, 8, 1001, dtype=torch.float64)
    offset = 1e-3 if name == "huge offset" else 1e-9  # 1e12 leaves 1e-2 units only two digits
    torch.testing.assert_close(WARPS[name].forward(WARPS[name].inverse(back)), back, rtol=1e-9, atol=offset * 20)


@pytest.mark.parametrize("name", WARPS)
def test_log_slope_is_the_derivative(name: str) -> None:
    x = places(name, 400).requires_grad_()
    (slope,) = torch.autograd.grad(WARPS[name].forward(x).sum(), x)
    torch.testing.assert_close(WARPS[name].log_slope(x.detach()), slope.log(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["by hand", "affine", "lognormal"])
def test_log_slope_against_differences(name: str) -> None:
    x = places(name, 301)[5:-5]
    step = 1e-5 * min(high - low for low, high in pairwise(WARPS[name].x))
    difference = (WARPS[name].forward(x + step) - WARPS[name].forward(x - step)) / (2 * step)
    torch.testing.assert_close(WARPS[name].log_slope(x).exp(), difference, rtol=1e-3, atol=1e-8)


def test_knots_and_end_slopes_are_met() -> None:
    warp = WARPS["by hand"]
    x = torch.tensor(warp.x, dtype=torch.float64)
    assert warp.forward(x).tolist() == pytest.approx(list(warp.z))
    assert warp.log_slope(x).exp().tolist() == pytest.approx(list(warp.slope))
    outside = torch.tensor([-10.0, 13.0], dtype=torch.float64)
    assert warp.forward(outside).tolist() == pytest.approx([-1.0 - 10 * 0.5, 2.5 + 10 * 0.1])
    assert warp.forward(torch.tensor([-math.inf, math.inf])).tolist() == [-math.inf, math.inf]


@pytest.mark.parametrize("location", [0.0, -3.0, 1e12])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e3])
def test_affine(location: float, scale: float) -> None:
    x = location + torch.linspace(-5, 5, 101, dtype=torch.float64) * max(scale, abs(location) * 1e-6)
    torch.testing.assert_close(Warp.affine(location, scale).forward(x), (x - location) / scale, rtol=1e-12, atol=1e-12)
    assert Warp.affine(location, scale).log_slope(x).tolist() == pytest.approx([-math.log(scale)] * 101)


CLOSE = {
    "normal": 0.02,
    "cauchy": 0.02,
    "lognormal": 0.02,
    "very skewed": 0.03,
    "uniform": 0.03,
    "two clusters": 0.08,
    "whole numbers": 0.1,
    "tiny scale": 0.03,
    "huge offset": 0.05,
    "outliers": 0.03,
    "ten rows": 0.25,
    "long": 0.008,
}


@pytest.mark.parametrize("name", CLOSE)
def test_scores_are_standard_normal(name: str) -> None:
    z = FITTED[name].forward(torch.from_numpy(COLUMNS[name])).numpy()
    assert stats.kstest(z, "norm").statistic < CLOSE[name]
    assert z.std() == pytest.approx(1, abs=0.3 if name in ("ten rows", "whole numbers") else 0.1)
    assert np.abs(z).max() < 6


TRUTHS = {
    "normal": stats.norm(3, 2),
    "lognormal": stats.lognorm(1),
    "cauchy": stats.cauchy(),
    "uniform": stats.uniform(),
    "ten rows": stats.norm(),
}


@pytest.mark.parametrize("name", TRUTHS)
def test_the_margin_generalises(name: str) -> None:
    """New data score nearly as well under phi(z) dz/dx as under the law they come from."""
    fresh = TRUTHS[name].rvs(20000, random_state=np.random.default_rng(2))
    x = torch.from_numpy(np.asarray(fresh, dtype=np.float64))
    z = FITTED[name].forward(x)
    ours = (-0.5 * z.square() - 0.5 * math.log(2 * math.pi) + FITTED[name].log_slope(x)).mean()
    lost = TRUTHS[name].logpdf(fresh).mean() - float(ours)
    assert lost < (0.6 if name == "ten rows" else 0.08)


@pytest.mark.parametrize("name", FITTED)
def test_slopes_are_bounded(name: str) -> None:
    """However many ties: no slope of the map is beyond the smoothing of the column's own spread."""
    column = COLUMNS[name]
    low, high = np.quantile(column, [0.02, 0.98])
    unit = (high - low) if high > low else np.ptp(column)
    slopes = WARPS[name].log_slope(places(name)).exp() * unit
    assert slopes.max() < (1e12 if name == "absurdly skewed" else 1e7)


def test_minimum_scale_smooths() -> None:
    column = np.repeat(np.arange(5.0), 200) + 0.01 * np.random.default_rng(0).normal(size=1000)
    x = torch.linspace(0, 4, 401, dtype=torch.float64)
    rough = Warp.normal_scores(column).log_slope(x)
    smooth = Warp.normal_scores(column, minimum_scale=1.0).log_slope(x)
    assert smooth.max() - smooth.min() < 1.2
    assert smooth.max() - smooth.min() < rough.max() - rough.min()


def test_constant_and_empty_columns_are_shifted() -> None:
    x = torch.tensor([7.0, 8.0], dtype=torch.float64)
    assert Warp.normal_scores(np.full(9, 7.0)).forward(x).tolist() == pytest.approx([0, 1])
    assert Warp.normal_scores(np.array([7.0]), minimum_scale=0.5).forward(x).tolist() == pytest.approx([0, 2])
    assert Warp.normal_scores(np.array([np.nan])).forward(x).tolist() == pytest.approx([7, 8])


def test_json_keeps_every_bit() -> None:
    for warp in WARPS.values():
        assert Warp(**json.loads(json.dumps(dataclasses.asdict(warp)))) == warp


@pytest.mark.parametrize(
    ("x", "z", "slope"),
    [((0.0,), (0.0,), (1.0,)), ((0.0, 0.0), (0.0, 1.0), (1.0, 1.0)), ((0.0, 1.0), (1.0, 0.0), (1.0, 1.0)),
     ((0.0, 1.0), (0.0, 1.0), (1.0, 0.0)), ((0.0, math.nan), (0.0, 1.0), (1.0, 1.0))],
)  # fmt: skip
def test_bad_knots_are_refused(x: tuple[float, ...], z: tuple[float, ...], slope: tuple[float, ...]) -> None:
    with pytest.raises(ValueError):
        Warp(x, z, slope)


@pytest.mark.parametrize("count", [6, None])
def test_lattice_cells_tile_the_line(count: int | None) -> None:
    lattice = Lattice(10.0, 0.5, count, WARPS["lognormal"])
    index = torch.arange(6, dtype=torch.float64)
    z = lattice.at(index)
    assert lattice.index(z).tolist() == index.tolist()
    assert lattice.point(z).tolist() == [10.0, 10.5, 11.0, 11.5, 12.0, 12.5]
    lower, upper = lattice.cell(z)
    assert torch.equal(upper[:-1], lower[1:])
    assert ((lower < z) & (z < upper)).all()
    middle = WARPS["lognormal"].inverse(upper[:-1])
    torch.testing.assert_close(middle, 10.25 + 0.5 * index[:-1])
    assert torch.isinf(lower[0]) == torch.isinf(upper[-1]) == torch.tensor(count is not None)
    between = lattice.warp.forward(torch.tensor([10.1, 10.4, 12.4], dtype=torch.float64))
    assert lattice.point(between).tolist() == [10.0, 10.5, 12.5]
    assert lattice.index_below(between).tolist() == [0, 0, 4]
    assert lattice.index_below(z.float()).tolist() == index.tolist()
    far = lattice.warp.forward(torch.tensor([0.0, 100.0], dtype=torch.float64))
    assert lattice.point(far).tolist() == ([10.0, 12.5] if count else [0.0, 100.0])


def test_lattice_from_json() -> None:
    lattice = Lattice(1.0, 2.0, None, WARPS["by hand"])
    assert Lattice.read(json.loads(json.dumps(dataclasses.asdict(lattice)))) == lattice
    with pytest.raises(ValueError, match="step"):
        Lattice(0.0, 0.0, None, WARPS["by hand"])


@pytest.mark.parametrize("described", [(), ((),), "abc", 3, None])
def test_what_is_no_lattice_is_refused(described: object) -> None:
    with pytest.raises(ValueError, match="a lattice needs a start, a step, a count and a warp"):
        Lattice.read(described)


def test_steps_that_rounding_swallows_are_refused() -> None:
    with pytest.raises(ValueError, match="lost to rounding"):
        Lattice(19787.0, 1e-30, None, Warp.affine(0.0, 1.0))
    with pytest.raises(ValueError, match="lost to rounding"):
        Lattice(0.0, 1e-30, None, Warp.affine(1e9, 1.0))
    assert Lattice(1e12, 1e-2, None, Warp.affine(1e12, 1.0)).step == 1e-2


@pytest.mark.parametrize("name", ["normal", "lognormal", "uniform", "whole numbers", "very skewed", "ten rows"])
def test_one_value_in_n_plus_one_lies_beyond_either_end(name: str) -> None:
    column, warp = COLUMNS[name], FITTED[name]
    half = np.diff(np.unique(column)).min() / 2
    ends = warp.forward(torch.tensor([column.min() - half, column.max() + half], dtype=torch.float64))
    assert torch.special.ndtr(-ends.abs()).tolist() == pytest.approx([1 / (len(column) + 1)] * 2, rel=1e-3)


@pytest.mark.parametrize("name", ["normal", "cauchy", "very skewed", "three rows", "outliers"])
@pytest.mark.parametrize("standard", [False, True])
def test_nothing_is_far_out_and_everything_has_a_density(name: str, standard: bool) -> None:
    column = COLUMNS[name]
    low, high = column.min(), column.max()
    width = high - low
    warp = Warp.standard(column, column.mean(), column.std()) if standard else FITTED[name]
    scores = warp.forward(torch.tensor([low - 3 * width, low - width, high + width, high + 3 * width]))
    reach = (high - low) / column.std() if standard else 1.0
    assert bool((scores[1:3].abs() > (3 * reach if standard else 3.0)).all())
    assert bool((scores[[0, 3]].abs() > 10 * reach).all())
    far = torch.tensor([low - 100 * width, high + 100 * width], dtype=torch.float64)
    assert bool(torch.isfinite(warp.forward(far)).all() & torch.isfinite(warp.log_slope(far)).all())
