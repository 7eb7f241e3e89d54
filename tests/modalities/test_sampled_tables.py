"""Fits to tables in many files: what comes from which rows, and that it does not depend on how the table is divided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import anyorder as ao
from anyorder.cli import main
from anyorder.data.parts import PartedTable
from anyorder.errors import UserError
from anyorder.modalities.tables.options import TableOptions
from anyorder.modalities.tables.sampled import SampledTable
from anyorder.support.randomness import row_keys
from anyorder.training.rows import encoded_rows
from anyorder.training.stored_rows import StoredRows
from anyorder.variables.encoding import Encoding

from disks import no_file_above

ROWS = 900
BRIEF: dict[str, Any] = {
    "schema_rows": 300,
    "encoding": "standard",
    "network": {"name": "residual_mlp", "width": 16},
    "training": {"steps": 12, "batch": 64, "minutes": None},
}


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size = rng.normal(0, 1, ROWS)
    frame = pd.DataFrame(
        {
            "size": size,
            "count": pd.array(rng.poisson(np.exp(1 + 0.3 * size)), dtype="Int64"),
            "kind": np.where(size + rng.normal(0, 1, ROWS) > 0, "big", "small"),
            "row": np.arange(ROWS) * 1.5,
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.1)


def divided(folder: Path, count: int, ending: str = ".parquet") -> Path:
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(ROWS), count)):
        part, path = table().iloc[rows], folder / f"part-{number}{ending}"
        part.to_parquet(path, index=False) if ending == ".parquet" else part.to_csv(path, index=False)
    return folder


def sampled(folder: Path, config: dict[str, Any] = BRIEF, seed: int = 0) -> SampledTable:
    return SampledTable.of(PartedTable(folder), TableOptions.read(config), seed, None, False)


def test_the_model_does_not_depend_on_how_the_table_is_divided(tmp_path: Path) -> None:
    one = ao.fit(divided(tmp_path / "1", 1), engine="neural", config=BRIEF, seed=0)
    many = ao.fit(str(divided(tmp_path / "5", 5) / "part-*.parquet"), engine="neural", config=BRIEF, seed=0)
    for name, tensor in one.core.state_dict().items():
        assert torch.equal(tensor, many.core.state_dict()[name])
    facts = many.card["data"]
    assert facts["rows"] == ROWS and facts["parts"] == 5
    assert 250 < facts["schema_rows"] < 350
    assert facts["training_rows"] == pytest.approx(12 * 64, abs=60)  # as many as the steps look at
    assert many.log_prob(table()).notna().all()


def test_samples_are_uniform_nested_and_follow_the_seed(tmp_path: Path) -> None:
    keys = row_keys(0, np.arange(200_000)) / 2.0**64
    counts = np.histogram(keys, 50, (0, 1))[0]
    assert ((counts - 4000) ** 2 / 4000).sum() < 90  # chi-squared with 49 degrees of freedom, beyond 99.97 %
    assert abs(np.corrcoef(keys[:-1], keys[1:])[0, 1]) < 0.01
    assert abs(np.corrcoef(keys, row_keys(1, np.arange(200_000)) / 2.0**64)[0, 1]) < 0.01
    found = sampled(divided(tmp_path / "in", 3))
    position = (table()["row"] / 1.5).to_numpy()[found.numbers]
    known = found.frame["row"].notna().to_numpy()
    np.testing.assert_array_equal(found.frame["row"].to_numpy()[known] / 1.5, position[known])
    assert not np.array_equal(found.numbers, sampled(tmp_path / "in", seed=1).numbers)


def test_stored_rows_are_the_encoded_rows_but_for_those_held_out(tmp_path: Path) -> None:
    everything = {**BRIEF, "training": {"steps": 10**6, "batch": 64, "minutes": None}}
    found = sampled(divided(tmp_path / "in", 4), everything)
    schema = ao.fit(table(), engine="neural", config=BRIEF, seed=0).schema
    encoding = Encoding.fit(found.frame, schema, "normal_scores")
    held_out = [3, 50, 7]
    stored = found.stored(encoding, held_out, None)
    others = np.setdiff1d(np.arange(ROWS), found.numbers[held_out])
    whole = encoded_rows(encoding, table().iloc[others])
    assert len(stored) == len(whole) == ROWS - 3
    index = torch.tensor([5, 0, 700, 5])
    rows, expected = stored.to(torch.device("cpu")).take(index), whole.take(index)
    assert torch.equal(rows.observed, expected.observed)
    assert torch.equal(rows.values, expected.values.where(expected.observed, 0.0))
    assert torch.equal(rows.log_det.where(rows.observed, 0.0), expected.log_det.where(rows.observed, 0.0))


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_small_table_in_parts_is_fitted_as_in_one_file(ending: str, tmp_path: Path) -> None:
    config = {**BRIEF, "schema_rows": 10_000, "folds": 1}
    parts = ao.fit(divided(tmp_path / "in", 3, ending), engine="neural", config=config, seed=0)
    path = tmp_path / f"one{ending}"
    table().to_parquet(path, index=False) if ending == ".parquet" else table().to_csv(path, index=False)
    whole = ao.fit(path, engine="neural", config=config, seed=0)
    assert parts.schema == whole.schema
    assert parts.card["data"]["fingerprint"] == whole.card["data"]["fingerprint"]
    for name, tensor in whole.core.state_dict().items():
        assert torch.equal(tensor, parts.core.state_dict()[name])


def test_texts_of_csv_parts_are_understood_as_in_one_file(tmp_path: Path) -> None:
    found = sampled(divided(tmp_path / "in", 3, ".csv"))
    assert found.frame["size"].dtype == "float64" and len(found.frame) == len(found.numbers)
    stored = found.stored(
        Encoding.fit(found.frame, ao.fit(table(), engine="neural", config=BRIEF, seed=0).schema, "standard"), [], None
    )
    assert float(stored.take(torch.arange(400)).observed.float().mean()) == pytest.approx(0.9, abs=0.03)


def test_a_cell_that_no_schema_row_has_and_a_full_disk_are_said(tmp_path: Path) -> None:
    found = sampled(divided(tmp_path / "in", 2))
    schema = ao.fit(table(), engine="neural", config=BRIEF, seed=0).schema
    encoding = Encoding.fit(found.frame, schema, "standard")
    strange = table().assign(kind="tiny")
    assert not StoredRows(encoding, [strange]).take(torch.arange(9)).observed[:, 2].any()
    with pytest.raises(UserError, match=r"'size'.*schema_rows"):
        StoredRows(encoding, [table().assign(size="large")])
    with no_file_above(2000), pytest.raises(UserError, match="TMPDIR"):
        StoredRows(encoding, [table()])
    with no_file_above(2000), pytest.raises(UserError, match="File too large"):
        sampled(tmp_path / "in")


def test_the_command_fits_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    divided(tmp_path / "sales", 3)
    (tmp_path / "run.toml").write_text(
        'schema_rows = 300\nencoding = "standard"\n[training]\nsteps = 5\nvalidate_every = 5\n', encoding="utf-8"
    )
    assert main(["fit", "sales", "--engine", "neural", "--config", "run.toml"]) == 0
    assert "schema_rows" in capsys.readouterr().out
    assert ao.load("sales.anyorder").card["data"]["parts"] == 3
    assert main(["fit", "sales/*.parquet", "--engine", "neural", "--config", "run.toml"]) == 2
    assert "-o MODEL" in capsys.readouterr().err
    assert main(["fit", "sales", "--report", "page.html"]) == 2
