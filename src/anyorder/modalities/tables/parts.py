"""Tables in many files, larger than memory: filled, scored, drawn and searched part by part.

See :mod:`anyorder.tasks.parts` for what makes the answers independent of how a table is divided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anyorder.data.parts import PartedTable
from anyorder.errors import UserError
from anyorder.modalities.tables.questions import column_names
from anyorder.modalities.tables.tasks import TableTasks
from anyorder.support.bars import told_by_rows
from anyorder.tasks.anomalies import Anomalies
from anyorder.tasks.part_anomalies import part_anomalies
from anyorder.tasks.parts import PART_ROWS, PartScores, PartsDone, fill_parts, sample_parts, score_parts
from anyorder.variables.encoding import Unseen

FORMATS = {"parquet": ".parquet", "csv": ".csv", "csv.gz": ".csv.gz"}


class TableParts(TableTasks):
    """What a :class:`~anyorder.modalities.tables.model.TableModel` does with tables that do not fit into memory."""

    def fill_files(
        self,
        source: str | Path,
        out: str | Path,
        *,
        draws: int | None = None,
        seed: int = 0,
        unseen: Unseen = "refuse",
        rules: Sequence[str] | None = None,
        missing: Sequence[str] = (),
        escape_formulas: bool = False,
        progress: bool | None = None,
    ) -> PartsDone:
        """Fill the unknown cells of a table in many files, part by part; memory stays that of a few blocks of rows.

        Every part is written whole or not at all, under the name that it has in the source, with a record of what made
        it beside it. Called again after an interruption, it makes only the parts that are not there. The same rows in
        the same order are filled alike to the last bit, however they are divided among files. For a table that fits
        into memory use :meth:`fill <anyorder.modalities.tables.model.TableModel.fill>`.

        Parameters
        ----------
        source
            A folder of Parquet or CSV parts, a pattern such as ``"sales/*.parquet"``, or one file.
        out
            The folder to write to; it is made if it is not there.
        draws
            So many random fills of every row, below each other; a first column ``draw`` numbers them.
        seed
            Decides the draws.
        unseen, rules
            As in :meth:`fill <anyorder.modalities.tables.model.TableModel.fill>`.
        missing
            Further texts that stand for an unknown cell.
        escape_formulas
            In CSV parts, put ``'`` before texts that a spreadsheet would calculate.
        progress
            How far it is, as for :func:`anyorder.fit`.

        Returns
        -------
        PartsDone
            How many rows and parts there are, and how many parts had been made before.

        Examples
        --------
        >>> (folder / "big").mkdir()
        >>> for number in range(3):
        ...     frame.assign(price=None).to_parquet(folder / "big" / f"part-{number}.parquet")
        >>> model.fill_files(folder / "big", folder / "filled").parts
        3
        >>> model.fill_files(folder / "big", folder / "filled").kept
        3
        """
        table = PartedTable(source, (*self.schema.missing, *missing))
        with told_by_rows("filling rows", progress):
            return fill_parts(
                self.core,
                table,
                out,
                draws=draws,
                seed=seed,
                unseen=unseen,
                rules=self._rules(rules),
                escape_formulas=escape_formulas,
            )

    def score_files(
        self,
        source: str | Path,
        out: str | Path | None = None,
        *,
        given: str | Sequence[str] = (),
        orders: int | None = None,
        seed: int = 0,
        unseen: Unseen = "refuse",
        missing: Sequence[str] = (),
        progress: bool | None = None,
    ) -> PartScores:
        """The log-likelihood of the rows of a table in many files: the mean, and in parts that of every row.

        Parameters
        ----------
        source, missing
            As in :meth:`fill_files`.
        out
            The folder for the parts, each with the one column ``log_prob``, whose rows are those of the part of the
            same name; without it nothing is written.
        given
            Columns whose cells are evidence instead of being asked.
        orders, seed, unseen, progress
            As in :meth:`log_prob <anyorder.modalities.tables.model.TableModel.log_prob>`.

        Returns
        -------
        PartScores
            How many rows, their mean in nats and its standard error.

        Examples
        --------
        >>> (folder / "many").mkdir()
        >>> frame.to_parquet(folder / "many" / "part-0.parquet")
        >>> scores = model.score_files(folder / "many")
        >>> bool(abs(scores.mean - model.log_prob(frame).mean()) < 1e-6)
        True
        """
        table = PartedTable(source, (*self.schema.missing, *missing))
        names = column_names("given", given)
        with told_by_rows("scoring rows", progress):
            return score_parts(self.core, table, out, given=names, orders=orders, seed=seed, unseen=unseen)

    def sample_files(
        self,
        n: int,
        out: str | Path,
        *,
        given: Mapping[str, Any] | None = None,
        seed: int = 0,
        holes: bool = False,
        rules: Sequence[str] | None = None,
        part_rows: int = PART_ROWS,
        format: str = "parquet",
        escape_formulas: bool = False,
        progress: bool | None = None,
    ) -> PartsDone:
        """Draw more rows than fit into memory, into a folder of parts.

        The same rows come out whatever ``part_rows`` says; they are other rows than those of :meth:`sample
        <anyorder.modalities.tables.model.TableModel.sample>`, which draws all of them together.

        Parameters
        ----------
        n
            How many.
        out
            The folder to write to.
        given
            What is known, as in :meth:`given <anyorder.modalities.tables.model.TableModel.given>`.
        seed, holes, rules
            As in :meth:`sample <anyorder.modalities.tables.model.TableModel.sample>`.
        part_rows
            How many rows a part has.
        format
            ``"parquet"``, ``"csv"`` or ``"csv.gz"``.
        escape_formulas, progress
            As in :meth:`fill_files`.

        Returns
        -------
        PartsDone

        Examples
        --------
        >>> model.sample_files(50, folder / "drawn", part_rows=20).parts
        3
        """
        if format not in FORMATS:
            raise UserError(f"unknown format {format!r}; expected one of {', '.join(FORMATS)}")
        said: dict[str, Any] = {str(name): repr(value) for name, value in (given or {}).items()}
        if rules is not None:
            said["rules"] = list(rules)
        with told_by_rows("drawing rows", progress):
            return sample_parts(
                self.given(given, rules=rules),
                n,
                out,
                seed=seed,
                holes=holes,
                part_rows=part_rows,
                suffix=FORMATS[format],
                said=said,
                escape_formulas=escape_formulas,
            )

    def anomalies_files(
        self,
        source: str | Path,
        top: int = 10,
        *,
        unseen: Unseen = "refuse",
        missing: Sequence[str] = (),
        progress: bool | None = None,
    ) -> Anomalies:
        """The cells of a table in many files that are least probable given the rest of their rows.

        Parameters
        ----------
        source, missing, progress
            As in :meth:`fill_files`.
        top, unseen
            As in :meth:`anomalies <anyorder.modalities.tables.model.TableModel.anomalies>`.

        Returns
        -------
        Anomalies
            The label of a row is the name of its part and its number in there, from 0: ``"part-3.parquet:17"``.

        Examples
        --------
        >>> odd = held_out.copy()
        >>> odd.loc[odd.index[7], "price"] = 900.0
        >>> odd.to_parquet(folder / "odd.parquet")
        >>> model.anomalies_files(folder / "odd.parquet", top=1)[0].row
        'odd.parquet:7'
        """
        table = PartedTable(source, (*self.schema.missing, *missing))
        with told_by_rows("scoring cells", progress):
            return part_anomalies(self.core, table, top=top, unseen=unseen)
