"""The same question to the same model gives the same bits, in every process and with one torch thread or two.

Held for one question at a time, which is what docs/reliability.md promises; rows asked together may differ between
numbers of threads, in their last bits and no more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anyorder as ao

from bits_of_answers import Answers, ask_all

QUESTIONS = Path(__file__).with_name("bits_of_answers.py")


def answers(threads: int, files: list[Path]) -> Answers:
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    environment |= {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"}  # two threads on a busy machine wait asleep
    command = [sys.executable, str(QUESTIONS), str(threads), *map(str, files)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: Answers = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answers]:
    folder = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(0)
    rooms = rng.integers(1, 9, 60)
    river = np.where(rng.random(60) > 0.5, "yes", "no")
    frame = pd.DataFrame({"rooms": rooms, "river": river, "price": rooms * 5 + rng.normal(size=60)})
    brief = {"training": {"minutes": None, "steps": 3, "threads": 1, "validation_queries": 8}}
    few = {**brief, "trees": {"members": 1, "rounds": 3}}
    models = {
        "table": ao.fit(frame, engine="neural", config={**brief, "encoding": "normal_scores"}),  # networks of full size
        "trees": ao.fit(frame, engine="trees", config=few),
        "texts": ao.fit_text("to be or not to be " * 8, length=16, preset="tiny", config=brief),
        "pictures": ao.fit_images(rng.integers(0, 4, (12, 4, 4)).astype(np.uint8), preset="tiny", config=brief),
    }
    files = [folder / f"{name}.anyorder" for name in models]
    for model, path in zip(models.values(), files, strict=True):
        model.save(path)
    return {"here": ask_all([str(path) for path in files]), "one": answers(1, files), "two": answers(2, files)}


def test_processes_agree_bit_for_bit(asked: dict[str, Answers]) -> None:
    assert asked["one"] == asked["here"]  # where a thread is one, too: see conftest.py


@pytest.mark.parametrize("label", ["table", "trees", "texts", "pictures"])
def test_one_question_has_the_same_bits_with_one_thread_and_with_two(asked: dict[str, Answers], label: str) -> None:
    assert asked["one"][0][label] == asked["two"][0][label]


@pytest.mark.parametrize("label", ["table", "trees", "texts", "pictures"])
def test_rows_asked_together_differ_in_their_last_bits_at_most(asked: dict[str, Answers], label: str) -> None:
    few, more = ([float.fromhex(number) for number in asked[which][1][label]] for which in ("one", "two"))
    np.testing.assert_allclose(few, more, rtol=1e-4, atol=1e-5)
