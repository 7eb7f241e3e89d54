"""What the README tells a new user to type must work."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import anyorder as ao
from anyorder.cli import main

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import readme_example  # noqa: E402 (it stands outside the package)

QUICK = {"training": {"steps": 10}, "trees": {"members": 1, "shown": 500}}


@pytest.fixture
def wine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    readme_example.write_wine(Path("wine.csv"))
    return tmp_path


def test_commands(wine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = readme_example.commands()
    assert len(lines) >= 5
    (wine / "quick.toml").write_text("[training]\nsteps = 10\n[trees]\nmembers = 1\nshown = 500\n")
    readme_example.run([line + " --config quick.toml" if " fit " in line else line for line in lines])
    assert (wine / "wine.png").stat().st_size > 10_000
    assert ",," not in (wine / "filled.csv").read_text()


def test_python(wine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert blocks
    fit = ao.fit
    monkeypatch.setattr(ao, "fit", lambda frame, **kw: fit(frame, **kw, config=QUICK))
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


def test_mistake_is_one_line(wine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "wien.csv", "-o", "x.anyorder"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
