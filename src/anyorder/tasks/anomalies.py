"""Which row, and which cell of it, is surprising given the rest.

A cell's surprise is -log p(x_i | all other known cells of its row), in nats; its tail probability is that of all
values which are no more probable there (:mod:`anyorder.variables.codecs.rarity`).
Surprise depends on the units of a column, a probability does not, so anomalies are ranked by probability.
A row's surprise is -log p of all its known cells; its tail probability is the share of the model's own draws, with
holes in the same columns, that are less likely still. A model that was fitted in folds scores each row by the parts
that have never seen it, and its cells' tails are set against those of the other rows (:mod:`.unseen_rows`); any other
model has seen the rows it was fitted to, and finds them less surprising than they are. Where missingness is modelled,
both are given which cells are missing: a row is never surprising for its holes alone, only for what stands beside them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.model.leave_out import folds
from anyorder.model.likelihood import log_prob, usual_orders
from anyorder.model.sampling import draws
from anyorder.query import Query
from anyorder.questions.units import shown_cell
from anyorder.support import html
from anyorder.support.advance import tracked
from anyorder.support.checks import whole
from anyorder.tasks.hidden_cells import HiddenCellScores, score_hidden_cells
from anyorder.tasks.imputation import fill_point
from anyorder.tasks.unseen_rows import among_others, unseen_parts
from anyorder.variables.encoding import Unseen

SPARE = 5  # cells looked at for each that is listed, to see which of a row's odd ones is wrong,
SUSPECTS = 5  # out of no more than so many
ROWS_AT_ONCE = 2048  # of the table; each is repeated once for every cell
DRAWN_AT_ONCE = 8192  # rows
ROUNDING = 1e-5  # nats by which equal rows may differ, as they are computed beside other ones


@dataclass(frozen=True, repr=False)
class Anomaly:
    """One surprising cell, as listed by :meth:`TableModel.anomalies
    <anyorder.modalities.tables.model.TableModel.anomalies>`.

    Parameters
    ----------
    row
        Its label in the index of the frame.
    column
        Its column.
    value
        What stands there.
    expected
        What the model would fill in.
    probability
        The probability of all values that are no more probable than this one, given the rest of the row. Compare
        cells by this.
    surprise
        -log p in nats. It depends on the units of the column.

    Examples
    --------
    >>> first, second = model.anomalies(held_out, top=2)
    >>> first.probability <= second.probability
    True
    """

    row: Any
    column: str
    value: Any
    expected: Any
    probability: float
    surprise: float

    @property
    def reason(self) -> tuple[str, Any, Any]:
        """The column, what stands there, and what was expected."""
        return self.column, self.value, self.expected

    def __repr__(self) -> str:
        instead = f"{shown_cell(self.value)} where {shown_cell(self.expected)} was expected"
        return f"Anomaly(row {self.row!r}, {self.column}: {instead}, p = {self.probability:.2g})"


class Anomalies(list[Anomaly]):
    """The most surprising cells of a table, the least probable first: a list that is also a table.

    Made by :meth:`TableModel.anomalies <anyorder.modalities.tables.model.TableModel.anomalies>`.

    Parameters
    ----------
    found
        The cells.

    Examples
    --------
    >>> model.anomalies(held_out, top=3).to_frame().columns.tolist()
    ['row', 'column', 'value', 'expected', 'probability', 'surprise']
    """

    def __init__(self, found: Iterable[Anomaly] = ()) -> None:
        super().__init__(found)

    def to_frame(self) -> pd.DataFrame:
        """One line for each cell.

        Returns
        -------
        DataFrame

        Examples
        --------
        >>> odd = model.anomalies(held_out, top=3).to_frame()
        >>> len(odd), odd["probability"].is_monotonic_increasing
        (3, True)
        """
        names = [field.name for field in fields(Anomaly)]
        columns = {name: [getattr(one, name) for one in self] for name in names}
        # Values of different columns stand below each other: they stay what they are.
        mixed = {name: pd.Series(columns.pop(name), dtype=object) for name in ("row", "value", "expected")}
        return pd.DataFrame({**columns, **mixed})[names].infer_objects()

    def __repr__(self) -> str:
        return "[" + ",\n ".join(map(repr, self)) + "]"

    def _repr_html_(self) -> str:
        if not self:
            return html.titled("No known cell to look at")
        lines = [
            [one.row, one.column, shown_cell(one.value), shown_cell(one.expected), f"{one.probability:.2g}"]
            for one in self
        ]
        return html.titled(
            "The least probable cells, given the rest of their rows",
            html.table(["row", "column", "value", "expected", "probability"], lines, [4]),
            html.remark("An unlikely cell is not a wrong one. As a table: .to_frame()"),
        )


def cell_scores(
    model: AnyOrderModel, frame: pd.DataFrame, unseen: Unseen = "refuse", *, whole: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Surprise in nats and tail probability of every known cell given the rest of its row; NaN where unknown.

    ``whole``: by the model as a whole, whether it has seen the rows or not.
    """
    nats, tail = raw_scores(model, frame, unseen, whole=whole)
    if folds(model) > 1 and not whole:
        known = ~np.isnan(tail)
        tail[known] = among_others(tail[known])
    return _framed(model, frame, nats), _framed(model, frame, tail)


