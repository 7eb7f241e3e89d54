"""``anyorder fit``: options from the command line and from a file, and what it says at the end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from known_model import KnownModel

from commands import refused, run


def test_options_of_fit(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the file and from the command line, which wins."""
    seen: dict[str, Any] = {}

    class Fitted(KnownModel):
        def save(self, path: Path) -> None:
            path.write_bytes(b"saved")

    def fit(frame: pd.DataFrame, **arguments: Any) -> Fitted:
        seen.update(arguments, rows=len(frame))
        return Fitted()

    monkeypatch.setattr("anyorder.modalities.tables.fit.fit", fit)
    config = tmp_path / "run.toml"
    config.write_text(
        'minutes = 5\nseed = 4\nmissing = ["?"]\ncomponents = 3\n'
        '[kinds]\nrooms = "atoms"\nprice = "integer"\n[training]\nbatch = 8\n',
        encoding="utf-8",
    )
    out = tmp_path / "m.anyorder"
    arguments = ["fit", table, "-o", str(out), "--config", str(config)]
    result = json.loads(
        run(capsys, *arguments, "--seed", "9", "--kind", "price=continuous", "--drop", "river", "--json").out
    )
    assert out.read_bytes() == b"saved"
    assert result["rows"] == 3
    assert seen["minutes"] == 5
    assert seen["seed"] == 9
    assert seen["missing"] == ["?"]
    assert seen["drop"] == ["river"]
    assert seen["kinds"] == {"rooms": "atoms", "price": "continuous"}
    assert seen["config"] == {"components": 3, "training": {"batch": 8}}
    seen.clear()
    run(capsys, "fit", table, "-o", str(out))
    assert seen["minutes"] == 0.5  # a short table
    assert seen["config"] is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('minutes = "ten"', "minutes must be a number"),
        ("minutes = true", "minutes must be a number"),
        ("minutes = -1", "minutes must be a number above 0"),
        (f"minutes = 1{'0' * 400}", "minutes must be a number above 0"),
        ('missing = "?"', "missing must be a list"),
        ("missing = [[1]]", "missing must be a list"),
        ('kinds = ["price"]', "kinds must be a table"),
        ("kinds = {price = 3}", "kinds must be a table"),
        ("seed = 1.5", "seed must be a whole number"),
        ("seed = -1", "seed must be a whole number from 0"),
        ('drop = "price"', "drop must be a list"),
        ("drop = [1]", "drop must be a list"),
        ("device = 3", "device must be a text"),
        ("a = " + "[" * 5000, "nested too deeply"),
    ],
)
def test_wrong_types_in_a_file(
    line: str, says: str, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "run.toml"
    config.write_text(line + "\n", encoding="utf-8")
    said = refused(capsys, "fit", table, "-o", str(tmp_path / "m.anyorder"), "--config", str(config))
    assert says in said
    assert "run.toml" in said


def test_an_interrupted_fit_says_what_it_kept(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Fitted(KnownModel):
        card: Mapping[str, Any] = {"training": {"steps": 31, "interrupted": True}}

        def save(self, path: Path) -> None:
            path.write_bytes(b"saved")

    monkeypatch.setattr("anyorder.modalities.tables.fit.fit", lambda frame, **_: Fitted())
    result = run(capsys, "fit", table, "-o", str(tmp_path / "m.anyorder"), "--json", "--no-summary")
    assert result.err == "anyorder: note: interrupted: kept the best of 31 steps\n"
    json.loads(result.out)


def test_a_model_file_repeats_its_run(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first.anyorder", tmp_path / "second.anyorder"
    rows = pd.DataFrame({"a": np.arange(30.0) ** 1.5, "b": list("xyz") * 10})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "run.toml").write_text("seed = 5\n[training]\nsteps = 20\n")
    run(capsys, "fit", f"{tmp_path}/rows.csv", "-o", str(first), "--config", f"{tmp_path}/run.toml")
    run(capsys, "fit", f"{tmp_path}/rows.csv", "-o", str(second), "--config", str(first))
    scores = [json.loads(run(capsys, "score", str(m), f"{tmp_path}/rows.csv", "--json").out) for m in (first, second)]
    assert scores[0] == scores[1]
