"""Commands on a table in many files: a folder in, a folder out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import anyorder as ao
from anyorder.data.parts import PartedTable
from anyorder.modalities.tables.model import TableModel

from commands import refused, run

MODEL = str(Path(__file__).parents[1] / "files" / "v1" / "table_neural.anyorder")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = ao.load(MODEL).sample(30, seed=0).mask(np.indices((30, 9)).sum(axis=0) % 4 == 0)
    (tmp_path / "in").mkdir()
    for number, start in enumerate((0, 12)):
        rows.iloc[start : start + 18].to_csv(tmp_path / "in" / f"part-{number}.csv", index=False)
    return tmp_path


def test_a_folder_is_filled_scored_and_searched(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "fill", MODEL, "in", "-o", "out").out == "filled 36 rows in 2 parts: out\n"
    again = run(capsys, "fill", MODEL, "in/*.csv", "-o", "out").out
    assert again == "filled 36 rows in 2 parts, 2 of which had been made before: out\n"
    assert "" not in (folder / "out" / "part-0.csv").read_text(encoding="utf-8").splitlines()[1].split(",")
    run(capsys, "fill", MODEL, "in/part-0.csv", "-o", "one", "--draws", "2")
    assert PartedTable("one").rows == 36 and PartedTable("one").names[0] == "draw"
    scores = json.loads(run(capsys, "score", MODEL, "in", "-o", "scores", "--json").out)
    assert scores["rows"] == 36 and scores["parts"] == 2 and scores["kept"] == 0
    said = run(capsys, "score", MODEL, "in").out
    assert said.startswith(f"{scores['mean']:.4f} ± {scores['standard_error']:.4f} nats per row (36 rows)")
    odd = json.loads(run(capsys, "anomalies", MODEL, "in", "--top", "2", "--json").out)
    assert [one["row"].rpartition(":")[0] in ("part-0.csv", "part-1.csv") for one in odd["anomalies"]] == [True] * 2
    assert run(capsys, "sample", MODEL, "-n", "20", "-o", "drawn").out == "drew 20 rows in 1 part: drawn\n"
    assert PartedTable("drawn").rows == 20


@pytest.mark.usefixtures("folder")
def test_what_parts_cannot_do_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "name a folder for them with -o FOLDER" in refused(capsys, "fill", MODEL, "in")
    assert "must be a folder" in refused(capsys, "fill", MODEL, "in", "-o", "out.csv")
    assert "--per-row" in refused(capsys, "score", MODEL, "in", "--per-row")
    assert "score -o" in refused(capsys, "anomalies", MODEL, "in", "--rows")
    held_out = ("--intervals", "i.csv", "--held-out", "in/part-0.csv")
    assert "--intervals" in refused(capsys, "fill", MODEL, "in", "-o", "out", *held_out)
    assert "'in'" in refused(capsys, "fill", MODEL, "in", "-o", "in")
    assert "'nothing/*.csv'" in refused(capsys, "score", MODEL, "nothing/*.csv")


@pytest.mark.usefixtures("folder")
def test_an_interruption_says_how_to_go_on(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TableModel, "fill_files", interrupted)
    said = run(capsys, "fill", MODEL, "in", "-o", "out", status=130).err
    assert "the same command goes on from there" in said
