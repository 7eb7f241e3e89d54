"""Conditional: p(asked | evidence), lazy. Nothing runs until a number is asked for.

The direct chain answers: log p(u | e) is the sum of the steps of *one* chain from e to e + u, so it is always
normalised (MAC section 5.2). Other orders give other answers, since nothing forces a trained network to be
coherent; averaging K of them is the log of the mean *probability* (SFARM eq. 14), their spread a diagnostic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.distributions.region import Region, agreement
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.model.likelihood import log_probs
from anyorder.model.sampling import draws
from anyorder.query import Query
from anyorder.questions.answer import Answer
from anyorder.questions.estimate import Estimate, weighted_mean
from anyorder.questions.events import understand
from anyorder.questions.evidence import Value, read_statement
from anyorder.questions.particles import Particles
from anyorder.questions.ranges import DRAWS, Ranged, event_of
from anyorder.variables.missingness import blank_holes, with_indicators_along
from anyorder.variables.schema import Kind


@dataclass(frozen=True)
class OrderSpread:
    """How much the answer depends on the order: per order, the log-probability in nats."""

    log_probs: tuple[float, ...]

    @property
    def average(self) -> float:
        """The log of the mean probability."""
        return float(np.logaddexp.reduce(self.log_probs)) - math.log(len(self.log_probs))

    @property
    def deviation(self) -> float:
        """The standard deviation over orders: 0 for a coherent model."""
        return float(np.std(self.log_probs))


class Conditional:
    """What the model believes about ``asked`` (by default everything else) given ``evidence``.

    Evidence is a value, ``Between(low, high)``, ``OneOf(...)``, ``MISSING``, or a text that says one of these
    (``"30..40"``). Ranges are answered by ``draws`` truncated draws, the same ones for the same ``seed``.
    """

    def __init__(
        self,
        model: AnyOrderModel,
        evidence: Mapping[str, Any] | None = None,
        asked: tuple[str, ...] | None = None,
        *,
        draws: int = DRAWS,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.evidence = dict(evidence or {})
        self.draws, self.seed = draws, seed
        found = _together(model, self.evidence)
        self._encoded = {index: said for index, said in found.items() if not isinstance(said, Region)}
        self._regions = {index: said for index, said in found.items() if isinstance(said, Region)}
        for name in asked or ():
            if model.schema.index(name) in self._encoded:
                raise UserError(f"{name!r} is both asked and given; leave it out of one of them")
        self.asked = asked

    def __repr__(self) -> str:
        asked = ", ".join(self.asked) if self.asked is not None else "..."
        given = ", ".join(f"{name}={value!r}" for name, value in self.evidence.items())
        return f"p({asked} | {given})" if given else f"p({asked})"

    def given(self, evidence: Mapping[str, Any] | None = None, /, **more: Any) -> Conditional:
        """This question with more evidence."""
        return self._with({**self.evidence, **(evidence or {}), **more}, self.asked)

    def asking(self, *names: str) -> Conditional:
        """This evidence, asked about these variables only; the rest is marginalised out."""
        return self._with(self.evidence, names)

    def using(self, *, draws: int | None = None, seed: int | None = None) -> Conditional:
        """This question, answered with more (or other) draws; without ranges nothing changes."""
        if draws is not None and draws < 2:
            raise UserError(f"draws must be 2 or more, got {draws}")
        draws, seed = self.draws if draws is None else draws, self.seed if seed is None else seed
        return Conditional(self.model, self.evidence, self.asked, draws=draws, seed=seed)

    def _with(self, evidence: Mapping[str, Any], asked: tuple[str, ...] | None) -> Conditional:
        return Conditional(self.model, evidence, asked, draws=self.draws, seed=self.seed)

    def __getitem__(self, name: str) -> Answer:
        """The distribution of one variable: exact, in one step; under ranges a mixture with standard errors."""
        index = self.model.schema.index(name)
        if index in self._encoded:
            raise UserError(f"{name!r} is given ({self.evidence.get(name, True)!r}); ask for another variable")
        if self._regions:
            return self._ranged.answer(index)
        values, known = (part.to(self.model.device) for part in self._row())
        with torch.no_grad():
            features = self.model.features_of(values, known, index).cpu()
            distribution = self.model.heads.distribution(features, index)
        return Answer(self.model.schema.variables[index], self.model.encoding, distribution)

    def log_prob(
        self, values: Mapping[str, Any] | None = None, /, *, orders: int = 1, seed: int = 0, **more: Any
    ) -> Estimate:
        """log p(these values | evidence), jointly, in nats and in the units of the data."""
        if not self._regions:
            return Estimate(self.order_spread(values, orders=orders, seed=seed, **more).average)
        particles = self._ranged.particles()
        rows, query = self._wanted({**(values or {}), **more}, particles.values, particles.known)
        nats = np.logaddexp.reduce(log_probs(self.model, rows, query, orders=orders, seed=seed)) - math.log(orders)
        top = float(nats.max())
        if top == -math.inf:
            return Estimate(-math.inf)
        mean, error = (float(part) for part in weighted_mean(particles.weights, np.exp(nats - top)))
        return Estimate(top + math.log(mean), error / mean, self._ranged.method)

    def prob(self, event: str | Mapping[str, Any] | None = None, /, **more: Any) -> Estimate:
        """P(event | evidence), jointly: ``prob("price > 30, river=yes")`` or ``prob(price=Between(30, None))``."""
        return self._ranged.probability(event_of(event, more), self._encoded)

    def entropy(self, *names: str) -> Estimate:
        """The joint entropy of these variables given the evidence, in nats and in the units of the data."""
        from anyorder.questions.information import joint_entropy

        return joint_entropy(self, names)

    def order_spread(
        self, values: Mapping[str, Any] | None = None, /, *, orders: int = 8, seed: int = 0, **more: Any
    ) -> OrderSpread:
        """How the log-probability of these values differs along several orders."""
        if self._regions:
            raise UserError("the spread over orders is a question about exact evidence; this evidence has ranges")
        row, known = self._row()
        row, query = self._wanted({**(values or {}), **more}, row, known[0])
        nats = log_probs(self.model, row, query, orders=orders, seed=seed)
        return OrderSpread(tuple(nats[:, 0].tolist()))

    @cached_property
    def _ranged(self) -> Ranged:
        """The machinery of ranges, made for the first question that needs it: most never do."""
        return Ranged(self.model, *self._row(), self._regions, self.draws, self.seed)

    @property
    def ranged(self) -> bool:
        """Whether some of the evidence is a range, so that answers are estimates."""
        return bool(self._regions)

    @property
    def exact(self) -> tuple[Float[Tensor, "1 variables"], Bool[Tensor, "1 variables"]]:
        """The row of exactly known model values, and which they are."""
        return self._row()

    @property
    def given_indices(self) -> frozenset[int]:
        """The variables that the evidence speaks of."""
        return frozenset(self._encoded) | frozenset(self._regions)

    def particles(self) -> Particles:
        """The weighted draws that stand for the ranges."""
        return self._ranged.particles()

    def ranged_rows(self, n: int) -> tuple[Float[Tensor, "n variables"], Bool[Tensor, "1 variables"]]:
        """``n`` rows of model values drawn inside the ranges, and which variables they know."""
        return self._ranged.rows(n, self.seed)

    def _wanted(
        self, wanted: Mapping[str, Any], rows: Float[Tensor, "rows variables"], known: Bool[Tensor, " variables"]
    ) -> tuple[Float[Tensor, "rows variables"], Query]:
        """The rows with the wanted values in them, and the query that asks for those."""
        if not wanted:
            raise UserError("log_prob needs values, as in log_prob(price=22.0)")
        rows = rows.clone()
        asked = torch.zeros_like(known)
        for name, value in wanted.items():
            index = self.model.schema.index(name)
            if index in self._encoded or index in self._regions:
                raise UserError(f"{name!r} is given already; its probability given itself is not a question")
            if self.asked is not None and name not in self.asked:
                raise UserError(f"{name!r} is not among the asked variables {list(self.asked)}")
            rows[:, index] = self.model.encoding.encode_value(name, value)
            asked[index] = True
        return rows, Query(known.expand(len(rows), -1), asked.expand(len(rows), -1))

    def sample(self, n: int = 1, seed: int = 0, *, holes: bool = False) -> pd.DataFrame:
        """``n`` joint draws as full rows: evidence as given, asked variables drawn, others left out.

        ``holes=True``, for a model of joint missingness: drawn cells are missing where they would not be recorded.
        """
        if n < 0:
            raise UserError(f"cannot draw {n} rows; give a number from 0 up")
        row, known = self._ranged.rows(n, seed) if self._regions else self._row()
        asked = ~known
        if self.asked is not None:
            asked = torch.zeros_like(known)
            asked[0, [self.model.schema.index(name) for name in self.asked]] = True
            asked &= ~known  # a variable with a range is drawn already
        asked, wanted = with_indicators_along(self.model.schema, known, asked, named=self.asked is not None)
        query = Query(known.expand(n, -1), asked.expand(n, -1))
        drawn = draws(self.model, row.expand(n, -1), query, seed=seed)
        if holes and not self.model.schema.pairs:
            raise UserError("the model knows of no holes: fit a table that has some with missingness='joint'")
        if holes:
            blank_holes(self.model.schema, drawn, asked[0].numpy())
        frame = self.model.encoding.decode(drawn)
        for name, said in self.evidence.items():
            if self.model.schema.index(name) in self._encoded:
                statement = read_statement(self.model.encoding.codec(name), said)
                if isinstance(statement, Value):  # a range or set of one value comes out of its encoding
                    frame[name] = self._as_column(name, statement.given, n, frame[name])
        shown = [v.name for i, v in enumerate(self.model.schema.variables) if bool(wanted[0, i])]
        return frame[shown]

    def _as_column(self, name: str, value: Any, n: int, decoded: pd.Series) -> pd.Series:
        # What the user gave, not its image under encoding and decoding; text from a command line is read as the kind.
        if self.model.schema[name].kind is Kind.INTEGER and float(value) != np.rint(float(value)):
            return pd.Series(float(value), index=decoded.index)  # a fraction among whole numbers
        return decoded if isinstance(value, str) else pd.Series([value] * n, index=decoded.index).astype(decoded.dtype)

    def _row(self) -> tuple[Float[Tensor, "1 variables"], Bool[Tensor, "1 variables"]]:
        values = torch.zeros(1, self.model.variables, dtype=torch.float64)
        known = torch.zeros(1, self.model.variables, dtype=torch.bool)
        for index, value in self._encoded.items():
            values[0, index] = value
            known[0, index] = True
        return values, known


def _together(model: AnyOrderModel, evidence: Mapping[str, Any]) -> dict[int, float | Region]:
    """What is known of every variable that the evidence speaks of: its model value, or the region it lies in."""
    found: dict[int, float | Region] = {}
    for name, said in evidence.items():
        index, known = understand(model.encoding, name, said, evidence=True)
        # A column said to be missing speaks of its indicator, which may be named as well.
        both = agreement(found[index], known) if index in found else known
        if both is None:
            raise UserError(
                f"the evidence contradicts itself about {model.schema.names[index]!r}: {name}={said} does not agree "
                "with the rest of it; leave one of the two out"
            )
        found[index] = both
    return found
