"""What the benchmarks of pictures measure, against cases worked out by hand."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "pictures"))
from conditional_likelihood import conditional
from holes import FAMILIES, GROUPS
from measures import fill_scores, frechet, inception_distance, psnr, ssim, standard_error
from modes import LIKELIHOODS, ratios, summed

from anyorder.errors import UserError
from anyorder.modalities.images.core import encoded, image_model
from anyorder.modalities.images.model import ImageModel
from anyorder.modalities.images.scores import energy_score
from anyorder.protocols import Random
from anyorder.testing import randomised


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
    with pytest.raises(UserError, match="two or more"):
        energy_score(draws[:1], truth, known, 1.0)


def test_fills_are_scored_by_their_mean_and_one_by_one() -> None:
    truth = np.full((2, 7, 7), 10, dtype=np.uint8)
    known = np.ones((2, 7, 7), dtype=bool)
    known[:, 3, 3] = False
    drawn = np.stack([truth + 4.0, truth - 4.0])  # their mean is right; what is known does not count
    found = fill_scores(drawn, truth, known, 17, None)
    assert found["energies"] == pytest.approx([4 / 16 - 8 / 16 / 2] * 2)
    assert found["PSNR"] == pytest.approx(20 * np.log10(16) + 120, abs=0.01)  # an error of 1e-12 is the least
    assert found["SSIM"] == 1
    assert "agreement" not in found


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
    # A feature that is always off adds nothing, and fewer pictures than features are no harm.
    still = np.concatenate([one, np.zeros((len(one), 1))], axis=1), np.concatenate([other, other[:, :1] * 0], axis=1)
    assert frechet(*still) == pytest.approx(frechet(one, other), abs=1e-6)
    few = rng.normal(size=(5, 20))
    assert frechet(few, few + 1) == pytest.approx(20, abs=1e-5)


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


def test_the_drawn_steps_of_a_conditional_are_unbiased() -> None:
    # A network of random weights disagrees with itself between orders: the mean over all six of them is meant.
    network = {"name": "unet", "channels": 8, "blocks": 1, "levels": 1, "modes": 2}
    core = image_model((2, 2), 2, network, Random(), head="auto", components=1, seed=0)
    randomised(core.network, torch.Generator().manual_seed(3))
    model = ImageModel(core.float().eval(), {"pictures": {"levels": 2}})
    picture = np.array([[[1, 0], [1, 1]]], dtype=np.uint8)
    known = np.array([[[False, True], [False, False]]])
    totals, pairs, firsts = [], [], []
    for order in itertools.permutations((0, 2, 3)):
        told, nats = torch.tensor([[False, True, False, False]]), []
        for place in order:
            with torch.no_grad():
                nats.append(-core.log_prob_beside(encoded(core, picture), told)[0].double().numpy())
            told[0, place] = True
        first, second, third = order
        totals.append(nats[0][first] + nats[1][second] + nats[2][third])
        pairs.append(nats[0][first] + nats[1][second] + nats[1][third])
        firsts.append(nats[0][[0, 2, 3]].sum())
    pictures, holes = (np.repeat(part, 2000, axis=0) for part in (picture, known))
    for calls, truth, steps in ((None, totals, 1), (None, totals, 2), (9, totals, 3), (2, pairs, 1), (2, pairs, 2)):
        drawn = conditional(model, pictures, holes, steps, calls=calls)
        assert np.std(truth) > 0.005
        assert drawn.mean() == pytest.approx(np.mean(truth), abs=4 * standard_error(drawn))
    assert conditional(model, picture, known, 1, calls=1)[0] == pytest.approx(np.mean(firsts), rel=1e-5)


def test_pixels_of_one_call_are_given_the_calls_before(monkeypatch: pytest.MonkeyPatch) -> None:
    core = image_model((2, 2), 2, {"name": "unet", "modes": 2}, Random(), head="auto", components=1, seed=0)
    # A pixel costs the square of one more than are known: 4 + 9 + 16 one by one, behind one that is known.
    monkeypatch.setattr(
        core, "log_prob_beside", lambda values, told: -(told.sum(dim=1, keepdim=True) + 1.0).square().expand(-1, 4)
    )
    model = ImageModel(core.float().eval(), {"pictures": {"levels": 2}})
    pictures, known = np.zeros((5, 2, 2), dtype=np.uint8), np.tile([[False, True], [False, False]], (5, 1, 1))
    for calls, truth in ((None, 4 + 9 + 16), (3, 4 + 9 + 16), (2, 4 + 2 * 9), (1, 3 * 4)):
        steps = calls or 3  # one of each group, which leaves nothing to chance
        assert conditional(model, pictures, known, steps, calls=calls) == pytest.approx(truth)
    asked = np.tile([[True, False], [False, True]], (5, 1, 1))  # the other one stays unknown
    assert conditional(model, pictures, known, 2, asked=asked) == pytest.approx(4 + 9)
    assert conditional(model, pictures, known, 1, asked=np.zeros_like(asked)) == pytest.approx(0)


def test_ratios_are_of_pairs() -> None:
    rng = np.random.default_rng(0)
    one, seven = ({"measured": {}, "steps": 1, "seconds": 1.0, "parameters": 1} for _ in range(2))
    for family in FAMILIES:
        nats = rng.uniform(50, 150, 40)
        noisy = nats + rng.normal(size=40)
        for row, likelihood, energies in ((one, nats, nats[:20]), (seven, noisy, 2 * nats[:20])):
            row["measured"][family] = {"missing": [10] * 40, **dict.fromkeys(LIKELIHOODS, likelihood)}
            row["measured"][family]["fills"] = {"energies": energies}
        seven["measured"][family]["all"] = 0.9 * nats
    change = ratios(one, seven)
    assert len(change) == len(FAMILIES) + len(GROUPS)
    for found in change.values():
        assert found["all"] == pytest.approx((-0.1, 0.0), abs=1e-12)
        assert found["energy"] == pytest.approx((1.0, 0.0), abs=1e-12)
        assert 0 < found["one call"][1] < 0.01  # far below the spread of the pictures
    mean, error = summed(one)["scores"]["left half"]["all"]
    nats = one["measured"]["left half"]["all"]
    assert mean == pytest.approx(nats.mean() / 10)
    assert error == pytest.approx(nats.std(ddof=1) / np.sqrt(40) / 10)
