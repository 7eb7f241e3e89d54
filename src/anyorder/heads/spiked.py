"""A continuum with atoms: a column that is often exactly 0, or exactly its limit, and otherwise any number.

    P(X = a) = w_a at an atom a,   p(x) = w_0 base(x) elsewhere,   (w_0, w_1, ..., w_n) = softmax(0, logits)

``log_prob`` is the logarithm of a density with respect to Lebesgue measure plus counting measure at the atoms: a
log-probability at an atom, a log-density elsewhere. Entropy is with respect to the same measure. Over a base on a
lattice (counts that are often zero) all are probabilities, and an atom also gets the base's own: w_a + w_0 base(a).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.errors import UserError
from anyorder.heads._mixture import draw
from anyorder.heads.base import Head


@dataclass(frozen=True, eq=False)
class SpikedDistribution(Distribution):
    """A batch of them; the first log weight is the continuum's, the others those of ``atoms``, which increase."""

    log_weights: Float[Tensor, "*batch choices"]
    atoms: tuple[float, ...]
    base: Distribution

    @property
    def discrete(self) -> bool:
        return self.base.discrete

    @property
    def shape(self) -> torch.Size:
        return self.base.shape

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        # In the dtype of the value, so that an atom is found again however it was rounded on the way.
        found = value[..., None] == self._atoms(value.dtype)
        here = found.any(-1)
        elsewhere = self.log_weights[..., 0] + self.base.log_prob(value)
        at = torch.where(found, self.log_weights[..., 1:], -math.inf).amax(-1)
        if self.discrete:
            return torch.where(here, torch.logaddexp(at.where(here, 0.0), elsewhere), elsewhere)
        return torch.where(here, at, elsewhere)

    def mass_at(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        here = (value[..., None] == self._atoms(value.dtype)).any(-1)
        mass = self.log_prob(value).exp()
        return mass if self.discrete else torch.where(here, mass, 0.0)

    def atom_probs(self) -> Float[Tensor, "*batch atoms"]:
        """P(X = a) for every atom a."""
        columns = [self.mass_at(torch.full_like(self.log_weights[..., 0], atom)) for atom in self.atoms]
        return torch.stack(columns, dim=-1)

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        chosen = draw(self.log_weights, generator)
        drawn = self.base.sample(generator)
        table = self._atoms(drawn.dtype)
        return torch.where(chosen > 0, table[(chosen - 1).clamp(min=0)], drawn)

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        reached = value[..., None] >= self._atoms(value.dtype)
        weights = self.log_weights.exp()
        total = (weights[..., 1:] * reached).sum(-1) + weights[..., 0] * self.base.cdf(value)
        return total.clamp(0, 1)

    def log_between(self, low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        nats = self.log_weights[..., 0] + self.base.log_between(low, high)
        for number, atom in enumerate(self.atoms, start=1):
            held = (low <= atom) & (high >= atom)
            nats = torch.logaddexp(nats, torch.where(held, self.log_weights[..., number], -math.inf))
        return nats

    def outside(self, low: float, high: float) -> Float[Tensor, "two *batch"]:
        weights, atoms = self.log_weights.double().exp(), self._atoms(torch.float64)
        held = torch.stack([(weights[..., 1:] * part).sum(-1) for part in (atoms < low, atoms > high)])
        return held + weights[..., 0] * self.base.outside(low, high)

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """An atom for every level of its jump; between jumps the base's quantile. Carries no gradient."""
        dtype = self.log_weights.dtype
        weights = self.log_weights.double().exp()
        wanted = level.double()
        passed = torch.zeros_like(wanted + weights[..., 0])  # the weight of all atoms below the level
        least = torch.full_like(passed, -math.inf)
        held = torch.full_like(passed, math.nan)
        for number, atom in enumerate(self.atoms):
            at = torch.full_like(self.log_weights[..., 0], atom)
            own = self.base.mass_at(at).double()
            before = weights[..., 1 : number + 1].sum(-1) + weights[..., 0] * (self.base.cdf(at).double() - own)
            after = before + weights[..., number + 1] + weights[..., 0] * own
            above = wanted > after
            passed = torch.where(above, passed + weights[..., number + 1], passed)
            least = torch.where(above, at.double(), least)
            held = torch.where((wanted > before) & ~above & held.isnan(), at.double(), held)
        rest = ((wanted - passed) / weights[..., 0].clamp(min=1e-300)).clamp(0, 1)
        value = self.base.quantile(rest).double()
        value = torch.where(held.isnan(), torch.maximum(value, least), held)
        return value.masked_fill(~((level >= 0) & (level <= 1)), math.nan).to(dtype)

    def mean(self) -> Float[Tensor, "*batch"]:
        weights = self.log_weights.exp()
        return (weights[..., 1:] * self._atoms(weights.dtype)).sum(-1) + weights[..., 0] * self.base.mean()

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        weights = self.log_weights.double().exp()
        jumps = (weights[..., 1:] * function(self._atoms(torch.float64))).sum(-1)
        return jumps + weights[..., 0] * self.base.expect(function, fine=fine)

    def expect_within(
        self, function: Callable[[Tensor], Tensor], low: float, high: float, steps: tuple[float, ...] = ()
    ) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]] | None:
        found = self.base.expect_within(function, low, high, steps)
        if found is None:
            return None
        weights, atoms = self.log_weights.double().exp(), self._atoms(torch.float64)
        held = weights[..., 1:] * ((atoms >= low) & (atoms <= high))
        rest = weights[..., 0]
        return (held * function(atoms)).sum(-1) + rest * found[0], held.sum(-1) + rest * found[1]

    def entropy(self) -> Float[Tensor, "*batch"]:
        log_weights = self.log_weights.clamp(min=torch.finfo(self.log_weights.dtype).min)
        weights = log_weights.exp()
        apart = -(weights * log_weights).sum(-1) + weights[..., 0] * self.base.entropy()
        if not self.discrete:
            return apart
        # On a lattice w_a and w_0 base(a) fall on one point: what "apart" counts as two terms is one.
        for number, atom in enumerate(self.atoms, start=1):
            at = torch.full_like(weights[..., 0], atom)
            log_base = self.base.log_prob(at) + log_weights[..., 0]
            both = torch.logaddexp(log_base, log_weights[..., number])
            split = weights[..., number] * log_weights[..., number] + log_base.exp() * log_base
            apart = apart + split - both.exp() * both
        return apart

    def pieces(self) -> tuple[list[tuple[Tensor, Distribution]], list[tuple[Tensor, float]]]:
        log_weights = self.log_weights.double()
        smooth, atoms = self.base.pieces()
        own = [(log_weights[..., number], atom) for number, atom in enumerate(self.atoms, start=1)]
        within = [(log_weights[..., 0] + log_weight, part) for log_weight, part in smooth]
        return within, own + [(log_weights[..., 0] + log_weight, atom) for log_weight, atom in atoms]

    def _atoms(self, dtype: torch.dtype) -> Float[Tensor, " atoms"]:
        return torch.tensor(self.atoms, dtype=dtype, device=self.log_weights.device)


