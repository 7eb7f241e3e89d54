"""A model with known answers: rooms ~ N(5, 1), price | rooms ~ N(10 + 2 rooms, 3), and river = yes with probability
0.3, independent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from anyorder.errors import UserError
from anyorder.variables.schema import Kind, Schema, Variable

SCHEMA = Schema(
    (
        Variable("rooms", Kind.CONTINUOUS),
        Variable("price", Kind.CONTINUOUS),
        Variable("river", Kind.CATEGORICAL, levels=("no", "yes"), dtype="str"),
    )
)


class KnownAnswer:
    """A normal or a coin."""

    def __init__(self, variable: Variable, law: Any) -> None:
        self.variable = variable
        self.law = law
        self.kind = str(variable.kind)
        self.discrete = bool(variable.levels)
        self.given = ""

    def written(self, value: Any) -> str:
        return str(value)

    def measured_quantiles(self, levels: Any) -> Any:
        return self.law.ppf(levels)

    def mean(self) -> float:
        return float(self.law.mean())

    def std(self) -> float:
        return float(self.law.std())

    def quantile(self, levels: list[float]) -> Any:
        return self.law.ppf(levels)

    def pdf(self, values: Any) -> Any:
        return self.law.pdf(values)

    def probs(self) -> dict[str, float]:
        return {"no": 0.7, "yes": 0.3}


class KnownConditional:
    def __init__(self, evidence: Mapping[str, Any]) -> None:
        if evidence.get("river", "no") not in ("no", "yes"):
            raise UserError(f"river has no value {evidence['river']!r}")
        self.evidence = dict(evidence)

    def __getitem__(self, name: str) -> KnownAnswer:
        return KnownAnswer(SCHEMA[name], self.law(name))

    def law(self, name: str) -> Any:
        if name == "rooms":
            return norm(5, 1)
        rooms = self.evidence.get("rooms")
        return norm(20, math.sqrt(9 + 4)) if rooms is None else norm(10 + 2 * float(rooms), 3)

    def log_prob(self, values: Mapping[str, Any]) -> float:
        (price,) = values.values()
        return float(self.law("price").logpdf(float(price)))

    def sample(self, n: int, seed: int, holes: bool = False) -> pd.DataFrame:
        generator = np.random.default_rng(seed)
        frame = pd.DataFrame({"rooms": generator.normal(size=n), "price": 1.0, "river": "no"})
        return frame.assign(**self.evidence)


class KnownModel:
    modality, noun = "table", "a table"
    schema = SCHEMA
    card: Mapping[str, Any] = {
        "created": "today",
        "training": {"steps": 7},
        "scores": {"held_out": -1.5, "bad": math.nan},
    }

    def given(self, evidence: Mapping[str, Any], *, rules: Any = None) -> KnownConditional:
        return KnownConditional(evidence)

    def log_prob(self, frame: pd.DataFrame, given: Any = None, *, orders: int = 1, unseen: str = "") -> pd.Series:
        rooms, price = frame["rooms"].to_numpy(float), frame["price"].to_numpy(float)
        nats = norm(10 + 2 * rooms, 3).logpdf(price)
        if given is None:
            nats = nats + norm(5, 1).logpdf(rooms)
        return pd.Series(nats, index=frame.index)

    def fill(
        self, frame: pd.DataFrame, draws: int | None = None, seed: int = 0, unseen: str = "", rules: Any = None
    ) -> Any:
        if draws is None:
            return frame.fillna({"price": 20.0})
        return [frame.fillna({"price": 100.0 * seed + draw}) for draw in range(draws)]
