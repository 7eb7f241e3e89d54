"""Records of calls: what a resumed file says, and what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import typer

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from common import ROOT, Record, command, listed


def test_a_resumed_file_keeps_the_record_of_every_call(tmp_path: Path) -> None:
    path, options = tmp_path / "x.json", {"minutes": 1.0}
    first = Record(path)
    assert first.earlier(options, "by_row") == {}
    first.write({"title": "t", "details": {"options": options, "by_row": {"a": {"run": first.number}}}})
    second = Record(path)
    found = second.earlier(options, "by_row")
    found["b"] = {"run": second.number}
    second.write({"title": "t", "details": {"options": options, "by_row": found}})
    second.write({"title": "t", "details": {"options": options, "by_row": found}})  # after every part: still one call
    content = json.loads(path.read_text(encoding="utf-8"))
    assert len(content["runs"]) == 2 and content["details"]["by_row"] == {"a": {"run": 0}, "b": {"run": 1}}
    assert list(content)[:2] == ["title", "runs"]


def test_figures_of_other_options_or_unknown_origin_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    Record(path).write({"details": {"options": {"minutes": 1.0}, "by_row": {}}})
    with pytest.raises(typer.BadParameter, match="give the same, or another"):
        Record(path).earlier({"minutes": 2.0}, "by_row")
    path.write_text('{"details": {"options": {}, "by_row": {}}}', encoding="utf-8")
    with pytest.raises(typer.BadParameter, match="does not say which calls"):
        Record(path).earlier({}, "by_row")


def test_nothing_is_written_without_a_file_and_no_half_of_one(tmp_path: Path) -> None:
    Record(None).write({"rows": []})
    path = tmp_path / "x.json"
    with pytest.raises(ValueError, match="not JSON compliant"):
        Record(path).write({"value": float("nan")})
    assert not list(tmp_path.iterdir())


def test_a_smoke_run_leaves_the_committed_results_alone() -> None:
    record = Record(None, "tables_small.json", smoke=True)
    assert record.path is not None and not record.path.is_relative_to(ROOT)
    assert not record.beside(Path("docs/images/x.png")).is_relative_to(ROOT)
    assert record.beside(Path("build/models")).is_dir()


def test_the_command_is_as_it_was_run_without_foreign_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = ROOT / "benchmarks" / "tables_small.py"
    monkeypatch.setattr(sys, "argv", [str(script), "--sets", "breast cancer", "--json", str(tmp_path / "x.json")])
    assert command() == "python benchmarks/tables_small.py --sets 'breast cancer' --json .../x.json"


def test_listed_names_what_there_is() -> None:
    assert listed("", ("a", "b")) == ["a", "b"] and listed(" b ; a", ("a", "b"), ";") == ["b", "a"]
    with pytest.raises(typer.BadParameter, match="unknown: c; there are a, b"):
        listed("c", ("a", "b"))
