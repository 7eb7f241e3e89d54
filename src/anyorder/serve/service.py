"""What the routes share: the models, the workers, the limits; and how an answer becomes bytes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Container, Coroutine, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar, cast

from fastapi import Depends, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from anyorder.errors import UserError
from anyorder.serve.errors import ServiceError, of_mistake
from anyorder.serve.jobs import Jobs
from anyorder.serve.metrics import Metrics
from anyorder.serve.models import Models, Served
from anyorder.serve.settings import Settings
from anyorder.serve.workers import Together, Workers
from anyorder.support.notes import notes_heard
from anyorder.support.plain import plain

Seed = Annotated[int, Field(ge=0, lt=1 << 63, description="the same seed gives the same draws")]
Rules = Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=100)]


class Asked(BaseModel):
    """A request in JSON: a field that is not known is a mistake."""

    model_config = ConfigDict(extra="forbid")


Question = TypeVar("Question", bound=Asked)


class Service:
    """One application's state."""

    def __init__(self, models: Models, settings: Settings) -> None:
        self.models, self.settings, self.metrics = models, settings, Metrics()
        self.workers = Workers(settings, self.metrics)
        self.jobs = Jobs(self.workers)
        self._together: dict[tuple[str, str], Together[Any, Any]] = {}

    def together(self, served: Served, what: str, answer: Callable[..., Any], most: int) -> Together[Any, Any]:
        """The questions of one kind to one model, which are answered in batches."""
        key = (served.name, what)
        if key not in self._together:
            self._together[key] = Together(self.workers, answer, min(most, self.settings.together))
        return self._together[key]

    def check_draws(self, count: int | None, where: str = "draws") -> None:
        """Refuse more draws than are allowed."""
        limit = self.settings.limits.draws
        if count is not None and count > limit:
            raise ServiceError(
                413,
                f"{where}={count} is too much, {limit} are allowed at once",
                kind="draws_limit",
                where=where,
                limit=limit,
            )

    def within_draws(self, said: Question, draws: int | None) -> Question:
        """A request with its ``draws``: refused if it says too many, as many as are allowed if it says none."""
        limit = self.settings.limits.draws
        if "draws" in said.model_fields_set:
            self.check_draws(draws)
        elif draws is not None and draws > limit:
            return said.model_copy(update={"draws": limit})
        return said

    def check_cells(self, count: int, each: int, where: str, what: str) -> None:
        """Refuse more texts or pictures, of so many characters or pixels each, than there may be cells in a table."""
        limit = self.settings.limits.cells
        if count * each > limit:
            raise ServiceError(
                413,
                f"{count} {what} of {each} values each are too many, {limit} values are allowed at once",
                kind="cells_limit",
                where=where,
                limit=limit,
            )

    async def answer(
        self, key: Any, facts: Callable[[], dict[str, Any]], where: str | None = None, said: Asked | None = None
    ) -> Response:
        """What ``facts`` finds in a thread, and the notes that came with it, as JSON.

        A mistake is in that field of the request ``said`` with whose name it begins, else in ``where``.
        """

        def work() -> bytes:
            with noted(where, () if said is None else type(said).model_fields) as notes:
                found = facts()
            return as_json({**found, "notes": [*notes, *found.get("notes", [])]})

        return await self.once(key, lambda: self.workers.run(work))

    async def once(self, key: Any, work: Callable[[], Coroutine[Any, Any, bytes]]) -> Response:
        """The JSON that ``work`` makes; for those who ask the same at the same time only once."""
        content = await self.workers.once(key, work)
        return Response(content, media_type="application/json")


@contextmanager
def noted(where: str | None, fields: Container[str] = ()) -> Iterator[list[str]]:
    """Within, what the library warns of; a user's mistake becomes an answer that says where it is."""
    with notes_heard() as notes:
        try:
            yield notes
        except UserError as error:
            raise of_mistake(error, where, fields) from error


def score_facts(nats: Any, unit: str) -> dict[str, Any]:
    """Log-likelihoods, their mean and its standard error."""
    rows = len(nats)
    error = float(nats.std(ddof=1)) / math.sqrt(rows) if rows > 1 else None
    facts: dict[str, Any] = {"rows": rows, "mean": float(nats.mean()), "standard_error": error, "unit": unit}
    return facts | {"log_prob": nats.tolist()}


def key_of(route: str, name: str, *said: Any) -> tuple[str, str, bytes]:
    """What tells one request from another: everything that its answer depends on, the order of columns too."""
    digest = hashlib.sha256()
    for part in said:
        content = part if isinstance(part, bytes) else json.dumps(part, default=str).encode("utf-8")
        digest.update(len(content).to_bytes(8, "big") + content)
    return route, name, digest.digest()


def as_json(facts: dict[str, Any]) -> bytes:
    """The facts as JSON. A number keeps all of its bits: the shortest text that reads back as it."""
    return plain_json(plain(facts))


def plain_json(facts: dict[str, Any]) -> bytes:
    """Facts that hold nothing but what JSON knows: to go through many numbers once more would take long."""
    text = json.dumps(facts, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


ServiceDep = Annotated[Service, Depends(_service)]
"""The service, in a route."""
