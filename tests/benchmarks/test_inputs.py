"""A quick share of the attack by odd inputs: every case ends with exit 0 or 2, in words."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def inputs() -> Any:
    sys.path[:0] = [str(FOLDER), str(FOLDER / "reliability")]
    spec = importlib.util.spec_from_file_location("reliability_inputs", FOLDER / "reliability" / "inputs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def models(inputs: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models")
    inputs.make_models(folder)
    return str(folder)


@pytest.mark.parametrize("family", ["tables", "option files", "texts and pictures", "command lines"])
def test_odd_inputs_are_done_or_refused_in_words(inputs: Any, models: str, family: str) -> None:
    numbers = [number for number in range(1000) if inputs.family_of(number) == family][:8]
    outcomes = [inputs.run(inputs.Case(family, 5, number, models))[0] for number in numbers]
    assert set(outcomes) <= {"done", "refused"}
    assert outcomes.count("done") >= 2  # else the attack ends at the first check and reaches nothing behind it


def test_every_command_is_done_where_nothing_is_odd(
    inputs: Any, models: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs.Inputs, "often", lambda self, share: False)
    done = set()
    for number in range(100):
        made = inputs.Inputs(inputs.Case("command lines", 0, number, models), tmp_path)
        words = inputs.commands(made)
        if (words[0], len(words)) not in done:
            status, _, err = inputs.called(words, str(tmp_path))
            assert status == 0, (words, err)
            done.add((words[0], len(words)))
    tried = {name for name in inputs.cli.COMMANDS if not name.startswith("demo")} - {
        "serve"
    }  # it does not end by itself
    assert {name for name, _ in done} == tried


def test_odd_tables_are_fitted_by_every_engine_and_have_holes(inputs: Any, models: str, tmp_path: Path) -> None:
    cases = [inputs.Case("tables", 0, number, models) for number in range(200)]
    lines = [inputs.words_of(case, tmp_path) for case in cases]
    engines = {words[words.index("--engine") + 1] for words in lines if "--engine" in words}
    assert engines == {"neural", "trees", "auto"}
    plain = Path(inputs.Inputs(cases[0], tmp_path).table(known=True, odd=False))
    while plain.suffix != ".csv":
        plain = Path(inputs.Inputs(cases.pop(), tmp_path).table(known=True, odd=False))
    cells = [cell for line in plain.read_text(encoding="utf-8").splitlines() for cell in line.split(",")]
    assert "" in cells and len(set(cells)) > 8


def test_a_case_is_the_same_whenever_it_is_made(inputs: Any, models: str, tmp_path: Path) -> None:
    for number in range(60):
        case = inputs.Case(inputs.family_of(number), 3, number, models)
        (tmp_path / str(number)).mkdir()
        first = inputs.words_of(case, tmp_path / str(number))
        files = {path: path.read_bytes() for path in (tmp_path / str(number)).rglob("*") if path.is_file()}
        assert inputs.words_of(case, tmp_path / str(number)) == first
        assert [path for path, content in files.items() if path.read_bytes() != content] == []


def test_what_must_not_happen_is_a_fault(inputs: Any, models: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = inputs.Case("tables", 0, 0, models)
    for status, said in [
        (1, "anyorder: no"),
        (2, ""),
        (2, "Traceback"),
        (0, "internal error"),
        (2, "anyorder: \x1b[0m"),
    ]:
        monkeypatch.setattr(inputs, "called", lambda words, folder, end=(status, "", said): end)
        with pytest.raises(RuntimeError, match=r"fill|score|check|anomalies|compress|ask|fit"):
            inputs.run(case)


@pytest.mark.parametrize("said", ["this takes more memory than there is", "DefaultCPUAllocator: can't allocate memory"])
def test_a_refusal_for_want_of_memory_is_a_fault(
    inputs: Any, models: str, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr(inputs, "called", lambda words, folder: (2, "", f"anyorder: {said}"))
    assert inputs.run(inputs.Case("tables", 0, 0, models))[0] == "memory"
