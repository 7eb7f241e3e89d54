"""What every estimator does: read what scikit-learn hands over, and fit a model of a table to it.

The constructor only stores, ``fit`` calls :func:`anyorder.fit`, and every answer is one of
:class:`~anyorder.modalities.tables.model.TableModel`, kept as ``model_``. An array without names has the columns
``x0``, ``x1``, ...
"""
# ruff: noqa: N803  (X is scikit-learn's own word)

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Self

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyorder.data.frames import as_pandas
from anyorder.errors import UserError
from anyorder.modalities.tables.engines import Engine
from anyorder.modalities.tables.fit import fit
from anyorder.modalities.tables.model import TableModel
from anyorder.variables.encoding import Unseen
from anyorder.variables.missingness import Missingness

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils import check_array, check_random_state
except ImportError as error:
    raise UserError("anyorder.sklearn needs scikit-learn; install it with: pip install anyorder[sklearn]") from error

try:
    from sklearn.utils.validation import validate_data  # from 1.6 on
except ImportError:
    validate_data = None


class TableEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """What all estimators share: checked input, and the fitted model."""

    minutes: float | None
    engine: Engine
    random_state: Any
    config: Mapping[str, Any] | None
    kinds: Mapping[Any, str] | None
    bounds: Mapping[Any, tuple[float | None, float | None]] | None
    context: Any
    missingness: Missingness
    missing_values: Any
    unseen: Unseen

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model of a table.

        Parameters
        ----------
        X
            A frame (pandas, polars) or an array, with NaN or None where a cell is unknown; two rows at least.
        y
            Ignored.

        Returns
        -------
        self

        Examples
        --------
        >>> brief = {"training": {"steps": 20, "minutes": None}}
        >>> fitted = ao.AnyOrderDensity(engine="neural", config=brief, random_state=0).fit(frame)
        >>> list(fitted.model_.schema.names) == list(frame.columns)
        True
        """
        given, table = self._read(X, reset=True)
        return self._fit(given, table)

    def _fit(self, given: Any, table: pd.DataFrame, extra: Mapping[str, str] | None = None) -> Self:
        """Fit the model to a table, which may have further columns of these ``extra`` kinds behind those of X."""
        if len(table) < 2:
            raise UserError(f"a model needs more than one row to learn from, got n_samples={len(table)}")
        names = [name for name in table.columns if name not in (extra or {})]
        bounds = {_name(key, names): ends for key, ends in (self.bounds or {}).items()}
        self.model_: TableModel = fit(
            table,
            minutes=self.minutes,
            seed=self._seed(),
            kinds={**self._kinds(names), **(extra or {})},
            bounds=bounds,
            missing=self._marks(),
            context=self._context(table[names], names),
            missingness=self.missingness,
            engine=None if self.engine == "auto" else self.engine,  # "auto" is its default, which config may override
            config=self.config,
            progress=False,
        )
        self.empty_features_ = np.isin(names, self.model_.schema.empty)
        # An empty frame of their kind, or None: says in which form new rows are to be given.
        self._form = None if isinstance(given, np.ndarray) else nw.to_native(nw.from_native(given).head(0))
        return self

    def _marks(self) -> list[str]:
        return [] if pd.isna(self.missing_values) else [str(self.missing_values)]

    def _kinds(self, names: list[str]) -> dict[Any, str]:
        return {_name(key, names): kind for key, kind in (self.kinds or {}).items()}

    def _context(self, inputs: pd.DataFrame, names: list[str]) -> Any:
        """The columns that are always known; what is no list of them is refused by the fit."""
        listed = isinstance(self.context, Collection) and not isinstance(self.context, str)
        return [_name(key, names) for key in self.context] if listed else self.context

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _seed(self) -> int:
        return drawn_seed(self.random_state)

    def _read(self, X: Any, *, reset: bool) -> tuple[Any, pd.DataFrame]:
        """The input as an array or a frame, checked as scikit-learn does, and as a frame of pandas."""
        frame = isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame)
        if isinstance(X, list | tuple) and any(isinstance(cell, str) for row in X if np.iterable(row) for cell in row):
            X = np.array(X, dtype=object)  # NumPy would make texts of the numbers beside them
        if validate_data is not None:
            checks = {"skip_check_array": True} if frame else {"dtype": None, "ensure_all_finite": "allow-nan"}
            X = validate_data(self, X, reset=reset, **checks)
        else:
            X = X if frame else check_array(X, dtype=None, force_all_finite="allow-nan")
            self._check_feature_names(X, reset=reset)
            self._check_n_features(X, reset=reset)
        if frame:
            return X, as_pandas(X)
        table = pd.DataFrame(X, columns=[f"x{index}" for index in range(X.shape[1])])
        return X, table.infer_objects()


def drawn_seed(random_state: Any) -> int:
    """A seed of ours from what scikit-learn takes for one: None, an int or a generator."""
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise UserError(f"random_state: {error}; give None, a whole number below 2**32 or a RandomState") from error


def _name(key: Any, names: list[str]) -> Any:
    """The column that a key of ``kinds``, ``bounds`` or ``context`` means; counted where no column has its name."""
    counts = isinstance(key, int | np.integer) and not isinstance(key, bool)
    return names[key] if counts and 0 <= key < len(names) and str(key) not in names else key


def as_array(filled: pd.DataFrame, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The cells as an array of that dtype, or of the narrowest that holds them all."""
    columns = [filled[name].to_numpy() for name in filled.columns]
    if dtype.kind == "O" or any(column.dtype.kind == "O" for column in columns):
        cells = np.empty(filled.shape, dtype=object)
        for index, column in enumerate(columns):
            cells[:, index] = column
        return cells.astype(str) if dtype.kind == "U" else cells
    together = np.column_stack(columns) if columns else np.empty(filled.shape, dtype=dtype)
    exact = dtype.kind == "f" or bool((together == together.astype(dtype)).all())
    return together.astype(dtype) if exact else together
