"""``anyorder fit TABLE`` alone: where the model goes, what is said, the page, and commands that can be pasted."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import anyorder as ao

from commands import refused, run

CONFIG = "[training]\nsteps = 10\n[trees]\nrounds = 3\n"

SECTIONS = [
    "Columns",
    "How well each column can be predicted from the others",
    "What depends on what",
    "Does the model know how much it knows?",
    "What is surprising",
    "Examples of answers",
    "Explore it",
    "Worth asking next",
]


def read_page(path: Path) -> tuple[str, ElementTree.Element]:
    """A page without its pictures and scripts, and the tree of its elements, which must be well-formed."""
    page = re.sub(r'base64,[^"]*|<script.*?</script>', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return page, ElementTree.fromstring(re.sub(r"<!doctype html>|<meta[^>]*>|<img[^>]*>", "", page))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table as people have them, and options that make a fit brief."""
    rng = np.random.default_rng(0)
    rooms = rng.integers(1, 8, 120)
    frame = pd.DataFrame(
        {
            "id": [f"C{number:05d}" for number in range(120)],
            "price": [f"${price:,.2f}" for price in 20_000 * rooms + rng.normal(0, 4_000, 120) + 30_000],
            "rooms <b>": rooms,
            "joined": pd.date_range("2024-01-01", periods=120).strftime("%d/%m/%Y"),
            "mood": rng.choice(["low", "medium", "high"], 120),
        }
    )
    frame.loc[3:5, "price"] = None
    frame.to_csv(tmp_path / "homes.csv", index=False)
    (tmp_path / "run.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_argument_is_enough(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The model lies beside the table; every command that is proposed can be typed; the page holds all parts."""
    said = run(capsys, "fit", "homes.csv", "--config", "run.toml", "--report", "report.html")
    assert "anyorder: note: left out of the model: 'id'" in said.err
    assert "anyorder: reading 4 columns of 120 rows: 2 numbers, 1 date, 1 ordered; 1 left out" in said.err
    assert ao.load("homes.anyorder").schema.names == ("price", "rooms <b>", "joined", "mood")
    for part in ("How well each column can be predicted", "off by $", "What is surprising", "Worth asking next"):
        assert part in said.out
    commands = re.findall(r"^  (anyorder .*)$", said.out, flags=re.M)
    assert [shlex.split(line)[1] for line in commands] == ["ask", "fill", "next"]
    for line in commands:
        run(capsys, *shlex.split(line)[1:])
    assert pd.read_csv("homes_filled.csv")["price"].notna().all()
    page, root = read_page(folder / "report.html")
    assert [heading.text for heading in root.iter("h2")] == SECTIONS
    assert len(list(root.iter("svg"))) > 4
    assert "<b>" not in page and "://" not in page
    # Another fit replaces its own model, and the summary is in the JSON.
    again = run(capsys, "fit", "homes.csv", "--config", "run.toml", "--engine", "trees", "--json")
    told = json.loads(again.out)
    assert told["summary"]["rows"] == 120 and told["model"] == "homes.anyorder"
    assert "reading" not in again.err


def test_a_page_about_a_table_that_was_learned_whole(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pd.read_csv("homes.csv").head(30).to_csv("few.csv", index=False)
    said = run(capsys, "fit", "few.csv", "--config", "run.toml", "--engine", "trees", "--report", "few.html")
    assert "not known: the table is so short that every row was used for training" in said.out
    page, root = read_page(folder / "few.html")
    assert [heading.text for heading in root.iter("h2")] == SECTIONS
    assert page.count("every row was used for training") == 2


def test_no_summary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "fit", "homes.csv", "--config", "run.toml", "--no-summary", "--engine", "trees")
    assert "How well" not in said.out
    told = run(capsys, "fit", "homes.csv", "--config", "run.toml", "--no-summary", "--engine", "trees", "--json")
    assert "summary" not in json.loads(told.out)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".2024.csv"])
def test_the_model_lies_beside_its_table(ending: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sub").mkdir()
    pd.read_csv("homes.csv").to_csv(folder / "sub" / f"data{ending}", index=False)
    line = ["fit", f"sub/data{ending}", "--config", "run.toml", "--no-summary", "--engine", "trees"]
    run(capsys, *line)
    assert (folder / "sub" / f"data{'.2024' if '2024' in ending else ''}.anyorder").is_file()


def test_a_file_that_was_not_named_is_not_written_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "homes.anyorder").write_text("mine")
    assert "not a model of a table: choose another file with -o" in refused(capsys, "fit", "homes.csv")
    assert (folder / "homes.anyorder").read_text() == "mine"
    other = pd.DataFrame({"a": np.arange(30.0) ** 1.5, "b": list("xyz") * 10})
    ao.fit(other, engine="trees", config={"trees": {"rounds": 2}}).save(folder / "homes.anyorder")
    before = (folder / "homes.anyorder").read_bytes()
    assert "a model of another table (with a column 'a')" in refused(capsys, "fit", "homes.csv")
    assert (folder / "homes.anyorder").read_bytes() == before


def test_a_table_without_a_name_needs_a_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "-o MODEL" in refused(capsys, "fit", "-")
    assert "-o" in refused(capsys, "fit-text", "homes.csv")


def test_a_summary_that_fails_costs_no_model(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("of no use")

    monkeypatch.setattr("anyorder.modalities.tables.summary.summary_of", broken)
    said = run(capsys, "fit", "homes.csv", "--config", "run.toml", "--engine", "trees")
    assert "the model is saved, but there is no summary: of no use" in said.err
    assert (folder / "homes.anyorder").is_file()
