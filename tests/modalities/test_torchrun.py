"""Fits under torchrun: the models of one process, written once; asked to end, a run goes on with another number.

One launch does it all, since starting takes longer than what is tested.
"""

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
from anyorder import cli

from texts import CORPUS
from three_fits import three_fits

TESTS = Path(__file__).parents[1]
WORK = """
import json, os, sys
sys.path[:0] = sys.argv[1:3]
from three_fits import three_fits
import anyorder as ao
from anyorder import cli
from anyorder.errors import UserError

rank = int(os.environ["RANK"])
scores = {name: model.card["scores"]["held_out"] for name, model in three_fits().items()}
try:
    ao.fit_text("to be or not to be " * 9, length=8 + rank, preset="tiny", engine="neural")
except UserError as error:
    scores["error"] = str(error)
with open(f"scores-{rank}.json", "w") as file:
    json.dump(scores, file)
sys.exit(cli.main(sys.argv[3:]))
"""
OPTIONS = ["--length", "16", "--preset", "tiny", "--engine", "neural", "--config", "run.toml", "--log", "log.jsonl"]
COMMAND = ["fit-text", "corpus.txt", "-o", "m.anyorder", "--checkpoint", "state", *OPTIONS]
STEPS = 160
CONFIGURATION = f"[training]\nsteps = {STEPS}\nvalidate_every = 20\nvalidation_queries = 4\nbatch = 3\n"
LAUNCH = ["--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]


@pytest.mark.timeout(600)  # seconds on a free machine; processes that wait for each other feel a busy one most
@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
def test_two_processes_make_the_models_of_one_and_end_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "corpus.txt").write_text(CORPUS, encoding="utf-8")
    (tmp_path / "run.toml").write_text(CONFIGURATION, encoding="utf-8")
    (tmp_path / "work.py").write_text(WORK, encoding="utf-8")
    paths = [str(TESTS), str(TESTS / "modalities")]
    launch = [sys.executable, "-m", "torch.distributed.run", *LAUNCH, "--local-addr", "127.0.0.1"]
    child = subprocess.Popen(
        [*launch, "--", "work.py", *paths, *COMMAND],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 200
    while not (tmp_path / "log.jsonl").exists() and time.monotonic() < deadline and child.poll() is None:
        time.sleep(0.02)
    child.send_signal(signal.SIGTERM)
    out, said = child.communicate(timeout=120)

    assert (tmp_path / "log.jsonl").exists(), said
    first, second = (json.loads((tmp_path / f"scores-{rank}.json").read_text()) for rank in range(2))
    assert first == second, said
    assert "do not fit the same model" in first.pop("error")
    alone = {name: model.card["scores"]["held_out"] for name, model in three_fits().items()}
    assert first == pytest.approx(alone, rel=1e-4)

    # One of them has written, and spoken.
    assert out.count("m.anyorder") == 1 and said.count("interrupted: kept the best of") == 1, said
    stopped = ao.load(tmp_path / "m.anyorder").card["training"]
    assert stopped["interrupted"] and stopped["steps"] < STEPS

    monkeypatch.chdir(tmp_path)
    assert cli.main([*COMMAND, "--resume"]) == 0
    capsys.readouterr()
    assert ao.load(tmp_path / "m.anyorder").card["training"]["steps"] == STEPS
    noted = [json.loads(line)["step"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert noted == list(range(20, STEPS + 1, 20))
