"""The service without a socket: questions of this process, answered by the same application as over HTTP.

A notebook asks what the page of ``anyorder serve`` asks, so it must not have a second way to answer. The application
runs on a loop in a thread of its own, and is called by httpx's transport for ASGI applications: routing, checks, limits
and bytes are those of HTTP, and no port is opened.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, cast

import httpx

from anyorder.serve.app import create_app
from anyorder.serve.errors import ServiceError
from anyorder.serve.service import Service
from anyorder.serve.settings import Settings

if TYPE_CHECKING:
    from anyorder.modalities.face import FittedModel

ADDRESS = "http://localhost/v1/"  # what the application believes to be called


@dataclass(frozen=True)
class Reply:
    """What HTTP would have answered."""

    status: int
    content: bytes

    @classmethod
    def of(cls, error: ServiceError) -> Self:
        """What it would have answered to this error."""
        return cls(error.status, bytes(error.response("/v1/").body))


class InProcess:
    """Some models that answer in this process; threads begin with the first question and end with :meth:`close`."""

    def __init__(self, models: Mapping[str, FittedModel], settings: Settings | None = None) -> None:
        self._app = create_app(models, settings)
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self._app, raise_app_exceptions=False), base_url=ADDRESS, timeout=None
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        body: str | bytes | None = None,
        kind: str = "application/json",
        accept: str = "application/json",
    ) -> Future[Reply]:
        """Ask, without waiting; ``path`` is relative to ``/v1/``. Cancelling what comes back drops the question."""
        if self._closed:
            future: Future[Reply] = Future()
            closed = ServiceError(503, "this explorer was closed; call explore() again", kind="closed")
            future.set_result(Reply.of(closed))
            return future
        headers = {"Accept": accept, **({} if body is None else {"Content-Type": kind})}
        return asyncio.run_coroutine_threadsafe(self._asked(method, path, headers, body), self._running())

    async def _asked(self, method: str, path: str, headers: dict[str, str], body: str | bytes | None) -> Reply:
        answer = await self._client.request(method, path, headers=headers, content=body)
        return Reply(answer.status_code, answer.content)

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="anyorder-answers", daemon=True)
            self._thread.start()
        return self._loop

    def close(self) -> None:
        """Drop what is under way and end the threads; more than once does no harm."""
        if self._closed:
            return
        self._closed = True
        if self._loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(_drop_all(), self._loop).result()
        workers = cast(Service, self._app.state.service).workers
        asyncio.run_coroutine_threadsafe(workers.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _drop_all() -> None:
    """Cancel whatever the loop still has to do, and let it end."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
