"""scikit-learn estimators around a table model: an imputer and a density, for pipelines and cross-validation.

A thin wrapper: the constructor only stores, ``fit`` calls :func:`anyorder.fit`, and every answer is one of
:class:`~anyorder.modalities.tables.model.TableModel`, kept as ``model_``. An array without names has the columns
``x0``, ``x1``, ...

Where a model would refuse a row, a step of a pipeline must go on: a fold may hold what the others never showed. So by
default the imputer takes a level never seen for unknown, with a warning; known cells come back as they were.
"""
# ruff: noqa: N803  (X is scikit-learn's own word)

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyorder.data.frames import as_pandas, like_input
from anyorder.errors import UserError
from anyorder.modalities.tables.engines import Engine
from anyorder.modalities.tables.fit import fit
from anyorder.modalities.tables.model import TableModel
from anyorder.variables.cells import is_text
from anyorder.variables.encoding import Unseen
from anyorder.variables.missingness import Missingness

try:
    from sklearn.base import BaseEstimator, DensityMixin, TransformerMixin
    from sklearn.utils import check_array, check_random_state
    from sklearn.utils.validation import _check_feature_names_in, check_is_fitted
except ImportError as error:
    raise UserError("anyorder.sklearn needs scikit-learn; install it with: pip install anyorder[sklearn]") from error

try:
    from sklearn.utils.validation import validate_data  # from 1.6 on
except ImportError:
    validate_data = None

__all__ = ["AnyOrderDensity", "AnyOrderImputer"]

EMPTY_TEXT = "missing_value"
"""What a text column without a single value is filled with, as by scikit-learn's SimpleImputer."""


class _TableEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """What both estimators share: checked input, and the fitted model."""

    minutes: float | None
    engine: Engine
    random_state: Any
    config: Mapping[str, Any] | None
    kinds: Mapping[Any, str] | None
    bounds: Mapping[Any, tuple[float | None, float | None]] | None
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
        if len(table) < 2:
            raise UserError(f"a model needs more than one row to learn from, got n_samples={len(table)}")
        marks = [] if pd.isna(self.missing_values) else [str(self.missing_values)]
        names = list(table.columns)
        kinds = {_name(key, names): kind for key, kind in (self.kinds or {}).items()}
        bounds = {_name(key, names): ends for key, ends in (self.bounds or {}).items()}
        self.model_: TableModel = fit(
            table,
            minutes=self.minutes,
            seed=self._seed(),
            kinds=kinds,
            bounds=bounds,
            missing=marks,
            missingness=self.missingness,
            engine=None if self.engine == "auto" else self.engine,  # "auto" is its default, which config may override
            config=self.config,
        )
        self.empty_features_ = np.isin(names, self.model_.schema.left_out)
        # An empty frame of their kind, or None: says in which form new rows are to be given.
        self._form = None if isinstance(given, np.ndarray) else nw.to_native(nw.from_native(given).head(0))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _seed(self) -> int:
        return _drawn_seed(self.random_state)

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


