"""Paths that are none: refused in words, wherever a user may give one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import anyorder as ao
from anyorder.data.files import read_table, write_table
from anyorder.errors import UserError
from anyorder.support.atomic import atomic_path, check_place
from anyorder.training.curves import curves_to

FILE = Path(__file__).resolve().parents[1] / "files" / "v1" / "table_neural.anyorder"
NONE = ["x" * 300, "a\0b", None, 5, b"a"]


def written(path: Any) -> None:
    with atomic_path(path):
        pass


@pytest.mark.parametrize("path", NONE, ids=["too long", "null", "None", "number", "bytes"])
@pytest.mark.parametrize(
    "use",
    [
        written,
        check_place,
        ao.load,
        lambda path: ao.load(FILE).save(path),
        lambda path: read_table(path if path != "x" * 300 else path + ".csv"),
        lambda path: write_table(pd.DataFrame({"a": [1]}), path if path != "x" * 300 else path + ".csv"),
        lambda path: curves_to(path if path is not None else 1, None),
    ],
    ids=["atomic_path", "check_place", "load", "save", "read_table", "write_table", "curves_to"],
)
def test_what_cannot_be_a_path_is_refused(
    use: Callable[[Any], object], path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError):
        use(path)
    assert not list(tmp_path.iterdir())
