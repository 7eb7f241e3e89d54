"""The service itself: its models, its health, its counts, its jobs, and its pages."""

from __future__ import annotations

import html
from collections import Counter
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from anyorder.serve import answers, tables
from anyorder.serve.errors import ServiceError
from anyorder.serve.models import Served
from anyorder.serve.service import ServiceDep, as_json
from anyorder.support.installed import version_of
from anyorder.support.plain import plain

router = APIRouter()
pages = APIRouter(include_in_schema=False)
KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}  # what a page is made of


def model_facts(served: Served) -> dict[str, Any]:
    """What the list of models says of one."""
    model = served.model
    facts: dict[str, Any] = dict.fromkeys(answers.ModelFacts.model_fields)
    facts |= {"name": served.name, "status": served.status, "error": served.problem}
    if model is None:
        return facts
    facts |= {"modality": model.modality, "created": plain(model.card.get("created"))}
    if model.modality == "table":
        facts["columns"] = len(model.columns)
    elif model.modality == "images":
        facts |= {"shape": list(model.shape), "levels": model.levels, "modes": list(model.modes)}
    elif model.modality == "text":
        characters = model.alphabet.unit != "bytes"
        facts |= {"length": model.length, "alphabet": model.alphabet.symbols if characters else None}
    return facts


@router.get("/v1/models", response_model=answers.ModelList, tags=["service"])
async def models(service: ServiceDep) -> Response:
    """The models that are served, and how much a request may ask for."""
    found = [model_facts(one) for one in service.models.served.values()]
    limits = asdict(service.settings.limits)
    content = as_json({"version": version_of("anyorder"), "models": found, "limits": limits})
    return Response(content, media_type="application/json")


@router.get("/v1/models/{name}", response_model=answers.ModelCard, tags=["service"])
async def card(name: str, service: ServiceDep) -> Response:
    """How a model came to be."""
    served = service.models.get(name)
    return Response(as_json({"name": name, "card": served.model.card}), media_type="application/json")


@router.get("/health/live", response_model=answers.Health, tags=["service"])
async def live(service: ServiceDep) -> Response:
    """Whether the service is there."""
    return JSONResponse({"status": "ok", "models": {}})


@router.get(
    "/health/ready", response_model=answers.Health, responses={503: {"model": answers.Health}}, tags=["service"]
)
async def ready(service: ServiceDep) -> Response:
    """Whether any model can be asked, and how many can; GET /v1/models names them."""
    found = Counter(one.status for one in service.models.served.values())
    status = "ok" if service.models.ready else "unavailable"
    return JSONResponse({"status": status, "models": found}, 200 if service.models.ready else 503)


@router.get("/metrics", tags=["service"], responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}})
async def metrics(service: ServiceDep) -> Response:
    """Counts and times, as Prometheus reads them."""
    for state, count in service.jobs.counts().items():
        service.metrics.jobs.labels(state).set(count)
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/v1/jobs/{identity}", response_model=answers.JobAnswer, response_model_exclude_none=True, tags=["jobs"])
async def job(identity: str, service: ServiceDep) -> Response:
    """How far a job is."""
    return JSONResponse(service.jobs.get(identity).facts())


@router.get("/v1/jobs/{identity}/result", tags=["jobs"], response_model=answers.FillAnswer)
async def result(identity: str, service: ServiceDep, request: Request) -> Response:
    """What a job found, in the type that is accepted now, or that was when it began."""
    found = service.jobs.get(identity)
    if found.error is not None:
        raise found.error
    if found.result is None:
        raise ServiceError(409, f"the job is {found.state}; there is no result", kind=f"job_{found.state}")
    anything = request.headers.get("accept", "*/*") in ("", "*/*")
    kind, written = None if anything else tables.accepted(request), found.result
    return await service.workers.run(lambda: written.response(kind))


@router.delete("/v1/jobs/{identity}", response_model=answers.JobAnswer, tags=["jobs"])
async def cancel(identity: str, service: ServiceDep) -> Response:
    """Stop a job; one that has ended is forgotten."""
    return JSONResponse(service.jobs.cancel(identity).facts())


@pages.get("/assets/{file}")
async def asset(file: str) -> Response:
    """A file of the page. The names are those that are there: a request's is only compared with them."""
    for one in files("anyorder.explorer").iterdir():
        if one.name == file and one.is_file() and (kind := KINDS.get(file.rpartition(".")[2])):
            return Response(one.read_bytes(), media_type=kind)
    raise ServiceError(404, f"there is no asset {file!r:.100}")


@pages.get("/")
async def index() -> HTMLResponse:
    """The explorer."""
    return HTMLResponse(files("anyorder.explorer").joinpath("index.html").read_text(encoding="utf-8"))


@pages.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """What can be asked, on one page that needs no network."""
    described = request.app.openapi()
    parts = [
        f"<h1>{html.escape(described['info']['title'])}</h1><p>{html.escape(described['info']['description'])}</p>"
    ]
    parts.append('<p>As OpenAPI: <a href="openapi.json">openapi.json</a></p><dl>')
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            parts.append(f"<dt><code>{method.upper()} {html.escape(path)}</code></dt>")
            parts.append(f"<dd>{html.escape(operation.get('description', ''))}</dd>")
    head = '<meta charset=utf-8><meta name=viewport content="width=device-width"><title>anyorder</title>'
    head += '<link rel=stylesheet href="assets/page.css"><link rel=icon href="assets/icon.svg">'
    return HTMLResponse(
        f"<!doctype html><html lang=en><head>{head}</head><body class=docs>{''.join(parts)}</dl></body>"
    )
