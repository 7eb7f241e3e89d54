"""The demonstration: fit a real table, hide cells of rows the model has not seen, fill them, and compare.

The table is breast cancer from scikit-learn (569 tumours, 30 measurements and a diagnosis). The baselines are the mean
of the column and the exact conditional of a Gaussian with full covariance, a linear model of the whole table. All get
the same training rows and the same known cells.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from anyorder.cli.explored import explorer_section
from anyorder.cli.report import Picture, Section, write_report
from anyorder.errors import UserError
from anyorder.questions import plots
from anyorder.support import plotting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from anyorder.modalities.tables.model import TableModel

LABEL = "diagnosis"
HIDDEN = 0.3  # share of the cells of the test rows that are hidden
NOISE = 0.05  # standard deviations added once to every number, so that how the data is rounded is not what is learned
RIDGE = 1e-3  # keeps the covariance of standardised columns invertible where some are nearly equal


@dataclass(frozen=True)
class Experiment:
    """A table cut in two, and which cells of the second part are hidden."""

    train: pd.DataFrame
    test: pd.DataFrame
    hidden: Bool[np.ndarray, "rows columns"]

    @property
    def holes(self) -> pd.DataFrame:
        """The test rows with the hidden cells empty."""
        return self.test.mask(self.hidden)

    @property
    def numbers(self) -> list[str]:
        return [name for name in self.train.columns if name != LABEL]

    @property
    def hidden_numbers(self) -> Bool[np.ndarray, "rows numbers"]:
        return self.hidden[:, [name != LABEL for name in self.train.columns]]

    def standardised(self, frame: pd.DataFrame) -> Float[np.ndarray, "rows numbers"]:
        """The numeric columns in the mean and deviation of the training rows."""
        part = self.train[self.numbers].to_numpy(dtype=float)
        scaled: np.ndarray = (frame[self.numbers].to_numpy(dtype=float) - part.mean(axis=0)) / part.std(axis=0)
        return scaled


def run_demo(path: Path, *, minutes: float = 1.0, seed: int = 0, progress: bool = False) -> dict[str, Any]:
    """Fit, hide, fill, score, and write the report to ``path``; returns the scores."""
    plotting.require_matplotlib()
    experiment = prepare(seed)
    from anyorder.modalities.tables.fit import fit

    began = time.monotonic()
    kinds = dict.fromkeys(experiment.numbers, "continuous")
    model = fit(experiment.train, minutes=minutes, seed=seed, kinds=kinds, progress=progress)
    spent = time.monotonic() - began
    scores, pictures = compare(model, experiment)
    write_report(
        path,
        "anyorder: one model, every question",
        [*_sections(experiment, scores, pictures), *explorer_section(model, "tumours", seed=seed), _own_table()],
        subtitle=f"breast cancer data of scikit-learn · seed {seed} · fitted in {spent:.0f} s",
    )
    return {"report": str(path), "seconds": round(spent, 1), "scores": scores}


def prepare(seed: int) -> Experiment:
    """The table with named diagnoses, cut 80 / 20, and the cells to hide."""
    try:
        from sklearn.datasets import load_breast_cancer
    except ImportError as error:
        raise UserError("the demo needs scikit-learn: pip install 'anyorder[sklearn,plots]'") from error
    data = load_breast_cancer(as_frame=True)
    generator = np.random.default_rng(seed)
    frame: pd.DataFrame = data.data.copy()
    frame += NOISE * frame.std().to_numpy() * generator.standard_normal(frame.shape)
    frame[LABEL] = np.asarray(data.target_names)[data.target.to_numpy()].astype(str)
    order = generator.permutation(len(frame))
    cut = round(0.8 * len(frame))
    train, test = (frame.iloc[part].reset_index(drop=True) for part in (order[:cut], order[cut:]))
    return Experiment(train, test, generator.random(test.shape) < HIDDEN)


def compare(model: TableModel, experiment: Experiment) -> tuple[list[dict[str, Any]], list[tuple[str, Figure]]]:
    """Scores of all methods on the hidden cells, and pictures with their captions."""
    hidden, truth = experiment.hidden_numbers, experiment.standardised(experiment.test)
    labels = experiment.test[LABEL].to_numpy()
    label_hidden = experiment.hidden[:, list(experiment.test.columns).index(LABEL)]

    filled = model.fill(experiment.holes)
    points = experiment.standardised(filled)
    # A hidden label is left out, so that all methods are scored on densities of the same numbers.
    scored = experiment.test.copy()
    scored.loc[label_hidden, LABEL] = None
    nats = model.log_prob(scored, given=~pd.DataFrame(experiment.hidden, columns=scored.columns))
    scale = np.log(experiment.train[experiment.numbers].to_numpy(dtype=float).std(axis=0))
    mine = nats.to_numpy(dtype=float) + (hidden * scale).sum(axis=1)

    gaussian = Gaussian.fit(experiment)
    means, theirs, guesses = gaussian.answer(experiment)
    common = experiment.train[LABEL].mode()[0]

    def row(method: str, point: Any, guess: Any, score: Any, inside: Any) -> dict[str, Any]:
        return {
            "method": method,
            "error of filled numbers (standard deviations)": float(np.sqrt(((point - truth)[hidden] ** 2).mean())),
            f"diagnoses right, of {int(label_hidden.sum())}": int((guess == labels)[label_hidden].sum()),
            "log p(hidden | known) (nats per row)": None if score is None else float(score.mean()),
            "truth inside 90% interval": inside,
        }

    scores = [
        row("anyorder", points, filled[LABEL].to_numpy(), mine, coverage(model, experiment)),
        row("Gaussian, full covariance", means, guesses, theirs, gaussian.coverage(experiment, means)),
        row("mean of the column", np.zeros_like(truth), np.full(len(labels), common), None, None),
    ]
    pictures = [
        ("Each point is a hidden number; on the diagonal the fill is exact.", _scatter(truth, points, means, hidden)),
        (
            "The first held-out row, not a chosen one. From left to right the same model knows more of the other "
            "columns; the dashed line is the true value, which it does not know.",
            _sharper(model, experiment),
        ),
    ]
    return scores, pictures


def coverage(model: TableModel, experiment: Experiment) -> float:
    """Coverage of the central 90% intervals of the hidden numbers, given the known cells of their rows."""
    inside = []
    for (_, row), holes in zip(experiment.test.iterrows(), experiment.hidden, strict=True):
        known = {name: row[name] for name, hole in zip(experiment.test.columns, holes, strict=True) if not hole}
        conditional = model.given(known)
        for name in experiment.numbers:
            if name not in known:
                low, high = conditional[name].interval(0.9)
                inside.append(bool(low <= row[name] <= high))
    return float(np.mean(inside))


@dataclass(frozen=True)
class Gaussian:
    """A joint normal of the standardised numbers and the indicators of the diagnosis."""

    covariance: Float[np.ndarray, "columns columns"]
    centre: Float[np.ndarray, " columns"]
    levels: list[str]

    @classmethod
    def fit(cls, experiment: Experiment) -> Gaussian:
        levels = sorted(experiment.train[LABEL].unique())
        rows = cls.columns(experiment, experiment.train, levels)
        return cls(np.cov(rows, rowvar=False) + RIDGE * np.eye(rows.shape[1]), rows.mean(axis=0), levels)

    @staticmethod
    def columns(experiment: Experiment, frame: pd.DataFrame, levels: list[str]) -> Float[np.ndarray, "rows columns"]:
        indicators = frame[LABEL].to_numpy()[:, None] == np.array(levels)[None, :]
        return np.concatenate([experiment.standardised(frame), indicators.astype(float)], axis=1)

    def answer(self, experiment: Experiment) -> tuple[Any, Any, Any]:
        """Conditional means of the hidden numbers, their joint log-density by row, and the likeliest diagnosis."""
        rows = self.columns(experiment, experiment.test, self.levels) - self.centre
        count = len(experiment.numbers)
        points, nats, guesses = rows.copy(), np.zeros(len(rows)), []
        for index, known in enumerate(self._known(experiment)):
            mean, spread = self.conditional(rows[index], known)
            points[index, ~known] = mean
            numeric = np.flatnonzero(~known) < count
            gap = (rows[index, ~known] - mean)[numeric]
            inner = spread[np.ix_(numeric, numeric)]
            volume = np.linalg.slogdet(2 * np.pi * inner)[1]
            nats[index] = -0.5 * (volume + gap @ np.linalg.solve(inner, gap))
            guesses.append(self.levels[int(np.argmax(points[index, count:] + self.centre[count:]))])
        return (points + self.centre)[:, :count], nats, np.array(guesses)

    def coverage(self, experiment: Experiment, means: Float[np.ndarray, "rows numbers"]) -> float:
        """Coverage of the central 90% intervals of the hidden numbers."""
        truth = experiment.standardised(experiment.test)
        rows = self.columns(experiment, experiment.test, self.levels) - self.centre
        count, inside = len(experiment.numbers), []
        for index, known in enumerate(self._known(experiment)):
            columns = np.flatnonzero(~known)
            spread = np.sqrt(np.diag(self.conditional(rows[index], known)[1]))[columns < count]
            columns = columns[columns < count]
            inside += (np.abs(truth[index, columns] - means[index, columns]) <= 1.6449 * spread).tolist()
        return float(np.mean(inside))

    def conditional(self, row: Any, known: Any) -> tuple[Any, Any]:
        """Mean and covariance of the unknown columns given the known ones."""
        across = self.covariance[np.ix_(~known, known)]
        gain = np.linalg.solve(self.covariance[np.ix_(known, known)], across.T).T
        return gain @ row[known], self.covariance[np.ix_(~known, ~known)] - gain @ across.T

    def _known(self, experiment: Experiment) -> Bool[np.ndarray, "rows columns"]:
        label = ~experiment.hidden[:, [name == LABEL for name in experiment.train.columns]]
        return np.concatenate([~experiment.hidden_numbers, np.repeat(label, len(self.levels), axis=1)], axis=1)


def _scatter(truth: Any, mine: Any, theirs: Any, hidden: Any) -> Figure:
    figure = plotting.new_figure(8.4, 4.0)
    span = float(np.quantile(np.abs(truth[hidden]), 0.998))
    panels = (("anyorder", mine, plotting.BLUE), ("Gaussian, full covariance", theirs, plotting.SOFT))
    for panel, (name, points, colour) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, 2, panel)
        plotting.style(axes)
        axes.plot([-span, span], [-span, span], color=plotting.ORANGE, linewidth=1.2)
        axes.scatter(truth[hidden], points[hidden], s=9, color=colour, alpha=0.45, linewidth=0)
        axes.set(xlim=(-span, span), ylim=(-span, span), xlabel="hidden value (standardised)", ylabel="filled value")
        axes.set_title(name, color=plotting.INK, fontsize=11, loc="left", fontweight="bold")
    return figure


def _sharper(model: TableModel, experiment: Experiment) -> Figure:
    """p(target | more and more columns) for three targets, with the truth marked."""
    targets = ["mean area", "worst concave points", LABEL]
    row = experiment.test.iloc[0]  # the first one, whatever the model makes of it: a chosen row would flatter it
    known = [name for name in experiment.test.columns if name not in targets]
    stages = [[], known[-6:-4], known]
    titles = ["nothing known", " and ".join(known[-6:-4]) + " known", f"{len(known)} columns known"]
    figure = plotting.new_figure(11.5, 8.0)
    for line, target in enumerate(targets):
        first: Any = None
        for stage, names in enumerate(stages):
            axes = figure.add_subplot(len(targets), len(stages), line * len(stages) + stage + 1, sharex=first)
            first = first or axes
            plots.plot_answer(axes, model.given({name: row[name] for name in names})[target], target, ranked=False)
            if line == 0:
                axes.set_title(titles[stage] + "\n" + target, color=plotting.INK, fontsize=10.5, loc="left")
            if target != LABEL:
                axes.axvline(float(row[target]), color=plotting.RED, linewidth=1.4, linestyle="--")
            else:
                axes.set_xlabel(f"true: {row[target]}", color=plotting.RED, fontsize=9)
    return figure


def _sections(
    experiment: Experiment, scores: list[dict[str, Any]], pictures: list[tuple[str, Figure]]
) -> list[Section]:
    cells = int(experiment.hidden.sum())
    return [
        Section(
            "What was done",
            f"One model was fitted to {len(experiment.train)} rows of {experiment.train.shape[1]} columns: 30 "
            f"measurements of a tumour and its diagnosis. In {len(experiment.test)} other rows {HIDDEN:.0%} of the "
            f"cells were hidden at random ({cells} cells), different ones in every row. The model was asked for "
            "the hidden cells given the others; it was not trained again.",
        ),
        Section(
            "How well the hidden cells were filled",
            "The Gaussian and the mean had the same training rows. A higher log-probability is better; a calibrated "
            "90% interval holds the true value in 90% of the cases. "
            f"Noise of {NOISE} standard deviations was added once to every number, for all methods, so that what is "
            "scored is not how the data is rounded.",
            table=scores,
            pictures=[Picture(pictures[0][1], pictures[0][0])],
        ),
        Section("Every question to the same model", pictures=[Picture(pictures[1][1], pictures[1][0])]),
    ]


def _own_table() -> Section:
    return Section(
        "Ask your own table",
        code="anyorder fit table.csv -o model.anyorder --minutes 2\n"
        'anyorder ask model.anyorder "price, tax | rooms=6, river=yes"\n'
        "anyorder fill model.anyorder holes.csv -o filled.csv\n"
        "anyorder serve model.anyorder",
    )
