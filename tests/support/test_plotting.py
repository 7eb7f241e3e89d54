"""Figures are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from anyorder.support.atomic import WriteError
from anyorder.support.plotting import FORMATS, save_figure

from disks import no_file_above

figures = pytest.importorskip("matplotlib.figure")


@pytest.mark.parametrize("ending", FORMATS)
def test_a_figure_that_the_disk_takes_only_half_of_is_not_written(tmp_path: Path, ending: str) -> None:
    figure = figures.Figure(figsize=(2, 2))
    figure.subplots().plot([1, 3, 2])
    target = tmp_path / f"figure{ending}"
    target.write_bytes(b"old")
    with no_file_above(1000), pytest.raises(WriteError, match="cannot write"):
        save_figure(figure, target)
    assert target.read_bytes() == b"old"
    save_figure(figure, target)
    assert len(target.read_bytes()) > 1000
