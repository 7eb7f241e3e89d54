"""A regressor whose inputs may be unknown, with the whole distribution of its target: p(y | known inputs)."""
# ruff: noqa: N803  (X is scikit-learn's own word)

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from anyorder.data.tables import prepare
from anyorder.sklearn.predictor import TablePredictor
from anyorder.variables.schema import Kind

NUMBERS = (Kind.CONTINUOUS, Kind.INTEGER, Kind.SPIKED)


class AnyOrderRegressor(RegressorMixin, TablePredictor):  # type: ignore[misc]  # scikit-learn ships no types
    """A number given whatever inputs are known, with spread and quantiles, by a model of inputs and target together.

    Unknown inputs need no imputation. Where every input is always known and only the mean counts, a plain regressor
    learns only what is asked and is quicker.

    Parameters
    ----------
    minutes
        The most time to train; None for what ``config`` says, else 2 minutes. Every fold of a cross-validation is a fit
        of its own.
    engine
        What learns: "neural", "trees", or "auto", which lets held-out rows decide.
    random_state
        Decides training: an int repeats it.
    config
        Further options of :func:`anyorder.fit`, as a TOML file holds them: ``{"training": {"steps": 500}}``.
    kinds
        What an input column is, by name (or by index, in an array): ``{"zip": "categorical", 3: "continuous"}``.
    bounds
        The least and greatest value of a number column, by name or index as in ``kinds``: ``{"age": (0, None)}``.
    context
        Inputs that are always known, by name or index, or "inputs" for all of them: nothing is then learned of them but
        what they say about the target, which is quicker (see :func:`anyorder.fit`).
    missingness
        "ignore", or "joint": which inputs are unknown is modelled too, so that holes say something about the target.
    missing_values
        What marks an unknown cell besides NaN, None and the empty text.
    unseen
        What to do with a level that ``fit`` never saw: take it for unknown ("missing"), with a warning, or "refuse" it.

    Attributes
    ----------
    model_
        The :class:`~anyorder.modalities.tables.model.TableModel` of the inputs and the column ``target_``.

    Examples
    --------
    >>> brief = {"training": {"steps": 50, "minutes": None}}
    >>> inputs = frame[["rooms", "river"]]
    >>> fitted = ao.AnyOrderRegressor(engine="neural", config=brief, random_state=0).fit(inputs, frame["price"])
    >>> mean, spread = fitted.predict(inputs.head(3).assign(river=None), return_std=True)
    >>> mean.shape, bool((spread > 0).all())
    ((3,), True)
    """

    numeric = True

    def _column(self, y: Any) -> tuple[pd.Series, str]:
        column = pd.Series(np.asarray(y, dtype=np.float64))
        # As a table's column would be read, but never as levels: a mean is asked for.
        kind = prepare(pd.DataFrame({"target": column}))[0]["target"].kind
        return column, str(kind if kind in NUMBERS else Kind.CONTINUOUS)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of the target, given the known inputs of each row.

        Parameters
        ----------
        X
            Rows with the columns that ``fit`` saw; unknown cells are marginalised out.
        return_std
            The standard deviation of the target as well, as scikit-learn's Gaussian processes give it.

        Returns
        -------
        array, or a pair of arrays

        Examples
        --------
        >>> regressor.predict(held_out[["rooms", "river"]]).shape == (len(held_out),)
        True
        """
        answers = self._answers(X)
        mean = np.asarray(answers.mean(), dtype=np.float64)
        return (mean, np.asarray(answers.std(), dtype=np.float64)) if return_std else mean

    def predict_quantiles(self, X: Any, quantiles: ArrayLike = (0.05, 0.5, 0.95)) -> NDArray[np.float64]:
        """Quantiles of the target, given the known inputs of each row.

        Parameters
        ----------
        X
            As in :meth:`predict`.
        quantiles
            Their levels, between 0 and 1.

        Returns
        -------
        array
            A line for each row, a column for each level.

        Examples
        --------
        >>> low, high = regressor.predict_quantiles(held_out[["rooms", "river"]], [0.05, 0.95]).T
        >>> bool((low <= high).all())
        True
        """
        return np.asarray(self._answers(X).quantile(np.atleast_1d(quantiles)).to_numpy(), dtype=np.float64)
