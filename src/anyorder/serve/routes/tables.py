"""Whole tables: holes filled, rows scored, oddities found. A table comes as JSON, CSV, Parquet or an Arrow stream."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

import pandas as pd
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from anyorder.errors import UserError
from anyorder.serve import answers, tables
from anyorder.serve.errors import ServiceError
from anyorder.serve.filled import Filled, certainties
from anyorder.serve.service import ServiceDep, key_of, noted, score_facts
from anyorder.tasks.anomalies import row_anomalies

router = APIRouter(prefix="/v1/models/{name}", tags=["tables"])
Unseen = Annotated[
    Literal["refuse", "missing"],
    Query(description="a level never seen in training: refuse the table, or take the cell for unknown"),
]


@router.post(
    "/fill",
    response_model=answers.FillAnswer,
    openapi_extra=tables.BODY,
    responses={202: {"model": answers.JobAnswer, "description": "with job=true: fetch it from /v1/jobs/{id}"}},
)
async def fill(
    name: str,
    request: Request,
    service: ServiceDep,
    draws: Annotated[int | None, Query(ge=1, description="so many random fills below each other")] = None,
    seed: Annotated[int, Query(ge=0, lt=1 << 63)] = 0,
    unseen: Unseen = "refuse",
    rule: Annotated[list[str] | None, Query(max_length=100)] = None,
    uncertainty: Annotated[bool, Query(description="say of every filled cell how sure it is; as JSON alone")] = False,
    job: Annotated[bool, Query(description="begin a job, for a large table")] = False,
) -> Response:
    """Fill the unknown cells of a table; what is known comes back as it is."""
    served, kind = service.models.get(name, "table"), tables.accepted(request)
    service.check_draws(draws)
    body = await tables.sent(request)
    options = {"draws": draws, "seed": seed, "unseen": unseen, "rules": rule}

    if uncertainty and draws is not None:
        raise ServiceError(422, "uncertainty is that of the best fill: leave draws out", where="uncertainty")
    if uncertainty and kind != tables.JSON:
        raise ServiceError(422, "uncertainty comes as JSON: accept application/json", where="uncertainty")

    def work() -> Filled:
        limits = service.settings.limits
        with noted("body", options) as notes:
            frame = tables.read_table(body, served.model.schema.missing, limits)
            tables.check_size(len(frame) * (draws or 1), len(frame.columns), limits)
            if draws is not None and "draw" in frame.columns:
                raise UserError("the table has a column 'draw' already, and draws add one of that name: rename it")
            found = served.model.fill(frame, progress=False, **options)
            if draws is not None:
                for number, one in enumerate(found):
                    one.insert(0, "draw", number)
                found = pd.concat(found, ignore_index=True)
            sure = certainties(served, frame, found, unseen) if uncertainty else None
        return Filled(found, frame, served.model.schema, kind, notes, sure)

    if job:
        begun = service.jobs.start("fill", name, work)
        address = f"{request.scope.get('root_path', '')}/v1/jobs/{begun.identity}"
        return JSONResponse(begun.facts(), 202, {"Location": address})
    return await service.workers.run(lambda: work().response(), "send fewer rows, or let it be a job (job=true)")


@router.post("/score", response_model=answers.ScoreAnswer, openapi_extra=tables.BODY)
async def score(
    name: str,
    request: Request,
    service: ServiceDep,
    given: Annotated[list[str] | None, Query(max_length=10_000, description="columns that are evidence")] = None,
    orders: Annotated[int | None, Query(ge=1, le=64)] = None,
    seed: Annotated[int, Query(ge=0, lt=1 << 63)] = 0,
    unseen: Unseen = "refuse",
) -> Response:
    """The log-likelihood of the known cells of each row, in nats."""
    served = service.models.get(name, "table")
    body = await tables.sent(request)

    def facts() -> dict[str, Any]:
        frame = tables.read_table(body, served.model.schema.missing, service.settings.limits)
        for column in given or ():
            served.model.schema.index(column)
        if not len(frame):
            raise UserError("the table has no rows to score")
        nats = served.model.log_prob(frame, given=given, orders=orders, seed=seed, unseen=unseen, progress=False)
        return {"given": given or [], **score_facts(nats, "nats per row")}

    return await service.answer(key_of("score", name, *body.key, given, orders, seed, unseen), facts, "body")


@router.post("/anomalies", response_model=answers.AnomaliesAnswer, openapi_extra=tables.BODY)
async def anomalies(
    name: str,
    request: Request,
    service: ServiceDep,
    top: Annotated[int, Query(ge=1, le=10_000)] = 10,
    rows: Annotated[bool, Query(description="rank whole rows in place of cells")] = False,
    seed: Annotated[int, Query(ge=0, lt=1 << 63)] = 0,
    unseen: Unseen = "refuse",
) -> Response:
    """The cells that are least probable given the rest of their rows, or the least probable rows; counted from 0."""
    served = service.models.get(name, "table")
    body = await tables.sent(request)

    def facts() -> dict[str, Any]:
        frame = tables.read_table(body, served.model.schema.missing, service.settings.limits)
        if rows:
            own = served.own_rows(seed)
            ranked = row_anomalies(served.model.core, frame, top=top, unseen=unseen, drawn=own)
            found = [asdict(one) for one in ranked]
        else:
            found = [asdict(one) for one in served.model.anomalies(frame, top=top, unseen=unseen)]
        return {"rows": len(frame), "anomalies": found}

    return await service.answer(key_of("anomalies", name, *body.key, top, rows, seed, unseen), facts, "body")
