r"""DDPM (Ho et al. 2020) and RePaint (Lugmayr et al. 2022): a diffusion model, and how it fills pictures.

Pictures x_0 in [-1, 1] are noised, $x_t = \sqrt{\bar\alpha_t} x_0 + \sqrt{1 - \bar\alpha_t} \epsilon$, and a U-Net of
the same parts as ours learns to predict the noise, $\min E |\epsilon - \epsilon_\theta(x_t, t)|^2$. To fill, RePaint
draws the unknown pixels backwards and at every step replaces the known ones by a noised copy of what they are; since
the two were drawn independently, it goes forwards again by ``jump`` steps and back, ``resample`` times, so that they
can agree.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor, nn

from anyorder.errors import UserError
from anyorder.networks.parts.unet_parts import FromPatches, StepEmbedding, ToPatches, norm
from anyorder.networks.parts.unet_trunk import Trunk
from anyorder.support.randomness import drawing_from
from anyorder.support.threads import torch_threads


@dataclass(frozen=True)
class RePaint:
    """``steps`` of the reverse chain, evenly taken from all of them; ``jump`` steps forwards again, ``resample`` times.

    The paper has 250 steps, jumps of 10 and 10 resamplings on pictures of 256 x 256.
    """

    steps: int = 250
    jump: int = 10
    resample: int = 10

    def times(self) -> list[int]:
        """The levels of noise that are passed through, from all of it to none, forwards jumps included."""
        if self.steps < 2 or self.jump < 1 or self.resample < 1:
            raise UserError(f"RePaint needs at least 2 steps, a jump of 1 and 1 resampling, got {self}")
        left = dict.fromkeys(range(0, self.steps - self.jump, self.jump), self.resample - 1)
        level, path = self.steps, [self.steps]
        while level > 0:
            level -= 1
            path.append(level)
            if left.get(level, 0) > 0:
                left[level] -= 1
                for _ in range(self.jump):
                    level += 1
                    path.append(level)
        return path


class DDPM(nn.Module):
    """Noise prediction with the linear schedule of Ho et al.: 1,000 levels, beta from 1e-4 to 0.02."""

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        channels: int = 32,
        blocks: int = 1,
        levels: int = 2,
        patch: int = 2,
        attention: str = "middle",
        noise_levels: int = 1000,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.shape = shape
        self.planes = shape[2] if len(shape) == 3 else 1
        with drawing_from(torch.Generator().manual_seed(seed)):
            self.enter = ToPatches(self.planes, channels, patch)
            self.step = StepEmbedding(channels)
            self.trunk = Trunk(channels, blocks=blocks, levels=levels, attention=attention, embedding=4 * channels)
            self.norm = norm(channels)
            self.leave = FromPatches(channels, self.planes, patch)
        for parameter in self.leave.parameters():
            nn.init.zeros_(parameter)
        beta = torch.linspace(1e-4, 0.02, noise_levels, dtype=torch.float64)
        self.kept: Tensor  # the share of the signal that is left, at 0 .. noise_levels
        self.register_buffer(
            "kept", torch.cat([torch.ones(1).double(), (1 - beta).cumprod(0)]).float(), persistent=False
        )

    @property
    def noise_levels(self) -> int:
        return len(self.kept) - 1

    def noise(self, pixels: Float[Tensor, "rows planes height row"], level: Tensor) -> Tensor:
        """The predicted noise at 1 .. noise_levels."""
        inner = self.trunk(self.enter(pixels), self.step(level.float()))
        out: Tensor = self.leave(F.silu(self.norm(inner)), self.shape)
        return out

    def loss(self, pixels: Float[Tensor, "rows planes height row"], generator: torch.Generator) -> Tensor:
        """Mean squared error of the noise at uniformly drawn levels."""
        level = torch.randint(1, self.noise_levels + 1, (len(pixels),), generator=generator)
        noise = torch.randn(pixels.shape, generator=generator)
        return F.mse_loss(self.noise(self._noised(pixels, level, noise), level), noise)

    def fit(
        self,
        values: NDArray[np.floating],
        *,
        minutes: float | None = None,
        steps: int | None = None,
        batch: int = 32,
        learning_rate: float = 1e-3,
        seed: int = 0,
        threads: int = 1,
        average: float = 0.999,
    ) -> DDPM:
        """Adam with a falling rate, for so many minutes or steps; the running average of the weights is kept."""
        if (minutes is None) == (steps is None):
            raise UserError("training needs one budget: set minutes or steps")
        pixels = self._planes(torch.as_tensor(values, dtype=torch.float32))
        generator = torch.Generator().manual_seed(seed)
        optimizer = torch.optim.Adam(self.parameters(), lr=learning_rate, fused=True)
        mean = {name: tensor.clone() for name, tensor in self.state_dict().items()}
        began, step = time.monotonic(), 0

        def spent() -> float:
            return step / steps if steps is not None else (time.monotonic() - began) / (60 * (minutes or 1.0))

        with torch_threads(threads):
            while (gone := spent()) < 1:
                for group in optimizer.param_groups:
                    group["lr"] = learning_rate * min(1.0, (step + 1) / 100, max(1 - gone, 0.0) / 0.25)
                rows = torch.randint(len(pixels), (batch,), generator=generator)
                optimizer.zero_grad(set_to_none=True)
                self.loss(pixels[rows], generator).backward()
                nn.utils.clip_grad_norm_(self.parameters(), 1.0)
                optimizer.step()
                step += 1
                decay = min(average, (1 + step) / (10 + step))
                with torch.no_grad():
                    for name, tensor in self.state_dict().items():
                        mean[name].lerp_(tensor, 1 - decay)
        self.load_state_dict(mean)
        return self.eval()

    @torch.no_grad()
    def fill(
        self,
        values: Float[Tensor, "rows variables"],
        known: Bool[Tensor, "rows variables"],
        settings: RePaint | None = None,
        seed: int = 0,
    ) -> Float[Tensor, "rows variables"]:
        """Draws of what is not known, by RePaint; what is known stays as it is."""
        settings = settings or RePaint()
        generator = torch.Generator().manual_seed(seed)
        given, mask = self._planes(values.float()), self._planes(known.float()) > 0.5
        levels = torch.linspace(0, self.noise_levels, settings.steps + 1).round().long()
        pixels = torch.randn(given.shape, generator=generator)
        path = settings.times()
        for now, then in itertools.pairwise(path):
            before, after = levels[now], levels[then]
            if then > now:  # forwards again
                share = self.kept[after] / self.kept[before]
                pixels = share.sqrt() * pixels + (1 - share).sqrt() * torch.randn(given.shape, generator=generator)
                continue
            pixels = self._back(pixels, before, after, generator)
            noised = self._noised(given, after.expand(len(given)), torch.randn(given.shape, generator=generator))
            pixels = torch.where(mask, noised, pixels)
        return torch.where(mask, given, pixels).permute(0, 2, 3, 1).flatten(1)

    def _back(self, pixels: Tensor, before: Tensor, after: Tensor, generator: torch.Generator) -> Tensor:
        """One step of the reverse chain between two levels (the posterior of Ho et al., with their fixed variance)."""
        kept, kept_after = self.kept[before], self.kept[after]
        noise = self.noise(pixels, before.expand(len(pixels)))
        clean = ((pixels - (1 - kept).sqrt() * noise) / kept.sqrt()).clamp(-1, 1)
        share = kept / kept_after
        mean = (kept_after.sqrt() * (1 - share) * clean + share.sqrt() * (1 - kept_after) * pixels) / (1 - kept)
        variance = (1 - kept_after) / (1 - kept) * (1 - share)
        return mean + variance.clamp(min=0).sqrt() * torch.randn(pixels.shape, generator=generator)

    def _noised(self, pixels: Tensor, level: Tensor, noise: Tensor) -> Tensor:
        kept = self.kept[level][:, None, None, None]
        return kept.sqrt() * pixels + (1 - kept).sqrt() * noise

    def _planes(self, flat: Tensor) -> Tensor:
        height, width = self.shape[:2]
        if flat.ndim != 2 or flat.shape[1] != math.prod(self.shape):
            raise UserError(f"expected rows of {math.prod(self.shape)} values, got {tuple(flat.shape)}")
        return flat.view(-1, height, width, self.planes).permute(0, 3, 1, 2).contiguous()
