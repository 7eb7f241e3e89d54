"""What the commands load, read and write; the library itself is imported only when one of them runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anyorder.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from anyorder.modalities.images.model import ImageModel
    from anyorder.modalities.tables.model import TableModel
    from anyorder.modalities.texts.model import TextModel


def load_any(path: Path) -> TableModel | TextModel | ImageModel:
    """The model in that file, whatever it is a model of."""
    if not path.is_file():
        raise UserError(f"there is no model file {str(path)!r}; make one with: anyorder fit TABLE -o MODEL")
    from anyorder.modalities.load import load as load_model

    return load_model(path)


def load(path: Path) -> TableModel:
    """The model of a table in that file."""
    from anyorder.modalities.images.model import ImageModel
    from anyorder.modalities.texts.model import TextModel

    model = load_any(path)
    if isinstance(model, TextModel | ImageModel):
        what = "texts" if isinstance(model, TextModel) else "pictures"
        raise UserError(f"{str(path)!r} is a model of {what}, and this command is about tables; see anyorder --help")
    return model


def read(path: Path, missing: Sequence[str]) -> pd.DataFrame:
    """The table in that file, with these marks for unknown cells."""
    from anyorder.data.files import read_table

    return read_table(path, missing=tuple(missing))


def write(frame: pd.DataFrame, path: Path | None) -> None:
    """To that file, or to standard output."""
    if path is None:
        frame.to_csv(sys.stdout, index=False)
        return
    from anyorder.data.files import write_table

    write_table(frame, path)


def check_names(model: TableModel, names: Iterable[str]) -> None:
    """The schema refuses a name it does not have, with the nearest one it has."""
    for name in names:
        model.schema.index(name)
