"""A client of a service that runs inside the test: requests in, answers out, several at once if need be."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

import anyorder as ao
from anyorder.serve.app import create_app
from anyorder.serve.models import Models
from anyorder.serve.settings import Settings

FILES = Path(__file__).resolve().parents[1] / "files" / "v1"
TABLE, TEXT, PICTURES = "table_both", "text", "pictures_few_levels"


class Asking:
    """Answers of one application, on an event loop of its own."""

    def __init__(self, app: Any, base: str = "http://127.0.0.1:1") -> None:
        self.app, self.base = app, base
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)

    def __enter__(self) -> Asking:
        self.thread.start()
        self._life = self.app.router.lifespan_context(self.app)
        self._run(self._life.__aenter__())
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=transport, base_url=self.base, timeout=60)
        return self

    def __exit__(self, *error: object) -> None:
        self._run(self.client.aclose())
        self._run(self._life.__aexit__(None, None, None))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One request."""
        found: httpx.Response = self._run(self.client.request(method, path, **options))
        return found

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, json: Any = None, **options: Any) -> httpx.Response:
        return self.request("POST", path, **({"json": json} if json is not None else {}), **options)

    def at_once(self, requests: Sequence[tuple[str, Mapping[str, Any]]]) -> list[httpx.Response]:
        """Bodies to paths, all under way together."""

        async def all_of_them() -> list[httpx.Response]:
            return await asyncio.gather(*(self.client.post(path, json=dict(body)) for path, body in requests))

        found: list[httpx.Response] = self._run(all_of_them())
        return found


@contextmanager
def asked(models: Models | Mapping[str, Any], **settings: Any) -> Iterator[Asking]:
    """A service of these models."""
    with Asking(create_app(models, Settings(**settings))) as asking:
        yield asking


def load(name: str) -> Any:
    """One of the small models that were kept for the tests of old files."""
    return ao.load(FILES / f"{name}.anyorder")
