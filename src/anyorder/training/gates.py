r"""Which member of a blend to believe, given what is known, and how sure all of them together may be of levels.

$$\max_{\theta, a}\; \sum_c n_c \log q(x_c \mid x_{e_c})
  - \tfrac12 \sum_i \lVert \theta_i - \theta \rVert^2 / \sigma^2 - \tfrac12 \lVert \theta \rVert^2 / \sigma_0^2
  - \tfrac12 \sum_i (a_i - a)^2 / \rho^2 - \tfrac12 a^2 / \rho^2$$

over held-out cells. Numbers have the mixture of the members,
$q = \sum_m \mathrm{softmax}_m(\theta_i f(e))\, p_m(x_i \mid x_e)$, with $f$ a one and the features of
:func:`anyorder.networks.blend.gate_features`. A mixture is less sure than each of its members, so the levels of a
variable have a power of it, $q \propto (\sum_m \dots)^{\exp(a_i s(e))}$ with $s$ the share of the other variables that
is known: where nothing is known, the mixture stays what it is. The parameters of a variable with few held-out cells
follow those of all variables together, and these keep near even and fixed weights and the mixture itself unless cells
speak against it. Cells count so that many questions about one row weigh no more than the row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.heads.blend import SHARPEST
from anyorder.networks.blend import STEEPEST, share_known

OWN, COMMON = 1.0, 5.0  # deviations of a variable's parameters from the common ones, and of these from none
SHARPENING = 0.6  # the same of the logarithm of the power, where all is known
WORTH = 1.0  # nats on the held-out cells that a power must gain: levels that have one take longer to draw
STEPS, HISTORY = 30, 20  # of L-BFGS
MOST_CELLS = 30_000


@dataclass(frozen=True)
class JudgedCells:
    """Held-out cells, what each member says of them, and what was known when they were asked for.

    ``levels``: what the members say of all levels of the cells of a variable, in the order of the cells; ``codes``:
    which of them these have. ``beyond``: what they have below and above all that was seen of a variable, for its cells.
    """

    nats: Float[Tensor, "members cells"]
    variable: Int[Tensor, " cells"]
    features: Float[Tensor, "cells features"]
    counts: Float[Tensor, " cells"]
    levels: Mapping[int, Float[Tensor, "members own levels"]] = field(default_factory=dict)
    codes: Mapping[int, Int[Tensor, " own"]] = field(default_factory=dict)
    beyond: Mapping[int, Float[Tensor, "two members own"]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.variable)

    def take(self, index: Int[Tensor, " some"]) -> JudgedCells:
        """Some of the cells."""
        variable = self.variable[index]
        own = {}
        for key in (*self.levels, *self.beyond):
            rank = (self.variable == key).cumsum(0) - 1
            own[key] = rank[index[variable == key]]
        return JudgedCells(
            self.nats[:, index],
            variable,
            self.features[index],
            self.counts[index],
            {key: said[:, own[key]] for key, said in self.levels.items()},
            {key: codes[own[key]] for key, codes in self.codes.items()},
            {key: masses[..., own[key]] for key, masses in self.beyond.items()},
        )


@dataclass(frozen=True)
class Gates:
    """The logarithms of every variable's weights where the features are zero, their slopes, and what sharpens levels.

    ``sharpness``: the logarithm of the power of the mixture where all is known, 0 for a variable without one.
    """

    log_weights: Float[Tensor, "variables members"]
    slopes: Float[Tensor, "variables members features"]
    sharpness: Float[Tensor, " variables"]

    def weights(self, cells: JudgedCells) -> Float[Tensor, "cells members"]:
        """The logarithms of the members' weights for each cell."""
        own = torch.einsum("cf,cmf->cm", cells.features, self.slopes[cells.variable])
        return (self.log_weights[cells.variable] + own).log_softmax(dim=1)

    def log_prob(self, cells: JudgedCells) -> Float[Tensor, " cells"]:
        """What the blend says of each cell."""
        weights = self.weights(cells)
        said = (weights + cells.nats.T).logsumexp(dim=1)
        for variable, levels in cells.levels.items():
            here = (cells.variable == variable).nonzero()[:, 0]
            share = share_known(cells.features[here])
            said[here] = sharpened(levels, cells.codes[variable], weights[here], self.sharpness[variable] * share)
        return said


def sharpened(
    levels: Float[Tensor, "members cells levels"],
    codes: Int[Tensor, " cells"],
    log_weights: Float[Tensor, "cells members"],
    log_power: Float[Tensor, " cells"],
) -> Float[Tensor, " cells"]:
    """log q of each cell's own level."""
    mixed = (log_weights.T[..., None] + levels).logsumexp(dim=0)
    return (log_power.exp()[:, None] * mixed).log_softmax(dim=1).gather(1, codes[:, None])[:, 0]


