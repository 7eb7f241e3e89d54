"""The Open Inference Protocol, version 2 (as KServe and Triton speak it), for models of tables.

Every column is an input, ``FP64`` for numbers and ``BYTES`` for everything else, of as many elements as there are
rows; null and the empty text are unknown. The outputs are the columns with their holes filled, and ``log_prob``, the
log-likelihood of what was known. Errors are ``{"error": "text"}``, as the protocol has them.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pandas as pd
from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from anyorder.serve import tables
from anyorder.serve.errors import PROTOCOL, PlainFailure, ServiceError
from anyorder.serve.models import Served
from anyorder.serve.service import ServiceDep, as_json, noted
from anyorder.support.installed import version_of
from anyorder.support.plain import plain

FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": PlainFailure, "description": "an error, as the protocol has it"} for status in ("4XX", "5XX")
}
router = APIRouter(prefix=PROTOCOL, tags=["open inference protocol"], responses=FAILURES)
NUMBERS = ("FP64", "FP32", "INT64", "INT32", "INT16", "INT8", "UINT8", "UINT16", "UINT32", "UINT64", "BOOL")
LOG_PROB = "log_prob"


class TensorIn(BaseModel):
    """One column."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(max_length=1000)
    shape: list[int] = Field(min_length=1, max_length=2)
    datatype: Literal[
        "FP64", "FP32", "INT64", "INT32", "INT16", "INT8", "UINT8", "UINT16", "UINT32", "UINT64", "BOOL", "BYTES"
    ]
    parameters: dict[str, Any] = Field(default_factory=dict)
    data: list[bool | int | float | str | None] | list[list[bool | int | float | str | None]]


class WantedOut(BaseModel):
    """An output that is asked for."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(max_length=1000)


class InferRequest(BaseModel):
    """Some columns of some rows."""

    model_config = ConfigDict(extra="allow")

    id: str | None = Field(None, max_length=1000)
    parameters: dict[str, Any] = Field(default_factory=dict)
    inputs: list[TensorIn] = Field(min_length=1, max_length=tables.MOST_COLUMNS)
    outputs: list[WantedOut] | None = Field(None, max_length=tables.MOST_COLUMNS)


class TensorOut(BaseModel):
    """One column."""

    name: str
    shape: list[int]
    datatype: str
    data: list[bool | int | float | str | None]


class InferAnswer(BaseModel):
    """The columns asked for."""

    model_name: str
    id: str | None = None
    outputs: list[TensorOut]
    parameters: dict[str, Any]


class TensorFacts(BaseModel):
    """A column, without cells."""

    name: str
    datatype: str
    shape: list[int]


class MetadataAnswer(BaseModel):
    """What goes in, and what comes out."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorFacts]
    outputs: list[TensorFacts]


class ServerAnswer(BaseModel):
    """The service."""

    name: str
    version: str
    extensions: list[str]


@router.get("/health/live")
async def live() -> Response:
    """Whether the service is there."""
    return JSONResponse({"live": True})


@router.get("/health/ready")
async def ready(service: ServiceDep) -> Response:
    """Whether any model can be asked."""
    return JSONResponse({"ready": service.models.ready}, 200 if service.models.ready else 503)


@router.get("", response_model=ServerAnswer)
async def server() -> Response:
    """The service's name and version."""
    return JSONResponse({"name": "anyorder", "version": version_of("anyorder"), "extensions": []})


@router.get("/models/{name}/ready")
async def model_ready(name: str, service: ServiceDep) -> Response:
    """Whether a model can be asked."""
    service.models.get(name)
    return JSONResponse({"name": name, "ready": True})


@router.get("/models/{name}", response_model=MetadataAnswer)
async def metadata(name: str, service: ServiceDep) -> Response:
    """The columns of a model."""
    served = service.models.get(name, "table")
    columns = [{"name": one, "datatype": _datatype(served, one), "shape": [-1]} for one in served.model.columns]
    outputs = [*columns, {"name": LOG_PROB, "datatype": "FP64", "shape": [-1]}]
    facts = {"name": name, "versions": [], "platform": "anyorder", "inputs": columns, "outputs": outputs}
    return Response(as_json(facts), media_type="application/json")


@router.post("/models/{name}/infer", response_model=InferAnswer)
async def infer(name: str, said: InferRequest, service: ServiceDep) -> Response:
    """Fill the unknown cells of some rows, and score what was known."""
    served = service.models.get(name, "table")

    def work() -> bytes:
        with noted("inputs") as notes:
            outputs = _infer(served, said, service.settings.limits)
        facts: dict[str, Any] = {"model_name": name, "outputs": outputs, "parameters": {"notes": notes}}
        return as_json(facts if said.id is None else facts | {"id": said.id})

    return Response(await service.workers.run(work), media_type="application/json")


def _infer(served: Served, said: InferRequest, limits: Any) -> list[dict[str, Any]]:
    columns: dict[str, Any] = {}
    for number, tensor in enumerate(said.inputs):
        cells = [cell for part in tensor.data for cell in (part if isinstance(part, list) else [part])]
        if math.prod(tensor.shape) != len(cells) or min(tensor.shape) < 0:
            message = f"the shape {tensor.shape} does not go with {len(cells)} elements"
            raise ServiceError(422, message, where=f"inputs.{number}")
        if tensor.name in columns:
            raise ServiceError(422, f"{tensor.name!r:.80} is there twice", where=f"inputs.{number}")
        tables.check_size(len(cells), len(said.inputs), limits)
        columns[tensor.name] = _column(cells, tensor, number)
    if len({len(column) for column in columns.values()}) > 1:
        raise ServiceError(422, "all inputs need the same number of rows", where="inputs")
    frame = pd.DataFrame(columns)
    wanted = [one.name for one in said.outputs] if said.outputs else [*served.model.columns, LOG_PROB]
    for column in wanted:
        if column != LOG_PROB:
            served.model.schema.index(column)
    outputs = []
    filled = served.model.fill(frame, progress=False) if set(wanted) - {LOG_PROB} else frame
    for column in wanted:
        if column == LOG_PROB and LOG_PROB not in served.model.schema:
            found, kind = served.model.log_prob(frame, progress=False).tolist(), "FP64"
        else:
            kind = _datatype(served, column)
            found = [None if pd.isna(cell) else plain(cell) for cell in filled[column].astype(object)]
            found = [cell if cell is None or kind == "FP64" else str(cell) for cell in found]
        outputs.append({"name": column, "shape": [len(found)], "datatype": kind, "data": found})
    return outputs


def _column(cells: list[Any], tensor: TensorIn, number: int) -> Any:
    if tensor.datatype in NUMBERS:
        if any(isinstance(cell, str) for cell in cells):
            raise ServiceError(422, f"{tensor.datatype} holds numbers, not texts", where=f"inputs.{number}.data")
        try:
            return np.array([np.nan if cell is None else float(cell) for cell in cells])
        except OverflowError:
            raise ServiceError(
                422, "a number this large cannot be computed with", where=f"inputs.{number}.data"
            ) from None
    return pd.Series([None if cell in (None, "") else str(cell) for cell in cells], dtype=object)


def _datatype(served: Served, column: str) -> str:
    variable = served.model.schema[column]
    return "FP64" if variable.numeric and variable.notation is None and variable.form == "" else "BYTES"
