"""A quick share of the attack on files: damaged or crafted, each is refused or answers (``make fuzz`` has the rest).

All in this process, so the ways of damaging that are there to fill its memory are left to the long attack, which runs
every case in a process with limits.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "reliability"))
from damage import CRAFTED
from damage_sealed import TENSORS, TensorFile
from files import NEED_MODELS, OTHER, REFUSED, SAME, SMALL, Attack, Case, cases, write_whole
from whole_files import kinds
from whole_models import complete

KINDS = kinds()
NAMES = [name for name in KINDS if name in SMALL or KINDS[name].form != "tensors"]
FAMILIES = sorted({KINDS[name].family for name in NAMES})
LEFT_OUT = ("bomb", "large picture", "other content", "other archive", "other chunks")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("whole")
    write_whole(made, NAMES)
    return made


@pytest.mark.parametrize("family", FAMILIES)
def test_a_damaged_file_is_refused_or_answers(folder: Path, family: str) -> None:
    names = [name for name in NAMES if KINDS[name].family == family]
    harmless = (case for case in cases(11, names) if case.damage not in LEFT_OUT)
    outcomes = {str(case): Attack(folder)(case) for case in itertools.islice(harmless, 10)}
    assert {case: found for case, found in outcomes.items() if found[0] not in (REFUSED, SAME, OTHER)} == {}


@pytest.mark.parametrize("name", [name for name in NAMES if KINDS[name].form == "tensors"])
def test_a_file_put_together_again_gives_the_same_answers(folder: Path, tmp_path: Path, name: str) -> None:
    """Else a crafted file would be refused for its checksum, and the attack would find nothing."""
    path = tmp_path / KINDS[name].file
    path.write_bytes(TensorFile.read((folder / KINDS[name].file).read_bytes()).written())
    assert Attack(folder).judged(Case(name, "", 0, 0), KINDS[name], path) == (SAME, "")


def test_the_same_number_gives_the_same_file(folder: Path, tmp_path: Path) -> None:
    """Also in a folder that has only the file itself."""
    names = [name for name in NAMES if KINDS[name].form != "tensors" and name not in NEED_MODELS]  # those take fits
    for case in itertools.islice(cases(5, names), 300):
        write_whole(tmp_path, [case.kind])
        assert case.content(folder) == case.content(tmp_path), case


def test_flipped_cells_of_our_parquet_are_noticed(folder: Path) -> None:
    outcomes = [Attack(folder)(Case("table_ours", "cells flipped", 0, number))[0] for number in range(30)]
    assert set(outcomes) == {REFUSED}


def test_unknown_cells_of_an_answer_are_a_fault() -> None:
    for cell in (float("nan"), float("inf"), None):
        with pytest.raises(ArithmeticError, match="'a'"):
            complete(pd.DataFrame({"a": [1.0, cell]}))
    complete(pd.DataFrame({"a": [1.0], "b": ["x"]}))


def test_every_form_can_be_crafted() -> None:
    assert {kind.form for kind in KINDS.values()} == set(CRAFTED)
    assert len(TENSORS) > 15


def test_unnoticed_damage_is_a_fault(folder: Path, tmp_path: Path) -> None:
    kind = KINDS["v1_text"]
    other = folder / KINDS["text_chain"].file
    assert Attack(folder).judged(Case("v1_text", "bits flipped", 0, 0), kind, other)[0] == "failed"
    assert Attack(folder).judged(Case("v1_text", "field missing", 0, 0), kind, other)[0] == OTHER
