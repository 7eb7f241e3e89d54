"""Long work: it begins at once, says how far it is, can be stopped, and its result is fetched when it is done.

Jobs live in memory and end with the service. As many are kept as the limits allow; the oldest finished one makes room
for a new one.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from fastapi.responses import Response

from anyorder.errors import UserError
from anyorder.serve.errors import ServiceError, of_mistake, unexpected
from anyorder.serve.workers import Handle, Stopped, Workers

State = Literal["waiting", "running", "done", "failed", "cancelled"]


@dataclass
class Job:
    """One piece of long work."""

    identity: str
    what: str
    model: str
    handle: Handle = field(default_factory=Handle)
    state: State = "waiting"
    began: float = field(default_factory=time.time)
    ended: float | None = None
    result: Response | None = None
    error: ServiceError | None = None
    task: asyncio.Task[None] | None = None

    def facts(self) -> dict[str, Any]:
        """How far it is."""
        facts: dict[str, Any] = {
            "id": self.identity,
            "what": self.what,
            "model": self.model,
            "state": self.state,
            "done": self.handle.done,
            "total": self.handle.total or None,
            "seconds": round((self.ended or time.time()) - self.began, 3),
        }
        if self.error is not None:
            facts["error"] = self.error.problem.model_dump(exclude_none=True)
        return facts


class Jobs:
    """All jobs that are kept."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self._jobs: dict[str, Job] = {}

    def start(self, what: str, model: str, work: Callable[[], Response]) -> Job:
        """Begin some work."""
        limit = self.workers.settings.limits.jobs
        finished = [job for job in self._jobs.values() if job.ended is not None]
        if len(self._jobs) >= limit and not finished:
            raise ServiceError(
                429,
                f"{limit} jobs are under way already; wait for one to end, or DELETE one",
                kind="jobs_limit",
                limit=limit,
                headers={"Retry-After": "5"},
            )
        if len(self._jobs) >= limit:
            del self._jobs[min(finished, key=lambda job: job.ended or 0.0).identity]
        job = Job(secrets.token_urlsafe(16), what, model)
        self._jobs[job.identity] = job
        job.task = asyncio.ensure_future(self._run(job, work))
        return job

    async def _run(self, job: Job, work: Callable[[], Response]) -> None:
        def begun() -> Response:
            job.state = "running"
            return work()

        try:
            limit = self.workers.settings.limits.job_seconds
            job.result = await self.workers.run(begun, handle=job.handle, seconds=limit)
            job.state = "done"
        except (Stopped, asyncio.CancelledError):
            job.state = "cancelled"
        except Exception as error:  # noqa: BLE001 (whoever asks for the job must hear of it)
            job.state = "failed"
            job.error = (
                error
                if isinstance(error, ServiceError)
                else of_mistake(error)
                if isinstance(error, UserError)
                else unexpected(error)
            )
        finally:
            job.ended = time.time()

    def get(self, identity: str) -> Job:
        """The job of that name."""
        job = self._jobs.get(identity)
        if job is None:
            raise ServiceError(404, f"no job {identity!r:.60}: it was never begun here, or has made room for others")
        return job

    def cancel(self, identity: str) -> Job:
        """Tell a job to stop; it does so after the rows that it is at. One that has ended is forgotten."""
        job = self.get(identity)
        job.handle.stop = True
        if job.ended is not None:
            del self._jobs[identity]
        return job

    def counts(self) -> dict[str, int]:
        """How many there are in each state."""
        found = dict.fromkeys(("waiting", "running", "done", "failed", "cancelled"), 0)
        for job in self._jobs.values():
            found[job.state] += 1
        return found
