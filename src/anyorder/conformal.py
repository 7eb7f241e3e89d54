r"""Conformal adjustment: intervals with a coverage that holds however wrong the model is.

Split conformal prediction on the model's own scale (distributional conformal prediction, Chernozhukov, Wüthrich and Zhu
2021). The score of a held-out cell is its depth: the least level whose central interval holds it
(:mod:`anyorder.judged`). With n scores $d_{(1)} \le \dots \le d_{(n)}$ of a variable, the model is asked for the
interval of level

$$\hat c = d_{(k)}, \quad k = \lceil (n + 1) c \rceil,
\qquad\text{so that}\qquad c \le P(x \in I_{\hat c}) \le c + \tfrac{1}{n + 1}.$$

(The upper bound for continuous variables.) It holds on average over rows that are exchangeable with the held-out ones,
asked questions of the same sort: a random number of known cells, or just the columns named in ``given``. It is no
promise for one evidence set out of the mixture; `by_known` makes it hold for each number of known cells, ``given``
for one question. Where n is too small for the level ($k > n$) the honest interval is everything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from anyorder.answer import Answer
from anyorder.calibration import LEVELS
from anyorder.conditional import Conditional
from anyorder.encoding import Unseen
from anyorder.errors import UserError
from anyorder.judged import has_order, judge, random_known
from anyorder.missingness import of_columns
from anyorder.model import AnyOrderModel
from anyorder.schema import Kind


@dataclass(frozen=True)
class Conformal:
    """A model with the depths of held-out cells, from which honest levels are read."""

    model: AnyOrderModel
    variable: Int[np.ndarray, " cells"]
    known: Int[np.ndarray, " cells"]
    depth: Float[np.ndarray, " cells"]
    by_known: bool = False
    given: tuple[str, ...] | None = None

    def interval(self, evidence: Mapping[str, Any], name: str, level: float = 0.9) -> tuple[Any, Any]:
        """The adjusted central interval of a number or time given ``evidence``; infinite if too little is known."""
        answer = self._answer(evidence, name)
        if not has_order(answer.variable):
            raise UserError(f"the levels of {name!r} have no order, so no interval; ask for levels()")
        asked = self.adjusted_level(name, level, known=len(evidence))
        if answer.variable.levels:
            low, high = answer.quantile([(1 - asked) / 2, (1 + asked) / 2])
            return low, high
        if asked >= 1:
            time = answer.variable.kind is Kind.DATETIME
            return (pd.Timestamp.min, pd.Timestamp.max) if time else (-math.inf, math.inf)
        return answer.interval(asked)

    def levels(self, evidence: Mapping[str, Any], name: str, level: float = 0.9) -> list[Any]:
        """The adjusted set of likeliest levels given ``evidence``, likeliest first."""
        probabilities = self._answer(evidence, name).probs()
        asked = self.adjusted_level(name, level, known=len(evidence))
        ranked = sorted(probabilities, key=lambda each: -probabilities[each])
        ahead = np.cumsum([0.0, *(probabilities[each] for each in ranked)])[:-1]
        # A level belongs to the set if some part of its mass lies below the asked level.
        return [each for each, mass in zip(ranked, ahead, strict=True) if mass <= asked]

    def intervals(self, frame: pd.DataFrame, level: float = 0.9, *, unseen: Unseen = "refuse") -> pd.DataFrame:
        """The adjusted interval of every unknown cell given the known cells of its row: one line a cell.

        Columns: ``row`` (its label in the index), ``column``, ``low`` and ``high``; for levels without an order these
        are empty and ``levels`` lists the set, likeliest first.
        """
        _, observed, strange = self.model.encoding.encode_seen(frame, unseen, self.model.schema.names)
        wanted = of_columns(self.model.schema, ~observed & ~strange)
        names = self.model.schema.names
        lines: list[dict[str, Any]] = []
        for row in np.flatnonzero(wanted.any(axis=1)):
            cells = of_columns(self.model.schema, observed[row : row + 1])[0]
            evidence = {names[place]: frame[names[place]].iloc[row] for place in np.flatnonzero(cells)}
            for place in np.flatnonzero(wanted[row]):
                line: dict[str, Any] = {"row": frame.index[int(row)], "column": names[place]}
                if has_order(self.model.schema.variables[place]):
                    low, high = self.interval(evidence, names[place], level)
                    lines.append({**line, "low": low, "high": high, "levels": None})
                else:
                    found = self.levels(evidence, names[place], level)
                    lines.append({**line, "low": None, "high": None, "levels": found})
        return pd.DataFrame(lines, columns=["row", "column", "low", "high", "levels"])

    def adjusted_level(self, name: str, level: float, *, known: int | None = None) -> float:
        """The level to ask the model for, so that its interval holds with probability ``level``; 1 = everything."""
        if not 0 < level < 1:
            raise UserError(f"the level of an interval lies between 0 and 1, got {level!r}")
        scores = self._scores(name, known)
        rank = math.ceil((len(scores) + 1) * level - 1e-9)
        return 1.0 if rank > len(scores) else float(np.partition(scores, rank - 1)[rank - 1])

    def adjusted_levels(self, levels: Sequence[float] = LEVELS) -> pd.DataFrame:
        """For every variable (and number of known cells, with ``by_known``): cells, and the level to ask for each."""
        lines: list[dict[str, Any]] = []
        for name in (variable.name for variable in self.model.schema.variables if not variable.indicates):
            mine = self.known[self.variable == self.model.schema.index(name)]
            for known in np.unique(mine) if self.by_known else [None]:
                line: dict[str, Any] = {"variable": name} | ({} if known is None else {"known": int(known)})
                line["cells"] = len(self._scores(name, known))
                line |= {f"{100 * c:g}%": self.adjusted_level(name, c, known=known) for c in levels}
                lines.append(line)
        return pd.DataFrame(lines)

    def _scores(self, name: str, known: int | None) -> Float[np.ndarray, " some"]:
        mine = self.variable == self.model.schema.index(name)
        if self.by_known:
            if known is None:
                raise UserError("these levels are by the number of known cells: name it, as in known=3")
            mine = mine & (self.known == known)
        scores: Float[np.ndarray, " some"] = self.depth[mine]
        return scores

    def _answer(self, evidence: Mapping[str, Any], name: str) -> Answer:
        if self.given is not None and set(evidence) != set(self.given):
            raise UserError(
                f"the adjustment was made for evidence on {sorted(self.given)}, but {sorted(evidence)} is given; "
                "give just those, or adjust without given="
            )
        return Conditional(self.model, evidence)[name]


def conformal(
    model: AnyOrderModel,
    frame: pd.DataFrame,
    *,
    given: Sequence[str] | None = None,
    by_known: bool = False,
    seed: int = 0,
) -> Conformal:
    """Depths of the cells of rows not used in training: at most one a row and variable, so that they are exchangeable.

    ``given``: adjust for evidence on just these columns, using rows that have them all; otherwise a random number of
    known cells. ``by_known``: a separate adjustment for every number of known cells (needs many rows).
    """
    values, observed = model.encoding.encode(frame)
    if given is None:
        observed = of_columns(model.schema, observed)  # evidence says nothing of indicators unless it names them
        known = random_known(observed, np.random.default_rng(seed))
    else:
        columns = [model.schema.index(name) for name in given]
        complete = observed[:, columns].all(axis=1)
        values, observed = values[complete], observed[complete]
        known = np.zeros_like(observed)
        known[:, columns] = True
    cells = judge(model, values, known, of_columns(model.schema, observed & ~known))
    if not len(cells.row):
        raise UserError("no row of the table has cells to adjust by: every one is missing or given")
    depth = cells.depth(seed + 1)
    return Conformal(model, cells.variable, cells.known, depth, by_known, None if given is None else tuple(given))
