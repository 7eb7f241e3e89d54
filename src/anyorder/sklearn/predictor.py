"""What a classifier and a regressor share: the target is one more column of the table, and asked for afterwards.

The model is one of all columns, so unknown inputs are welcome in training and in prediction: they are marginalised out.
"""
# ruff: noqa: N803  (X is scikit-learn's own word)

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import _check_y, check_consistent_length, check_is_fitted

from anyorder.data.tables import understand_table
from anyorder.errors import UserError
from anyorder.modalities.tables.engines import Engine
from anyorder.questions.batch import RowConditionals
from anyorder.questions.row_answers import RowAnswers
from anyorder.sklearn.base import TableEstimator
from anyorder.variables.encoding import Unseen
from anyorder.variables.missingness import Missingness


class TablePredictor(TableEstimator):
    """One column of a table, given the others."""

    numeric: bool
    """Whether the target is a number."""

    def __init__(
        self,
        *,
        minutes: float | None = None,
        engine: Engine = "auto",
        random_state: Any = None,
        config: Mapping[str, Any] | None = None,
        kinds: Mapping[Any, str] | None = None,
        bounds: Mapping[Any, tuple[float | None, float | None]] | None = None,
        context: Sequence[Any] | Literal["inputs"] = (),
        missingness: Missingness = "ignore",
        missing_values: Any = np.nan,
        unseen: Unseen = "missing",
    ) -> None:
        self.minutes = minutes
        self.engine = engine
        self.random_state = random_state
        self.config = config
        self.kinds = kinds
        self.bounds = bounds
        self.context = context
        self.missingness = missingness
        self.missing_values = missing_values
        self.unseen = unseen

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit one model to the inputs and the target together.

        Parameters
        ----------
        X
            A frame (pandas, polars) or an array, with NaN or None where a cell is unknown; four rows at least.
        y
            The target, one value a row, none of them unknown.

        Returns
        -------
        self

        Examples
        --------
        >>> brief = {"training": {"steps": 20, "minutes": None}}
        >>> inputs = frame[["rooms", "door"]]
        >>> ao.AnyOrderRegressor(engine="neural", config=brief, random_state=0).fit(inputs, frame["price"]).target_
        'target'
        """
        if y is None:
            raise UserError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        given, table = self._read(X, reset=True)
        y = _check_y(y, multi_output=False, y_numeric=self.numeric, estimator=self)
        check_consistent_length(given, y)
        name = "target"
        while name in table.columns:
            name += "_"
        self.target_ = name
        column, kind = self._column(y)
        return self._fit(given, table.assign(**{name: column.set_axis(table.index)}), {name: kind})

    def _context(self, inputs: pd.DataFrame, names: list[str]) -> Any:
        if not (isinstance(self.context, str) and self.context == "inputs"):
            context = super()._context(inputs, names)
            if isinstance(context, list) and self.target_ in context:
                raise UserError(f"context names the target, {self.target_!r}; name inputs, or say context='inputs'")
            return context
        kinds = {name: str(kind) for name, kind in self._kinds(names).items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit says it again
            _, found = understand_table(inputs, kinds=kinds, missing=self._marks())
        return [each.name for each in found if each.variable is not None]

    def _column(self, y: Any) -> tuple[pd.Series, str]:
        """The target as a column of the table, and its kind."""
        raise NotImplementedError

    def _answers(self, X: Any) -> RowAnswers:
        """The distributions of the target, one for each row."""
        check_is_fitted(self)
        _, table = self._read(X, reset=False)
        return RowConditionals(self.model_.core, table, self.unseen)[self.target_]
