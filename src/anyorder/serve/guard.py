"""What every request passes first: is it too large, does it come from a page of someone else, does it have the token.

A browser sends requests for any page that is open in it. Pages of other sites cannot read an answer, since there is no
CORS; and a name of theirs that leads to this machine (DNS rebinding) is refused by its Host header.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anyorder.serve.errors import ServiceError, path_of, unexpected
from anyorder.serve.metrics import Metrics
from anyorder.serve.settings import Settings, is_loopback
from anyorder.serve.workers import client

GONE = 499  # what is counted where a client did not wait for its answer
OPEN = re.compile(r"/?|/(?:(?:v2/)?health/(?:live|ready)|assets/.*)")  # without a token: nothing is told here
BODIES = 16  # times the largest body: what all requests under way may hold
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'",
    ),
]


class Guard:
    """Refuses what must not come in, bounds what does, and counts both."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self.held = 0  # bytes of all bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, body = time.perf_counter(), 500, _Body(self, receive)
        path = path_of(scope)

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
            await send(message)

        async def answered(message: Message) -> None:
            if body.problem is None:
                await counted(message)
            elif message["type"] == "http.response.start":
                # Whatever the application makes of a body that broke off: this is why it did.
                await body.problem.response(path)(scope, receive, counted)

        try:
            self._check(scope, path)
            client.set(body)
            await self.app(scope, body, answered)
        except ServiceError as error:
            await error.response(path)(scope, receive, counted)
        except ClientDisconnect:
            status = GONE
            if body.problem is not None:
                await body.problem.response(path)(scope, receive, counted)
        except Exception as error:  # noqa: BLE001 (whoever asked is answered, whatever went wrong)
            await unexpected(error).response(path)(scope, receive, counted)
        finally:
            self.held -= body.taken
            # Not the path itself: whoever asks for a thousand paths would fill the registry.
            route = getattr(scope.get("route"), "path", "unknown")
            self.metrics.requests.labels(route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - began)

    def _check(self, scope: Scope, path: str) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if self.settings.local and not is_loopback(_hostname(host)) and _hostname(host) not in self.settings.hosts:
            raise ServiceError(
                421, f"this service answers on this machine alone, not as {host!r:.100}; --allow-host adds a name"
            )
        origin = headers.get("origin")
        if origin is not None and not self._same_site(origin, host):
            raise ServiceError(403, f"pages of {origin!r:.100} may not ask this service: it allows no other origins")
        if self.settings.token is not None and not OPEN.fullmatch(path):
            scheme, _, token = headers.get("authorization", "").partition(" ")
            # Compared in constant time: how long it takes must not tell how much of it is right.
            same = hmac.compare_digest(token.strip().encode("utf-8"), self.settings.token.encode("utf-8"))
            if scheme.lower() != "bearer" or not same:
                raise ServiceError(
                    401,
                    "this service needs a token: send the header 'Authorization: Bearer TOKEN'",
                    headers={"WWW-Authenticate": "Bearer"},
                )
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise ServiceError(415, "a body must be sent as it is, without Content-Encoding", where="content-encoding")
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self.settings.limits.body:
            raise self.too_large()

    def _same_site(self, origin: str, host: str) -> bool:
        _, sign, rest = origin.partition("://")
        return bool(sign) and (rest.lower() == host.lower() or _hostname(rest) in self.settings.hosts)

    def too_large(self) -> ServiceError:
        """What is said of a body above the limit."""
        limit = self.settings.limits.body
        return ServiceError(413, f"the body has more than {limit} bytes", where="body", limit=limit, kind="body_limit")


class _Body:
    """The parts of a body: up to a limit, whatever its header said, and within the time for an answer."""

    def __init__(self, guard: Guard, receive: Receive) -> None:
        self.guard, self.receive = guard, receive
        self.taken, self.complete = 0, False
        self.problem: ServiceError | None = None
        self.ends = asyncio.get_running_loop().time() + guard.settings.limits.seconds

    async def __call__(self) -> Message:
        if self.complete:  # what may come now is that the client has gone
            return await self.receive()
        limits = self.guard.settings.limits
        try:
            async with asyncio.timeout_at(self.ends):
                message = await self.receive()
        except TimeoutError:
            said = f"the body has not come within {limits.seconds:g} seconds"
            self.problem = ServiceError(408, said, where="body", limit=limits.seconds)
            return {"type": "http.disconnect"}
        size = len(message.get("body", b""))
        self.taken, self.guard.held = self.taken + size, self.guard.held + size
        self.complete = not message.get("more_body", False)
        if self.taken > limits.body:
            self.problem = self.guard.too_large()
        elif self.guard.held > BODIES * limits.body:
            said = "too many large requests are under way; try again in a moment"
            self.problem = ServiceError(503, said, kind="busy", headers={"Retry-After": "1"})
        # The rest is not taken: to the application it is as if the client had gone.
        return message if self.problem is None else {"type": "http.disconnect"}


def _hostname(host: str) -> str:
    """A Host header without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
