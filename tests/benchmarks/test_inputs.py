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
    numbers = [number for number in range(1000) if inputs.family_of(number) == family][:4]
    outcomes = {inputs.run(inputs.Case(family, 5, number, models))[0] for number in numbers}
    assert outcomes <= {"done", "refused"}


def test_a_case_is_the_same_whenever_it_is_made(inputs: Any, models: str, tmp_path: Path) -> None:
    for number in range(12):
        case = inputs.Case(inputs.family_of(number), 3, number, models)
        (tmp_path / str(number)).mkdir()
        first = inputs.words_of(case, tmp_path / str(number))
        files = {path: path.read_bytes() for path in (tmp_path / str(number)).rglob("*") if path.is_file()}
        assert inputs.words_of(case, tmp_path / str(number)) == first
        changed = [path for path, content in files.items() if path.suffix != ".npz" and path.read_bytes() != content]
        assert not [path for path in changed if ".gz" not in path.name and ".zip" not in path.name]


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
