"""What nobody waits for any more is not begun, or ends early: after the time limit, without its client, at the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pandas as pd
import pytest
import uvicorn

from anyorder.serve import server
from anyorder.serve.metrics import Metrics
from anyorder.serve.settings import Limits, Settings
from anyorder.serve.workers import Stopped, Together, Workers
from anyorder.support.advance import checked, watched

from asking import Asking, asked

T = TypeVar("T")
FILL = "/v1/models/slow/fill"
ROWS = {"columns": ["count"], "rows": [[20]]}
LONG = 20.0  # seconds that work takes which is not told to end


class Endless:
    """A model whose fill goes on until it is told to end."""

    modality = "table"

    def __init__(self, model: Any) -> None:
        self.schema, self.columns = model.schema, model.columns
        self.began, self.ended = threading.Event(), threading.Event()
        self.stopped = False

    def fill(self, frame: pd.DataFrame, **_: Any) -> pd.DataFrame:
        self.began.set()
        try:
            on_and_on()
        except Stopped:
            self.stopped = True
            raise
        finally:
            self.ended.set()
        return frame


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of some work, in a thread of its own: in this one the loop of a browser may be running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def on_and_on() -> None:
    ends = time.monotonic() + LONG
    while time.monotonic() < ends:
        checked()
        time.sleep(0.005)


async def leave(service: Asking, path: str, body: Any, began: threading.Event) -> list[Any]:
    """Ask, and go away once the work has begun; what was still sent."""
    sent: list[Any] = []
    messages = [{"type": "http.request", "body": json.dumps(body).encode("utf-8"), "more_body": False}]

    async def receive() -> Any:
        if messages:
            return messages.pop()
        while not began.is_set():
            await asyncio.sleep(0.005)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b"", "root_path": ""}
    await service.app({**scope, "http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 1)}, receive, send)
    return sent


def test_a_client_that_goes_away(models: dict[str, Any]) -> None:
    slow = Endless(models["table"])
    with asked({"slow": slow}, workers=1) as service:  # type: ignore[dict-item]
        assert not service._run(leave(service, FILL, ROWS, slow.began))
        assert slow.ended.wait(LONG) and slow.stopped
        counted = 'anyorder_requests_total{route="/v1/models/{name}/fill",status="499"} 1.0'
        assert counted in service.get("/metrics").text


def test_a_question_that_somebody_else_waits_for_goes_on() -> None:
    workers = Workers(Settings(workers=1), Metrics())
    release = asyncio.Event()

    async def work() -> bytes:
        await release.wait()
        return b"found"

    async def both() -> bytes:
        first, second = (asyncio.ensure_future(workers.once("the same", work)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0.01)
        release.set()
        return await second

    assert run(both()) == b"found"


def test_the_last_to_go_ends_a_shared_question() -> None:
    workers = Workers(Settings(workers=1), Metrics())
    ended = []

    async def work() -> bytes:
        try:
            await asyncio.sleep(LONG)
        finally:
            ended.append(True)
        return b""

    async def both_go() -> None:
        asking = [asyncio.ensure_future(workers.once("the same", work)) for _ in range(2)]
        await asyncio.sleep(0.01)
        for one in asking:
            one.cancel()
            await asyncio.sleep(0.01)

    run(asyncio.wait_for(both_go(), LONG / 2))
    assert ended and not workers._under_way


def test_a_batch_ends_with_its_last_client_and_what_waits_behind_it_is_not_begun() -> None:
    """One thread, a question that takes too long, and others behind it whose clients have gone by then."""
    answered: list[str] = []
    complaints: list[Any] = []

    def answer(questions: Sequence[str]) -> list[str]:
        answered.extend(questions)
        if "slow" in questions:
            on_and_on()
        return list(questions)

    async def ask() -> tuple[list[Any], float]:
        asyncio.get_running_loop().set_exception_handler(lambda _, about: complaints.append(about))
        workers = Workers(Settings(workers=1, limits=Limits(seconds=0.3)), Metrics())
        together: Together[str, str] = Together(workers, answer, 4)
        slow = asyncio.ensure_future(together.ask("slow"))
        await asyncio.sleep(0.05)
        behind = [asyncio.ensure_future(together.ask(name)) for name in "ab"]
        await asyncio.sleep(0.05)
        for one in behind:
            one.cancel()
        late = await asyncio.gather(slow, *behind, return_exceptions=True)
        began = time.monotonic()
        # The thread is free for the next one.
        assert await together.ask("next") == "next"
        await workers.close()
        return late, time.monotonic() - began

    late, took = run(ask())
    assert late[0].status == 504 and all(isinstance(one, asyncio.CancelledError) for one in late[1:])
    assert answered == ["slow", "next"] and took < LONG / 2
    assert not complaints


@pytest.mark.parametrize("what", ["next", "marginals", "csv"])
def test_work_of_the_library_can_end_early(what: str, models: dict[str, Any]) -> None:
    """Told to end after some of its steps, it does so, and does not go on to the end."""
    from anyorder.serve.tables import CSV, Sent, read_table

    model = models["table"]
    wide = ",".join(f"c{number}" for number in range(30)) + "\n" + ",".join(["1"] * 30)
    work = {
        "next": lambda: model.next_question({"count": 20}, about="kind", look_ahead=2, draws=64),
        "marginals": lambda: model.marginals({"size": "0..1", "count": "25..30"}, draws=64),
        "csv": lambda: read_table(Sent(wide.encode("ascii"), CSV), (), Limits()),
    }[what]
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1
        if steps == 3:
            raise Stopped

    with pytest.raises(Stopped), watched(None, count):
        work()


def test_jobs_do_not_keep_questions_waiting(models: dict[str, Any]) -> None:
    slow = Endless(models["table"])
    with asked({"slow": slow, "table": models["table"]}, workers=1) as service:  # type: ignore[dict-item]
        assert service.post(f"{FILL}?job=true", ROWS).status_code == 202
        assert slow.began.wait(LONG)
        assert service.post("/v1/models/table/ask", {"question": "E[size]"}).status_code == 200
        assert not slow.ended.is_set()
    # And the end of the service is the end of its jobs.
    assert slow.stopped


def test_a_job_that_takes_too_long_does_not_advise_to_be_one(models: dict[str, Any]) -> None:
    slow = Endless(models["table"])
    with asked({"slow": slow}, limits=Limits(job_seconds=0.2)) as service:  # type: ignore[dict-item]
        identity = service.post(f"{FILL}?job=true", ROWS).json()["id"]
        assert slow.ended.wait(LONG) and slow.stopped
        error = service.get(f"/v1/jobs/{identity}").json()["error"]
    assert error["kind"] == "time_limit" and "be a job" not in error["message"]


def test_a_second_signal_ends_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr(os, "_exit", left.append)
    one = server._Server(uvicorn.Config(lambda: None))
    one.handle_exit(signal.SIGTERM, None)
    assert one.should_exit and not left
    one.handle_exit(signal.SIGTERM, None)
    assert left == [128 + signal.SIGTERM]
