"""The service as a process: it says where it is, ends when it is told to, and finishes what is under way."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from anyorder.cli import main

from asking import FILES, TABLE

MODEL = f"table={FILES / TABLE}.anyorder"


@contextmanager
def running(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``anyorder serve`` on a port that is free, and its address; ended in any case."""
    command = [sys.executable, "-m", "anyorder", "serve", "--port", "0", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    late = threading.Timer(120, process.kill)
    late.start()
    try:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        address = re.search(r"http://\S+", line)
        yield process, address[0] if address else line + process.stderr.read()
    finally:
        late.cancel()
        process.kill()
        process.communicate()


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
def test_sigterm_finishes_what_is_under_way() -> None:
    with (
        running(MODEL, str(FILES / "absent.anyorder")) as (process, address),
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        # One of its models is not there: the other is served all the same.
        listed = client.get("/v1/models").json()["models"]
        assert [(one["name"], one["status"]) for one in listed] == [("table", "ready"), ("absent", "failed")]
        assert client.get("/health/ready").status_code == 200
        # A job for an hour, which nobody waits for: it does not keep the service.
        rows = {"columns": ["count"], "rows": [[25]] * 90_000}
        job = client.post("/v1/models/table/fill?job=true", json=rows).json()["id"]
        found: list[Any] = []

        def ask() -> None:
            found.append(client.post("/v1/models/table/sample", json={"count": 3000}))

        thread = threading.Thread(target=ask)
        thread.start()
        # It is under way once it is counted among those that wait.
        for _ in range(600):
            if "\nanyorder_waiting 1.0" in httpx.get(f"{address}metrics").text:
                break
        else:
            pytest.fail("the question was never under way")
        assert httpx.get(f"{address}v1/jobs/{job}").json()["state"] == "running"
        process.send_signal(signal.SIGTERM)
        thread.join(60)
        assert found and found[0].status_code == 200 and len(found[0].json()["rows"]) == 3000
        assert process.wait(60) == 0


def test_only_this_machine_unless_there_is_a_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANYORDER_TOKEN", raising=False)
    assert main(["serve", MODEL, "--host", "0.0.0.0"]) == 2
    assert "needs a token" in capsys.readouterr().err
    secret = tmp_path / "token"
    secret.write_text("too short\n", encoding="utf-8")
    assert main(["serve", MODEL, "--token-file", str(secret)]) == 2
    assert "16 ASCII characters" in capsys.readouterr().err


def test_the_token_of_the_environment_may_end_in_a_blank(monkeypatch: pytest.MonkeyPatch) -> None:
    from anyorder.cli.serve import _token

    monkeypatch.setenv("ANYORDER_TOKEN", "a secret of some length \n")
    assert _token(None) == "a secret of some length"


def test_the_sample_model_does_not_take_the_place_of_another(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", f"wine={FILES / TABLE}.anyorder", "--demo"]) == 2
    assert "mine=FILE" in capsys.readouterr().err


def test_nothing_to_serve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.anyorder").write_bytes(b"nothing")
    assert main(["serve", str(tmp_path / "broken.anyorder")]) == 2
    said = capsys.readouterr().err
    assert said.count("cannot be loaded") == 1 and "broken cannot be loaded" in said  # and not by the log as well
    assert "none of the models could be loaded" in said
    assert main(["serve"]) == 2
    assert "--demo" in capsys.readouterr().err


def test_the_sample_model() -> None:
    from anyorder.serve.demo import demo_model

    model = demo_model()
    assert len(model.columns) == 14
    found = model.marginals({"proline": 1300})
    assert found["cultivar"].best == "cultivar 1"  # the wines with the most proline
