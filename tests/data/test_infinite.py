"""Infinite numbers stop neither a look nor a fit: they are unknown, counted and said, and come back as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anyorder.data.columns import understand
from anyorder.data.files import read_table
from anyorder.data.look import look
from anyorder.data.tables import prepare
from anyorder.variables.encoding import Encoding


@pytest.mark.parametrize("cells", [[1.5, np.inf, 2.5, -np.inf, np.inf], ["1.5", "inf", "2.5", "-inf", "inf"]])
def test_unknown_and_said(cells: list[object]) -> None:
    frame = pd.DataFrame({"x": cells * 8, "y": np.arange(40.0)})
    found = look(frame)
    assert found.columns[0].missing == 24
    assert "(24 cells) are taken for unknown" in found.columns[0].odd[0]
    with pytest.warns(UserWarning, match="taken for unknown"):
        schema, kept = prepare(frame)
    _, known = Encoding.fit(kept, schema).encode(kept)
    assert known[:5, 0].tolist() == [True, False, True, False, False]


def test_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("ratio,group\n" + "1.5,a\ninf,b\n2.5,a\n-Infinity,b\n" * 10)
    assert look(read_table(tmp_path / "x.csv")).columns[0].missing == 20


def test_a_kind_that_is_declared() -> None:
    with pytest.warns(UserWarning, match="taken for unknown"):
        schema, _ = prepare(pd.DataFrame({"x": [1.5, np.inf, 2.5] * 10}), {"x": "continuous"})
    assert schema["x"].missing == ("inf",)


def test_nothing_else() -> None:
    assert understand("x", pd.Series([np.inf] * 30)).why == "no finite number"