def _framed(model: AnyOrderModel, frame: pd.DataFrame, cells: Float[np.ndarray, "rows variables"]) -> pd.DataFrame:
    own = _judged(model)
    return pd.DataFrame(cells[:, own], index=frame.index, columns=list(np.array(model.schema.names, dtype=object)[own]))


def _judged(model: AnyOrderModel) -> Bool[np.ndarray, " variables"]:
    """Whose cells can be surprising: indicators of missing cells, and context, are evidence about the others alone."""
    return np.array([not variable.indicates and not variable.context for variable in model.schema.variables])


def raw_scores(
    model: AnyOrderModel, frame: pd.DataFrame, unseen: Unseen, *, whole: bool = False
) -> tuple[Float[np.ndarray, "rows variables"], Float[np.ndarray, "rows variables"]]:
    """Surprise and the model's own tail probability of every known cell; NaN elsewhere."""
    values, observed = model.encoding.encode(frame, unseen)
    cells_of = _judged(model)
    nats, tail = (np.full(values.shape, np.nan) for _ in range(2))
    jobs = [(model, np.arange(len(frame)))] if whole else list(unseen_parts(model, frame))
    by_job = np.concatenate([rows for _, rows in jobs]) if jobs else np.arange(0)  # one bar for all of them
    ends = np.cumsum([len(rows) for _, rows in jobs]).tolist()
    cuts = [
        slice(start, min(start + ROWS_AT_ONCE, last))
        for first, last in itertools.pairwise([0, *ends])
        for start in range(first, last, ROWS_AT_ONCE)
    ]
    for cut in tracked(cuts, len(frame)):
        parts, some = jobs[int(np.searchsorted(ends, cut.start, side="right"))][0], by_job[cut]
        row, cells = _leave_one_out(parts, values[some], observed[some], observed[some] & cells_of)
        position = (some[row[cells.row]], cells.variable)
        nats[position], tail[position] = -cells.log_prob, cells.rarity
    return nats, tail


def surprise(model: AnyOrderModel, frame: pd.DataFrame, unseen: Unseen = "refuse") -> pd.DataFrame:
    """-log p(cell | the rest of its row), in nats and in the units of the data; NaN where the cell is unknown."""
    return cell_scores(model, frame, unseen)[0]


def anomalies(model: AnyOrderModel, frame: pd.DataFrame, *, top: int = 10, unseen: Unseen = "refuse") -> Anomalies:
    """The ``top`` cells least probable given the rest of their rows, the least probable first."""
    top = whole("top", top)
    each, raw = raw_scores(model, frame, unseen)
    return least_probable(model, frame, each, raw, top, unseen)


