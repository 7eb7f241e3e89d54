"""Tables: the public face of a fitted model, in the columns and units of the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anyorder.errors import UserError
from anyorder.modalities.card import still_improving
from anyorder.modalities.tables.parts import TableParts
from anyorder.modalities.tables.shown import model_html
from anyorder.variables.encoding import Unseen

MOST_NAMED = 12  # columns that are named in one line


class TableModel(TableParts):
    """A fitted model of a table. Every method speaks in the columns, values and units of that table.

    Made by :func:`anyorder.fit` or :func:`anyorder.load`. A question never changes a model, so many threads may ask
    one.
    """

    modality = "table"
    noun = "a table"

    def __repr__(self) -> str:
        state, names = still_improving(self.card), self.columns
        listed = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
        context = f", {len(self.schema.context)} of them context" if self.schema.context else ""
        return f"TableModel({len(names)} columns{context}: {listed}{state and '; ' + state})"

    def _repr_html_(self) -> str:
        return model_html(self.given(rules=[]), self.card)

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in the order of the table."""
        return [variable.name for variable in self.schema.variables if not variable.indicates]

    def update(
        self,
        frame: Any,
        *,
        minutes: float | None = 0.5,
        seed: int = 0,
        config: Mapping[str, Any] | None = None,
        unseen: Unseen = "refuse",
        progress: bool | None = None,
    ) -> TableModel:
        """Another model, which has learned from new rows as well; this one stays as it is.

        The model does not keep the rows it was fitted to. So it becomes one member of a blend: linear experts and trees
        of the new rows stand beside it, and its own networks, trained further on them; new rows that none of these has
        seen weigh them all. A quarter of the new rows judges: where the change gains no more than its error there, the
        result answers as before. Every update makes the model larger. Where all rows are at hand, a new fit is better;
        where there are new columns or levels, it is needed.

        Parameters
        ----------
        frame
            New rows, 24 or more, with the columns of the model; missing cells, and columns that are not there, are
            unknown.
        minutes
            The most time to take; None for what ``config`` says.
        seed
            Decides which rows judge, and the growth of trees.
        config
            Further options, as for :func:`anyorder.fit`.
        unseen
            ``"missing"`` takes a level that was never seen for an unknown cell; ``"refuse"`` is an error.
        progress
            How far it is, as for :func:`anyorder.fit`.

        Returns
        -------
        TableModel
            Its card has an entry more in ``updates``: when, how many rows, the scores before and after.

        Examples
        --------
        >>> dearer = held_out.assign(price=held_out["price"] + 20)
        >>> brief = {"training": {"steps": 10, "minutes": None}, "trees": {"rounds": 5}}
        >>> newer = model.update(dearer, minutes=None, config=brief, seed=0)
        >>> newer.card["updates"][-1]["taken"]
        True
        >>> bool(newer.log_prob(dearer).mean() > model.log_prob(dearer).mean())
        True
        """
        from anyorder.modalities.tables.update import update  # it makes models, and so needs this class

        return update(self, frame, minutes=minutes, seed=seed, config=config, unseen=unseen, progress=progress)

    def _check(self) -> None:
        if not isinstance(said := self.card.get("arguments", {}).get("rules", []), list):
            raise UserError(f"arguments.rules: expected a list, got {said!r:.80}")
        self._rules(None)
