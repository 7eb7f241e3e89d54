r"""A distribution as the probabilities of cells: its levels, or pieces of the line that many distributions share.

$$P_c = F(\text{edge}_c) - F(\text{edge}_{c-1})$$

is exact, and linear in the distribution: the cells of a mixture are the weighted mean of its members' cells. So a mean
of many distributions, and how far each lies from it, are sums over cells. The edges are draws from the distributions
themselves, every fourth in order: where they differ there are edges. Atoms have cells of their own. Merging values
into cells never adds information; with some hundred cells it takes away next to none.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.model import AnyOrderModel
from anyorder.questions.particles import doubled

SPARE = 4  # draws of which one becomes an edge: more even than draws themselves
AT_ONCE = 1 << 16  # values whose probabilities are taken together: bounds the memory, not the result


@dataclass(frozen=True)
class Cells:
    """The cells of one variable, for each of some cases: ``edges`` ascend; a variable with levels has none."""

    model: AnyOrderModel
    variable: int
    edges: Float[Tensor, "cases edges"]

    @classmethod
    def of(
        cls,
        model: AnyOrderModel,
        variable: int,
        features: Float[Tensor, "cases rows width"],
        count: int,
        generator: torch.Generator,
    ) -> Cells:
        """Cells for distributions given by their features, several a case."""
        cases, rows = features.shape[:2]
        if model.schema.variables[variable].levels:
            return cls(model, variable, torch.zeros(cases, 0, dtype=torch.float64))
        whose = torch.randint(rows, (SPARE * count,), generator=generator)
        drawn = doubled(model, features[:, whose].flatten(0, 1), variable).sample(generator).double()
        edges = drawn.view(cases, -1).sort(dim=1).values
        edges = torch.cat([edges[:, :1], edges[:, SPARE // 2 :: SPARE], edges[:, -1:]], dim=1)
        atoms = torch.tensor(model.encoding.codecs[variable].atoms, dtype=torch.float64)
        return cls(model, variable, torch.cat([edges, atoms.expand(cases, -1)], dim=1).sort(dim=1).values)

    @property
    def levels(self) -> int:
        """How many levels the variable has; 0 on a line."""
        return len(self.model.schema.variables[self.variable].levels)

    @property
    def atoms(self) -> tuple[float, ...]:
        """The values on a line that have cells of their own."""
        return () if self.levels else self.model.encoding.codecs[self.variable].atoms

    def probabilities(
        self, features: Float[Tensor, "rows width"], case: Int[Tensor, " rows"]
    ) -> Float[Tensor, "rows cells"]:
        """What each distribution has in every cell of its case."""
        size = max(1, AT_ONCE // (self.levels or self.edges.shape[1]))
        parts = zip(features.split(size), case.split(size), strict=True)
        return torch.cat([self._some(doubled(self.model, part, self.variable), which) for part, which in parts])

    def _some(self, distribution: Distribution, case: Int[Tensor, " rows"]) -> Float[Tensor, "rows cells"]:
        if self.levels:
            codes = torch.arange(self.levels, dtype=torch.float64)
            found = distribution.log_prob(codes[:, None].expand(-1, len(case))).double().exp().T
            return found / found.sum(dim=1, keepdim=True)
        edges = self.edges[case]
        reached = distribution.cdf(edges.T).double().T
        nothing = torch.zeros(len(case), 1, dtype=torch.float64)
        mass = torch.cat([nothing, reached, nothing + 1], dim=1).diff(dim=1)
        spikes = []
        for atom in self.atoms:
            here = torch.full((len(case), 1), atom, dtype=torch.float64)
            held = distribution.mass_at(here[:, 0]).double()[:, None]
            mass = mass.scatter_add(1, torch.searchsorted(edges, here), -held)
            spikes.append(held)
        found = torch.cat([mass, *spikes], dim=1).clamp(min=0.0)
        return found / found.sum(dim=1, keepdim=True)

    @property
    def middles(self) -> Float[Tensor, "cases cells"]:
        """A value of every cell, in the units of the data."""
        if self.levels:
            model = torch.arange(self.levels, dtype=torch.float64).expand(len(self.edges), -1)
        else:
            atoms = torch.tensor(self.atoms, dtype=torch.float64).expand(len(self.edges), -1)
            inner = (self.edges[:, 1:] + self.edges[:, :-1]) / 2
            model = torch.cat([self.edges[:, :1], inner, self.edges[:, -1:], atoms], dim=1)
        name = self.model.schema.names[self.variable]
        return torch.as_tensor(self.model.encoding.measure(name, model.numpy().ravel())).view(model.shape)
