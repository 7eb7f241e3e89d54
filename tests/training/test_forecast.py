"""What a training curve says about going on."""

from __future__ import annotations

import numpy as np
import pytest

from anyorder.training.forecast import expected_gain


def curve(score, points: int = 200, until: float = 1.0):  # type: ignore[no-untyped-def]
    return [[share, score(share)] for share in np.linspace(until / points, until, points).tolist()]


def test_a_power_law_is_forecast() -> None:
    """s(t) = -t^(-1/2): each doubling gains 1 / sqrt(2) of the one before."""

    def score(share: float) -> float:
        return -(share**-0.5)

    expected = score(1.5) - score(0.75)
    assert expected_gain(curve(score), 0.25) == pytest.approx(expected, rel=0.05)


def test_a_curve_that_is_level_or_falls_promises_nothing() -> None:
    assert expected_gain(curve(lambda share: -1.0), 0.25) == 0.0
    assert expected_gain(curve(lambda share: -share), 0.25) == 0.0


def test_the_end_where_the_rate_falls_does_not_count() -> None:
    steep = expected_gain(curve(lambda share: 10 * max(share - 0.75, 0.0)), 0.25)
    assert steep == pytest.approx(0.0, abs=1e-9)


def test_a_curve_that_rises_ever_faster_goes_on_at_its_pace() -> None:
    assert expected_gain(curve(lambda share: share**2), 0.0) == pytest.approx(0.75, rel=0.05)


@pytest.mark.parametrize("points", [[], [[0.5, -1.0]], [[0.3, -2.0], [0.6, -1.0]]])
def test_too_short_to_tell(points: list[list[float]]) -> None:
    assert expected_gain(points, 0.25) is None
