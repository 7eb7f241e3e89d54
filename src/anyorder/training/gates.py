r"""Which member of a blend to believe, given what is known: weights by the probability of held-out cells.

$$\max_\theta\; \sum_c n_c \log \sum_m \mathrm{softmax}_m\big(\theta_{i(c)} f(e_c)\big)\, p_m(x_c \mid x_{e_c})
  - \tfrac12 \sum_i \lVert \theta_i - \theta \rVert^2 / \sigma^2 - \tfrac12 \lVert \theta \rVert^2 / \sigma_0^2,$$

with $f$ a one and the features of :func:`anyorder.networks.blend.gate_features`. The parameters of a variable with few
held-out cells follow those of all variables together, and these keep near even and fixed weights unless cells speak
against it. Cells count so that many questions about one row weigh no more than the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.networks.blend import STEEPEST

OWN, COMMON = 1.0, 5.0  # deviations of a variable's parameters from the common ones, and of these from none
STEPS = 50
MOST_CELLS = 30_000


@dataclass(frozen=True)
class JudgedCells:
    """Held-out cells, what each member says of them, and what was known when they were asked for.

    ``levels``: what each member says of all levels of the cells of a variable; ``codes``: which of them they have.
    """

    nats: Float[Tensor, "members cells"]
    variable: Int[Tensor, " cells"]
    features: Float[Tensor, "cells features"]
    counts: Float[Tensor, " cells"]
    levels: tuple[Mapping[int, Float[Tensor, "own levels"]], ...] = ()
    codes: Mapping[int, Int[Tensor, " own"]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.variable)

    def take(self, index: Tensor) -> JudgedCells:
        """Some of the cells, without what is said of their levels."""
        return JudgedCells(self.nats[:, index], self.variable[index], self.features[index], self.counts[index])


@dataclass(frozen=True)
class Gates:
    """The logarithms of every variable's weights where the features are zero, and their slopes."""

    log_weights: Float[Tensor, "variables members"]
    slopes: Float[Tensor, "variables members features"]

    def weights(self, cells: JudgedCells) -> Float[Tensor, "cells members"]:
        """The logarithms of the members' weights for each cell."""
        own = torch.einsum("cf,cmf->cm", cells.features, self.slopes[cells.variable])
        return (self.log_weights[cells.variable] + own).log_softmax(dim=1)

    def log_prob(self, cells: JudgedCells) -> Float[Tensor, " cells"]:
        """What the blend says of each cell."""
        return (self.weights(cells) + cells.nats.T).logsumexp(dim=1)


def fit_gates(cells: JudgedCells, variables: int, *, own: float = OWN, common: float = COMMON) -> Gates:
    """The gates under which the cells are most probable, held back as the module says."""
    members, features = len(cells.nats), cells.features.shape[1]
    if len(cells) > MOST_CELLS:
        stride = -(-len(cells) // MOST_CELLS)
        some = cells.take(torch.arange(0, len(cells), stride))
        cells = JudgedCells(some.nats, some.variable, some.features, some.counts * stride)
    cells = cells.take(cells.variable.argsort(stable=True))
    sizes = cells.variable.bincount(minlength=variables).tolist()
    extended = torch.nn.functional.pad(cells.features, (1, 0), value=1.0).split(sizes)
    nats = (cells.nats - cells.nats.amax(dim=0)).T
    shape = (variables + 1, members, features + 1)  # the last are the parameters of all variables together
    with torch.enable_grad():
        parameters = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
        search = torch.optim.LBFGS([parameters], max_iter=STEPS, history_size=20, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            search.zero_grad()
            theta = parameters[:-1] + parameters[-1]
            logits = torch.cat([part @ one.T for part, one in zip(extended, theta, strict=True)])
            said = (logits.log_softmax(dim=1) + nats).logsumexp(dim=1)
            held = (parameters[:-1] / own).square().sum() + (parameters[-1] / common).square().sum()
            total = held / 2 - (cells.counts * said).sum()
            total.backward()
            return total

        search.step(loss)
    found = (parameters[:-1] + parameters[-1]).detach()
    if not bool(found.isfinite().all()):
        found = torch.zeros_like(found)
    return Gates(found[..., 0].log_softmax(dim=1), found[..., 1:].clamp(-STEEPEST, STEEPEST))
