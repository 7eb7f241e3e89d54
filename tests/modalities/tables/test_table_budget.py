"""What is left of a budget: everything counts, and there is never less than nothing."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from anyorder.modalities.tables import engines
from anyorder.modalities.tables.budget import WEIGHING, TimeBudget


def test_time_passes_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    budget = TimeBudget(began=100.0, whole=60.0)
    assert budget.left == pytest.approx(60 * (1 - WEIGHING))
    budget.before = 20.0  # an earlier run
    assert budget.left == pytest.approx(60 * (1 - WEIGHING) - 20)
    now = 110.0
    assert budget.left == pytest.approx(60 * (1 - WEIGHING) - 30)
    assert not budget.late(0.4) and budget.late(0.5)
    now = 1000.0
    assert budget.left == 0.0 and budget.late(0.01)


def test_weighing_has_what_it_needs_but_never_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    assert TimeBudget(began=0.0, whole=60.0, weighing=10.0).left == pytest.approx(50.0)
    assert TimeBudget(began=0.0, whole=60.0, weighing=100.0).left == pytest.approx(45.0)


def test_without_a_limit_there_is_no_clock() -> None:
    budget = TimeBudget(began=0.0, whole=None)
    assert budget.left == math.inf and not budget.late(1.0)


@pytest.mark.parametrize(
    ("whole", "needed", "share"), [(100.0, 1.0, 0.4), (100.0, 47.0, 0.5), (100.0, 1e3, 0.8), (None, 1e3, 0.4)]
)
def test_trees_have_more_where_they_would_hardly_see_the_rows(
    whole: float | None, needed: float, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    monkeypatch.setattr(engines, "seconds_to_see_all", lambda job: needed)
    job = SimpleNamespace(budget=TimeBudget(began=0.0, whole=whole))
    assert engines._share_for_trees(job) == pytest.approx(share)
