"""The demonstration on pictures: its scores against hand-made cases, and that it runs to its picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from anyorder.cli.demos.images import holes, neighbours, rmse, run_image_demo


def test_scores_by_hand() -> None:
    missing = np.array([[True, False], [True, False]])
    truth = np.array([[[3, 0], [4, 0]]])
    assert rmse(np.zeros((1, 2, 2)), truth, missing) == pytest.approx(np.sqrt(12.5))


def test_neighbours_look_at_known_pixels_alone() -> None:
    known = np.zeros((8, 8), dtype=bool)
    known[0, 0] = True
    training = np.zeros((40, 8, 8), dtype=np.uint8)
    training[:, 0, 0] = np.arange(40)
    test = np.full((1, 8, 8), 16, dtype=np.uint8)
    test[0, 0, 0] = 7
    assert neighbours(training, test, known)[0, 0, 0, 0] == 7


def test_it_runs(tmp_path: Path) -> None:
    out = tmp_path / "digits.png"
    result = run_image_demo(out, minutes=0.05)
    assert [row["hidden"] for row in result["scores"]] == list(holes())
    assert out.read_bytes()[:4] == b"\x89PNG"
