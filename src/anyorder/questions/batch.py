"""Conditionals of many rows at once: p(variable | the known cells of its row), for every row of a frame.

Each row is evidence of its own; its missing cells are unknown and marginalised out. One pass of the network serves
thousands of rows, and every number asked for comes back as one column, or one frame, of the library the rows came in
and with their index. What a row gets is what :class:`~anyorder.questions.answer.Answer` gives for its known cells.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.data.frames import as_pandas
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel, row_chunks
from anyorder.questions.evidence import Missing
from anyorder.questions.far import note_far_rows
from anyorder.questions.row_answers import RowAnswers
from anyorder.support import html
from anyorder.support.advance import tracked
from anyorder.support.memory import check_room
from anyorder.support.notes import note
from anyorder.support.threads import answering
from anyorder.variables.encoding import Unseen
from anyorder.variables.ranges import Between, OneOf


class RowConditionals:
    """p(... | known cells), for every row of a frame.

    Made by :meth:`TableModel.given <anyorder.modalities.tables.model.TableModel.given>` with a frame. Index it by a
    column; where the frame knows that one, it is asked given the others. Ranges and sets are evidence of single
    questions only: ask those one by one.

    Parameters
    ----------
    model
        The ``core`` of a table model.
    frame
        pandas or polars, one row a question; a missing cell, like a column that is not there, is unknown.
    unseen
        ``"missing"`` takes a level that was never seen in training for an unknown cell; ``"refuse"`` is an error.
    like
        The frame whose kind the results have, where it is another.

    Examples
    --------
    >>> rows = model.given(held_out[["rooms", "river"]])
    >>> len(rows) == len(held_out)
    True
    >>> rows["price"].quantile([0.05, 0.95]).shape == (len(held_out), 2)
    True
    """

    def __init__(self, model: AnyOrderModel, frame: Any, unseen: Unseen = "refuse", *, like: Any = None) -> None:
        self.model = model
        self._given = frame if like is None else like
        self._table = as_pandas(frame)
        for name, column in self._table.items():
            if column.dtype == object and (partial := next(filter(_is_partial, column), None)) is not None:
                raise UserError(
                    f"column {name!r} holds {partial!r}: a cell of a frame must be a value or unknown; ask rows with "
                    "ranges, sets or MISSING one by one, as in model.given(age=Between(30, 40))"
                )
        self._values, self._known = model.encoding.encode(self._table, unseen, evidence=model.schema.names)
        note_far_rows(model.encoding, self._values, self._known, stacklevel=4)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"p(... | {len(self)} rows of {', '.join(map(str, self._table.columns))})"

    def _repr_html_(self) -> str:
        schema = self.model.schema
        names = [variable.name for variable in schema.variables if not variable.indicates]
        known = [name for name in names if self._known[:, schema.index(name)].any()]
        others = [name for name in names if name not in known and not schema[name].context]
        facts: list[list[object]] = [
            ["rows", len(self)],
            ["known", ", ".join(known) or "nothing"],
            ["can be asked", ", ".join(others) or "any column, given the others"],
        ]
        return html.titled("Every row by itself", html.table(["", ""], facts))

    def __getitem__(self, name: str) -> RowAnswers:
        """The distributions of one column, one for each row.

        Parameters
        ----------
        name
            The column.

        Returns
        -------
        RowAnswers

        Examples
        --------
        >>> prices = model.given(held_out[["rooms", "river"]])["price"].mean()
        >>> prices.index.equals(held_out.index)
        True
        """
        index = self.model.schema.asked(name)
        known_cells = self._known
        if self._known[:, index].any():
            note(
                f"{name!r} is asked, so its values in the given rows are ignored",
                stacklevel=2,
            )
            known_cells = self._known.copy()
            known_cells[:, [index, self.model.schema.pairs.get(index, index)]] = False  # nor is it known to be there
        values, known = torch.as_tensor(self._values), torch.as_tensor(known_cells)
        features = _features(self.model, values, known, index)
        return RowAnswers(self.model, index, features, self._given, self._table.index)


@answering
@torch.no_grad()
def _features(model: AnyOrderModel, values: Tensor, known: Tensor, index: int) -> Float[Tensor, "rows width"]:
    """The network's features of one variable in every row."""
    size = model.heads.of(index).size
    check_room("rows", len(values), size, "ask for fewer rows at a time")
    parts = [
        model.features_of(values[rows].to(model.device), known[rows].to(model.device), index)[:, :size].cpu()
        for rows in tracked(row_chunks(model, len(values)), len(values))
    ]
    return torch.cat(parts) if parts else torch.zeros(0, size)


def _is_partial(cell: object) -> bool:
    return isinstance(cell, Between | OneOf | Missing)
