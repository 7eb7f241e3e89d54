"""Commands on files as people have them: what was skipped is noted, and what is written looks like what was read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anyorder.modalities.tables.model import TableModel

from commands import refused, run
from models import gaussian_model

ODD = "Our rows\r\n\r\nv0;v1;größe\r\n9,5;1;ä\r\n;2;ö\r\n0;;ü\r\nTotal;3;\r\n".encode("cp1252")
FILLED = "v0;v1;größe\r\n9,5;1;ä\r\n1,2;2;ö\r\n0,0;0;ü\r\n".encode("cp1252")


@pytest.fixture
def model() -> TableModel:
    """v0 and v1 standard normal with correlation 0.6."""
    return TableModel(gaussian_model(np.zeros(2), np.array([[1.0, 0.6], [0.6, 1.0]])), {})


@pytest.fixture
def folder(model: TableModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    model.save(tmp_path / "m.anyorder")
    (tmp_path / "odd.csv").write_bytes(ODD)
    return tmp_path


def test_fill_writes_what_it_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "fill", "m.anyorder", "odd.csv", "-o", "filled.csv")
    assert (folder / "filled.csv").read_bytes() == FILLED
    notes = said.err.splitlines()
    assert all(note.startswith("anyorder: note: 'odd.csv'") for note in notes[:3])
    assert "as in 'odd.csv#encoding=cp1250'" in notes[0]
    assert [word in said.err for word in ("Windows-1252", "'Our rows'", "'Total 3'")] == [True] * 3
    run(capsys, "fill", "m.anyorder", "odd.csv", "-o", "filled.tsv")
    assert (folder / "filled.tsv").read_bytes() == FILLED.replace(b";", b"\t")
    drawn = run(capsys, "fill", "m.anyorder", "odd.csv", "--draws", "2").out
    assert drawn.startswith("draw;v0;v1;größe\n0;9,5;1")
    (folder / "known.csv").write_bytes(b"v0;v1\n0;1,5\n")
    predicted = run(capsys, "predict", "m.anyorder", "known.csv", "--column", "v0", "--quantiles", "0.5").out
    assert predicted.startswith("v0;v0 0.5\n0,8999")


def test_decompress_writes_what_compress_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("constriction")
    plain = "v0;v1;größe\r\n9,5;1;ä\r\n2;;ö\r\n".encode("cp1252")
    (folder / "t.csv").write_bytes(plain)
    run(capsys, "compress", "m.anyorder", "t.csv#header=1", "-o", "t.packed")
    run(capsys, "decompress", "m.anyorder", "t.packed", "-o", "again.csv")
    assert (folder / "again.csv").read_bytes().replace(b"2,0;", b"2;") == plain


def test_what_is_said_behind_the_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bare.csv").write_text("1,2\n3,4\n", encoding="utf-8")
    (folder / "named.csv").write_text("names:\nv0,v1\n1,2\n3,4\n", encoding="utf-8")
    assert run(capsys, "score", "m.anyorder", "named.csv#header=2").err == ""
    assert "2 rows" in run(capsys, "score", "m.anyorder", "named.csv").out
    assert "would overwrite" in refused(capsys, "fill", "m.anyorder", "named.csv#header=2", "-o", "named.csv")
    assert "after # expected one of" in refused(capsys, "score", "m.anyorder", "bare.csv#head=0")


def test_files_in_place_of_frames(folder: Path, model: TableModel) -> None:
    (folder / "t.csv").write_text("v0,v1\n9,1\n,2\n0,?\n", encoding="utf-8")
    frame = pd.DataFrame({"v0": [9.0, np.nan, 0.0], "v1": [1.0, 2.0, np.nan]})
    (folder / "u.csv").write_text("v0;v1\n9;1\n;2\n0;\n", encoding="utf-8")
    pd.testing.assert_frame_equal(model.fill("u.csv"), model.fill(frame), check_dtype=False)
    assert model.log_prob("u.csv").tolist() == model.log_prob(frame).tolist()
    assert model.predict(Path("u.csv"), "v0").tolist() == model.predict(frame, "v0").tolist()
    assert len(model.anomalies("u.csv")) == len(model.anomalies(frame))
    assert model.surprise("u.csv").shape == (3, 2)
