"""One column given all the others: the plain methods that people would use, each as a whole predictive distribution.

Every method gets numbers and levels with their holes, and answers a class with probabilities, [rows, levels], and a
number with quantiles at the levels (k - 1/2) / 100, [rows, 100]:

- **linear** and **logistic**: ridge and logistic regression, strength by cross-validation; a hole is the column's
  median (no level) and an indicator of its own. The number's law is normal with the deviation of the leave-one-out
  residuals.
- **forest**: 500 trees; for a number the quantile forest of Meinshausen (2006): the training values weighted by how
  often they share a leaf with the row.
- **LightGBM**: boosted trees, the number of rounds by cross-validation; for a number the mean and its out-of-fold
  residuals.
- **LightGBM quantiles**: one booster for each of 19 levels, put in order, joined on the scale of normal scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import KFold

Array = NDArray[np.float64]

LEVELS = (np.arange(100) + 0.5) / 100
"""Where a number's quantiles are asked for: the mean pinball loss over them, doubled, is its CRPS."""
FOLDS = 5
LEAST = 1e-6
"""A class that is given less than this is scored as if it had this."""
TREES = 500
BOOSTING = {
    "learning_rate": 0.05,
    "num_leaves": 15,
    "min_child_samples": 10,
    "verbosity": -1,
    "seed": 0,
    "num_threads": 1,
}
MOST_ROUNDS = 500
PATIENCE = 30


@dataclass(frozen=True)
class Question:
    """Training rows whose target is known, and test rows: frames of numbers and texts, holes as NaN or None."""

    target: str
    kinds: dict[str, str]
    levels: list[str]
    """Of the target; empty for a number."""
    train: pd.DataFrame
    test: pd.DataFrame

    @property
    def truth(self) -> Array:
        """The training targets: numbers, or positions among the levels."""
        if not self.levels:
            return self.train[self.target].to_numpy(dtype=float)
        return np.array([self.levels.index(cell) for cell in self.train[self.target]], dtype=float)

    @property
    def inputs(self) -> list[str]:
        return [name for name in self.kinds if name != self.target]

    def coded(self, frame: pd.DataFrame) -> Array:
        """Numbers as they are, levels as positions among those of training, holes and new levels as NaN."""
        columns = []
        for name in self.inputs:
            if self.kinds[name] == "numeric":
                columns.append(frame[name].to_numpy(dtype=float))
            else:
                known = {level: place for place, level in enumerate(sorted(self.train[name].dropna().unique()))}
                columns.append(np.array([known.get(cell, np.nan) for cell in frame[name]], dtype=float))
        return np.column_stack(columns)

    @property
    def coded_levels(self) -> list[int]:
        """Which of the coded columns are levels."""
        return [place for place, name in enumerate(self.inputs) if self.kinds[name] != "numeric"]

    def indicators(self) -> tuple[Array, Array]:
        """For methods that add up: standardised numbers, one indicator a level, one indicator for a column's holes."""
        train, test = self.coded(self.train), self.coded(self.test)
        parts: list[tuple[Array, Array]] = []
        for place in range(train.shape[1]):
            mine, theirs = train[:, [place]], test[:, [place]]
            if np.isnan(mine).any():
                parts.append((np.isnan(mine).astype(float), np.isnan(theirs).astype(float)))
            if place in self.coded_levels:
                many = np.arange(int(np.nanmax(mine, initial=0)) + 1)
                parts.append(((mine == many).astype(float), (theirs == many).astype(float)))
                continue
            middle, spread = float(np.nanmedian(mine)), float(np.nanstd(mine)) or 1.0
            parts.append(tuple((np.nan_to_num(cells, nan=middle) - middle) / spread for cells in (mine, theirs)))
        return np.hstack([mine for mine, _ in parts]), np.hstack([theirs for _, theirs in parts])


