"""A table whose holes were filled: how sure each filled cell is, and the table in any type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from fastapi.responses import Response
from numpy.typing import NDArray

from anyorder.questions.batch import RowConditionals
from anyorder.questions.units import shown
from anyorder.serve import tables
from anyorder.serve.models import Served
from anyorder.serve.service import as_json
from anyorder.support.plain import plain
from anyorder.variables.schema import Kind, Schema, Variable


@dataclass(frozen=True)
class Filled:
    """The filled table, the one that came in, and the type in which it is wanted."""

    table: pd.DataFrame
    like: pd.DataFrame
    schema: Schema
    kind: str
    notes: list[str] = field(default_factory=list)
    sure: list[dict[str, Any]] | None = None

    def response(self, kind: str | None = None) -> Response:
        """The table as an answer of that type."""
        kind = kind or self.kind
        if kind != tables.JSON:
            content = tables.table_bytes(self.table, kind, like=self.like, schema=self.schema)
            return tables.binary(content, kind, self.notes)
        sure = {} if self.sure is None else {"filled": self.sure}
        return Response(as_json({**tables.rows_of(self.table), **sure, "notes": self.notes}), media_type=tables.JSON)

    @property
    def size(self) -> int:
        """About how many bytes it holds."""
        frames = sum(int(frame.memory_usage(deep=True).sum()) for frame in (self.table, self.like))
        return frames + 500 * len(self.sure or ())


def certainties(served: Served, frame: pd.DataFrame, filled: pd.DataFrame, unseen: Any) -> list[dict[str, Any]]:
    """How sure every filled cell is, column by column, those that the table did not have among them.

    Of a level it is its probability; of a number or a time, one minus the width of its central 90 % by that with
    nothing known.
    """
    model, found = served.model, []
    for column in model.columns:
        variable = model.schema[column]
        empty = frame[column].isna().to_numpy() if column in frame.columns else np.ones(len(frame), dtype=bool)
        holes = np.flatnonzero(empty & filled[column].notna().to_numpy())
        if not len(holes) or variable.context:
            continue
        others = frame.drop(columns=column, errors="ignore").iloc[holes]
        rows = RowConditionals(model.core, others, unseen)[column]
        ends: list[dict[str, Any]] = [{} for _ in holes]
        if variable.levels:
            sure = rows.probs().to_numpy().max(axis=1)
        else:
            low, high = (rows.quantile(level) for level in (0.05, 0.95))
            width, before = _measured(variable, high) - _measured(variable, low), _width_before(served, variable)
            sure = np.where(width < before, 1 - width / before, 0.0) if before > 0 else np.ones(len(holes))
            ends = [{"low": plain(a), "high": plain(b)} for a, b in zip(low, high, strict=True)]
        for at, certainty, two in zip(holes.tolist(), sure.tolist(), ends, strict=True):
            value = filled[column].iloc[at]
            cell = {"row": at, "column": column, "value": plain(value), "written": shown(variable, value)}
            found.append({**cell, **two, "certainty": certainty})
    return found


def _width_before(served: Served, variable: Variable) -> float:
    """How wide the central 90 % are with nothing known; where there is context, how wide the axis is."""
    prior = served.prior.get(variable.name)
    if prior is None:
        edges = served.marginals.axes[variable.name].edges
        return float(edges[-1] - edges[0])
    low, high = _measured(variable, pd.Series([prior.low, prior.high]))
    return float(high - low)


def _measured(variable: Variable, column: Any) -> NDArray[np.float64]:
    """Numbers, or days since 1970."""
    if variable.kind is not Kind.DATETIME:
        return np.asarray(column.to_numpy(dtype=float))
    times = pd.to_datetime(column, utc=True)
    return np.asarray((times - pd.Timestamp(0, tz="UTC")).dt.total_seconds().to_numpy() / 86400)
