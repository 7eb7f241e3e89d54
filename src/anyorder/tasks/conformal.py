r"""Conformal adjustment: intervals with a coverage that holds however wrong the model is.

Split conformal prediction on the model's own scale (distributional conformal prediction, Chernozhukov, Wüthrich and Zhu
2021). The score of a held-out cell is its depth: the least level whose central interval holds it
(:mod:`anyorder.tasks.hidden_cells`). With n scores $d_{(1)} \le \dots \le d_{(n)}$ of a variable, the model is asked
for the interval of level

$$\hat c = d_{(k)}, \quad k = \lceil (n + 1) c \rceil,
\qquad\text{so that}\qquad c \le P(x \in I_{\hat c}) \le c + \tfrac{1}{n + 1}.$$

(The upper bound for continuous variables.) It holds on average over rows that are exchangeable with the held-out ones,
asked questions of the same sort: a random number of known cells, just the columns named in ``given``, or the holes of
the table named in ``like``. It is no promise for one evidence set out of the mixture; `by_known` makes it hold for each
number of known cells, ``given`` for one question. Where n is too small for the level ($k > n$) the honest interval is
everything that the variable can be.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel, row_chunks
from anyorder.questions.answer import Answer
from anyorder.questions.conditional import Conditional
from anyorder.support import html
from anyorder.support.checks import check_level, checked_seed
from anyorder.tasks.calibration import LEVELS
from anyorder.tasks.hidden_cells import has_order, random_known, score_hidden_cells
from anyorder.variables.encoding import Unseen
from anyorder.variables.missingness import of_columns
from anyorder.variables.schema import Kind, Variable


@dataclass(frozen=True, repr=False)
class Conformal:
    """A model with the depths of held-out cells, from which levels with a guaranteed coverage are read.

    Made by :meth:`TableModel.conformal <anyorder.modalities.tables.model.TableModel.conformal>`. The guarantee is an
    average over rows like the held-out ones, for the sort of questions it was calibrated for; it is no promise for one
    row.

    Parameters
    ----------
    model
        The ``core`` of a table model.
    variable, known, depth
        For each held-out cell: its variable, how many cells of its row were known, and the least level whose central
        interval holds it.
    by_known
        Whether levels are adjusted for each number of known cells.
    given
        The only columns that evidence may speak of; None for any.

    Examples
    --------
    >>> adjusted = model.conformal(held_out, seed=0)
    >>> adjusted.adjusted_levels()["variable"].tolist()
    ['rooms', 'river', 'door', 'price']
    """

    model: AnyOrderModel
    variable: Int[np.ndarray, " cells"]
    known: Int[np.ndarray, " cells"]
    depth: Float[np.ndarray, " cells"]
    by_known: bool = False
    given: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        columns = len(np.unique(self.variable))
        given = "" if self.given is None else f", given {', '.join(self.given) or 'nothing'}"
        return f"Conformal({len(self.depth)} held-out cells of {columns} columns{given})"

    def _repr_html_(self) -> str:
        table = self.adjusted_levels()
        lines = [
            [f"{each:.3f}" if isinstance(each, float) else each for each in line] for line in table.to_numpy(object)
        ]
        return html.titled(
            f"{len(self.depth)} held-out cells: the level that the model has to take for the one asked for to hold",
            html.table([str(name) for name in table.columns], lines, range(1, len(table.columns))),
        )

    def interval(self, evidence: Mapping[str, Any], name: str, level: float = 0.9) -> tuple[Any, Any]:
        """The adjusted central interval of a number or time; everything it can be if there are too few held-out cells.

        Parameters
        ----------
        evidence
            What is known, by column.
        name
            The column that is asked for.
        level
            The coverage, between 0 and 1.

        Returns
        -------
        tuple
            Lower and upper end.

        Examples
        --------
        >>> adjusted = model.conformal(held_out, given=["rooms"])
        >>> low, high = adjusted.interval({"rooms": 6}, "price", level=0.8)
        >>> bool(low < high)
        True
        """
        answer = self._answer(evidence, name)
        if not has_order(answer.variable):
            raise UserError(f"the levels of {name!r} have no order, so there is no interval; ask for levels()")
        return self._interval(answer, level, len(evidence))

    def _interval(self, answer: Answer, level: float, known: int) -> tuple[Any, Any]:
        asked = self.adjusted_level(answer.variable.name, level, known=known)
        if answer.variable.levels:
            low, high = answer.quantile([(1 - asked) / 2, (1 + asked) / 2])
            return low, high
        return self._everything(answer.variable, known) if asked >= 1 else answer.interval(asked)

    def _everything(self, variable: Variable, known: int) -> tuple[Any, Any]:
        """The bounds of the variable; those that the data only suggest must not have failed on a held-out cell."""
        if variable.kind is Kind.DATETIME:
            return pd.Timestamp.min, pd.Timestamp.max
        low, high = variable.bounds
        if not variable.declared and bool((self._scores(variable.name, known) >= 1).any()):
            low, high = None, None
        whole = variable.kind is Kind.INTEGER
        least = -math.inf if low is None else math.ceil(low) if whole else low
        return least, math.inf if high is None else math.floor(high) if whole else high

    def levels(self, evidence: Mapping[str, Any], name: str, level: float = 0.9) -> list[Any]:
        """The adjusted set of levels, for a column without an order.

        Parameters
        ----------
        evidence
            What is known, by column.
        name
            The column that is asked for.
        level
            The coverage, between 0 and 1.

        Returns
        -------
        list
            The most probable first.

        Examples
        --------
        >>> set(model.conformal(held_out, given=["rooms"]).levels({"rooms": 6}, "river")) <= {"yes", "no"}
        True
        """
        return self._levels(self._answer(evidence, name), level, len(evidence))

    def _levels(self, answer: Answer, level: float, known: int) -> list[Any]:
        probabilities = answer.probs()
        asked = self.adjusted_level(answer.variable.name, level, known=known)
        ranked = sorted(probabilities, key=lambda each: -probabilities[each])
        ahead = np.cumsum([0.0, *(probabilities[each] for each in ranked)])[:-1]
        # A level belongs to the set if some part of its mass lies below the asked level.
        return [each for each, mass in zip(ranked, ahead, strict=True) if mass <= asked]

    def intervals(self, frame: pd.DataFrame, level: float = 0.9, *, unseen: Unseen = "refuse") -> pd.DataFrame:
        """The adjusted interval of every unknown cell of a table given the known cells of its row.

        Calibrate for this sort of question: ``model.conformal(held_out, like=frame)``.

        Parameters
        ----------
        frame
            A pandas frame with holes.
        level
            The coverage, between 0 and 1.
        unseen
            ``"missing"`` takes a level that was never seen in training for an unknown cell; ``"refuse"`` is an error.

        Returns
        -------
        DataFrame
            One line a cell: ``row`` (its label in the index), ``column``, ``low`` and ``high``. For levels without an
            order these are empty and ``levels`` lists the set, the most probable first.

        Examples
        --------
        >>> holes = frame.head(3).assign(price=None)
        >>> model.conformal(held_out, like=holes).intervals(holes, 0.8)["column"].tolist()
        ['price', 'price', 'price']
        """
        model = self.model
        values, known, wanted = _holes(model, frame, unseen)
        rows = np.flatnonzero(wanted.any(axis=1))
        lines: list[dict[str, Any]] = []
        for part in row_chunks(model, len(rows)):
            here = rows[part]
            for row in here:
                self._check([model.schema.names[index] for index in np.flatnonzero(known[row])])
            context = (torch.as_tensor(cells[here]).to(model.device) for cells in (values, known))
            with torch.no_grad():
                features = model.features_beside(*context).cpu()
            for number, index in np.argwhere(wanted[here]).tolist():
                variable, row = model.schema.variables[index], int(here[number])
                distribution = model.heads.distribution(features[number : number + 1, index], index)
                answer, count = Answer(variable, model.encoding, distribution), int(known[row].sum())
                line: dict[str, Any] = {"row": frame.index[row], "column": variable.name}
                if has_order(variable):
                    low, high = self._interval(answer, level, count)
                    lines.append({**line, "low": low, "high": high, "levels": None})
                else:
                    lines.append({**line, "low": None, "high": None, "levels": self._levels(answer, level, count)})
        return pd.DataFrame(lines, columns=["row", "column", "low", "high", "levels"])

    def adjusted_level(self, name: str, level: float, *, known: int | None = None) -> float:
        """The level to ask the model for, so that its interval has this coverage.

        Parameters
        ----------
        name
            The column.
        level
            The coverage, between 0 and 1.
        known
            How many cells are known; needed with ``by_known`` only.

        Returns
        -------
        float
            1 stands for everything the column can be.

        Examples
        --------
        >>> 0 < model.conformal(held_out, seed=0).adjusted_level("price", 0.8) <= 1
        True
        """
        check_level(level)
        scores = self._scores(name, known)
        rank = math.ceil((len(scores) + 1) * level - 1e-9)
        return 1.0 if rank > len(scores) else float(np.partition(scores, rank - 1)[rank - 1])

    def adjusted_levels(self, levels: Sequence[float] = LEVELS) -> pd.DataFrame:
        """The level to ask for, by variable (and number of known cells, with ``by_known``).

        Parameters
        ----------
        levels
            The coverages.

        Returns
        -------
        DataFrame
            One line a variable, with the number of held-out cells behind it.

        Examples
        --------
        >>> "80%" in model.conformal(held_out, seed=0).adjusted_levels([0.8]).columns
        True
        """
        if not isinstance(levels, list | tuple | np.ndarray):
            raise UserError(f"levels must be a list of numbers, such as [0.8, 0.9], got {levels!r}")
        for level in levels:
            check_level(level)
        lines: list[dict[str, Any]] = []
        schema = self.model.schema
        for name in (schema.names[index] for index in schema.answered if not schema.variables[index].indicates):
            mine = self.known[self.variable == self.model.schema.index(name)]
            for known in np.unique(mine) if self.by_known else [None]:
                line: dict[str, Any] = {"variable": name} | ({} if known is None else {"known": int(known)})
                line["cells"] = len(self._scores(name, known))
                line |= {f"{100 * c:g}%": self.adjusted_level(name, c, known=known) for c in levels}
                lines.append(line)
        return pd.DataFrame(lines)

    def _scores(self, name: str, known: int | None) -> Float[np.ndarray, " some"]:
        mine = self.variable == self.model.schema.asked(name)
        if self.by_known:
            if known is None:
                raise UserError("these levels depend on the number of known cells: give it, as in known=3")
            mine = mine & (self.known == known)
        scores: Float[np.ndarray, " some"] = self.depth[mine]
        return scores

    def _answer(self, evidence: Mapping[str, Any], name: str) -> Answer:
        self._check(evidence)
        return Conditional(self.model, evidence)[name]

    def _check(self, evidence: Collection[str]) -> None:
        if self.given is not None and set(evidence) != set(self.given):
            raise UserError(
                f"the adjustment was made for evidence on {sorted(self.given)}, but {sorted(evidence)} is given; "
                "give just those, or adjust without given="
            )


def conformal(
    model: AnyOrderModel,
    frame: pd.DataFrame,
    *,
    given: Sequence[str] | None = None,
    like: pd.DataFrame | None = None,
    by_known: bool = False,
    seed: int = 0,
    unseen: Unseen = "refuse",
) -> Conformal:
    """Depths of the cells of rows not used in training: at most one a row and variable, so that they are exchangeable.

    ``given``: adjust for evidence on just these columns, and context, using rows that have them all. ``like``: adjust
    for filling this table: a cell of a column is hidden together with what is unknown in a random row of the table that
    lacks that column, so it is asked from as many cells as will be known. With neither, a random number of known cells.
    ``by_known``: a separate adjustment for every number of known cells (needs many rows). A fraction among whole
    numbers is evidence, but never scored.
    """
    if given is not None and like is not None:
        raise UserError("given= and like= both say which questions to adjust for: give only one of them")
    seed = checked_seed(seed)
    values, observed, _ = model.encoding.encode_seen(frame, unseen, model.schema.names)
    scorable = of_columns(model.schema, observed & ~_only_evidence(model, values))
    scorable[:, list(model.schema.context)] = False
    if given is None:
        observed = of_columns(model.schema, observed)  # evidence says nothing of indicators unless it names them
        if like is None:
            known = random_known(observed, np.random.default_rng(seed), model.schema.context)
            asked = scorable & ~known
        else:
            row, known, asked = _as_in(_holes(model, like, unseen), observed, scorable, np.random.default_rng(seed))
            values = values[row]
    else:
        given = [*given, *(name for name in model.schema.context_names if name not in given)]
        columns = [model.schema.index(name) for name in given]
        complete = observed[:, columns].all(axis=1)
        values, scorable = values[complete], scorable[complete]
        known = np.zeros_like(scorable)
        known[:, columns] = True
        asked = scorable & ~known
    cells = score_hidden_cells(model, values, known, asked)
    if not len(cells.row) and like is None:
        raise UserError("the table has no cells to adjust by: all of them are missing or given")
    depth = cells.depth(seed + 1)
    return Conformal(model, cells.variable, cells.known, depth, by_known, None if given is None else tuple(given))


Cells: TypeAlias = Bool[np.ndarray, "rows variables"]


def _holes(
    model: AnyOrderModel, frame: pd.DataFrame, unseen: Unseen
) -> tuple[Float[np.ndarray, "rows variables"], Cells, Cells]:
    """A table that is to be filled: model values, the cells of its columns that are known, and those to be filled."""
    values, observed, strange = model.encoding.encode_seen(frame, unseen, model.schema.names)
    known, wanted = (of_columns(model.schema, cells) for cells in (observed, ~observed & ~strange))
    wanted[:, list(model.schema.context)] = False
    return values, known, wanted


def _as_in(
    table: tuple[Float[np.ndarray, "rows variables"], Cells, Cells],
    observed: Cells,
    scorable: Cells,
    rng: np.random.Generator,
) -> tuple[Int[np.ndarray, " questions"], Cells, Cells]:
    """For every cell that can be scored, a question as in the table: its row, what is known there, and the cell."""
    _, known, wanted = table
    rows, shown, asked = [np.zeros(0, dtype=np.int64)], [observed[:0]], [observed[:0]]
    for index in np.flatnonzero(wanted.any(axis=0)):
        row = np.flatnonzero(scorable[:, index])
        pattern = rng.choice(np.flatnonzero(wanted[:, index]), len(row))
        rows.append(row)
        shown.append(observed[row] & known[pattern])
        asked.append(np.arange(observed.shape[1]) == np.full((len(row), 1), index))
    return np.concatenate(rows), np.concatenate(shown), np.concatenate(asked)


def _only_evidence(model: AnyOrderModel, values: Float[np.ndarray, "rows variables"]) -> Cells:
    """Cells that can be known but never asked: between two points of a lattice."""
    answers = [codec.can_answer(values[:, index]) for index, codec in enumerate(model.encoding.codecs)]
    return ~np.stack(answers, axis=1)
