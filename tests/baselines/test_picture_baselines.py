"""Baselines of pictures: diffusion against a Gaussian it must reproduce, RePaint's path, the halves of a U-Net."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from anyorder.baselines import DDPM, MIWAE, VAE, RePaint, Schedule
from anyorder.baselines.observation import HeadCell
from anyorder.baselines.picture_halves import picture_halves
from anyorder.data.images import digits
from anyorder.errors import UserError
from anyorder.heads import Bernoulli

COVARIANCE = torch.tensor([[0.09, 0.072], [0.072, 0.09]])  # of two pixels, correlation 0.8


class GaussianDDPM(DDPM):
    """Knows the noise exactly: x_t is Gaussian if x_0 is, and E[noise | x_t] is linear in it."""

    def noise(self, pixels: Tensor, level: Tensor) -> Tensor:
        kept = float(self.kept[level[0]])
        total = kept * COVARIANCE + (1 - kept) * torch.eye(2)
        flat = pixels.flatten(1)
        return (math.sqrt(1 - kept) * torch.linalg.solve(total, flat.T).T).view_as(pixels)


def test_the_reverse_chain_draws_the_law_of_the_data() -> None:
    model = GaussianDDPM((1, 2), channels=8, levels=1)
    nothing = torch.zeros(4000, 2, dtype=torch.bool)
    drawn = model.fill(torch.zeros(4000, 2), nothing, RePaint(steps=1000, jump=1, resample=1), seed=0)
    assert torch.allclose(torch.cov(drawn.T), COVARIANCE, atol=0.007)
    assert float(drawn.mean(dim=0).abs().max()) < 0.03


def test_repaint_draws_what_goes_with_the_known() -> None:
    model = GaussianDDPM((1, 2), channels=8, levels=1)
    values = torch.tensor([[0.3, 9.0]]).expand(3000, -1)
    known = torch.tensor([[True, False]]).expand(3000, -1)
    filled = model.fill(values, known, RePaint(steps=100, jump=5, resample=8), seed=0)
    assert bool((filled[:, 0] == 0.3).all())
    # E[second | first] = 0.8 * 0.3; without resampling the two would hardly agree.
    alone = model.fill(values, known, RePaint(steps=100, jump=5, resample=1), seed=0)
    assert float(filled[:, 1].mean()) == pytest.approx(0.24, abs=0.04)
    assert abs(float(alone[:, 1].mean()) - 0.24) > abs(float(filled[:, 1].mean()) - 0.24)
    assert float(filled[:, 1].std()) == pytest.approx(math.sqrt(0.09 * 0.36), abs=0.03)


def test_the_path_goes_back_and_forth_and_ends_clean() -> None:
    path = RePaint(steps=20, jump=5, resample=3).times()
    assert path[0] == 20
    assert path[-1] == 0
    assert all(abs(one - other) == 1 for one, other in itertools.pairwise(path))
    forwards = sum(other > one for one, other in itertools.pairwise(path))
    assert forwards == 3 * 2 * 5  # from 0, 5 and 10: twice again, five steps each
    assert RePaint(steps=20, jump=5, resample=1).times() == list(range(20, -1, -1))
    with pytest.raises(UserError, match="2 steps"):
        RePaint(steps=1).times()


def test_diffusion_learns_to_tell_noise() -> None:
    pictures = digits().training.reshape(-1, 64) / 8.0 - 1.0
    model = DDPM((8, 8), channels=8, blocks=1, levels=2)
    pixels = model._planes(torch.as_tensor(pictures[:200], dtype=torch.float32))
    before = float(model.loss(pixels, torch.Generator().manual_seed(1)).detach())
    model.fit(pictures, steps=150, batch=32)
    after = float(model.loss(pixels, torch.Generator().manual_seed(1)).detach())
    assert after < 0.8 * before
    assert before == pytest.approx(1.0, abs=0.05)  # untrained it says nothing
    with pytest.raises(UserError, match="rows of 64"):
        model.fit(np.zeros((3, 5)), steps=1)
    with pytest.raises(UserError, match="one budget"):
        model.fit(pictures)


@pytest.mark.parametrize("family", [VAE, MIWAE])
@pytest.mark.parametrize("shape", [(5, 6), (4, 4, 3)])
def test_halves_fit_together_and_hide_what_is_hidden(family: type[VAE | MIWAE], shape: tuple[int, ...]) -> None:
    variables = math.prod(shape)
    observation = HeadCell(Bernoulli())
    model = family(
        variables,
        latent=3,
        observation=observation,
        halves=picture_halves(shape, 3, observation.size, channels=8, levels=2),
    )
    generator = torch.Generator().manual_seed(0)
    values = (torch.rand(20, variables, generator=generator) < 0.5).float()
    observed = torch.rand(20, variables, generator=generator) < 0.7
    bound = model.bound(values, observed, 4, torch.Generator().manual_seed(1))
    moved = values.where(observed, 1 - values)
    torch.testing.assert_close(model.bound(moved, observed, 4, torch.Generator().manual_seed(1)), bound)
    model.fit(values, observed, Schedule(minutes=None, steps=3, batch=8, draws=2, validate_every=1))
    filled = model.impute(values, observed, draws=3, candidates=50)
    assert filled.shape == (3, 20, variables)
    assert (filled[:, observed.numpy()] == values[observed].numpy()).all()
    assert set(np.unique(filled)) <= {0.0, 1.0}


def test_a_picture_autoencoder_learns() -> None:
    pictures = torch.as_tensor((digits().training.reshape(-1, 64) > 7).astype(np.float32))
    observation = HeadCell(Bernoulli())
    model = VAE(64, latent=8, observation=observation, halves=picture_halves((8, 8), 8, 1, channels=8, levels=2))
    everything = torch.ones_like(pictures, dtype=torch.bool)
    before = model.bound(pictures[:200], everything[:200], 5, torch.Generator().manual_seed(0)).mean().item()
    model.fit(pictures, everything, Schedule(minutes=None, steps=60, batch=64, draws=1))
    after = model.bound(pictures[:200], everything[:200], 5, torch.Generator().manual_seed(0)).mean().item()
    assert after > before + 5
