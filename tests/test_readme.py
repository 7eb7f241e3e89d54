"""What the README and the quick start ask a new user to type must work."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

import anyorder as ao
from anyorder.cli import main

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import quickstart_example  # noqa: E402 (it stands outside the package)

README = ROOT / "README.md"
QUICKSTART = ROOT / "docs" / "quickstart.md"
QUICK = {"training": {"steps": 10}, "trees": {"members": 1, "shown": 500}}


@pytest.fixture
def wine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    quickstart_example.write_wine(Path("wine.csv"))
    return tmp_path


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)


def test_commands(wine: Path) -> None:
    lines = quickstart_example.commands()
    assert len(lines) >= 5
    (wine / "quick.toml").write_text("[training]\nsteps = 10\n[trees]\nmembers = 1\nshown = 500\n")
    quickstart_example.run([line + " --config quick.toml" if " fit " in line else line for line in lines])
    assert (wine / "wine.png").stat().st_size > 10_000
    assert ",," not in (wine / "filled.csv").read_text()


@pytest.mark.parametrize("page", [README, QUICKSTART], ids=lambda page: page.name)
def test_python(page: Path, wine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page run one after the other, as a reader would type them."""
    code = blocks(page, "python")
    assert code
    fit = ao.fit
    monkeypatch.setattr(ao, "fit", lambda frame, **kw: fit(frame, **kw, config=QUICK))
    names: dict[str, object] = {}
    for block in code:
        exec(compile(block, page.name, "exec"), names)


@pytest.mark.parametrize("page", [README, QUICKSTART], ids=lambda page: page.name)
def test_shell_blocks_name_what_exists(page: Path) -> None:
    """`make` targets are in the Makefile, and extras in pyproject.toml: both take too long to run here."""
    shell = "\n".join(blocks(page, "sh"))
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M)
    asked = re.findall(r"^make ([a-z-]+)", shell, flags=re.M)
    assert {"demo", "test"} <= set(asked) <= set(targets)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(re.findall(r'pip install "\.\[([a-z]+)\]"', shell)) == {"all"} <= set(extras)


def test_mistake_is_one_line(wine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "wien.csv", "-o", "x.anyorder"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
