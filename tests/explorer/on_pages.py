"""What the tests of all pages of the explorer look for: numbers as a page writes them, and what keeps people out."""

from __future__ import annotations

from typing import Any

import pytest


def percent(prob: float) -> str:
    """As the page writes it."""
    hundredths = 100 * prob
    if hundredths in (0, 100):
        return f"{hundredths:.0f}\u202f%"
    if hundredths < 0.1:
        return "< 0.1\u202f%"
    return f"{hundredths:.{1 if hundredths < 9.95 or hundredths > 99 else 0}f}\u202f%"


def expected(answer: Any) -> dict[Any, str]:
    return {level: percent(prob) for level, prob in answer.probs().items()}


def serious(page: Any) -> list[str]:
    """What axe-core holds to be serious or worse, with where."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core comes with it")
    found = axe.Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found if one["impact"] in ("serious", "critical")]
