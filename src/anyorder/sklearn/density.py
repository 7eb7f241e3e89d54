"""The joint distribution of a table as an estimator: densities of rows for cross-validation, and new rows."""
# ruff: noqa: N803  (X is scikit-learn's own word)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from anyorder.data.frames import like_input
from anyorder.modalities.tables.engines import Engine
from anyorder.sklearn.base import TableEstimator, as_array, drawn_seed
from anyorder.variables.encoding import Unseen
from anyorder.variables.missingness import Missingness


class AnyOrderDensity(DensityMixin, TableEstimator):  # type: ignore[misc]
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
    context
        Columns that are always known, by name or index: they are only ever evidence (see :func:`anyorder.fit`).
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
        context: Sequence[Any] = (),
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
        self.context = context
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
        return np.asarray(self.model_.log_prob(table, unseen=self.unseen, progress=False), dtype=np.float64)

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
        drawn = self.model_.sample(n_samples, seed=drawn_seed(random_state))
        if self._form is None:
            names = [f"x{index}" for index in range(self.n_features_in_)]
            return as_array(drawn.reindex(columns=names), np.dtype(np.float64))
        names = [str(name) for name in nw.from_native(self._form).columns]
        return like_input(drawn.reindex(columns=names), self._form)