def fit_gates(cells: JudgedCells, variables: int, *, own: float = OWN, common: float = COMMON) -> Gates:
    """The gates under which the cells are most probable, held back as the module says."""
    members, features = len(cells.nats), cells.features.shape[1]
    cells = thinned(cells, MOST_CELLS)
    cells = cells.take(cells.variable.argsort(stable=True))
    sizes = cells.variable.bincount(minlength=variables).tolist()
    extended = torch.nn.functional.pad(cells.features, (1, 0), value=1.0).split(sizes)
    nats = (cells.nats - cells.nats.amax(dim=0)).T
    counts, shares = cells.counts.split(sizes), share_known(cells.features).split(sizes)
    mixed = torch.ones(variables, dtype=torch.bool)
    mixed[list(cells.levels)] = False
    mixed_counts = torch.where(mixed[cells.variable], cells.counts, 0.0)
    shape = torch.Size((variables + 1, members, features + 1))  # the last are the parameters of all variables together
    most = shape.numel()

    def parts(every: Tensor) -> tuple[Tensor, Tensor]:
        return every[:most].reshape(shape), every[most:]

    def loss(every: Tensor) -> Tensor:
        parameters, powers = parts(every)
        theta, sharpness = parameters[:-1] + parameters[-1], (powers[:-1] + powers[-1]).clamp(-SHARPEST, SHARPEST)
        logits = torch.cat([part @ one.T for part, one in zip(extended, theta, strict=True)])
        log_weights = logits.log_softmax(dim=1)
        gained = (mixed_counts * (log_weights + nats).logsumexp(dim=1)).sum()
        each = log_weights.split(sizes)
        for variable, levels in cells.levels.items():
            power = sharpness[variable] * shares[variable]
            said = sharpened(levels, cells.codes[variable], each[variable], power)
            gained = gained + (counts[variable] * said).sum()
        held = (parameters[:-1] / own).square().sum() + (parameters[-1] / common).square().sum()
        return (held + (powers / SHARPENING).square().sum()) / 2 - gained

    parameters, powers = parts(_least(loss, most + variables + 1))
    found = parameters[:-1] + parameters[-1]
    sharpness = (powers[:-1] + powers[-1]).clamp(-SHARPEST, SHARPEST).masked_fill(mixed, 0.0)
    if not bool(found.isfinite().all() and sharpness.isfinite().all()):
        found, sharpness = torch.zeros_like(found), torch.zeros_like(sharpness)
    gates = Gates(
        found[..., 0].log_softmax(dim=1), found[..., 1:].clamp(-STEEPEST, STEEPEST), torch.zeros_like(sharpness)
    )
    gains = Gates(gates.log_weights, gates.slopes, sharpness).log_prob(cells) - gates.log_prob(cells)
    gain = torch.zeros_like(sharpness).index_add(0, cells.variable, cells.counts * gains)
    return Gates(gates.log_weights, gates.slopes, sharpness.where(gain > WORTH, 0.0))


def _least(loss: Callable[[Tensor], Tensor], size: int) -> Float[Tensor, " size"]:
    """Where the loss of so many numbers is least, as far as some steps of L-BFGS from zero lead.

    SciPy's, which LightGBM has imported already; torch's would import its compiler, which takes longer than the search.
    """
    from scipy.optimize import minimize

    def at(place: np.ndarray) -> tuple[float, np.ndarray]:
        with torch.enable_grad():
            leaf = torch.from_numpy(place).requires_grad_()
            value = loss(leaf)
            (slope,) = torch.autograd.grad(value, leaf)
        return float(value.detach()), slope.numpy()

    found = minimize(at, np.zeros(size), jac=True, method="L-BFGS-B", options={"maxiter": STEPS, "maxcor": HISTORY})
    return torch.from_numpy(found.x)


def thinned(cells: JudgedCells, most: int) -> JudgedCells:
    """About so many of the cells at most: those that count for much, and some of the others, which count for more then.

    A cell that counts for n is kept with the probability min(1, c n), so that sums over cells stay what they are on
    average.
    """
    if len(cells) <= most:
        return cells
    counts = cells.counts / cells.counts.sum()
    scale = float(most)
    for _ in range(50):  # what cells that are kept for certain leave over is for the others
        scale *= most / float((scale * counts).clamp(max=1).sum())
    kept = (scale * counts).clamp(max=1)
    reached = kept.cumsum(0)
    index = (reached.floor() > (reached - kept).floor()).nonzero()[:, 0]
    some = cells.take(index)
    return replace(some, counts=some.counts / kept[index])
