"""What the benchmarks of pictures measure, against cases worked out by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks" / "pictures"))
from holes import FAMILIES
from measures import frechet, inception_distance

from anyorder.image_scores import energy_score, psnr, ssim


def test_psnr_and_ssim() -> None:
    truth = np.random.default_rng(0).integers(0, 256, (3, 9, 9)).astype(float)
    assert psnr(truth + 5, truth, 255) == pytest.approx(20 * np.log10(255 / 5))
    assert ssim(truth, truth, 255) == pytest.approx(1.0)
    # Two flat pictures: only their means count.
    one, other = np.full((1, 7, 7), 100.0), np.full((1, 7, 7), 50.0)
    small = 2.55**2
    assert ssim(one, other, 255) == pytest.approx((2 * 100 * 50 + small) / (100**2 + 50**2 + small))
    assert ssim(-truth + 255, truth, 255) < 0


def test_energy_score_sees_missing_pixels_alone() -> None:
    truth = np.zeros((1, 2, 2))
    known = np.array([[[True, False], [False, True]]])
    draws = np.zeros((2, 1, 2, 2))
    draws[0, 0] = [[9, 3], [4, 9]]  # at distance 5 in the missing pixels, 9s are not counted
    assert energy_score(draws, truth, known, 1.0)[0] == pytest.approx(2.5 - 5 / 2)


def test_the_real_fid_needs_its_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    pictures = np.zeros((4, 8, 8), dtype=np.uint8)
    assert inception_distance(pictures, pictures) is None


def test_frechet_of_gaussians() -> None:
    rng = np.random.default_rng(0)
    one = rng.normal(size=(40_000, 2))
    other = 2 * rng.normal(size=(40_000, 2)) + np.array([3.0, 0.0])
    # |m|^2 + tr(1 + 4 - 2 * 2) in each of two dimensions.
    assert frechet(one, other) == pytest.approx(9 + 2 * (1 + 4 - 4), rel=0.03)
    assert frechet(one, one) == pytest.approx(0.0, abs=1e-6)


def test_families_of_holes() -> None:
    for name, masks in FAMILIES.items():
        known = masks(200, 14, 12, np.random.default_rng(0))
        assert known.shape == (200, 14, 12)
        missing = 1 - known.mean()
        if name.startswith("random"):
            assert missing == pytest.approx(int(name.split()[1]) / 100, abs=0.01)
        elif name.endswith("half"):
            assert missing == 0.5
        else:
            assert 0.05 < missing < 0.95
    left = FAMILIES["left half"](1, 4, 4, np.random.default_rng(0))[0]
    assert not left[:, :2].any()
    assert left[:, 2:].all()
