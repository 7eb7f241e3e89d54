"""``anyorder fit --context``: columns that every question knows, from the command line to the answer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anyorder import cli

from commands import refused, refused_late, run

OPTIONS = """engine = "neural"
folds = 1
[training]
steps = 5
validation_queries = 20
[network]
name = "residual_mlp"
width = 8
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("context")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 80)).round(3)
    c = (a + b + 0.1 * rng.normal(size=80)).round(3)
    pd.DataFrame({"a": a, "b": b, "c": c, "d": rng.integers(0, 50, 80)}).to_csv(folder / "rows.csv", index=False)
    (folder / "run.toml").write_text(OPTIONS)
    arguments = [
        "fit",
        str(folder / "rows.csv"),
        "-o",
        str(folder / "m.anyorder"),
        "--config",
        str(folder / "run.toml"),
    ]
    assert cli.main([*arguments, "--context", "a, b", "--report", str(folder / "page.html")]) == 0
    return folder / "m.anyorder"


def test_info_and_report_say_who_is_context(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "info", str(model), "--json").out)
    assert [one["name"] for one in found["variables"] if "context" in one] == ["a", "b"]
    assert found["card"]["arguments"]["context"] == ["a", "b"]
    assert "context, always known" in run(capsys, "info", str(model)).out
    assert "continuous, context" in (model.parent / "page.html").read_text(encoding="utf-8")


def test_questions_know_it_or_are_refused(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = str(model.parent / "rows.csv")
    assert json.loads(run(capsys, "ask", str(model), "c | a=1, b=0", "--json").out)
    assert run(capsys, "sample", str(model), "-n", "2", "--given", "a=1, b=0").out.startswith("a,b,c,d")
    assert "ask for" in run(capsys, "next", str(model), "--about", "c", "--given", "a=1, b=0", "--draws", "16").out
    run(capsys, "score", str(model), table)
    for arguments, said in (
        (
            ["ask", str(model), "c | a=1"],
            "not given: 'b'. Give it, as in model.given({'b': ...}) or, at the command line, 'b=...'",
        ),
        (["ask", str(model), "a | b=1"], "'a' is context"),
        (["ask", str(model), "c | a > 1, b=0"], "cannot be given as a range"),
        (["sample", str(model), "-n", "2"], "every question must know"),
        (["predict", str(model), table, "--column", "a"], "'a' is context"),
        (["next", str(model), "--about", "c"], "every question must know"),
        (["interview", str(model), "--about", "a"], "'a' is context"),
        (["interview", str(model), "--about", "c"], "at the command line, 'a=..., b=...'"),
    ):
        assert said in refused(capsys, *arguments)


def test_an_interview_begins_with_the_context_and_keeps_it(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = iter(["tell a=2", "3", "undo", "undo", "undo", "quit"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(said))
    arguments = ["interview", str(model), "--about", "c", "--given", "a=1, b=0", "--draws", "16", "--least", "0"]
    out = run(capsys, *arguments).out
    assert "d? (expected gain" in out
    for line in ("forgotten: d (answered)", "forgotten: what was added (told)", "nothing to undo"):
        assert line in out
    assert out.endswith("known: a=1, b=0\n")


def test_a_wrong_name_is_refused(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["fit", str(model.parent / "rows.csv"), "-o", str(model.parent / "n.anyorder")]
    assert "context: no column 'aa'" in refused_late(capsys, *arguments, "--context", "aa")
