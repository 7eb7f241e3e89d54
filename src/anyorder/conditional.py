"""Conditional: p(asked | evidence), lazy. Nothing runs until a number is asked for.

The direct chain answers: log p(u | e) is the sum of the steps of *one* chain from e to e + u, so it is always
normalised (MAC section 5.2). Other orders give other answers, since nothing forces a trained network to be
coherent; averaging K of them is the log of the mean *probability* (SFARM eq. 14), their spread a diagnostic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from anyorder.answer import Answer
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.networks.base import rows_at_once
from anyorder.protocols import Protocol, Random
from anyorder.query import Query


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
    """What the model believes about ``asked`` (by default everything else) given ``evidence``."""

    def __init__(
        self, model: AnyOrderModel, evidence: Mapping[str, Any] | None = None, asked: tuple[str, ...] | None = None
    ) -> None:
        self.model = model
        self.evidence = dict(evidence or {})
        encoding = model.encoding
        self._encoded = {model.schema.index(k): encoding.encode_value(k, v) for k, v in self.evidence.items()}
        for name in asked or ():
            if model.schema.index(name) in self._encoded:
                raise UserError(f"{name!r} is both asked and given; leave it out of one of them")
        self.asked = asked

    def __repr__(self) -> str:
        asked = ", ".join(self.asked) if self.asked is not None else "..."
        given = ", ".join(f"{name}={value!r}" for name, value in self.evidence.items())
        return f"p({asked} | {given})" if given else f"p({asked})"

    def given(self, evidence: Mapping[str, Any] | None = None, /, **more: Any) -> Conditional:
        """The same question with more evidence."""
        return Conditional(self.model, {**self.evidence, **(evidence or {}), **more}, self.asked)

    def asking(self, *names: str) -> Conditional:
        """The same evidence, about these variables; the rest is marginalised out."""
        return Conditional(self.model, self.evidence, names)

    def __getitem__(self, name: str) -> Answer:
        """The distribution of one variable: exact, in one step."""
        index = self.model.schema.index(name)
        if index in self._encoded:
            raise UserError(f"{name!r} is given ({self.evidence[name]!r}); ask for another variable")
        values, known = (part.to(self.model.device) for part in self._row())
        with torch.no_grad():
            features = self.model.features_beside(values, known)[:, index].cpu()
            distribution = self.model.heads.distribution(features, index)
        return Answer(self.model.schema.variables[index], self.model.encoding, distribution)

    def log_prob(
        self, values: Mapping[str, Any] | None = None, /, *, orders: int = 1, seed: int = 0, **more: Any
    ) -> float:
        """log p(these values | evidence), jointly, in nats and in the units of the data."""
        return self.order_spread(values, orders=orders, seed=seed, **more).average

    def order_spread(
        self, values: Mapping[str, Any] | None = None, /, *, orders: int = 8, seed: int = 0, **more: Any
    ) -> OrderSpread:
        """The same log-probability along several orders."""
        wanted = {**(values or {}), **more}
        if not wanted:
            raise UserError("log_prob needs values, as in log_prob(price=22.0)")
        row, known = self._row()
        asked = torch.zeros_like(known)
        for name, value in wanted.items():
            index = self.model.schema.index(name)
            if index in self._encoded:
                raise UserError(f"{name!r} is given already; its probability given itself is not a question")
            if self.asked is not None and name not in self.asked:
                raise UserError(f"{name!r} is not among the asked variables {list(self.asked)}")
            row[0, index] = self.model.encoding.encode_value(name, value)
            asked[0, index] = True
        nats = log_probs(self.model, row, Query(known, asked), orders=orders, seed=seed)
        return OrderSpread(tuple(nats[:, 0].tolist()))

    def sample(self, n: int = 1, seed: int = 0) -> pd.DataFrame:
        """``n`` joint draws as full rows: evidence as given, asked variables drawn, others left out."""
        if n < 0:
            raise UserError(f"cannot draw {n} rows; give a number from 0 up")
        row, known = self._row()
        asked = ~known
        if self.asked is not None:
            asked = torch.zeros_like(known)
            asked[0, [self.model.schema.index(name) for name in self.asked]] = True
        query = Query(known.expand(n, -1), asked.expand(n, -1))
        drawn = draws(self.model, row.expand(n, -1), query, seed=seed)
        frame = self.model.encoding.decode(drawn)
        for name, value in self.evidence.items():
            frame[name] = self._as_column(name, value, n, frame[name])
        shown = [v.name for i, v in enumerate(self.model.schema.variables) if bool(asked[0, i] | known[0, i])]
        return frame[shown]

    def _as_column(self, name: str, value: Any, n: int, decoded: pd.Series) -> pd.Series:
        # What the user gave, not its image under encoding and decoding; text from a command line is read as the kind.
        return decoded if isinstance(value, str) else pd.Series([value] * n, index=decoded.index).astype(decoded.dtype)

    def _row(self) -> tuple[Float[Tensor, "1 variables"], Bool[Tensor, "1 variables"]]:
        values = torch.zeros(1, self.model.variables, dtype=torch.float64)
        known = torch.zeros(1, self.model.variables, dtype=torch.bool)
        for index, value in self._encoded.items():
            values[0, index] = value
            known[0, index] = True
        return values, known


def row_chunks(model: AnyOrderModel, rows: int) -> Iterator[slice]:
    """Rows in parts that fit into memory; the parts do not change a result, only when random draws are taken."""
    size = min(rows_at_once(model.network.layout), 4096)
    return (slice(start, start + size) for start in range(0, rows, size))


def order_protocols(model: AnyOrderModel, orders: int) -> list[Protocol]:
    """The model's own order first; further ones are drawn at random."""
    if orders < 1:
        raise UserError(f"orders must be 1 or more, got {orders}")
    return [model.protocol] + [Random()] * (orders - 1)


@torch.no_grad()
def log_probs(
    model: AnyOrderModel, values: Float[Tensor, "rows variables"], query: Query, *, orders: int = 1, seed: int = 0
) -> NDArray[np.float64]:
    """log p(x_asked | x_evidence) for every order and row [orders, rows], in the units of the data."""
    log_det = model.encoding.log_det(values.numpy())
    shift = np.where(query.asked.numpy(), log_det, 0.0).sum(axis=1)
    out = np.zeros((orders, len(values)))
    generator = torch.Generator(device=model.device).manual_seed(seed)
    for which, protocol in enumerate(order_protocols(model, orders)):
        for rows in row_chunks(model, len(values)):
            part = query.rows(rows)
            part = Query(part.evidence.to(model.device), part.asked.to(model.device))
            chain = protocol.chain(part, generator)
            steps = model.step_log_prob(values[rows].to(model.device), chain)
            out[which, rows] = steps.double().sum(dim=1).cpu().numpy()
    nats: NDArray[np.float64] = out + shift
    return nats


@torch.no_grad()
def draws(
    model: AnyOrderModel, values: Float[Tensor, "rows variables"], query: Query, *, seed: int = 0
) -> NDArray[np.float64]:
    """One joint draw of the asked variables for every row, in model units; evidence is left as it is."""
    out = values.numpy().copy()
    generator = torch.Generator(device=model.device).manual_seed(seed)
    for rows in row_chunks(model, len(values)):
        part = query.rows(rows)
        part = Query(part.evidence.to(model.device), part.asked.to(model.device))
        drawn = model.draw(values[rows].to(model.device), model.chain(part, generator), generator)
        out[rows] = np.where(part.asked.cpu().numpy(), drawn.double().cpu().numpy(), out[rows])
    return out
