"""One shape for everything that goes wrong: ``{"error": {"kind", "message", "where", ...}}``.

``kind`` is for programs, ``message`` for people. ``where`` names the part of the request that is wrong, and ``at`` the
character of a typed question, from 0.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Container, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.types import Scope

from anyorder.errors import UserError
from anyorder.support.words import TextError

log = logging.getLogger("anyorder.serve")

KINDS = {
    400: "mistake",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    408: "time_limit",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    421: "misdirected",
    422: "invalid_request",
    429: "too_many",
    500: "internal",
    503: "unavailable",
    504: "time_limit",
}
PROTOCOL = "/v2"  # below it, errors are those of the Open Inference Protocol
UNREADABLE = "There was an error parsing the body"  # what FastAPI says of JSON that is no text, or too deep
HINT = r"; (?:did you mean|valid )"
QUOTED = re.compile(r"'([^']+)'")
LONGEST = 500  # characters of what was wrong with a field


class Problem(BaseModel):
    """What went wrong."""

    kind: str = Field(description="for programs: " + ", ".join(KINDS.values()) + ", or the name of a limit")
    message: str = Field(description="for people: what was expected, what came, what to do")
    where: str | None = Field(None, description="the part of the request that is wrong, such as given.age or question")
    at: int | None = Field(None, description="the character of a typed text at which it is wrong, counted from 0")
    limit: float | None = Field(None, description="of a request that asks for too much: how much is allowed")


class Failure(BaseModel):
    """The body of every answer that is an error."""

    error: Problem


class PlainFailure(BaseModel):
    """The body of an error below ``/v2``: the Open Inference Protocol has a text there."""

    error: str


class ServiceError(Exception):
    """Something to answer with an error: a status, and what to say of it."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str | None = None,
        where: str | None = None,
        at: int | None = None,
        limit: float | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers
        self.problem = Problem(
            kind=kind or KINDS.get(status, "error"), message=message, where=where, at=at, limit=limit
        )

    def response(self, path: str) -> JSONResponse:
        """The answer that says it to whoever asked at this path."""
        said: Any = self.problem.model_dump(exclude_none=True)
        if path.startswith(PROTOCOL):
            said = self.problem.message
        return JSONResponse({"error": said}, self.status, self.headers)


def of_mistake(error: UserError, where: str | None = None, fields: Container[str] = ()) -> ServiceError:
    """A user's mistake, with its place in a typed text where it has one.

    Where the message begins with one of the ``fields``, such as in "length must be ...", that is the place.
    """
    if isinstance(error, TextError):
        return ServiceError(400, str(error), where=where, at=error.at)
    first = re.match(r"\w*", str(error))
    return ServiceError(400, str(error), where=first[0] if first and first[0] in fields else where)


def placed(error: UserError, text: str) -> UserError:
    """A mistake about a name or a value, which messages quote, with its place in the text that was typed."""
    if isinstance(error, TextError):
        return error
    said = re.split(HINT, str(error))[0]
    # Of a column and its value the latter is wrong.
    for name in reversed(QUOTED.findall(said)):
        if found := re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            return TextError(str(error), text, found.start())
    return error


def path_of(scope: Scope) -> str:
    """The path within this application, which may be mounted in another one."""
    path, root = scope["path"], scope.get("root_path", "")
    return str(path[len(root) :] if root and path.startswith(root) else path)


def answer_errors(app: FastAPI) -> None:
    """Have the application answer every error in the one shape."""

    def answer(request: Request, error: ServiceError) -> JSONResponse:
        return error.response(path_of(request.scope))

    @app.exception_handler(ServiceError)
    async def service(request: Request, error: ServiceError) -> JSONResponse:
        return answer(request, error)

    @app.exception_handler(UserError)
    async def mistake(request: Request, error: UserError) -> JSONResponse:
        return answer(request, of_mistake(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        kind = request.headers.get("content-type", "")
        if "json" not in kind and error.errors() and error.errors()[0]["loc"] == ("body",):
            message = f"a body is JSON and says so, by 'Content-Type: application/json'; got {kind!r:.80}"
            return answer(request, ServiceError(415, message, where="content-type"))
        return answer(request, _invalid(error.errors()))

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> JSONResponse:
        if error.detail == UNREADABLE:
            return ServiceError(422, "the body is not JSON that can be read", where="body").response(
                path_of(request.scope)
            )
        said = {
            404: f"there is nothing at {request.url.path!r:.200}; GET /openapi.json lists what there is",
            405: f"{request.method} is not answered at {request.url.path!r:.200}",
        }
        message = said.get(error.status_code, str(error.detail))
        return ServiceError(error.status_code, message, headers=dict(error.headers or {})).response(
            path_of(request.scope)
        )


def unexpected(error: BaseException) -> ServiceError:
    """Our own fault: the log has it, the client hears no more than that."""
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):  # the latter is torch's
        return ServiceError(
            413, "this takes more memory than there is; ask for fewer rows or draws at a time", kind="out_of_memory"
        )
    log.error("internal error", exc_info=error)
    return ServiceError(500, f"internal error ({type(error).__name__}); the log of the service has more")


def _invalid(errors: Sequence[Any]) -> ServiceError:
    """The first thing that is wrong with a request that does not have the expected shape."""
    first: dict[str, Any] = errors[0] if errors else {"loc": (), "msg": "the request cannot be read"}
    place = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
    message = str(first["msg"])[:LONGEST]
    if first.get("type") == "json_invalid":
        return ServiceError(422, f"the body is not JSON: {first.get('ctx', {}).get('error', message)}", where="body")
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return ServiceError(422, message + more, where=".".join(place) or "body")
