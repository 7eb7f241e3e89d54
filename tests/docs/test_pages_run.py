"""The code of the tutorial and of the how-to pages runs, from the first block of a page to the last."""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import anyorder as ao
import anyorder.modalities.tables.fit
import anyorder.sklearn.base

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

import tutorial_example  # noqa: E402 (it stands outside the package)

HOW_TO = sorted((DOCS / "how_to").glob("*.md"))
NUMBER = re.compile(r"(?<![\w.])0\.\d{2,}(?![\w.]\d)")
QUICK = {
    "folds": 2,
    "training": {"steps": 10, "validation_queries": 100, "threads": 1},
    "network": {"name": "residual_mlp", "width": 32},
}
SECONDS = 6.0
"""Of processor time, for one page: beyond its fits a page should not keep a reader waiting."""


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fit of a page takes a moment, and what a page writes goes to a folder of its own."""
    whole: Callable[..., ao.TableModel] = anyorder.modalities.tables.fit.fit

    def fit(frame: Any, **arguments: Any) -> ao.TableModel:
        return whole(frame, **{**arguments, "engine": "neural", "config": QUICK})

    for module in (ao, anyorder.modalities.tables.fit, anyorder.sklearn.base):
        monkeypatch.setattr(module, "fit", fit)
    monkeypatch.chdir(tmp_path)


def run(page: Path) -> float:
    """Run the blocks of a page in one namespace; the seconds they took.

    Readers see every warning too, so a page has to quote its beginning, up to the colon.
    """
    text, code = page.read_text(encoding="utf-8"), blocks(page)
    assert code, f"{page.name} shows no code"
    names: dict[str, Any] = {}
    began = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        for block in code:
            line = text.partition(block)[0].count("\n")
            exec(compile("\n" * line + block, str(page), "exec"), names)
    seconds = time.process_time() - began
    said = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
    flowed = " ".join(text.split())
    assert [message for message in said if message.partition(":")[0] not in flowed] == []
    return seconds


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_the_code_of_a_how_to_page_runs(page: Path) -> None:
    if not blocks(page):
        assert "](../" in page.read_text(encoding="utf-8"), f"{page.name} has neither code nor a link to a page with it"
        return
    assert run(page) < SECONDS


@pytest.mark.usefixtures("quick")
def test_the_policy_of_the_page_on_robots_acts(tmp_path: Path) -> None:
    """The block before it reads demonstrations, which are not at hand."""
    page = tmp_path / "robots.md"
    text = (DOCS / "robots.md").read_text(encoding="utf-8")
    page.write_text(text[text.index("## Act") : text.index("## The simulated kitchen")], encoding="utf-8")
    assert run(page) < SECONDS


@pytest.mark.data
@pytest.mark.usefixtures("quick")
def test_the_tutorial_runs(data_dir: Path) -> None:
    """Its commands and its code, in their order; the prose between them stays as it is."""
    try:
        tutorial_example.write_titanic(data_dir, Path("titanic.csv"))
    except FileNotFoundError:
        pytest.skip("the folder of shared data has no titanic.csv.gz")
    page = tutorial_example.PAGE.read_text(encoding="utf-8")
    again = tutorial_example.run(page)
    assert tutorial_example.BLOCK.sub("", again) == tutorial_example.BLOCK.sub("", page)
    untrained = [text.partition("$ anyorder fit")[0] for text in (again, page)]
    assert untrained[0] == untrained[1]  # what `look` prints hangs on no training: it is on the page to the letter
    reads = [re.findall(r"^anyorder: .*$", text, flags=re.M) for text in (again, page)]
    assert reads[0] == reads[1]  # nor do the notes of `fit`
    for picture in re.findall(r"images/(tutorial_\w+\.png)", page):
        assert Path(picture).stat().st_size > 5_000
        assert (tutorial_example.IMAGES / picture).is_file()


def test_what_the_tutorial_says_is_what_it_shows() -> None:
    """Shares in its prose, such as 0.57, are those of an output above; two stand for themselves."""
    page = tutorial_example.PAGE.read_text(encoding="utf-8")
    shown = {
        float(number) for block in tutorial_example.BLOCK.findall(page) for number in NUMBER.findall("".join(block))
    }
    said = NUMBER.findall(tutorial_example.BLOCK.sub("", page))
    assert len(said) >= 6
    rounded = {f"{number:.2f}" for number in shown}
    assert {number for number in said if number not in rounded} <= {"0.69", "0.01"}  # an even yes or no; the least gain


def test_what_the_tutorial_prints_is_put_into_the_page() -> None:
    page = "A page.\n\n```python\nx = 2\n```\n\n```python\nprint(x + 1)\n```\n\n```text\nold\n```\n\nIts end.\n"
    assert tutorial_example.run(page) == page.replace("old", "3")


def test_a_block_that_fails_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
    with pytest.raises(AssertionError) as raised:
        run(page)
    assert raised.traceback[-1].lineno == 7  # counted from 0: the line of the page itself
