"""``anyorder check`` on a model of a released file: values never seen, and rows that the model was fitted on."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pandas as pd
import pytest

import anyorder as ao
from anyorder.modalities.tables.fingerprint import fingerprint, warn_if_fitted_on

from commands import refused, run

FILE = str(Path(__file__).parents[1] / "files" / "v1" / "table_trees.anyorder")


@pytest.fixture
def rows() -> pd.DataFrame:
    model = ao.load(FILE)
    assert isinstance(model, ao.TableModel)
    return model.sample(12, seed=3)


def test_values_never_seen(rows: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "rows.csv")
    rows.assign(kind=["oak", *rows["kind"][1:]]).to_csv(path, index=False)
    assert "--unseen missing" in refused(capsys, "check", FILE, path)
    shown = run(capsys, "check", FILE, path, "--unseen", "missing", "--json")
    assert json.loads(shown.out)["rows"] == 12
    assert "treated as unknown: 1 in 'kind'" in shown.err


def test_the_rows_of_the_fit_are_recognised(rows: pd.DataFrame) -> None:
    columns = ["size", "kind"]
    card = {"data": {"rows": len(rows), "columns": columns, "fingerprint": fingerprint(rows[columns])}}
    with pytest.warns(UserWarning, match="fitted on these very rows"):
        warn_if_fitted_on(card, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_fitted_on(card, rows.head(11))
        warn_if_fitted_on(card, rows.assign(size=rows["size"] + 1))
        warn_if_fitted_on(card, rows[["size"]])
        warn_if_fitted_on({}, rows)


def test_check_says_that_it_knows_the_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({"a": [1.5, 2.25, 3.5, 4.0, 5.5, 6.125] * 5, "b": ["x", "y", "x"] * 10})
    table, model = str(tmp_path / "t.csv"), str(tmp_path / "m.anyorder")
    frame.to_csv(table, index=False)
    config = tmp_path / "c.toml"
    config.write_text('engine = "trees"\n', encoding="utf-8")
    run(capsys, "fit", table, "-o", model, "--minutes", "0.01", "--config", str(config))
    assert "fitted on these very rows" in run(capsys, "check", model, table).err


def test_options_by_the_names_they_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = run(capsys, "sample", FILE, "--count", "3").out
    assert run(capsys, "sample", FILE, "--draws", "3").out == drawn
    assert run(capsys, "sample", FILE, "--draws=3").out == drawn
    assert "--draws" not in run(capsys, "sample", "--help").out.replace("-o draws.csv", "")