def least_probable(
    model: AnyOrderModel,
    frame: pd.DataFrame,
    each: Float[np.ndarray, "rows variables"],
    raw: Float[np.ndarray, "rows variables"],
    top: int,
    unseen: Unseen = "refuse",
    *,
    beside: Float[np.ndarray, " cells"] | None = None,
) -> Anomalies:
    """The ``top`` least probable cells, by the surprise and the tail probability that the model has for each of them.

    Both are NaN where a cell is unknown. ``beside``: the tails of cells in other rows of the same table, which these
    are set against as well.
    """
    raw = _without_the_wrong(model, frame, raw, SPARE * top, unseen)
    if folds(model) > 1:
        known = ~np.isnan(raw)
        raw[known] = among_others(raw[known], None if beside is None else np.concatenate([raw[known], beside]))
    nats, tail = _framed(model, frame, each), _framed(model, frame, raw)
    rank = np.where(np.isnan(tail), np.inf, tail)
    # Beyond double precision all tails are 0: there the density still tells them apart.
    order = np.lexsort([-np.nan_to_num(nats.to_numpy()).ravel(), rank.ravel()])[: min(top, int(tail.count().sum()))]
    return _listed(model, frame, nats, tail, np.unravel_index(order, tail.shape), unseen)


def _listed(
    model: AnyOrderModel,
    frame: pd.DataFrame,
    nats: pd.DataFrame,
    tail: pd.DataFrame,
    cells: Sequence[Int[np.ndarray, " cells"]],
    unseen: Unseen,
) -> Anomalies:
    """These cells, which are known, by their rows and columns; with what would be filled in there."""
    rows, columns = cells
    if not len(rows):
        return Anomalies()
    names = [tail.columns[column] for column in columns]
    # The expected value of a cell is what would be filled in there: each ranked cell in its own copy of its row.
    blanked = frame.iloc[rows].reset_index(drop=True)
    for name in dict.fromkeys(names):
        hidden = pd.Series([other == name for other in names])
        blanked[name] = blanked[name].mask(hidden)
    expected: dict[int, Any] = {}
    for parts, whose in unseen_parts(model, frame.iloc[rows]):
        filled = fill_point(parts, blanked.iloc[whose], unseen)
        expected |= {position: filled[names[position]].iloc[at] for at, position in enumerate(whose.tolist())}
    return Anomalies(
        Anomaly(
            row=_plain(frame.index[row]),
            column=name,
            value=_plain(frame[name].iloc[row]),
            expected=_plain(expected[position]),
            probability=float(tail.iloc[row, column]),
            surprise=float(nats.iloc[row, column]),
        )
        for position, (row, column, name) in enumerate(zip(rows.tolist(), columns.tolist(), names, strict=True))
    )


def _without_the_wrong(
    model: AnyOrderModel, frame: pd.DataFrame, tail: Float[np.ndarray, "rows variables"], most: int, unseen: Unseen
) -> Float[np.ndarray, "rows variables"]:
    """The tails, where those of a wrong cell's neighbours are taken without it: it makes them look odd as well.

    Of several odd cells in one row, that one is taken for wrong whose absence leaves the others least odd.
    """
    values, observed = model.encoding.encode(frame, unseen)
    odd = np.full(tail.shape, False)
    least = np.argsort(np.where(np.isnan(tail), np.inf, tail), axis=None, kind="stable")[:most]
    odd.ravel()[least] = True
    odd &= ~np.isnan(tail)
    out = tail.copy()
    for parts, mine in unseen_parts(model, frame):
        rows = mine[odd[mine].sum(axis=1) > 1]
        trios = [
            (row, w, j)
            for row in rows.tolist()
            for w in _worst(tail[row], odd[row])
            for j in _worst(tail[row], odd[row])
            if w != j
        ]
        if not trios:
            continue
        row, wrong, asked = np.array(trios).T
        known, wanted = observed[row].copy(), np.zeros((len(row), values.shape[1]), dtype=bool)
        each = np.arange(len(row))
        known[each, wrong] = known[each, asked] = False
        wanted[each, asked] = True
        cells = score_hidden_cells(parts, values[row], known, wanted, rarity=True)
        found = np.ones(len(row))
        found[cells.row] = cells.rarity
        for number in rows.tolist():
            here = np.flatnonzero(row == number)
            suspects = np.unique(wrong[here])
            left = [np.log(np.maximum(found[here[wrong[here] == one]], 1e-300)).mean() for one in suspects]
            culprit = suspects[int(np.argmax(left))]
            for at in here[wrong[here] == culprit]:
                out[number, asked[at]] = max(out[number, asked[at]], found[at])
    return out


