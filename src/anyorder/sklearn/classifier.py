"""A classifier whose inputs may be unknown: p(class | known inputs)."""
# ruff: noqa: N803  (X is scikit-learn's own word)

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from anyorder.errors import UserError
from anyorder.sklearn.predictor import TablePredictor


class AnyOrderClassifier(ClassifierMixin, TablePredictor):  # type: ignore[misc]  # scikit-learn ships no types
    """Classes given whatever inputs are known, by a model of inputs and class together.

    Unknown inputs need no imputation. Where every input is always known and speed counts, a plain classifier learns
    only what is asked and is quicker.

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
    classes_
        The classes, in the order of :meth:`predict_proba`.

    Examples
    --------
    >>> brief = {"training": {"steps": 50, "minutes": None}}
    >>> inputs = frame[["rooms", "price"]]
    >>> fitted = ao.AnyOrderClassifier(engine="neural", config=brief, random_state=0).fit(inputs, frame["river"])
    >>> fitted.classes_.tolist(), fitted.predict_proba(inputs.head(3).assign(rooms=np.nan)).shape
    (['no', 'yes'], (3, 2))
    """

    numeric = False

    def _column(self, y: Any) -> tuple[pd.Series, str]:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise UserError(f"a classifier needs two classes at least, got one class: {self.classes_[0]!r}")
        return pd.Series([f"class {code}" for code in codes.ravel()], dtype=object), "categorical"

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, given the known inputs of each row.

        Parameters
        ----------
        X
            Rows with the columns that ``fit`` saw; unknown cells are marginalised out.

        Returns
        -------
        array
            A line for each row, a column for each of ``classes_``.

        Examples
        --------
        >>> classifier.predict_proba(held_out[["rooms", "price"]]).sum(axis=1).round(6).min()
        np.float64(1.0)
        """
        found = self._answers(X).probs()
        names = [f"class {code}" for code in range(len(self.classes_))]
        return np.asarray(found[names].to_numpy(), dtype=np.float64)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X
            As in :meth:`predict_proba`.

        Returns
        -------
        array

        Examples
        --------
        >>> bool((classifier.predict_log_proba(held_out[["rooms", "price"]]) <= 1e-6).all())
        True
        """
        with np.errstate(divide="ignore"):
            found: NDArray[np.float64] = np.log(self.predict_proba(X))
        return found

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row.

        Parameters
        ----------
        X
            As in :meth:`predict_proba`.

        Returns
        -------
        array

        Examples
        --------
        >>> set(classifier.predict(held_out[["rooms", "price"]])) <= {"no", "yes"}
        True
        """
        best = self.predict_proba(X).argmax(axis=1)
        found: NDArray[Any] = self.classes_[best]
        return found
