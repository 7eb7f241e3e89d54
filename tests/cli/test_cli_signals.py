"""A fit that is asked to end leaves a model, whoever asks: Ctrl-C, or a cluster's SIGTERM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import anyorder as ao

from texts import CORPUS


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_fit_that_is_asked_to_end_leaves_a_model(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text(CORPUS, encoding="utf-8")
    (tmp_path / "run.toml").write_text("[training]\nvalidate_every = 5\nvalidation_queries = 4\n", encoding="utf-8")
    options = ["--length", "16", "--preset", "tiny", "--minutes", "5", "--config", "run.toml", "--log", "log.jsonl"]
    command = [sys.executable, "-m", "anyorder", "fit-text", "corpus.txt", "-o", "m.anyorder", *options]
    child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 90
    while not (tmp_path / "log.jsonl").exists() and time.monotonic() < deadline and child.poll() is None:
        time.sleep(0.05)
    child.send_signal(number)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 0, said.decode()
    model = ao.load(tmp_path / "m.anyorder")
    assert model.card["training"]["interrupted"]
    assert json.loads((tmp_path / "log.jsonl").read_text().splitlines()[0])["step"] == 5
