"""A job begins at once, says how far it is, stops when it is told to, and gives the table that a fill gives."""

from __future__ import annotations

import threading
import time
from typing import Any

import pandas as pd
import pytest

from anyorder.serve.settings import Limits
from anyorder.support.advance import tracked

from asking import Asking, asked

FILL = "/v1/models/table/fill"
TABLE = {"columns": ["size", "count", "kind"], "rows": [[None, 20, "ash"], [0.5, None, None]]}


def until(service: Asking, job: str, *states: str) -> dict[str, Any]:
    for _ in range(600):
        facts: dict[str, Any] = service.get(f"/v1/jobs/{job}").json()
        if facts["state"] in states:
            return facts
        time.sleep(0.05)
    raise AssertionError(facts)


def test_a_job_gives_what_a_fill_gives(service: Asking) -> None:
    begun = service.post(f"{FILL}?job=true", TABLE)
    assert begun.status_code == 202
    identity = begun.json()["id"]
    assert begun.headers["location"] == f"/v1/jobs/{identity}"
    done = until(service, identity, "done")
    assert done["done"] == done["total"] > 0
    assert service.get(f"/v1/jobs/{identity}/result").json() == service.post(FILL, TABLE).json()
    csv = {"accept": "text/csv"}
    assert service.get(f"/v1/jobs/{identity}/result", headers=csv).text == service.post(FILL, TABLE, headers=csv).text
    service.request("DELETE", f"/v1/jobs/{identity}")
    assert service.get(f"/v1/jobs/{identity}").status_code == 404


def test_a_job_that_fails_says_why(service: Asking) -> None:
    identity = service.post(f"{FILL}?job=true", {"columns": ["kind"], "rows": [["oak"]]}).json()["id"]
    failed = until(service, identity, "failed")
    assert "oak" in failed["error"]["message"]
    assert service.get(f"/v1/jobs/{identity}/result").status_code == 400


@pytest.mark.parametrize(
    ("limits", "statuses"), [({"kept_seconds": 0.01}, [404, 404]), ({"results": 1}, [404, 200]), ({}, [200, 200])]
)
def test_results_are_kept_for_a_while(limits: dict[str, Any], statuses: list[int], models: dict[str, Any]) -> None:
    """Not for longer than a time, and not more than so many bytes."""
    with asked({"table": models["table"]}, limits=Limits(**limits)) as service:
        names = []
        for _ in range(2):
            names.append(service.post(f"{FILL}?job=true", TABLE).json()["id"])
            for _ in range(600):
                if service.get("/metrics").text.count('anyorder_jobs{state="running"} 0.0'):
                    break
                time.sleep(0.02)
        time.sleep(0.05)
        assert [service.get(f"/v1/jobs/{name}").status_code for name in names] == statuses


class Slow:
    """A model whose fill goes through its rows one by one, and waits at each until it is let go."""

    modality = "table"

    def __init__(self, model: Any) -> None:
        self.schema, self.columns = model.schema, model.columns
        self.step, self.seen = threading.Event(), 0

    def fill(self, frame: pd.DataFrame, **_: Any) -> pd.DataFrame:
        for part in tracked((slice(at, at + 1) for at in range(len(frame))), len(frame)):
            self.seen = part.start
            assert self.step.wait(60)
        return frame


def test_progress_and_an_end_to_it(models: dict[str, Any]) -> None:
    slow = Slow(models["table"])
    rows = {"columns": ["count"], "rows": [[number] for number in range(50)]}
    with asked({"table": slow}, workers=2, limits=Limits(jobs=1)) as service:  # type: ignore[dict-item]
        identity = service.post(f"{FILL}?job=true", rows).json()["id"]
        assert until(service, identity, "running")["done"] == 0
        refused = service.post(f"{FILL}?job=true", rows)
        assert refused.status_code == 429 and refused.json()["error"]["kind"] == "jobs_limit"
        assert service.get(f"/v1/jobs/{identity}/result").json()["error"]["kind"] == "job_running"
        service.request("DELETE", f"/v1/jobs/{identity}")
        slow.step.set()
        stopped = until(service, identity, "cancelled")
        assert stopped["total"] == 50 and stopped["done"] < 50 and slow.seen < 49
        # It has made room.
        assert until(service, service.post(f"{FILL}?job=true", rows).json()["id"], "done")["done"] == 50


@pytest.mark.parametrize("seconds", [0.2])
def test_what_takes_too_long_is_stopped(seconds: float, models: dict[str, Any]) -> None:
    slow = Slow(models["table"])
    with asked({"table": slow}, limits=Limits(seconds=seconds)) as service:  # type: ignore[dict-item]
        rows = {"columns": ["count"], "rows": [[number] for number in range(50)]}
        assert service.post(FILL, rows).status_code == 504
        slow.step.set()
    assert slow.seen < 49  # its thread has not gone on to the end
