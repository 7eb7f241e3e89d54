"""What every request passes first: is it too large, does it come from a page of someone else, does it have the token.

A browser sends requests for any page that is open in it. Pages of other sites cannot read an answer, since there is no
CORS; and a name of theirs that leads to this machine (DNS rebinding) is refused by its Host header.
"""

from __future__ import annotations

import hmac
import re
import time
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anyorder.serve.errors import ServiceError, unexpected
from anyorder.serve.metrics import Metrics
from anyorder.serve.settings import Settings, is_loopback

OPEN = re.compile(
    r"/(?:(?:v2/)?health/(?:live|ready)|favicon\.ico|assets/.*|)"
)  # without a token: nothing is told here
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, body = time.perf_counter(), 500, _Body(self.settings.limits.body, receive)

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
            await send(message)

        async def answered(message: Message) -> None:
            if not body.too_large:
                await counted(message)
            elif message["type"] == "http.response.start":
                # Whatever the application makes of a body that broke off: this is why it did.
                await self._too_large().response()(scope, receive, counted)

        try:
            self._check(scope)
            await self.app(scope, body, answered)
        except ServiceError as error:
            await error.response()(scope, receive, counted)
        except ClientDisconnect:
            if body.too_large:
                await self._too_large().response()(scope, receive, counted)
        except Exception as error:  # noqa: BLE001 (whoever asked is answered, whatever went wrong)
            await unexpected(error).response()(scope, receive, counted)
        finally:
            # Not the path itself: whoever asks for a thousand paths would fill the registry.
            route = getattr(scope.get("route"), "path", "unknown")
            self.metrics.requests.labels(route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - began)

    def _check(self, scope: Scope) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if self.settings.local and not is_loopback(_hostname(host)):
            raise ServiceError(421, f"this service answers on this machine alone, not as {host!r:.100}")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise ServiceError(403, f"pages of {origin!r:.100} may not ask this service: it allows no other origins")
        if self.settings.token is not None and not OPEN.fullmatch(scope["path"]):
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
            raise self._too_large()

    def _too_large(self) -> ServiceError:
        limit = self.settings.limits.body
        return ServiceError(413, f"the body has more than {limit} bytes", where="body", limit=limit, kind="body_limit")


class _Body:
    """The parts of a body, up to a limit, whatever its header said."""

    def __init__(self, limit: int, receive: Receive) -> None:
        self.limit, self.receive = limit, receive
        self.taken = 0

    @property
    def too_large(self) -> bool:
        return self.taken > self.limit

    async def __call__(self) -> Message:
        message = await self.receive()
        self.taken += len(message.get("body", b""))
        # The rest is not taken: to the application it is as if the client had gone.
        return {"type": "http.disconnect"} if self.too_large else message


def _hostname(host: str) -> str:
    """A Host header without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
