r"""The most probable completion: the values of several variables that are most probable together, given the evidence.

$$\max_{x_u} \sum_t \log p(x_{u_t} \mid x_e, x_{u_{<t}})$$

along the model's own order. Not the most probable value of each by itself: those need not go together. Every factor is
at most one where variables have levels, so the log-probability of a beginning bounds that of all its continuations: a
beginning below the best completion found so far can be dropped. The search goes down the order with all beginnings that
are left; the answer is exact if they never were more than can be held, and else a beam search.

Of numbers some candidates stand for all: the densest of their quantiles (of lattice points, where they are few). The
result is then improved by changing one variable at a time until nothing gains, and is never said to be exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.region import Region
from anyorder.model import AnyOrderModel, row_chunks
from anyorder.query import Query
from anyorder.questions.units import shown_cell
from anyorder.support import html
from anyorder.support.threads import answering
from anyorder.variables.codecs import Space

WIDEST = 4096  # beginnings that are held
NARROW = 16  # of the first search, which finds a completion to compare with
QUANTILES = 65  # of a number, among which candidates are found
CANDIDATES = 5  # of a number, after each beginning
ROUNDS = 10  # of improvements, one variable at a time


@dataclass(frozen=True, repr=False)
class MostProbable:
    """The most probable completion that was found.

    Made by :meth:`TableModel.most_probable <anyorder.modalities.tables.model.TableModel.most_probable>`.

    Parameters
    ----------
    row
        The values, by column.
    log_prob
        Their joint log-probability given the exact evidence, in nats; a log-density where one of them is continuous.
    exact
        Whether no other completion is more probable under the model, along its own order. False: the best one found.

    Examples
    --------
    >>> best = model.most_probable({"rooms": 6}, columns=["river"])
    >>> best.row["river"] == model.given(rooms=6)["river"].mode(), best.exact
    (True, True)
    """

    row: Mapping[str, Any]
    log_prob: float
    exact: bool

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={shown_cell(value)}" for name, value in self.row.items())
        return f"MostProbable({values}; log p = {self.log_prob:.4g}, {self._how})"

    @property
    def _how(self) -> str:
        return "the best for certain" if self.exact else "the best one found"

    def _repr_html_(self) -> str:
        return html.titled(
            "Most probable together",
            html.table(["", ""], [[name, shown_cell(value)] for name, value in self.row.items()]),
            html.remark(f"log p = {self.log_prob:.4g} nats, {self._how}"),
        )


def completion(
    model: AnyOrderModel,
    row: Float[Tensor, "1 variables"],
    known: Bool[Tensor, "1 variables"],
    asked: Sequence[int],
    regions: Mapping[int, Region] | None = None,
) -> MostProbable:
    """The most probable values of the ``asked`` variables, in the units of the data."""
    values, nats, exact = most_probable(model, row, known, asked, regions)
    frame = model.encoding.decode(values[None].double().numpy())
    names = [model.schema.names[index] for index in asked]
    return MostProbable({name: _plain(frame[name].iloc[0]) for name in names}, nats, exact)


def _plain(value: Any) -> Any:
    """A cell as Python has it, where it is a number of NumPy's."""
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value


@answering
@torch.no_grad()
def most_probable(
    model: AnyOrderModel,
    row: Float[Tensor, "1 variables"],
    known: Bool[Tensor, "1 variables"],
    asked: Sequence[int],
    regions: Mapping[int, Region] | None = None,
) -> tuple[Float[Tensor, " variables"], float, bool]:
    """The values, their log-probability in the units of the data, and whether they are the best for certain."""
    search = _Search(model, row.double(), known, asked, regions or {})
    values, best, _ = search.down(NARROW, -np.inf)
    wider, score, whole = search.down(WIDEST, best)
    if score > best:
        values, best = wider, score
    exact = whole and all(model.encoding.codecs[index].space is Space.LEVELS for index in asked)
    if not exact:
        values, best = search.improved(values, best)
    return values, best, exact


