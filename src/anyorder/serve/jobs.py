"""Long work: it begins at once, says how far it is, can be stopped, and its result is fetched when it is done.

Jobs live in memory and end with the service. As many are kept as the limits allow, their results up to so many bytes
and for so long; the oldest finished one makes room for a new one.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from fastapi.responses import Response

from anyorder.errors import UserError
from anyorder.serve.errors import ServiceError, of_mistake, unexpected
from anyorder.serve.workers import Handle, Stopped, Workers, of_nobody


class Result(Protocol):
    """What a job found."""

    def response(self, kind: str | None = None) -> Response:
        """It as an answer of that type; by default of the one that was accepted when the job began."""

    @property
    def size(self) -> int:
        """About how many bytes it holds."""


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
    result: Result | None = None
    size: int = 0
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

    def start(self, what: str, model: str, work: Callable[[], Result]) -> Job:
        """Begin some work."""
        self._make_room()
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
        job.task = of_nobody(self._run(job, work))
        return job

    def _make_room(self) -> None:
        """Forget what is too old, and the oldest of what is too much; the newest is kept, whatever it holds."""
        limits = self.workers.settings.limits
        finished = sorted((job for job in self._jobs.values() if job.ended is not None), key=lambda job: job.ended or 0)
        held = sum(job.result.size for job in finished if job.result is not None)
        for job in finished:
            if (held > limits.results and job is not finished[-1]) or time.time() - (
                job.ended or 0
            ) > limits.kept_seconds:
                held -= 0 if job.result is None else job.result.size
                del self._jobs[job.identity]

    async def _run(self, job: Job, work: Callable[[], Result]) -> None:
        def begun() -> Result:
            job.state = "running"
            found = work()
            job.size = found.size  # here, since to count it takes a while
            return found

        try:
            job.result = await self.workers.run_long(begun, job.handle)
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
            self._make_room()

    def get(self, identity: str) -> Job:
        """The job of that name."""
        self._make_room()
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
