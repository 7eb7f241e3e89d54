"""The benchmarks page: what it says about how old a result is, with and without a history."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS.parent / "benchmarks" / "results"


@pytest.fixture(autouse=True)
def _docs_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))


def git(root: Path, *arguments: str) -> str:
    who = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", root, *who, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A package with a network and a head, a script that times the network, and its result."""
    git(tmp_path, "init", "-q")
    body = "\n".join(f"value_{line} = {line}" for line in range(40))
    for name in ("networks/mlp.py", "heads/normal.py"):
        path = tmp_path / "src" / "anyorder" / name
        path.parent.mkdir(parents=True)
        path.write_text(f"from there import that\n{body}\n", encoding="utf-8")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "speed.py").write_text(f'TIMES = ("networks",)\n{body}\n', encoding="utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def recorded(project: Path) -> dict[str, object]:
    head = git(project, "rev-parse", "HEAD")[:12]
    return {"runs": [{"commit": head, "command": "python benchmarks/speed.py --smoke"}]}


def test_only_code_that_is_timed_makes_a_result_old(project: Path) -> None:
    from result_age import changed_since

    content = recorded(project)
    commit = content["runs"][0]["commit"]  # type: ignore[index]
    (project / "src/anyorder/heads/normal.py").write_text("changed = True\n", encoding="utf-8")
    git(project, "commit", "-q", "-am", "another package")
    assert changed_since(commit, content, project) == "The code it times has not changed since."


def test_moves_and_imports_are_no_change_and_other_lines_are_counted(project: Path) -> None:
    from result_age import _changes, changed_since

    content = recorded(project)
    commit = content["runs"][0]["commit"]  # type: ignore[index]
    old, new = project / "src/anyorder/networks/mlp.py", project / "src/anyorder/networks/parts/dense.py"
    new.parent.mkdir()
    text = old.read_text(encoding="utf-8").replace("from there import that", "# why\nfrom elsewhere import that")
    old.unlink()
    new.write_text(text, encoding="utf-8")
    git(project, "mv", "benchmarks/speed.py", "benchmarks/network_speed.py")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "move")
    assert changed_since(commit, content, project) == "The code it times has not changed since."
    new.write_text(text.replace("value_3 = 3\n", "value_3 = 4\nvalue_x = 1\n"), encoding="utf-8")
    git(project, "commit", "-q", "-am", "change")
    _changes.cache_clear()
    said = "The code it times has changed since: 3 lines (3 in networks)."
    assert changed_since(commit, content, project) == said


def test_a_file_without_a_record_is_dated_by_the_commit_that_first_had_it(project: Path) -> None:
    from result_age import _first_commits, commits_of

    path = project / "benchmarks" / "speed.json"
    path.write_text('{"rows": []}', encoding="utf-8")
    assert commits_of(path, {}, project) == []
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "result")
    first = git(project, "rev-parse", "HEAD")[:12]
    git(project, "mv", "benchmarks/speed.json", "benchmarks/renamed.json")
    git(project, "commit", "-q", "-m", "rename")
    _first_commits.cache_clear()
    assert commits_of(project / "benchmarks" / "renamed.json", {}, project) == [first]


def test_without_a_history_the_record_alone_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    import make_benchmarks
    from result_age import changed_since

    run = {"commit": "0123456789ab", "uncommitted_changes": True, "command": "python benchmarks/x.py", "seconds": 3}
    assert changed_since("0123456789ab", {"runs": [run]}, project) is None  # as in a shallow clone
    outside = tmp_path / "archive"
    outside.mkdir()
    monkeypatch.setattr(make_benchmarks, "ROOT", outside)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    path = outside / "x.json"
    path.write_text(json.dumps({"title": "T", "runs": [run], "rows": [{"a": 1.0}]}), encoding="utf-8")
    page = make_benchmarks.section(path)
    assert "commit: `0123456789ab with uncommitted changes` · seconds: `3`" in page and "since" not in page
    assert "| 1 |" in page


def test_the_page_of_the_committed_results_has_no_bold_figures_and_says_what_was_mended() -> None:
    import make_benchmarks

    page = make_benchmarks.render(RESULTS)
    assert not re.search(r"\*\*[^*\n]*\d[^*\n]*\*\*[^\n]*\|", page)
    assert "could not be read" not in page
    for name in make_benchmarks.NOTES:
        content = json.loads((RESULTS / name).read_text(encoding="utf-8"))
        assert ("runs" in content) or make_benchmarks.NOTES[name][1] in page


def test_every_result_has_a_script() -> None:
    from result_age import Changes, script_of

    moved = {"benchmarks/expert_speed.py": "benchmarks/gaussian_expert_speed.py"}
    for path in RESULTS.glob("*.json"):
        script = script_of(json.loads(path.read_text(encoding="utf-8")), Changes(moved=moved))
        assert script is not None and (DOCS.parent / script).exists(), path.name


def test_verdicts_and_differences_of_a_labelled_table_are_shown(tmp_path: Path) -> None:
    from make_benchmarks import section

    path = tmp_path / "peers.json"
    line = {"set": "wine", "label": "tuning", "mechanism": "mcar", "a": "+0.012 ± 0.004", "within": True, "b": None}
    path.write_text(json.dumps({"title": "Peers", "seed": [0, 1], "crps_minus_best_peer": [line]}), encoding="utf-8")
    page = section(path)
    assert "**crps minus best peer**" in page and "seed: `0, 1`" in page
    assert "| wine | tuning | mcar | +0.012 ± 0.004 | yes |  |" in page