class _Search:
    def __init__(
        self, model: AnyOrderModel, row: Tensor, known: Tensor, asked: Sequence[int], regions: Mapping[int, Region]
    ) -> None:
        self.model, self.row, self.known, self.regions = model, row, known, regions
        wanted = torch.zeros_like(known)
        wanted[0, list(asked)] = True
        self.query = Query(known, wanted & ~known)
        generator = torch.Generator(device=model.device).manual_seed(0)
        self.chain = model.chain(Query(known.to(model.device), self.query.asked.to(model.device)), generator)
        self.order = self.chain.order[0].tolist()

    def down(self, width: int, least: float) -> tuple[Tensor, float, bool]:
        """The best completion that is at least as probable as ``least``, its score, and whether none was passed by."""
        values, scores = self.row.clone(), torch.zeros(1, dtype=torch.float64)
        known, whole = self.known.clone(), True
        for variable in self.order:
            levels = self.model.encoding.codecs[variable].space is Space.LEVELS
            candidates, nats = self._candidates(values, known, variable)
            reached = scores[:, None] + nats
            flat = reached.reshape(-1)
            # A density may be above one, so nothing bounds what follows a number.
            keep = (flat >= least - 1e-9) if levels and self._only_levels_from(variable) else flat > -np.inf
            chosen = keep.nonzero()[:, 0]
            if len(chosen) > width:
                chosen, whole = flat.topk(width).indices, False
            if not len(chosen):
                return values[0], -np.inf, whole
            parent = chosen // nats.shape[1]
            values = values[parent]
            values[:, variable] = candidates.reshape(-1)[chosen]
            scores, known[0, variable] = flat[chosen], True
        best = int(scores.argmax())
        return values[best], float(scores[best]), whole

    def _only_levels_from(self, variable: int) -> bool:
        rest = self.order[self.order.index(variable) :]
        return all(self.model.encoding.codecs[index].space is not Space.LINE for index in rest)

    def improved(self, values: Tensor, best: float) -> tuple[Tensor, float]:
        """Changed in one variable at a time as long as that gains."""
        everything = self.known | self.query.asked
        for _ in range(ROUNDS):
            before = best
            for variable in self.order:
                others = everything.clone()
                others[0, variable] = False
                candidates, _ = self._candidates(values[None], others, variable)
                tried = values.expand(candidates.shape[1], -1).clone()
                tried[:, variable] = candidates[0]
                scores = self.score(tried)
                if float(scores.max()) > best + 1e-9:
                    values, best = tried[int(scores.argmax())], float(scores.max())
            if best <= before:
                break
        return values, best

    def score(self, values: Float[Tensor, "rows variables"]) -> Float[Tensor, " rows"]:
        """The joint log-probability of every row, in the units of the data."""
        model, parts = self.model, []
        for rows in row_chunks(model, len(values)):
            count = len(values[rows])
            query = Query(self.query.evidence.expand(count, -1), self.query.asked.expand(count, -1)).to(model.device)
            chain = model.chain(query, torch.Generator(device=model.device).manual_seed(0))
            steps = model.step_log_prob(values[rows].float().to(model.device), chain)
            parts.append(steps.double().sum(dim=1).cpu())
        slope = np.where(self.query.asked.numpy(), model.encoding.log_det(values.numpy()), 0.0).sum(axis=1)
        return torch.cat(parts) + torch.as_tensor(slope)

    def _candidates(
        self, values: Tensor, known: Tensor, variable: int
    ) -> tuple[Float[Tensor, "rows candidates"], Float[Tensor, "rows candidates"]]:
        """Values of a variable after each beginning, and their log-probability in the units of the data."""
        model, codec = self.model, self.model.encoding.codecs[variable]
        parts = []
        for rows in row_chunks(model, len(values)):
            some = values[rows].float().to(model.device)
            features = model.features_of(some, known.expand(len(some), -1).to(model.device), variable)
            parts.append(features.cpu())
        law = model.heads.distribution(torch.cat(parts), variable)
        listed = codec.listed()
        if (listed is not None and len(listed) <= QUANTILES) or codec.space is Space.LEVELS:
            points = torch.as_tensor(np.asarray(listed))[:, None].expand(-1, len(values))
        else:
            points = self._spread(law)
        nats = law.log_prob(points).double() + torch.as_tensor(codec.log_slope(points.double().numpy()))
        nats = nats.nan_to_num(nan=-np.inf)
        if (region := self.regions.get(variable)) is not None:
            nats = nats.masked_fill(~region.contains(points.double()), -np.inf)
        if codec.space is not Space.LEVELS:
            nats, order = nats.topk(min(CANDIDATES, len(nats)), dim=0)
            points = points.gather(0, order)
        return points.T.double(), nats.T

    def _spread(self, law: Distribution) -> Float[Tensor, "points rows"]:
        levels = torch.linspace(0.0, 1.0, QUANTILES + 2, dtype=torch.float64)[1:-1]
        points = law.quantile(levels[:, None].expand(-1, law.shape[0])).double()
        atoms = torch.tensor([atom for _, atom in law.pieces()[1]] if not law.discrete else [], dtype=torch.float64)
        return torch.cat([points, atoms[:, None].expand(-1, law.shape[0])])