@dataclass(eq=False)
class Spiked(Head):
    """One logit for every atom, relative to the continuum, then the features of ``base``; atoms in model units."""

    name: ClassVar[str] = "spiked"
    wraps: ClassVar[bool] = True

    atoms: tuple[float, ...]
    base: Head

    def __post_init__(self) -> None:
        if not isinstance(self.base, Head) or self.base.levels:
            raise UserError(f"a spiked head needs a base head for numbers on a line, got {self.base!r}")
        self.atoms = tuple(float(atom) for atom in self.atoms)
        if not self.atoms or list(self.atoms) != sorted(set(self.atoms)):
            raise UserError(f"the atoms of a spiked head must increase, and there must be one; got {self.atoms}")

    @property
    def size(self) -> int:
        return len(self.atoms) + self.base.size

    @property
    def locations(self) -> tuple[int, ...]:
        return tuple(len(self.atoms) + index for index in self.base.locations)

    @property
    def log_scales(self) -> tuple[int, ...]:
        return tuple(len(self.atoms) + index for index in self.base.log_scales)

    @property
    def atom_count(self) -> int:
        return len(self.atoms)

    def classes(self, values: Float[Tensor, "*batch"]) -> tuple[Int[Tensor, "*batch"], int]:
        found = values[..., None] == torch.tensor(self.atoms, dtype=values.dtype)
        rest, count = self.base.classes(values)
        atoms = len(self.atoms)
        return torch.where(found.any(-1), found.long().argmax(-1), atoms + rest), atoms + count

    def with_family(
        self, family: Callable[[Head, Float[np.ndarray, " values"]], Head], values: Float[np.ndarray, " values"]
    ) -> Spiked:
        apart = ~np.isin(values, np.asarray(self.atoms, dtype=values.dtype))
        return Spiked(self.atoms, self.base.with_family(family, values[apart]))

    def forward(self, features: Float[Tensor, "*batch size"]) -> SpikedDistribution:
        logits, rest = features.split([len(self.atoms), self.base.size], dim=-1)
        return SpikedDistribution(F.pad(logits, (1, 0)).log_softmax(-1), self.atoms, self.base(rest))

    def start(self) -> Float[Tensor, " size"]:
        return torch.cat([torch.zeros(len(self.atoms)), self.base.start()])
