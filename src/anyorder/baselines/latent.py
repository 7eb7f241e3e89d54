"""A deep latent-variable model of incomplete rows, and how it is asked conditional questions.

    p(x_o) = integral p(z) prod_(i in o) p(x_i | z) dz

with an encoder q(z | x_o) that sees zeros in the holes, and a mask. Given z the cells are independent, so a cell that
is not observed simply leaves the product. No conditional is exact:

    log p(x_u | x_e)  ~  log sum_k w_k p(x_u | z_k) - log sum_k w_k,    w_k = p(z_k) p(x_e | z_k) / r(z_k),   z_k ~ r

is self-normalised importance sampling: the ratio of two estimates from the same draws. It is consistent but not
unbiased (the bias falls like 1/K), and it is no bound: both logarithms err downwards (Jensen), and one is subtracted.
The draws are divided among three Gaussians, q(z | x_e), q(z | x_e, x_u) and the prior, and weighted by their mixture
r: with q(z | x_e) alone a sharp p(x_u | z) is missed by nearly all draws, and the model would look worse than it is.
All values are in standardised units.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor, nn

from anyorder.baselines.observation import Observation, observation_models
from anyorder.baselines.schedule import Schedule, train
from anyorder.errors import UserError, nearest
from anyorder.support.randomness import drawing_from

NUMBERS_AT_ONCE = 1 << 22  # held in one tensor [draws, rows, variables]: bounds memory, not results
LEAST_LOG_SCALE, MOST_LOG_SCALE = -7.0, 3.0  # of q(z | x)
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class LatentModel(nn.Module, ABC):
    """Encoder q(z | x_o), decoder p(x_i | z), and what can be asked of the two. Subclasses say what is maximised."""

    name: ClassVar[str]

    def __init__(
        self,
        variables: int,
        *,
        latent: int = 8,
        width: int = 32,
        layers: int = 3,
        observation: str | Observation = "gaussian",
        halves: tuple[nn.Module, nn.Module] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if variables < 1 or latent < 1 or width < 1 or layers < 0:
            raise UserError(
                "variables, latent and width must be 1 or more and layers 0 or more, "
                f"got {variables}, {latent}, {width} and {layers}"
            )
        if isinstance(observation, str):
            if observation not in observation_models:
                raise UserError(
                    f"unknown observation model {observation!r}; {nearest(observation, observation_models)}"
                )
            observation = observation_models[observation]
        self.variables = variables
        self.latent = latent
        self.observation = observation
        with drawing_from(torch.Generator().manual_seed(seed)):
            # Perceptrons, unless the data have a shape of their own (anyorder.baselines.picture_halves).
            self.encode, self.decode = halves or (
                _perceptron(2 * variables, width, layers, 2 * latent),
                _perceptron(latent, width, layers, self.observation.size * variables),
            )

    # The two conditional laws.

    def encoder(
        self, values: Float[Tensor, "rows variables"], observed: Bool[Tensor, "rows variables"]
    ) -> tuple[Float[Tensor, "rows latent"], Float[Tensor, "rows latent"]]:
        """Location and log scale of the Gaussian q(z | x_o); a value that is not observed cannot reach them."""
        dtype = self.dtype
        inputs = torch.cat([values.where(observed, 0.0).to(dtype), observed.to(dtype)], dim=1)
        location, log_scale = self.encode(inputs).chunk(2, dim=-1)
        return location, log_scale.clamp(LEAST_LOG_SCALE, MOST_LOG_SCALE)

    def decoder(self, latent: Float[Tensor, "*draws latent"]) -> Float[Tensor, "*draws variables size"]:
        """Parameters of p(x_i | z) for every cell, as the observation model reads them."""
        out: Tensor = self.decode(latent).unflatten(-1, (self.variables, self.observation.size))
        return out

    def cell_log_prob(
        self, values: Float[Tensor, "rows variables"], latent: Float[Tensor, "draws rows latent"]
    ) -> Float[Tensor, "draws rows variables"]:
        """log p(x_i | z) of every cell; meaningless where the cell is not observed."""
        return self.observation.log_prob(values.to(self.dtype), self.decoder(latent))

    @property
    def dtype(self) -> torch.dtype:
        weight: Tensor = next(self.decode.parameters())
        return weight.dtype

    # Training.

    @abstractmethod
    def pooled(self, log_weights: Float[Tensor, "draws rows"]) -> Float[Tensor, " rows"]:
        """A lower bound of log p(x_o) from the log weights of draws of z: what training maximises."""

    def bound(
        self,
        values: Float[Tensor, "rows variables"],
        observed: Bool[Tensor, "rows variables"],
        draws: int,
        generator: torch.Generator,
    ) -> Float[Tensor, " rows"]:
        """A lower bound of log p(x_o), from this many draws of z."""
        return self.pooled(self.log_weights(values, observed, draws, generator))

    def log_weights(
        self,
        values: Float[Tensor, "rows variables"],
        observed: Bool[Tensor, "rows variables"],
        draws: int,
        generator: torch.Generator,
    ) -> Float[Tensor, "draws rows"]:
        """log p(x_o, z) / q(z | x_o) for z from q, with gradients through the draw."""
        values = values.where(observed, 0.0)
        location, log_scale = self.encoder(values, observed)
        noise = torch.randn(draws, *location.shape, generator=generator, dtype=location.dtype)
        latent = location + log_scale.exp() * noise
        cells = self.cell_log_prob(values, latent).where(observed, 0.0).sum(dim=-1)
        return cells + _normal(latent) - _normal(latent, location, log_scale)

    def fit(
        self,
        values: NDArray[np.floating] | Tensor,
        observed: NDArray[np.bool_] | Tensor,
        schedule: Schedule | None = None,
    ) -> Self:
        """Maximise the mean bound over the observed cells; what stands in the others is never read."""
        rows, seen = self._rows(values, observed)
        train(self, rows, seen, schedule or Schedule())
        return self

    # Questions.

    @torch.no_grad()
    def conditional_log_prob(
        self,
        values: NDArray[np.floating] | Tensor,
        evidence: NDArray[np.bool_] | Tensor,
        asked: NDArray[np.bool_] | Tensor,
        draws: int = 5000,
        seed: int = 0,
    ) -> NDArray[np.float64]:
        """log p(x_asked | x_evidence) of every row in nats, by the estimator in this module's docstring."""
        if draws < 3:
            raise UserError(f"draws must be 3 or more, got {draws}: one for each part of the proposal")
        x, known = self._rows(values, evidence)
        _, wanted = self._rows(values, asked)
        if bool((known & wanted).any()):
            raise UserError("a cell cannot be both evidence and asked")
        generator = torch.Generator().manual_seed(seed)
        out = np.zeros(len(x))
        for part in self._parts(len(x), draws):
            e, u = known[part], wanted[part]
            here = x[part].where(e | u, 0.0)
            proposal = [self.encoder(here, e), self.encoder(here, e | u)]
            proposal.append((torch.zeros_like(proposal[0][0]), torch.zeros_like(proposal[0][1])))
            latent, log_density = _mixture_draws(proposal, draws, generator)
            cells = self.cell_log_prob(here, latent).double()
            weight = _normal(latent).double() + cells.where(e, 0.0).sum(-1) - log_density.double()
            both = weight + cells.where(u, 0.0).sum(-1)
            out[part] = (both.logsumexp(0) - weight.logsumexp(0)).numpy()
        return out

    @torch.no_grad()
    def posterior_draws(
        self,
        values: NDArray[np.floating] | Tensor,
        observed: NDArray[np.bool_] | Tensor,
        draws: int,
        seed: int = 0,
        candidates: int = 2000,
    ) -> Float[Tensor, "draws rows latent"]:
        """z from p(z | x_o): ``candidates`` from q and the prior, resampled by their weights (bias of order 1/K)."""
        x, known = self._rows(values, observed)
        generator = torch.Generator().manual_seed(seed)
        out = torch.zeros(draws, len(x), self.latent, dtype=self.dtype)
        for part in self._parts(len(x), candidates):
            here = x[part].where(known[part], 0.0)
            close = self.encoder(here, known[part])
            wide = (torch.zeros_like(close[0]), torch.zeros_like(close[1]))
            latent, log_density = _mixture_draws([close, wide], candidates, generator)
            cells = self.cell_log_prob(here, latent).double().where(known[part], 0.0).sum(-1)
            weight = (_normal(latent).double() + cells - log_density.double()).softmax(dim=0)
            chosen = torch.multinomial(weight.T, draws, replacement=True, generator=generator).T
            out[:, part] = latent.gather(0, chosen[..., None].expand(-1, -1, self.latent))
        return out

    @torch.no_grad()
    def impute(
        self,
        values: NDArray[np.floating] | Tensor,
        observed: NDArray[np.bool_] | Tensor,
        draws: int = 20,
        seed: int = 0,
        candidates: int = 2000,
    ) -> NDArray[np.float64]:
        """Joint draws of the cells that are not observed [draws, rows, variables]; the others stay as they are."""
        x, known = self._rows(values, observed)
        latent = self.posterior_draws(x, known, draws, seed, candidates)
        generator = torch.Generator().manual_seed(seed + 1)
        drawn = self.observation.sample(self.decoder(latent), generator).double()
        filled: NDArray[np.float64] = torch.where(known, x.double(), drawn).numpy()
        return filled

    def _rows(self, values: NDArray[np.floating] | Tensor, mask: NDArray[np.bool_] | Tensor) -> tuple[Tensor, Tensor]:
        # A copy of an array: it may be read-only, as pandas hands it out, which torch would warn of.
        x, known = (part if isinstance(part, Tensor) else torch.from_numpy(np.array(part)) for part in (values, mask))
        if x.ndim != 2 or x.shape[1] != self.variables or known.shape != x.shape or known.dtype != torch.bool:
            raise UserError(
                f"expected values [rows, {self.variables}] and a boolean mask of the same shape, "
                f"got {tuple(x.shape)} and {known.dtype} {tuple(known.shape)}"
            )
        if not bool(x[known].isfinite().all()):
            raise UserError("an observed cell is NaN or infinite: mark it as not observed")
        return x.to(self.dtype), known

    def _parts(self, rows: int, draws: int) -> Iterator[slice]:
        size = max(1, NUMBERS_AT_ONCE // (draws * self.variables))
        return (slice(start, start + size) for start in range(0, rows, size))


def _mixture_draws(
    parts: list[tuple[Tensor, Tensor]], draws: int, generator: torch.Generator
) -> tuple[Float[Tensor, "draws rows latent"], Float[Tensor, "draws rows"]]:
    """Draws shared out over Gaussians, and the log density of the mixture in those shares (balance heuristic)."""
    counts = [draws // len(parts) + (index < draws % len(parts)) for index in range(len(parts))]
    drawn = [
        location + log_scale.exp() * torch.randn(count, *location.shape, generator=generator, dtype=location.dtype)
        for count, (location, log_scale) in zip(counts, parts, strict=True)
    ]
    latent = torch.cat(drawn)
    terms = [
        _normal(latent, location, log_scale) + math.log(count / draws)
        for count, (location, log_scale) in zip(counts, parts, strict=True)
    ]
    return latent, torch.stack(terms).logsumexp(0)


def _normal(latent: Tensor, location: Tensor | None = None, log_scale: Tensor | None = None) -> Tensor:
    """Log density of a diagonal Gaussian, the standard one by default."""
    if location is None or log_scale is None:
        return (-0.5 * latent.square() - HALF_LOG_TWO_PI).sum(-1)
    standard = (latent - location) * torch.exp(-log_scale)
    return (-0.5 * standard.square() - log_scale - HALF_LOG_TWO_PI).sum(-1)


def _perceptron(inputs: int, width: int, layers: int, outputs: int) -> nn.Sequential:
    """``layers`` hidden layers; none makes it a linear map."""
    sizes = [inputs] + [width] * layers
    hidden = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(sizes[-1], outputs))
