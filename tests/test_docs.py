"""The documentation keeps up with the code: every public name is on the site, and every name on a page exists."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import anyorder as ao

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import make_api  # noqa: E402 (it stands outside the package)

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PUBLIC = [name for name in dir(ao) if not name.startswith("_")]
# Named in prose and not of the package: files that a reader makes or has.
FILES = (".anyorder", ".md", ".csv", ".json", ".toml", ".txt", ".py", ".png")


def build(folder: Path) -> None:
    """Build the site as `make docs` does."""
    source = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": source, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def methods(name: str) -> list[str]:
    """The public methods and properties that our own code gives to a class."""
    thing = getattr(ao, name)
    if not inspect.isclass(thing):
        return []
    ours = [base for base in thing.__mro__ if base.__module__.split(".")[0] == "anyorder"]
    found = {
        key for base in ours for key, value in vars(base).items() if callable(value) or isinstance(value, property)
    }
    return sorted(key for key in found if not key.startswith("_"))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_a_docstring(name: str) -> None:
    thing = getattr(ao, name)
    bare = [name] if not inspect.getdoc(thing) else []
    bare += [f"{name}.{each}" for each in methods(name) if not inspect.getdoc(getattr(thing, each))]
    assert not bare


def test_every_public_name_is_on_the_site(tmp_path: Path) -> None:
    build(tmp_path)  # once: it takes seconds
    pages = {page.parent.name: page.read_text(encoding="utf-8") for page in (tmp_path / "api").rglob("*.html")}
    wanted = {"api": [f"{name}{each}" for name in PUBLIC for each in ("", *(f".{method}" for method in methods(name)))]}
    for package in make_api.packages():
        wanted[package] = [f"{package}.{name}" for name in make_api.names_in_all(package)]
        assert wanted[package] or f'id="anyorder.{package}' in pages[package], f"the page of {package} is empty"
    missing = [path for page in wanted for path in wanted[page] if f'id="anyorder.{path}"' not in pages[page]]
    assert missing == []
    # What reads :class:`Query` in a docstring is a link or plain code.
    left = [name for name, text in pages.items() if re.search(r":(?:mod|class|func|meth|attr|data|exc):", text)]
    assert left == []


def dotted(text: str) -> set[str]:
    """Every ``anyorder.a.b`` of a page that is not the name of a file."""
    found = re.findall(r"(?<![\w./-])anyorder(?:\.[A-Za-z_]\w*)+", text)
    return {path for path in found if not path.endswith(FILES)}


def exists(path: str) -> bool:
    """Whether a dotted path leads to a module, or to an attribute of one."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_dotted_path_exists(page: Path) -> None:
    assert [path for path in sorted(dotted(page.read_text(encoding="utf-8"))) if not exists(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_named_exists(page: Path) -> None:
    """Scripts, results, tests and sources that a page names are there."""
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`((?:benchmarks|docs|tests|src)/[\w./*-]+)`", text)
    if page.name == "reproduction.md":  # short names, since its tables are wide
        named += [f"benchmarks/{name}" for name in re.findall(r"`((?:\w+/)?\w+\.py)` `", text)]
    assert [name for name in named if not list(ROOT.glob(name))] == []


STATES = ("reproduced smaller", "reproduced", "differs", "not yet", "nothing to reproduce")


def cells(page: Path) -> list[list[str]]:
    lines = page.read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]


def test_the_papers_tables_are_counted_right() -> None:
    """Every row of both papers has a state, and README and page give the same counts of them."""
    rows = [row for row in cells(ROOT / "docs" / "reproduction.md") if len(row) == 7 and row[0] != "item"]
    found = [next(state for state in STATES if row[6].startswith(state)) for row in rows]
    counts = [found.count(state) for state in ("reproduced", "reproduced smaller", "differs", "not yet")]
    for page in ("README.md", "docs/reproduction.md"):
        text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        said = re.search(
            r"(\d+) tables and figures with results[^,]*, (\d+) is reproduced, (\d+) .*?, (\d+) .*? (\d+) ", text
        )
        assert said is not None, page
        assert [int(number) for number in said.groups()] == [sum(counts), *counts], page


def test_the_checks_can_fail() -> None:
    assert not exists("anyorder.pooling.pool")
    assert not exists("anyorder.tasks.pooling.nothing")
    assert exists("anyorder.tasks.pooling.pool")
    assert dotted("see `anyorder.pooling` and house.anyorder.bak, anyorder.csv") == {"anyorder.pooling"}


def test_the_tree_on_the_design_page_is_the_tree() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    drawn = re.search(r"```text\nsrc/anyorder/\n(.*?)```", text, flags=re.S)
    assert drawn is not None
    names = {line.split()[0].rstrip("/") for line in drawn[1].splitlines()}
    there = {path.name for path in (ROOT / "src" / "anyorder").iterdir() if not path.name.startswith(("_", "."))}
    assert names == {name for name in there if not name.endswith(".typed")}


def test_the_diagrams_are_what_their_script_draws() -> None:
    import make_diagrams

    for name, drawing in (("flow_question", make_diagrams.question()), ("flow_fit", make_diagrams.fit())):
        assert (ROOT / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8") == drawing
