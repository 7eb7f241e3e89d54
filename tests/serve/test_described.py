"""The description of the service is true: what it allows is answered as it says, what it forbids is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from anyorder.serve.app import create_app
from anyorder.serve.settings import Limits

from asking import TABLE, Asking, asked, load

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SCHEMA = schemathesis.openapi.from_dict(create_app({"table": load(TABLE)}).openapi())
OPERATIONS = {f"{found.ok().method} {found.ok().path}": found.ok() for found in SCHEMA.get_all_operations()}
NAMES = {"/text/": "text", "/pictures/": "pictures"}


@pytest.fixture(scope="module")
def bounded(models: dict[str, Any]) -> Iterator[Asking]:
    with asked(models, limits=Limits(rows=50, cells=2000, draws=16, seconds=20.0)) as asking:
        yield asking


@pytest.mark.filterwarnings("always::UserWarning")
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("name", OPERATIONS)
def test_no_request_breaks_it(name: str, mode: GenerationMode, bounded: Asking) -> None:
    operation = OPERATIONS[name]

    @settings(
        max_examples=5,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        if "name" in (case.path_parameters or {}) and mode is GenerationMode.POSITIVE:
            case.path_parameters["name"] = next((own for part, own in NAMES.items() if part in name), "table")
        try:
            response = send(bounded, case)
        except httpx.InvalidURL:  # longer than our client sends
            reject()
        case.validate_response(response, checks=CHECKS)

    with suppress(Unsatisfiable):  # nothing wrong can be made of an operation without input
        check()
    assert bounded.get("/health/live").status_code == 200


def send(service: Asking, case: Any) -> httpx.Response:
    """A request that was made up, by our own client."""
    sent = case.as_transport_kwargs(base_url=service.base)
    content = {name: sent[name] for name in ("json", "data", "content") if sent.get(name) is not None}
    if isinstance(content.get("data"), str | bytes):
        content = {"content": content["data"]}
    headers = {key: value for key, value in dict(sent.get("headers") or {}).items() if key.lower() != "host"}
    return service.request(sent["method"], sent["url"], params=sent.get("params") or None, headers=headers, **content)
