"""An imputer for pipelines.

Where a model would refuse a row, a step of a pipeline must go on: a fold may hold what the others never showed. So by
default the imputer takes a level never seen for unknown, with a warning; known cells come back as they were.
"""
# ruff: noqa: N803  (X is scikit-learn's own word)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from anyorder.data.frames import like_input
from anyorder.modalities.tables.engines import Engine
from anyorder.sklearn.base import TableEstimator, as_array
from anyorder.variables.cells import is_text
from anyorder.variables.encoding import Unseen
from anyorder.variables.missingness import Missingness

EMPTY_TEXT = "missing_value"
"""What a text column without a single value is filled with, as by scikit-learn's SimpleImputer."""


class AnyOrderImputer(TransformerMixin, TableEstimator):  # type: ignore[misc]
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
    context
        Columns that are always known, by name or index: they are only ever evidence (see :func:`anyorder.fit`).
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
        context: Sequence[Any] = (),
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
        self.context = context
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
            filled = self.model_.fill(table, draws=1, seed=self._seed(), unseen=self.unseen, progress=False)[0]
        else:
            filled = self.model_.fill(table, unseen=self.unseen, progress=False)
        for name in table.columns[self.empty_features_]:
            if self.keep_empty_features:
                filled[name] = _without_values(filled[name])
            else:
                filled = filled.drop(columns=name)
        return as_array(filled, given.dtype) if isinstance(given, np.ndarray) else like_input(filled, given)

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


def _without_values(column: Any) -> Any:
    """A column of which nothing is known, its empty cells filled with a constant."""
    dtype = column.dtype
    if pd.api.types.is_numeric_dtype(dtype) or (pd.api.types.is_object_dtype(dtype) and column.isna().all()):
        return column.fillna(0)
    return column.fillna(EMPTY_TEXT) if is_text(column) else column