def fold_rows(rows: int, fold: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Training and test rows of one fold; the folds of a table are cut once."""
    place = np.random.default_rng(0).permutation(rows) % FOLDS
    return np.flatnonzero(place != fold), np.flatnonzero(place == fold)


def losses(question: Question, answer: Array) -> Array:
    """Log-loss or CRPS of every test row."""
    if question.levels:
        truth = np.array([question.levels.index(cell) for cell in question.test[question.target]])
        return -np.log(np.maximum(answer[np.arange(len(truth)), truth], LEAST))
    truth = question.test[question.target].to_numpy(dtype=float)[:, None]
    pinball = np.where(truth > answer, LEVELS, LEVELS - 1) * (truth - answer)
    return np.asarray(2 * pinball.mean(axis=1) / (question.truth.std() or 1.0))


def logistic(question: Question) -> Array:
    train, test = question.indicators()
    model = LogisticRegressionCV(
        Cs=np.logspace(-3, 2, 11), cv=5, scoring="neg_log_loss", max_iter=2000, use_legacy_attributes=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of strengths that did not converge: they are not chosen
        model.fit(train, question.truth.astype(int))
    return _all_levels(model.predict_proba(test), model.classes_, len(question.levels))


def linear(question: Question) -> Array:
    train, test = question.indicators()
    strengths = np.logspace(-3, 4, 29)
    centre = question.truth.mean()
    model = RidgeCV(alphas=strengths, store_cv_results=True).fit(train, question.truth - centre)
    chosen = int(np.argmin(model.cv_results_.mean(axis=0)))
    deviation = np.sqrt(model.cv_results_.mean(axis=0)[chosen])  # squared errors of rows left out
    return np.asarray(centre + model.predict(test)[:, None] + deviation * stats.norm.ppf(LEVELS))


def forest_classes(question: Question) -> Array:
    train, test = question.indicators()
    model = RandomForestClassifier(TREES, min_samples_leaf=3, random_state=0).fit(train, question.truth.astype(int))
    return _all_levels(model.predict_proba(test), model.classes_, len(question.levels))


def forest_numbers(question: Question) -> Array:
    train, test = question.indicators()
    model = RandomForestRegressor(TREES, min_samples_leaf=3, max_features=0.5, random_state=0)
    model.fit(train, question.truth)
    weights = np.zeros((len(test), len(train)))
    for mine, theirs in zip(model.apply(train).T, model.apply(test).T, strict=True):
        together = theirs[:, None] == mine[None, :]
        weights += together / together.sum(axis=1, keepdims=True)
    order = np.argsort(question.truth)
    reached = np.cumsum(weights[:, order], axis=1) / TREES
    places = np.stack([np.searchsorted(row, LEVELS - 1e-9) for row in reached])
    return np.asarray(question.truth[order][np.minimum(places, len(order) - 1)])


def boosted_classes(question: Question) -> Array:
    options = BOOSTING | {"objective": "multiclass", "num_class": len(question.levels), "metric": "multi_logloss"}
    (model,) = _boosted(question, [options], stratified=True)
    return np.asarray(model.predict(question.coded(question.test)))


def boosted_numbers(question: Question) -> Array:
    options = BOOSTING | {"objective": "regression", "metric": "l2"}
    (model,) = _boosted(question, [options])
    train, truth = question.coded(question.train), question.truth
    residuals = np.zeros(len(truth))
    for kept, left in KFold(5, shuffle=True, random_state=0).split(train):
        part = lightgbm.train(options, _dataset(question, train[kept], truth[kept]), model.current_iteration())
        residuals[left] = truth[left] - part.predict(train[left])
    return np.asarray(model.predict(question.coded(question.test))[:, None] + np.quantile(residuals, LEVELS))


def boosted_quantiles(question: Question) -> Array:
    asked = np.arange(1, 20) / 20
    middle = BOOSTING | {"objective": "quantile", "alpha": 0.5, "metric": "quantile"}
    models = _boosted(question, [middle, *(middle | {"alpha": level} for level in asked)])[1:]
    test = question.coded(question.test)
    found = np.sort(np.column_stack([model.predict(test) for model in models]), axis=1)
    scores, wanted = stats.norm.ppf(asked), stats.norm.ppf(LEVELS)
    inner = np.stack([np.interp(wanted, scores, row) for row in found])
    # Beyond the outermost levels: the slope between the first (last) and the second next.
    low = found[:, [0]] + (wanted - scores[0]) * ((found[:, [2]] - found[:, [0]]) / (scores[2] - scores[0]))
    high = found[:, [-1]] + (wanted - scores[-1]) * ((found[:, [-1]] - found[:, [-3]]) / (scores[-1] - scores[-3]))
    return np.where(wanted < scores[0], low, np.where(wanted > scores[-1], high, inner))


def _dataset(question: Question, inputs: Array, truth: Array) -> lightgbm.Dataset:
    return lightgbm.Dataset(inputs, truth, categorical_feature=question.coded_levels, free_raw_data=False)


def _boosted(question: Question, options: list[dict[str, Any]], stratified: bool = False) -> list[lightgbm.Booster]:
    """Boosters for each of the options; the rounds of all are those that serve the first best in cross-validation."""
    train, truth = question.coded(question.train), question.truth
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = lightgbm.cv(
            options[0],
            _dataset(question, train, truth),
            MOST_ROUNDS,
            nfold=5,
            stratified=stratified,
            seed=0,
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )
        rounds = len(next(iter(found.values())))
        return [lightgbm.train(chosen, _dataset(question, train, truth), rounds) for chosen in options]


def _all_levels(found: Array, seen: NDArray[np.int64], levels: int) -> Array:
    """Probabilities of all levels, zero for those that training has not."""
    out = np.zeros((len(found), levels))
    out[:, seen] = found
    return out


CLASSES: dict[str, Callable[[Question], Array]] = {
    "logistic": logistic,
    "forest": forest_classes,
    "LightGBM": boosted_classes,
}
NUMBERS: dict[str, Callable[[Question], Array]] = {
    "linear": linear,
    "forest": forest_numbers,
    "LightGBM": boosted_numbers,
    "LightGBM quantiles": boosted_quantiles,
}