def _worst(tail: Float[np.ndarray, " variables"], odd: Bool[np.ndarray, " variables"]) -> list[int]:
    """The odd cells of a row, at most as many as are set against each other."""
    cells = np.flatnonzero(odd)
    return [int(cell) for cell in cells[np.argsort(tail[cells], kind="stable")[:SUSPECTS]]]


class OwnRows:
    """Rows that a model draws with nothing known: made when they are first asked for, and kept.

    One for every table is enough, unless its rows have evidence; so is one for many tables.
    """

    def __init__(self, samples: int = 200, seed: int = 0) -> None:
        if samples < 1:
            raise UserError(f"samples must be 1 or more, got {samples}")
        self.samples, self.seed = samples, seed
        self._drawn: WeakKeyDictionary[AnyOrderModel, NDArray[np.float64]] = WeakKeyDictionary()

    def of(self, model: AnyOrderModel) -> NDArray[np.float64]:
        """The rows of one model, in its own units."""
        if model not in self._drawn:
            nothing = torch.zeros(self.samples, len(model.schema), dtype=torch.bool)
            query = Query(nothing, (~nothing) & torch.as_tensor(_judged(model)))
            self._drawn[model] = draws(model, nothing.double(), query, seed=self.seed, orders=usual_orders(model))
        return self._drawn[model]


def row_scores(
    model: AnyOrderModel,
    frame: pd.DataFrame,
    *,
    samples: int = 200,
    seed: int = 0,
    unseen: Unseen = "refuse",
    drawn: OwnRows | None = None,
) -> pd.DataFrame:
    """Per row its surprise in nats and (1 + draws less likely) / (1 + draws): a p-value under the model.

    Rows are compared with draws that are looked at in the same columns, so a row with holes is not thought likely
    merely because there is less of it, nor unlikely because holes are rare. The cost is ``samples``
    rows for every pattern of holes. ``drawn`` are such draws, kept from one table for the next; they bring ``samples``
    and ``seed`` of their own.
    """
    drawn = drawn or OwnRows(samples, seed)
    scores = [
        _row_scores(parts, frame.iloc[rows], drawn, unseen).set_axis(rows) for parts, rows in unseen_parts(model, frame)
    ]
    found = pd.concat(scores) if scores else pd.DataFrame({"surprise": [], "probability": []})
    return found.sort_index().set_axis(frame.index)


@dataclass(frozen=True)
class RowAnomaly:
    """One surprising row, and which cell is the most surprising of it: None in a row without a known one.

    Parameters
    ----------
    row
        Its label in the index of the frame.
    surprise
        -log p of its known cells, in nats.
    probability
        How probable it is that a row which the model draws is as unlikely in the same columns.
    column, value, expected
        The cell of it that is least probable given the rest: its column, what stands there, what would be filled in.

    Examples
    --------
    >>> from anyorder.tasks.anomalies import row_anomalies
    >>> first, second = row_anomalies(model.core, held_out, top=2)
    >>> first.probability <= second.probability and first.column in model.columns
    True
    """

    row: Any
    surprise: float
    probability: float
    column: str | None = None
    value: Any = None
    expected: Any = None


