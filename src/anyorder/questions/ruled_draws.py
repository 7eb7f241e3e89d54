r"""Draws that obey rules: each column is drawn inside what the rules leave of it, given the values drawn before it.

A rule is a range whose ends depend on other columns. So the columns of the rules, and those with a range of their own,
are drawn one after another as in :mod:`.particles`, each from its exact conditional cut to what the rules allow in its
row, with the mass before the cut as a weight. The last column of an equality is computed, not drawn, and its density
is the weight:

$$w = \prod_{\text{cut}} P(x_i \in R_i(x_{<i}) \mid x_e, x_{<i})
      \prod_{\text{computed}} \frac{p(x_i \mid x_e, x_{<i})}{|c_i|}.$$

Weighted by w, the draws stand for the model given the rules: p restricted to the rows that obey, with the surface
measure that $\delta(\sum_k c_k x_k - b)$ has on an equality. Values are rounded as their column was before the
next one is drawn, so that what is computed from them has its digits too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.distributions.region import Interval, Nothing, Points, Region, Union
from anyorder.distributions.row_regions import RowIntervals, RowPoints
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel, row_chunks
from anyorder.query import PAD, Chain, Query
from anyorder.questions.particles import doubled, one_where_alike, order_generator
from anyorder.questions.rules import Rules
from anyorder.support.threads import answering
from anyorder.variables.codecs import Codec, Space
from anyorder.variables.ranges import slack
from anyorder.variables.schema import Kind

NEAR = 1e-7  # of a step: a value so near to a point of its lattice is that point
TINY = 1e-13  # of the size of a number
SECOND = 1 / 86_400  # of a day


class Ruled:
    """Rules, and regions of single columns, over one model."""

    def __init__(self, model: AnyOrderModel, rules: Rules, regions: Mapping[int, Region]) -> None:
        self.model, self.rules, self.regions = model, rules, dict(regions)
        for column in rules.columns:
            if isinstance(self.regions.get(column), Union):
                name = model.schema.names[column]
                raise UserError(f"{name!r} stands in a rule, so it can be given one range, not several with 'or' or !=")
        self.drawn = [*dict.fromkeys([*rules.columns, *self.regions])]

    @answering
    @torch.no_grad()
    def draws(
        self,
        values: Float[Tensor, "rows variables"],
        known: Bool[Tensor, "rows variables"],
        generator: torch.Generator,
        *,
        without: int | None = None,
        draw_last: bool = True,
    ) -> tuple[Float[Tensor, "rows variables"], Bool[Tensor, "rows variables"], Float[Tensor, " rows"]]:
        """The rows with all unknown columns of rules and regions drawn, what is known then, and log weights.

        ``without``: a column to leave out. Without ``draw_last`` the last column is only weighed.
        """
        self.rules.check_context(known)
        asked = torch.zeros_like(known)
        asked[:, [column for column in self.drawn if column != without]] = True
        asked &= ~known
        out, log_weights = values.double().clone(), torch.zeros(len(values), dtype=torch.float64)
        for rows in row_chunks(self.model, len(values)):
            chain = self._chain(known[rows], asked[rows], generator)
            walk = _Walk(self, out[rows], known[rows])
            log_weights[rows] = walk.down(chain, generator, draw_last)
            out[rows] = walk.values
        return out, known | asked, log_weights

    def region(
        self, values: Float[Tensor, "rows variables"], known: Bool[Tensor, "rows variables"], column: int
    ) -> Region:
        """What is left of one column, given what is known of each row."""
        return _Walk(self, values.double(), known).left(np.arange(len(values)), column)

    def _chain(self, known: Tensor, asked: Tensor, generator: torch.Generator) -> Chain:
        device = self.model.device
        chain = self.model.chain(Query(known.to(device), asked.to(device)), order_generator(device, generator))
        if not any(rule.compare == "=" for rule in self.rules.rules):
            return chain
        # Whole numbers first, then the coarsest: what is computed from finer numbers would not be one of theirs.
        codecs = self.model.encoding.codecs
        fineness = [-codec.variable.step if codec.space is Space.LINE else -math.inf for codec in codecs]
        key = torch.tensor([*fineness, math.inf], device=device)[chain.order.where(chain.order != PAD, len(codecs))]
        return Chain(chain.prefix, chain.order.gather(1, key.argsort(dim=1, stable=True)), chain.variables)


class _Walk:
    """One batch of rows on its way: the values so far, and what each column of the rules can be, in units."""

    def __init__(self, ruled: Ruled, values: Tensor, known: Tensor) -> None:
        self.ruled, self.model, self.rules = ruled, ruled.model, ruled.rules
        self.values = values.clone()
        self.known = known[:, self.rules.columns].numpy().copy()
        shape = (len(values), len(self.rules.columns))
        self.low, self.high = np.empty(shape), np.empty(shape)
        for column, index in self.rules.position.items():
            codec = self.model.encoding.codecs[column]
            ends = _support(codec, ruled.regions.get(column))
            units = self._rounded(column, codec.measure(self.values[:, column].numpy()))
            self.low[:, index] = np.where(self.known[:, index], units, ends[0])
            self.high[:, index] = np.where(self.known[:, index], units, ends[1])

    def down(self, chain: Chain, generator: torch.Generator, draw_last: bool) -> Float[Tensor, " rows"]:
        """Draw along the chain; the log weights."""
        log_weights = torch.zeros(len(self.values), dtype=torch.float64)
        evidence = self.values.to(self.model.device).where(chain.evidence, 0.0)
        walk = self.model.network.walk(evidence, chain) if chain.steps else None
        for step in range(chain.steps):
            assert walk is not None
            target = chain.order[:, step].cpu()
            features = walk.features().double().cpu()
            last = step == chain.steps - 1
            for column in target[target != PAD].unique().tolist():
                rows = (target == column).nonzero()[:, 0]
                found = self._step(rows, column, features[rows], generator, only_weigh=last and not draw_last)
                log_weights[rows] += found
            if not last:
                told = self.values.gather(1, target.clamp(min=0)[:, None])[:, 0]
                walk.tell(told.to(self.model.device))
        return log_weights

    def _step(
        self, rows: Tensor, column: int, features: Tensor, generator: torch.Generator, *, only_weigh: bool
    ) -> Float[Tensor, " rows"]:
        level = torch.rand(len(rows), generator=generator, dtype=torch.float64)
        if column not in self.rules.position:
            region, law = self.ruled.regions[column], doubled(self.model, one_where_alike(features), column)
            if not only_weigh:
                self.values[rows, column] = region.draw(law, level)
            return region.log_mass(law).expand(len(rows))
        index, codec = self.rules.position[column], self.model.encoding.codecs[column]
        which, factor = self.rules.computed(self.known[rows.numpy()], column)
        weights = torch.zeros(len(rows), dtype=torch.float64)
        follows = torch.as_tensor(which >= 0)
        if bool(follows.any()):
            here = rows[follows].numpy()
            units, possible = self._computed(here, column, which[which >= 0])
            model = torch.as_tensor(codec.from_measure(np.where(possible, units, self._middle(here, index))))
            law = doubled(self.model, features[follows], column)
            nats = law.log_prob(model).double().numpy() + codec.log_slope(model.numpy())
            nats = np.where(possible, nats - np.log(np.abs(factor[which >= 0])), -math.inf)
            weights[follows] = torch.as_tensor(nats)
            self._tell(here, column, model, np.where(possible, units, self._middle(here, index)))
        if bool((~follows).any()):
            here = rows[~follows].numpy()
            region, law = self.left(here, column), doubled(self.model, one_where_alike(features[~follows]), column)
            weights[~follows] = region.log_mass(law).expand(len(here))
            if not only_weigh:
                model = region.draw(law, level[~follows])
                units = self._rounded(column, codec.measure(model.numpy()))
                least, most = self._grid(here, column)
                units = np.where(least <= most, np.minimum(np.maximum(units, least), most), units)
                self._tell(here, column, torch.as_tensor(codec.from_measure(units)), units)
        return weights

    def _tell(self, rows: np.ndarray, column: int, model: Tensor, units: np.ndarray) -> None:
        index = self.rules.position[column]
        self.values[torch.as_tensor(rows), column] = model
        self.low[rows, index] = self.high[rows, index] = units
        self.known[rows, index] = True

    def _computed(self, rows: np.ndarray, column: int, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The value that follows from an equality, and whether it can be one and breaks no other rule."""
        index, codec = self.rules.position[column], self.model.encoding.codecs[column]
        coefficients = self.rules.matrix[which]
        others = coefficients.copy()
        others[:, index] = 0.0
        units = (self.rules.bounds[which] - (others * np.where(others != 0, self.low[rows], 0.0)).sum(axis=1)) / (
            coefficients[:, index]
        )
        scale = NEAR * np.maximum(np.abs(units), 1.0)
        rounded = self._rounded(column, units)
        exact = np.abs(rounded - units) <= scale
        possible = np.isfinite(units)
        if codec.space is not Space.LINE:
            near = codec.measure(codec.from_measure(np.where(possible, units, 0.0)))
            near = np.rint(near) if codec.space is Space.LATTICE else near
            possible &= np.abs(near - units) <= scale
            rounded, exact = near, possible
        units = np.where(exact, rounded, units)
        possible &= (units >= self.low[rows, index] - scale) & (units <= self.high[rows, index] + scale)
        told = self.low[rows].copy()
        told[:, index] = np.where(possible, units, 0.0)
        known = self.known[rows].copy()
        known[:, index] = True
        # A rule about other columns only, broken by what was known from the start, is none of this one's business.
        possible &= ~self.rules.broken(told, known)[self.rules.matrix[:, index] != 0].any(axis=0)
        if (region := self.ruled.regions.get(column)) is not None:
            model = torch.as_tensor(codec.from_measure(np.where(possible, units, self._middle(rows, index))))
            possible &= region.contains(model).numpy()
        return units, possible

    def _middle(self, rows: np.ndarray, index: int) -> np.ndarray:
        """Some value that the column can have, to stand where there is none."""
        low, high = self.low[rows, index], self.high[rows, index]
        return np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))

    def _ends(self, rows: np.ndarray, column: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        low, high = self.rules.tightened(self.low[rows].copy(), self.high[rows].copy())
        index = self.rules.position[column]
        low[:, index], high[:, index] = self.low[rows, index], self.high[rows, index]
        return self.rules.allowed(low, high, column)

    def _grid(self, rows: np.ndarray, column: int) -> tuple[np.ndarray, np.ndarray]:
        """The least and greatest value on the grid of recorded values; the plain ends where there is no grid."""
        least, most, strict = self._ends(rows, column)
        codec = self.model.encoding.codecs[column]
        step = 1.0 if codec.space is Space.LATTICE else self._step_of(column)
        if not step:
            # A strict end is left out by a rounding error.
            nudge = [np.where(np.isfinite(end), np.maximum(np.abs(end), 1.0), 0.0) * TINY for end in (least, most)]
            return least + np.where(strict[0], nudge[0], 0.0), most - np.where(strict[1], nudge[1], 0.0)
        first, last = np.ceil(least / step - NEAR), np.floor(most / step + NEAR)
        with np.errstate(invalid="ignore"):  # an open end minus itself
            first = first + (strict[0] & (np.abs(first * step - least) <= NEAR * step))
            last = last - (strict[1] & (np.abs(last * step - most) <= NEAR * step))
        low, high = (self._rounded(column, number * step) for number in (first, last))
        if codec.space is Space.LATTICE:
            return low, high
        none = first > last  # the rule leaves less than a step: then it is more than a digit that counts
        return np.where(none, least, low), np.where(none, most, high)

    def left(self, rows: np.ndarray, column: int) -> Region:
        """What rules and the region of its own leave of a column, given the rest of each row."""
        codec, fixed = self.model.encoding.codecs[column], self.ruled.regions.get(column)
        if column not in self.rules.position:
            assert fixed is not None
            return fixed
        if isinstance(fixed, Nothing):
            return fixed
        listed = codec.listed() if codec.space is Space.LEVELS else None
        if isinstance(fixed, Points):
            listed = np.array(fixed.values)
        if listed is not None:
            least, most, strict = self._ends(rows, column)
            units = codec.measure(listed)[:, None]
            near = NEAR * np.maximum(np.abs(units), 1.0)
            above = np.where(strict[0], units > least + near, units >= least - near)
            below = np.where(strict[1], units < most - near, units <= most + near)
            return RowPoints(torch.as_tensor(listed), torch.as_tensor(above & below))
        least, most = self._grid(rows, column)
        half = 0.5 if codec.space is Space.LATTICE else 0.0
        ends = [torch.as_tensor(_model(codec, end)) for end in (least, most, least - half, most + half)]
        low, high, before, upto = ends
        if codec.atoms and not half:
            strict = self._ends(rows, column)[2]
            wide = torch.as_tensor([[slack(float(end)) for end in side] for side in (low, high)]).reshape(2, -1)
            out = torch.as_tensor(strict) & (self._step_of(column) == 0)
            before = before - torch.where(out[0], -wide[0], wide[0])
            upto = upto + torch.where(out[1], -wide[1], wide[1])
        if isinstance(fixed, Interval):
            low, before = low.clamp(min=fixed.least), before.clamp(min=fixed.before)
            high, upto = high.clamp(max=fixed.most), upto.clamp(max=fixed.upto)
        return RowIntervals(low, high, before, upto)

    def _step_of(self, column: int) -> float:
        variable = self.model.schema.variables[column]
        if variable.kind is Kind.DATETIME:
            return SECOND if variable.resolution == "second" else 0.0
        return self.rules.step(column)

    def _rounded(self, column: int, units: np.ndarray) -> np.ndarray:
        """Numbers as they are recorded."""
        codec = self.model.encoding.codecs[column]
        if codec.space is Space.LATTICE:
            return np.asarray(np.rint(units))
        if codec.variable.step:
            return codec.as_recorded(units)
        step = self._step_of(column) if codec.space is Space.LINE else 0.0
        return np.asarray(np.rint(units / step) * step if step else units)


def _support(codec: Codec, region: Region | None) -> tuple[float, float]:
    """The least and the greatest value that a column can have, in the units of the data."""
    low, high = codec.variable.bounds
    ends = [-math.inf if low is None else float(low), math.inf if high is None else float(high)]
    if isinstance(region, Points):
        listed = codec.measure(np.array(region.values))
        return max(ends[0], float(listed.min())), min(ends[1], float(listed.max()))
    if codec.space is Space.LEVELS:
        units = codec.measure(np.asarray(codec.listed()))
        return float(units.min()), float(units.max())
    if isinstance(region, Interval):
        model = region.least, region.most
        said = [float(codec.measure(np.array([end]))[0]) if math.isfinite(end) else end for end in model]
        ends = [max(ends[0], said[0]), min(ends[1], said[1])]
    return ends[0], ends[1]


def _model(codec: Codec, units: np.ndarray) -> np.ndarray:
    """Model values of numbers, infinite ones too."""
    finite = np.isfinite(units)
    return np.where(finite, codec.from_measure(np.where(finite, units, 0.0)), units)
