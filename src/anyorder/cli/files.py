"""Files that the commands read and write: models, tables, bytes. The library is imported only when a command runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from anyorder.errors import UserError
from anyorder.support.atomic import atomic_path

if TYPE_CHECKING:
    import pandas as pd

    from anyorder.modalities.images.model import ImageModel
    from anyorder.modalities.tables.model import TableModel
    from anyorder.modalities.texts.model import TextModel
    from anyorder.variables.schema import Schema


def load_any(path: Path) -> TableModel | TextModel | ImageModel:
    """The model in that file, whatever it is a model of."""
    if not os.path.isfile(path):  # also of a name that is too long
        raise UserError(f"no such model file: {str(path)!r}; make one with: anyorder fit TABLE -o MODEL")
    from anyorder.modalities.load import load as load_model

    return load_model(path)


def load_table_model(path: Path) -> TableModel:
    """The model in that file, which must be one of a table."""
    model = load_any(path)
    if model.modality != "table":
        raise UserError(
            f"{str(path)!r} is a model of {model.noun}, but this command is for models of tables; see anyorder --help"
        )
    return cast("TableModel", model)


def read_frame(path: Path, missing: Sequence[str]) -> pd.DataFrame:
    """The table in that file, with these marks for unknown cells."""
    from anyorder.data.files import read_table

    return read_table(path, missing=tuple(missing))


def write_frame(
    frame: pd.DataFrame,
    path: Path | None,
    *,
    escape_formulas: bool = False,
    like: pd.DataFrame | None = None,
    schema: Schema | None = None,
) -> None:
    """Write a table to that file, or as CSV to standard output; in the dialect of ``like``, else in its own.

    With ``schema`` numbers are written as the file wrote them that the model was fitted on (12.50, 64,3), in texts.
    """
    from anyorder.data.files import PARQUET_SUFFIXES, write_table
    from anyorder.data.written import as_written

    if schema is not None and (path is None or path.suffix.lower() not in PARQUET_SUFFIXES):
        frame = as_written(frame, schema, like)
    write_table(frame, "-" if path is None else path, escape_formulas=escape_formulas, like=like)


def read_bytes(path: Path) -> bytes:
    """What is in that file."""
    if not os.path.isfile(path):
        raise UserError(f"no such file: {str(path)!r}")
    return path.read_bytes()


def write_bytes(data: bytes, path: Path) -> None:
    """Write the file whole or not at all."""
    with atomic_path(path) as beside:
        beside.write_bytes(data)


def check_names(model: TableModel, names: Iterable[str]) -> None:
    """Refuse a name that the model does not have, with the nearest one it has."""
    for name in names:
        model.schema.index(name)