def row_anomalies(
    model: AnyOrderModel,
    frame: pd.DataFrame,
    *,
    top: int = 10,
    seed: int = 0,
    unseen: Unseen = "refuse",
    drawn: OwnRows | None = None,
) -> list[RowAnomaly]:
    """The ``top`` least probable rows, the least probable first; :func:`row_scores` says what is compared.

    Examples
    --------
    >>> from anyorder.tasks.anomalies import row_anomalies
    >>> len(row_anomalies(model.core, held_out, top=3))
    3
    """
    scores = row_scores(model, frame, seed=seed, unseen=unseen, drawn=drawn)
    ranked = np.lexsort([-scores["surprise"], scores["probability"]])[: whole("top", top)]
    some, scores = frame.iloc[ranked], scores.iloc[ranked]
    nats, tail = cell_scores(model, some, unseen)
    rank = np.where(np.isnan(tail), np.inf, tail)
    least = np.lexsort([-np.nan_to_num(nats.to_numpy()), rank], axis=1)[:, 0] if rank.size else np.zeros(0, int)
    rows = np.flatnonzero(tail.notna().any(axis=1))
    reasons = dict(zip(rows.tolist(), _listed(model, some, nats, tail, (rows, least[rows]), unseen), strict=True))
    return [
        RowAnomaly(_plain(label), surprise, probability, *(() if (cell := reasons.get(at)) is None else cell.reason))
        for at, (label, surprise, probability) in enumerate(scores.itertuples())
    ]


def _row_scores(model: AnyOrderModel, frame: pd.DataFrame, drawn: OwnRows, unseen: Unseen) -> pd.DataFrame:
    orders, samples = usual_orders(model), drawn.samples
    values, observed = model.encoding.encode(frame, unseen)
    cells = observed & _judged(model)
    marks = observed & ~cells
    query = Query(torch.as_tensor(marks), torch.as_tensor(cells))
    nats = log_prob(model, torch.as_tensor(values), query, orders=orders)
    tail = np.ones(len(values))
    patterns, where = np.unique(
        np.concatenate([observed, np.where(marks, values, 0.0)], axis=1), axis=0, return_inverse=True
    )
    owners = [np.flatnonzero(where.ravel() == number) for number in range(len(patterns))]
    bare = [mine for mine in owners if not marks[mine[0]].any()]
    for mine in bare:
        asked = torch.as_tensor(cells[mine[0]]).expand(samples, -1).clone()
        query = Query(torch.zeros_like(asked), asked)
        theirs = log_prob(model, torch.as_tensor(drawn.of(model)), query, orders=orders)
        tail[mine] = _share_below(np.sort(theirs), nats[mine])
    given = [mine for mine in owners if marks[mine[0]].any()]
    # With context nearly every row has evidence of its own: draws of many are made together.
    size = max(1, DRAWN_AT_ONCE // samples) if model.schema.context else 1
    for start in range(0, len(given), size):
        some = given[start : start + size]
        first = np.repeat([mine[0] for mine in some], samples)
        query = Query(torch.as_tensor(marks[first]), torch.as_tensor(cells[first]))
        rows = draws(model, torch.as_tensor(values[first]), query, seed=drawn.seed, orders=orders)
        theirs = log_prob(model, torch.as_tensor(rows), query, orders=orders).reshape(len(some), samples)
        for mine, own in zip(some, np.sort(theirs, axis=1), strict=True):
            tail[mine] = _share_below(own, nats[mine])
    return pd.DataFrame({"surprise": -nats, "probability": tail}, index=frame.index)


def _share_below(draws_nats: Float[np.ndarray, " draws"], nats: Float[np.ndarray, " rows"]) -> np.ndarray:
    """(1 + draws less likely) / (1 + draws) for rows of these log-probabilities; those of the draws ascend."""
    return (1 + np.searchsorted(draws_nats, nats + ROUNDING, side="right")) / (1 + len(draws_nats))


def _leave_one_out(
    model: AnyOrderModel,
    values: Float[np.ndarray, "rows variables"],
    observed: Bool[np.ndarray, "rows variables"],
    wanted: Bool[np.ndarray, "rows variables"],
) -> tuple[Int[np.ndarray, " repeats"], HiddenCellScores]:
    """Every wanted cell given all others: its row repeated with that one cell hidden. Also the row of each repeat."""
    row, column = wanted.nonzero()
    asked = np.zeros((len(row), values.shape[1]), dtype=bool)
    asked[np.arange(len(row)), column] = True
    return row, score_hidden_cells(model, values[row], observed[row] & ~asked, asked, rarity=True)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
