"""Warps that are looked up together give the bits that each gives alone."""

from __future__ import annotations

import numpy as np

from anyorder.variables.number_rows import StackedWarps
from anyorder.variables.warp import Warp


def test_rows_have_the_bits_of_single_columns() -> None:
    draw = np.random.default_rng(0)
    warps = [
        Warp.normal_scores(draw.normal(size=500)),
        Warp.affine(3.0, 0.7),
        Warp.normal_scores(draw.lognormal(size=40)),  # fewer knots
        Warp.standard(draw.normal(2, 5, 300), 2.0, 5.0),
        Warp.affine(-1e6, 2.0),
    ]
    stacked = StackedWarps(warps)
    knots = max(len(warp.x) for warp in warps)
    rows = [draw.normal(0, scale, len(warps)) for scale in (0.1, 1.0, 30.0, 1e6) for _ in range(50)]
    rows += [np.array([warp.x[min(number, len(warp.x) - 1)] for warp in warps]) for number in range(knots)]
    for row in rows:
        alone = [warp.forward_array(np.array([value]))[0] for warp, value in zip(warps, row, strict=True)]
        assert stacked.forward(row).tolist() == alone


def test_one_kind_of_warp_alone_or_none() -> None:
    assert StackedWarps([Warp.affine(1.0, 2.0)]).forward(np.array([5.0])).tolist() == [2.0]
    assert len(StackedWarps([]).forward(np.zeros(0))) == 0
