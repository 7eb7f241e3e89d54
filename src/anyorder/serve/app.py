"""The application: routes, and what surrounds every request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from anyorder.serve.errors import Failure, answer_errors
from anyorder.serve.guard import Guard
from anyorder.serve.models import Models
from anyorder.serve.routes import pictures, protocol, questions, service, tables, texts
from anyorder.serve.service import Service
from anyorder.serve.settings import Settings
from anyorder.support.installed import version_of

if TYPE_CHECKING:
    from anyorder.modalities.face import FittedModel

ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Failure, "description": "a mistake in the request, or too much asked at once"},
    "5XX": {"model": Failure, "description": "no answer now: busy, too slow, or a fault of the service"},
}


def create_app(models: Models | Mapping[str, FittedModel], settings: Settings | None = None) -> FastAPI:
    """The service as an ASGI application.

    Parameters
    ----------
    models
        By name; or what :meth:`Models.read` loaded.
    settings
        Who may ask, and how much at once; by default this machine alone.

    Returns
    -------
    FastAPI

    Examples
    --------
    >>> from anyorder.serve.app import create_app
    >>> create_app({"house": model}).title
    'anyorder'
    """
    settings = settings or Settings()
    state = Service(models if isinstance(models, Models) else Models.of(models), settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await state.workers.close()

    app = FastAPI(
        title="anyorder",
        version=version_of("anyorder"),
        description="One model, every question: what is known goes in, distributions, rows and filled tables come out.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses=ERRORS,
    )
    app.state.service = state
    for status in ("ready", "failed"):
        count = sum(one.status == status for one in state.models.served.values())
        state.metrics.models.labels(status).set(count)
    for part in (service, questions, tables, texts, pictures, protocol):
        app.include_router(part.router)
    app.include_router(service.pages)
    answer_errors(app)
    app.add_middleware(Guard, settings=settings, metrics=state.metrics)
    return app
