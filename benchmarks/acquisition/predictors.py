"""The models that the benchmarks of acquisition ask: the library's own and latent-variable models, by one interface.

A predictor says what the target is given what each row knows, and how much each column that a row does not know yet is
expected to tell about it. Rows are arrays of model values; the target is a column like any other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from numpy.typing import NDArray

from anyorder.baselines import LatentModel
from anyorder.model import AnyOrderModel
from anyorder.model.sampling import draws as joint_draws
from anyorder.query import Query
from anyorder.questions.gains import Goal, expected_gains
from anyorder.questions.uncertainty import UNCERTAINTIES

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
BINS = 5  # of the histogram estimate, as in HH-VAEM
SHARED = 2048  # stratified answers behind the gains of a column, shared out to the cases


class Predictor(ABC):
    """A fitted model; ``target`` is the index of the column to learn about."""

    def __init__(self, target: int) -> None:
        self.target = target

    @abstractmethod
    def predicted(self, values: Array, known: Mask) -> tuple[Array, Array]:
        """The mean of the target (the probabilities of its levels [rows, levels]) and log p of its true value."""

    @abstractmethod
    def samples(self, values: Array, known: Mask, count: int, seed: int) -> Array:
        """Joint draws of all that is unknown [count, rows, variables]."""

    def gains(self, reward: str, values: Array, known: Mask, draws: int, seed: int) -> Array:
        """What every column is expected to tell about the target [rows, variables]; known ones and itself: -inf."""
        if reward != "histogram":
            raise ValueError(f"{type(self).__name__} has no reward {reward!r}")
        drawn = self.samples(values, known, draws, seed)
        found = histogram_information(drawn, self.target)
        found[known] = -np.inf
        found[:, self.target] = -np.inf
        return found


class Library(Predictor):
    """A model of the library, asked exactly."""

    def __init__(self, model: AnyOrderModel, target: int, shared: int = SHARED) -> None:
        super().__init__(target)
        self.model = model
        self.shared = shared
        self.levels = len(model.schema.variables[target].levels)

    @torch.no_grad()
    def predicted(self, values: Array, known: Mask) -> tuple[Array, Array]:
        model, target = self.model, self.target
        rows, mask = torch.as_tensor(values), torch.as_tensor(known)
        distribution = model.heads.distribution(model.features_of(rows, mask, target).double(), target)
        truth = distribution.log_prob(rows[:, target]).double().numpy()
        if self.levels:
            codes = torch.arange(self.levels, dtype=torch.float64)[:, None].expand(-1, len(rows))
            return distribution.log_prob(codes).double().exp().T.numpy(), truth
        name = model.schema.names[target]
        mean = distribution.expect(lambda z: torch.as_tensor(model.encoding.measure(name, z.double().numpy())))
        return mean.numpy(), truth + model.encoding.log_det(values)[:, target]

    def samples(self, values: Array, known: Mask, count: int, seed: int) -> Array:
        rows, mask = (torch.as_tensor(np.tile(part, (count, 1))) for part in (values, known))
        return joint_draws(self.model, rows, Query(mask, ~mask), seed=seed).reshape(count, *values.shape)

    def gains(self, reward: str, values: Array, known: Mask, draws: int, seed: int) -> Array:
        if reward not in UNCERTAINTIES:
            return super().gains(reward, values, known, draws, seed)
        goal = Goal((self.target,), UNCERTAINTIES[reward])
        columns = [place for place in range(values.shape[1]) if place != self.target and not known[:, place].all()]
        # Cases of which the same is known (nothing, at first) are one case, and the draws are shared out to the cases.
        both = np.concatenate([values, known], axis=1)
        _, place_of, case = np.unique(both, axis=0, return_index=True, return_inverse=True)
        rows, mask = torch.as_tensor(values[place_of]), torch.as_tensor(known[place_of])
        each = max(draws, self.shared // len(rows))
        gains = expected_gains(self.model, rows, mask, goal, [(place,) for place in columns], each, seed)
        found = np.full(values.shape, -np.inf)
        for place, gain in zip(columns, gains, strict=True):
            found[:, place] = gain.mean.numpy()[case.ravel()]
        found[known] = -np.inf
        return found

    @torch.no_grad()
    def fixed_order(self, candidates: list[int], draws: int, most: int | None = None) -> list[int]:
        """The best order for a case of which nothing is known: each next column is the best beside those before it."""
        goal = Goal((self.target,), UNCERTAINTIES["information"])
        row = torch.zeros(1, self.model.variables, dtype=torch.float64)
        known = torch.zeros(1, self.model.variables, dtype=torch.bool)
        order: list[int] = []
        while len(order) < min(most or len(candidates), len(candidates)):
            left = [place for place in candidates if place not in order]
            gains = expected_gains(self.model, row, known, goal, [(*order, place) for place in left], draws)
            order.append(left[int(np.argmax([float(gain.mean[0]) for gain in gains]))])
        return order


class Latent(Predictor):
    """A VAE or a MIWAE of standardised Gaussian cells, asked by importance sampling."""

    def __init__(self, model: LatentModel, target: int) -> None:
        super().__init__(target)
        self.model = model

    def predicted(self, values: Array, known: Mask) -> tuple[Array, Array]:
        asked = np.zeros_like(known)
        asked[:, self.target] = True
        truth = self.model.conditional_log_prob(values, known, asked, draws=5000)
        # The mean of the decoder's means: draws of the cell itself would only add noise.
        latent = self.model.posterior_draws(values, known, 1000, seed=1, candidates=5000)
        with torch.no_grad():
            parts = [self.model.decoder(part)[..., self.target, 0] for part in latent.split(100)]
        return torch.cat(parts).double().mean(dim=0).numpy(), truth

    def samples(self, values: Array, known: Mask, count: int, seed: int) -> Array:
        return self.model.impute(values, known, draws=count, seed=seed, candidates=1000)


def histogram_information(drawn: Array, target: int) -> Array:
    """Mutual information of every column with the target from joint draws in five bins a side [rows, variables]."""
    low, high = drawn.min(axis=0), drawn.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    bins = np.minimum((BINS * (drawn - low) / width).astype(int), BINS - 1)
    _, rows, variables = drawn.shape
    joint = np.zeros((rows, variables, BINS, BINS))
    for one in range(BINS):
        for two in range(BINS):
            joint[:, :, one, two] = ((bins == one) & (bins[:, :, target, None] == two)).mean(axis=0)
    apart = joint.sum(axis=3, keepdims=True) * joint.sum(axis=2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(joint > 0, joint * np.log(joint / apart), 0.0)
    return terms.sum(axis=(2, 3))