class AnyOrderImputer(TransformerMixin, _TableEstimator):  # type: ignore[misc]
    """Fill unknown cells with a model of the whole table: by their mean or most probable level, or by a draw.

    Frames (pandas, polars) and arrays come back as they came, known cells bit for bit. Where few cells are missing and
    speed counts, scikit-learn's own ``SimpleImputer`` will do.

    Parameters
    ----------
    minutes
        The most time to train; None for what ``config`` says, else 2 minutes. Training ends earlier once held-out rows
        are predicted no better. Every fold of a cross-validation is a fit of its own.
    engine
        What learns: "neural", "trees", or "auto", which lets held-out rows decide.
    sample_posterior
        Fill all unknown cells of a row by one joint draw, instead of their best values: for multiple imputation, with
        a ``random_state`` for each. A best value is not a typical value: statistics of spread need draws.
    random_state
        Decides training and the draws: an int repeats both.
    config
        Further options of :func:`anyorder.fit`, as a TOML file holds them: ``{"training": {"steps": 500}}``.
    kinds
        What a column is, by name (or by index, in an array): ``{"zip": "categorical", 3: "continuous"}``.
    bounds
        The least and greatest value of a number column, by name or index as in ``kinds``: ``{"age": (0, None)}``.
    missingness
        "ignore", or "joint": which cells are unknown is modelled too, so that holes say something about other cells.
    missing_values
        What marks an unknown cell besides NaN, None and the empty text.
    keep_empty_features
        Whether a column without a single value at ``fit`` is kept, filled with 0 (texts: "missing_value"; times and
        categories stay empty), or dropped.
    unseen
        What to do with a level that ``fit`` never saw: take it for unknown ("missing"), with a warning, or "refuse" it.

    Attributes
    ----------
    model_
        The :class:`~anyorder.modalities.tables.model.TableModel`, for every other question.
    empty_features_
        Which columns had no value at ``fit``.

    Examples
    --------
    >>> brief = {"training": {"steps": 20, "minutes": None}}
    >>> filling = ao.AnyOrderImputer(engine="neural", config=brief, random_state=0)
    >>> holes = frame.assign(door=frame["door"].where(frame["rooms"] > 4))
    >>> int(filling.fit_transform(holes)["door"].isna().sum())
    0
    """

    def __init__(
        self,
        *,
        minutes: float | None = None,
        engine: Engine = "auto",
        sample_posterior: bool = False,
        random_state: Any = None,
        config: Mapping[str, Any] | None = None,
        kinds: Mapping[Any, str] | None = None,
        bounds: Mapping[Any, tuple[float | None, float | None]] | None = None,
        missingness: Missingness = "ignore",
        missing_values: Any = np.nan,
        keep_empty_features: bool = False,
        unseen: Unseen = "missing",
    ) -> None:
        self.minutes = minutes
        self.engine = engine
        self.sample_posterior = sample_posterior
        self.random_state = random_state
        self.config = config
        self.kinds = kinds
        self.bounds = bounds
        self.missingness = missingness
        self.missing_values = missing_values
        self.keep_empty_features = keep_empty_features
        self.unseen = unseen

    def transform(self, X: Any) -> Any:
        """Fill every unknown cell.

        Parameters
        ----------
        X
            Rows with the columns that ``fit`` saw.

        Returns
        -------
        frame or array
            Of the kind that was given, known cells bit for bit.

        Examples
        --------
        >>> holes = held_out.assign(price=None)
        >>> bool(imputer.transform(holes)["price"].notna().all())
        True
        """
        check_is_fitted(self)
        given, table = self._read(X, reset=False)
        if self.sample_posterior:
            filled = self.model_.fill(table, draws=1, seed=self._seed(), unseen=self.unseen)[0]
        else:
            filled = self.model_.fill(table, unseen=self.unseen)
        for name in table.columns[self.empty_features_]:
            if self.keep_empty_features:
                filled[name] = _without_values(filled[name])
            else:
                filled = filled.drop(columns=name)
        return _as_array(filled, given.dtype) if isinstance(given, np.ndarray) else like_input(filled, given)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the columns that :meth:`transform` gives.

        Parameters
        ----------
        input_features
            The names of the columns at ``fit``; None for those it saw.

        Returns
        -------
        array of str

        Examples
        --------
        >>> imputer.get_feature_names_out().tolist()
        ['rooms', 'river', 'door', 'price']
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.asarray(names if self.keep_empty_features else names[~self.empty_features_], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class AnyOrderDensity(DensityMixin, _TableEstimator):  # type: ignore[misc]
    """The joint distribution of a table: log-densities of rows, and new rows.

    Scores are nats in the units of the data: log-density for a continuous column, log-probability for whole numbers,
    levels and texts. Two models compare only if they read each column alike: give ``kinds`` for arrays. Unknown cells
    are marginalised out, so scores of rows with different cells filled do not compare.

    Parameters
    ----------
    minutes
        The most time to train; None for what ``config`` says, else 2 minutes.
    engine
        What learns: "neural", "trees", or "auto", which lets held-out rows decide.
    random_state
        Decides training: an int repeats it.
    config
        Further options of :func:`anyorder.fit`, as a TOML file holds them: ``{"training": {"steps": 500}}``.
    kinds
        What a column is, by name (or by index, in an array): ``{"zip": "categorical", 3: "continuous"}``.
    bounds
        The least and greatest value of a number column, by name or index as in ``kinds``: ``{"age": (0, None)}``.
    missingness
        "ignore", or "joint": which cells are unknown is modelled too, and scored.
    missing_values
        What marks an unknown cell besides NaN, None and the empty text.
    unseen
        What to do with a level that ``fit`` never saw: "refuse" it, since such a row has no score, or take it for
        unknown ("missing").

    Attributes
    ----------
    model_
        The :class:`~anyorder.modalities.tables.model.TableModel`, for every other question.
    empty_features_
        Which columns had no value at ``fit``.

    Examples
    --------
    >>> brief = {"training": {"steps": 20, "minutes": None}}
    >>> fitted = ao.AnyOrderDensity(engine="neural", config=brief, random_state=0).fit(frame)
    >>> fitted.sample(3, random_state=0).columns.tolist()
    ['rooms', 'river', 'door', 'price']
    """

    def __init__(
        self,
        *,
        minutes: float | None = None,
        engine: Engine = "auto",
        random_state: Any = None,
        config: Mapping[str, Any] | None = None,
        kinds: Mapping[Any, str] | None = None,
        bounds: Mapping[Any, tuple[float | None, float | None]] | None = None,
        missingness: Missingness = "ignore",
        missing_values: Any = np.nan,
        unseen: Unseen = "refuse",
    ) -> None:
        self.minutes = minutes
        self.engine = engine
        self.random_state = random_state
        self.config = config
        self.kinds = kinds
        self.bounds = bounds
        self.missingness = missingness
        self.missing_values = missing_values
        self.unseen = unseen

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """log p of every row's known cells, in nats and in the units of the data.

        Parameters
        ----------
        X
            Rows with the columns that ``fit`` saw.

        Returns
        -------
        array
            One number a row.

        Examples
        --------
        >>> density.score_samples(held_out).shape == (len(held_out),)
        True
        """
        check_is_fitted(self)
        _, table = self._read(X, reset=False)
        return np.asarray(self.model_.log_prob(table, unseen=self.unseen), dtype=np.float64)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of :meth:`score_samples`: nats per row, so folds of different size compare.

        Parameters
        ----------
        X
            Rows with the columns that ``fit`` saw.
        y
            Ignored.

        Returns
        -------
        float

        Examples
        --------
        >>> density.score(held_out) > density.score(held_out.assign(price=held_out["price"] + 40))
        True
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draw new rows.

        Parameters
        ----------
        n_samples
            How many.
        random_state
            An int gives the same rows each time.

        Returns
        -------
        frame or array
            Of the kind that ``fit`` was given; columns without values stay empty.

        Examples
        --------
        >>> density.sample(5, random_state=0).shape
        (5, 4)
        """
        check_is_fitted(self)
        drawn = self.model_.sample(n_samples, seed=_drawn_seed(random_state))
        if self._form is None:
            names = [f"x{index}" for index in range(self.n_features_in_)]
            return _as_array(drawn.reindex(columns=names), np.dtype(np.float64))
        names = [str(name) for name in nw.from_native(self._form).columns]
        return like_input(drawn.reindex(columns=names), self._form)


def _drawn_seed(random_state: Any) -> int:
    """A seed of ours from what scikit-learn takes for one: None, an int or a generator."""
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise UserError(f"random_state: {error}; give None, a whole number below 2**32 or a RandomState") from error


def _name(key: Any, names: list[str]) -> Any:
    """The column that a key of ``kinds`` or ``bounds`` means: one may be counted, where no column has that name."""
    counted = isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(names) and str(key) not in names
    return names[key] if counted else key


def _without_values(column: Any) -> Any:
    """A column of which nothing is known, its empty cells filled with a constant."""
    dtype = column.dtype
    if pd.api.types.is_numeric_dtype(dtype) or (pd.api.types.is_object_dtype(dtype) and column.isna().all()):
        return column.fillna(0)
    return column.fillna(EMPTY_TEXT) if is_text(column) else column


def _as_array(filled: pd.DataFrame, dtype: np.dtype[Any]) -> NDArray[Any]:
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
