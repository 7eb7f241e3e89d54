"""What evidence says of every variable: its model value, or the region it lies in; read once, from what a user gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.distributions.region import Region, agreement
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.questions.events import understand
from anyorder.questions.evidence import Statement, Value, read_statement
from anyorder.questions.far import note_if_far
from anyorder.questions.rules import Rules
from anyorder.variables.context import check_known
from anyorder.variables.schema import Kind


class Known:
    """Evidence by variable, read against the schema of a model; evidence that contradicts itself is refused.

    Parameters
    ----------
    model
        The ``core`` of a table model.
    evidence
        By variable, as in :class:`~anyorder.questions.conditional.Conditional`.
    read
        What an earlier question has read already, so that nothing is read twice.
    """

    def __init__(
        self, model: AnyOrderModel, evidence: Mapping[str, Any], read: Mapping[str, Statement] | None = None
    ) -> None:
        self.model = model
        self.statements = {
            name: read[name] if read and name in read else read_statement(model.encoding.codec(name), said)
            for name, said in evidence.items()
        }
        found: dict[int, float | Region] = {}
        for name, statement in self.statements.items():
            index, known = understand(model.encoding, name, statement, evidence=True)
            if not read or name not in read:  # said once, when it is new
                note_if_far(model.encoding, name, statement, known, stacklevel=5)
            if isinstance(known, Region) and model.schema.variables[index].context:
                raise UserError(
                    f"{name!r} is context, of which the model knows no distribution, so it cannot be given as a range "
                    f"or a set of several values: give one value, or fit again with {name!r} left out of context="
                )
            # A column said to be missing speaks of its indicator, which may be named as well.
            both = agreement(found[index], known) if index in found else known
            if both is None:
                raise UserError(
                    f"the evidence contradicts itself about {model.schema.names[index]!r}: {name}={evidence[name]} "
                    "does not agree with the rest of it; leave one of the two out"
                )
            found[index] = both
        self.values = {index: said for index, said in found.items() if not isinstance(said, Region)}
        self.regions = {index: said for index, said in found.items() if isinstance(said, Region)}

    def row(self) -> tuple[Float[Tensor, "1 variables"], Bool[Tensor, "1 variables"]]:
        """The row of exactly known model values, and which they are; the context must be among them."""
        if self.model.schema.context:
            check_known(self.model.schema, self.values)
        values, known = [0.0] * self.model.variables, [False] * self.model.variables
        for index, value in self.values.items():
            values[index], known[index] = float(value), True
        return torch.tensor([values], dtype=torch.float64), torch.tensor([known])

    def check(self, rules: Rules) -> None:
        """Refuse exactly known values that break a rule."""
        known = np.array([[column in self.values for column in rules.columns]])
        units = np.array([[rules.value(column, self.values.get(column, 0.0)) for column in rules.columns]])
        for rule, broken in zip(rules.rules, rules.broken(units, known), strict=True):
            if broken[0]:
                raise UserError(f"the evidence breaks the rule {str(rule)!r}; change one of them, or leave it out")

    def as_given(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A frame of drawn rows with the values that the user gave, not their images under encoding and decoding."""
        # A range or set of one value is known exactly as well, and comes out of its encoding.
        given = {
            name: self._column(name, statement.given, frame[name])
            for name, statement in self.statements.items()
            if name in frame and isinstance(statement, Value) and self.model.schema.index(name) in self.values
        }
        return frame.assign(**given)

    def _column(self, name: str, value: Any, decoded: pd.Series) -> pd.Series:
        if self.model.schema[name].kind is Kind.INTEGER and float(value) != np.rint(float(value)):
            return pd.Series(float(value), index=decoded.index)  # a fraction among whole numbers
        if isinstance(value, str):  # from a command line: read as the kind of the column
            return decoded
        return pd.Series([value] * len(decoded), index=decoded.index).astype(decoded.dtype)
