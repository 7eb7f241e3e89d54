"""What must not come in is refused, each with its own error of one shape, and the next request is answered."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from anyorder.errors import UserError
from anyorder.serve.errors import Failure, PlainFailure, Problem
from anyorder.serve.models import Models
from anyorder.serve.settings import Limits, Settings

from asking import FILES, TABLE, Asking, asked

PATH = "/v1/models/table"
PARQUET = {"content-type": "application/vnd.apache.parquet"}
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}
PICTURES = "/v1/models/pictures/pictures"
INFER = "/v2/models/table/infer"
WIDE = {"columns": [f"c{n}" for n in range(21)], "rows": [[1] * 21] * 10}
SHORT = {"name": "size", "shape": [2], "datatype": "FP64", "data": [1]}
WORDS = {"name": "size", "shape": [1], "datatype": "FP64", "data": ["x"]}
HUGE = {"name": "size", "shape": [1], "datatype": "FP64", "data": [10**400]}
TOKEN = "a secret of some length"
TINY = Limits(body=4000, rows=20, cells=200, draws=50, seconds=20.0, jobs=2)


@pytest.fixture(scope="module")
def small(models: dict[str, Any]) -> Iterator[Asking]:
    with asked(models, limits=TINY, remembered=0) as asking:
        yield asking


def problem(answer: httpx.Response, status: int) -> Any:
    assert answer.status_code == status, answer.text[:500]
    if "/v2" in str(answer.url):  # as the Open Inference Protocol has it
        return Problem(kind="", message=PlainFailure.model_validate(answer.json()).error)
    return Failure.model_validate(answer.json()).error


LIMITED: list[tuple[str, str, dict[str, Any], str]] = [
    ("the body", f"{PATH}/ask", {"json": {"question": "x" * 5000}}, "body_limit"),
    ("rows", f"{PATH}/score", {"json": {"columns": ["count"], "rows": [[1]] * 21}}, "rows_limit"),
    (
        "cells",
        f"{PATH}/score",
        {"json": {"columns": [f"c{n}" for n in range(21)], "rows": [[1] * 21] * 10}},
        "cells_limit",
    ),
    ("draws", f"{PATH}/ask", {"json": {"question": "size | count > 3", "draws": 51}}, "draws_limit"),
    ("rows to draw", f"{PATH}/sample", {"json": {"count": 51}}, "draws_limit"),
    ("draws of a fill", f"{PATH}/fill?draws=51", {"json": {"columns": ["count"], "rows": [[1]]}}, "draws_limit"),
    ("filled rows", f"{PATH}/fill?draws=30", {"json": {"columns": ["count"], "rows": [[1]]}}, "rows_limit"),
    ("draws of texts", "/v1/models/text/text/fill", {"json": {"text": "a_", "draws": 51}}, "draws_limit"),
    ("characters", "/v1/models/text/text/sample", {"json": {"count": 20}}, "cells_limit"),
    ("pictures", f"{PICTURES}/sample", {"json": {"count": 10}}, "cells_limit"),
]


@pytest.mark.parametrize(("path", "request_", "kind"), [one[1:] for one in LIMITED], ids=[one[0] for one in LIMITED])
def test_every_limit_has_its_own_error(path: str, request_: dict[str, Any], kind: str, small: Asking) -> None:
    found = problem(small.post(path, **request_), 413)
    assert found.kind == kind and found.limit is not None


def test_draws_that_are_not_said_are_as_many_as_are_allowed(small: Asking) -> None:
    given = {"given": {"count": "> 20"}}
    for path, said in (("marginals", given), ("evidence", given), ("next", given | {"about": ["kind"]})):
        unsaid = small.post(f"{PATH}/{path}", said)
        assert unsaid.status_code == 200 and unsaid.json() == small.post(f"{PATH}/{path}", said | {"draws": 50}).json()
        assert problem(small.post(f"{PATH}/{path}", said | {"draws": 51}), 413).kind == "draws_limit"
    answer = small.post(f"{PATH}/ask", {"question": "kind | count > 20"}).json()
    assert answer["answers"]["kind"]["method"] == "truncated draws (50)"


@pytest.mark.parametrize("path", ["ask", "fill"])
def test_a_body_that_does_not_say_how_long_it_is(path: str, small: Asking) -> None:
    async def parts() -> Any:
        for _ in range(100):
            yield b" " * 100

    found = problem(small.request("POST", f"{PATH}/{path}", content=parts()), 413)
    assert found.kind == "body_limit"


def test_too_slow(models: dict[str, Any]) -> None:
    with asked({"table": models["table"]}, limits=Limits(seconds=0.05)) as service:
        found = problem(service.post(f"{PATH}/sample", {"count": 5000}), 504)
        assert found.kind == "time_limit" and found.limit == 0.05
        assert service.get("/health/live").status_code == 200


def test_too_many_wait(models: dict[str, Any]) -> None:
    with asked({"table": models["table"]}, workers=1, limits=Limits(waiting=3)) as service:
        found = service.at_once([(f"{PATH}/sample", {"count": 200, "seed": seed}) for seed in range(12)])
        assert {answer.status_code for answer in found} == {200, 503}
        busy = next(answer for answer in found if answer.status_code == 503)
        assert problem(busy, 503).kind == "busy" and busy.headers["retry-after"] == "1"


def png(width: int) -> str:
    """A black picture as a file in base64."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("L", (width, width)).save(buffer, format="PNG")
    return base64.b64encode(buffer.getvalue()).decode("ascii")


GIVEN = f"{PATH}/marginals"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 40).decode()
WRONG: list[tuple[str, str, dict[str, Any], int]] = [
    ("a column that is not there", GIVEN, {"json": {"given": {"sise": 1}}}, 400),
    ("an asked column that is not there", GIVEN, {"json": {"columns": ["nope"]}}, 400),
    ("a level that is not there", GIVEN, {"json": {"given": {"kind": "oak"}}}, 400),
    ("a range without ends", GIVEN, {"json": {"given": {"size": {}}}}, 422),
    ("a range that ends before it begins", GIVEN, {"json": {"given": {"size": {"low": 3, "high": 1}}}}, 400),
    ("a word for a number", GIVEN, {"json": {"given": {"size": "plenty"}}}, 400),
    ("a list for a value", GIVEN, {"json": {"given": {"size": [1, 2]}}}, 422),
    ("an empty set", GIVEN, {"json": {"given": {"kind": {"one_of": []}}}}, 422),
    ("an infinite value", GIVEN, {"content": b'{"given": {"size": Infinity}}'}, 400),
    ("a value that is no number", GIVEN, {"content": b'{"given": {"size": NaN}}'}, 400),
    ("a number of 400 digits", GIVEN, {"content": b'{"given": {"count": ' + b"9" * 400 + b"}}"}, 400),
    ("a number with an exponent", GIVEN, {"content": b'{"given": {"count": 1e308}}'}, 400),
    ("an unknown field", GIVEN, {"json": {"givn": {}}}, 422),
    ("a column that cannot be missing", GIVEN, {"json": {"given": {"count": {"missing": True}}}}, 400),
    ("no JSON", GIVEN, {"content": b"{"}, 422),
    ("deep JSON", GIVEN, {"content": b"[" * 3000}, 422),
    ("bytes", GIVEN, {"content": b"\xff\xfe\x00"}, 422),
    ("nothing", GIVEN, {"content": b""}, 422),
    ("a body that does not say what it is", GIVEN, {"content": b"{}", "headers": {"content-type": ""}}, 415),
    ("a form", GIVEN, {"content": b"{}", "headers": {"content-type": "text/plain"}}, 415),
    ("one draw", GIVEN, {"json": {"draws": 1}}, 422),
    ("a seed below zero", GIVEN, {"json": {"seed": -1}}, 422),
    ("a huge seed", GIVEN, {"json": {"seed": 1 << 70}}, 422),
    ("a rule that is none", GIVEN, {"json": {"rules": ["size ~ count"]}}, 400),
    ("a lone surrogate", f"{PATH}/ask", {"content": b'{"question": "\\ud800 | \\udfff=1"}'}, 422),
    ("a null character", f"{PATH}/ask", {"json": {"question": "si\0ze"}}, 400),
    ("an empty question", f"{PATH}/ask", {"json": {"question": ""}}, 400),
    ("rows of different lengths", f"{PATH}/fill", {"json": {"columns": ["size"], "rows": [[1], [1, 2]]}}, 422),
    ("columns of one name", f"{PATH}/fill", {"json": {"columns": ["size", "size"], "rows": [[1, 2]]}}, 422),
    ("a cell that is a list", f"{PATH}/fill", {"json": {"columns": ["size"], "rows": [[[1]]]}}, 422),
    ("a number beyond 64 bits", f"{PATH}/fill", {"json": {"columns": ["count"], "rows": [[1 << 80]]}}, 422),
    ("half a letter in a name", f"{PATH}/fill", {"content": b'{"columns": ["\\ud800"], "rows": [[1]]}'}, 422),
    ("half a letter in a cell", f"{PATH}/score", {"content": b'[{"size": 1, "kind": "\\uDC00"}]'}, 422),
    ("a table that is a text", f"{PATH}/fill", {"json": "size"}, 422),
    ("no rows", f"{PATH}/score", {"json": {"columns": ["size"], "rows": []}}, 400),
    ("an unknown column to score", f"{PATH}/score?given=nope", {"json": {"columns": ["size"], "rows": [[1]]}}, 400),
    (
        "no Parquet",
        f"{PATH}/fill",
        {"content": b"PAR1xxxxPAR1", "headers": PARQUET},
        422,
    ),
    (
        "no Arrow",
        f"{PATH}/fill",
        {"content": b"ARROW", "headers": ARROW},
        422,
    ),
    ("an empty CSV", f"{PATH}/fill", {"content": b"", "headers": {"content-type": "text/csv"}}, 400),
    ("another type", f"{PATH}/fill", {"content": b"x", "headers": {"content-type": "application/x-python"}}, 415),
    ("a compressed body", f"{PATH}/fill", {"content": b"x", "headers": {"content-encoding": "gzip"}}, 415),
    ("another answer", f"{PATH}/sample", {"json": {}, "headers": {"accept": "application/pdf"}}, 406),
    ("about nothing", f"{PATH}/next", {"json": {"about": []}}, 422),
    ("about what is known", f"{PATH}/next", {"json": {"about": ["size"], "given": {"size": 1}}}, 400),
    ("a text for a table", f"{PATH}/text/fill", {"json": {"text": "a_"}}, 409),
    ("a table for a text", "/v1/models/text/marginals", {"json": {}}, 409),
    ("letters that a model does not know", "/v1/models/text/text/fill", {"json": {"text": "ÄÖ_"}}, 400),
    ("a long mark", "/v1/models/text/text/fill", {"json": {"text": "a", "mark": "____________"}}, 422),
    (
        "a picture of another shape",
        f"{PICTURES}/fill",
        {"json": {"picture": [[1]], "known": [[True]]}},
        400,
    ),
    (
        "a picture that is no PNG",
        f"{PICTURES}/fill",
        {"json": {"picture": PNG, "known": [[True]]}},
        400,
    ),
    (
        "a picture with unknown pixels to score",
        f"{PICTURES}/score",
        {"json": {"pictures": [[[None] * 8] * 8]}},
        400,
    ),
    ("pictures of two sizes", f"{PICTURES}/score", {"json": {"pictures": [png(8), png(9)]}}, 400),
    ("a mask of another size", f"{PICTURES}/fill", {"json": {"picture": png(8), "known": png(9)}}, 400),
    ("draws that are unsure", f"{PATH}/fill?uncertainty=true&draws=2", {"json": [{"count": 25}]}, 422),
    (
        "unsure cells as CSV",
        f"{PATH}/fill?uncertainty=true",
        {"json": [{"count": 25}], "headers": {"accept": "text/csv"}},
        422,
    ),
    ("an origin that is none", GIVEN, {"json": {}, "headers": {"origin": "http://["}}, 403),
    ("an origin of nothing", GIVEN, {"json": {}, "headers": {"origin": "null"}}, 403),
    ("no base64", f"{PICTURES}/fill", {"json": {"picture": "???", "known": "!"}}, 400),
    ("letters that are not base64", f"{PICTURES}/score", {"json": {"pictures": ["\u00c8"]}}, 400),
    ("a mode that is not there", f"{PICTURES}/sample", {"json": {"mode": "os.system"}}, 400),
    (
        "tensors of another shape",
        INFER,
        {"json": {"inputs": [SHORT]}},
        422,
    ),
    ("a tensor of 400 digits", INFER, {"content": json.dumps({"inputs": [HUGE]}).encode("ascii")}, 422),
    (
        "texts for numbers",
        INFER,
        {"json": {"inputs": [WORDS]}},
        422,
    ),
    ("no model", "/v1/models/nope/ask", {"json": {"question": "size"}}, 404),
    ("a path for a model", "/v1/models/..%2f..%2fetc%2fpasswd/ask", {"json": {"question": "size"}}, 404),
    ("a module for a model", "/v1/models/os.path/ask", {"json": {"question": "size"}}, 404),
]


@pytest.mark.parametrize(("path", "request_", "status"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG])
def test_what_is_wrong_is_named(path: str, request_: dict[str, Any], status: int, service: Asking) -> None:
    request_ = {"headers": {"content-type": "application/json"}} | request_ if "content" in request_ else request_
    found = problem(service.request("POST", path, **request_), status)
    assert found.message and "Traceback" not in found.message
    assert service.post(f"{PATH}/ask", {"question": "E[size]"}).status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/jobs/nope", 404),
        ("/v1/jobs/nope/result", 404),
        ("/assets/../app.py", 404),
        ("/assets/__init__.py", 404),
        ("/assets/README.md", 404),
        ("/assets/%2e%2e%2fserve%2fapp.py", 404),
        ("/v1/models/table/ask", 405),
        ("/etc/passwd", 404),
    ],
)
def test_what_is_not_there(path: str, status: int, service: Asking) -> None:
    problem(service.get(path), status)


def test_a_mistake_in_a_question_has_a_place(service: Asking) -> None:
    found = problem(service.post(f"{PATH}/ask", {"question": "size | count=20, flag"}), 400)
    assert found.where == "question" and found.at == len("size | count=20, ")
    for question, wrong in (
        ("P(sise > 1 | count=20)", "sise"),
        ("size | kind=ahs", "ahs"),
        ("size | count=lots", "lots"),
    ):
        found = problem(service.post(f"{PATH}/ask", {"question": question}), 400)
        assert found.where == "question" and found.at == question.index(wrong), found
    assert problem(service.post(f"{PATH}/ask", {"question": "size", "given": {"kind": "ahs"}}), 400).at is None


def test_a_mistake_concerns_one_request_alone(models: dict[str, Any]) -> None:
    bodies = [{"given": {"count": 20 + number}} for number in range(6)]
    bodies[2] = {"given": {"kind": "oak"}}
    bodies[4] = {"given": {"size": {"low": 90, "high": 91}, "count": {"low": 4000}}}
    with asked({"table": models["table"]}) as service:
        found = [answer.status_code for answer in service.at_once([(GIVEN, body) for body in bodies])]
    assert found == [200, 200, 400, 200, 400, 200]  # the last but one is impossible


def test_a_fault_concerns_one_request_alone(models: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of five questions in one batch, one breaks the computation: the others are answered as ever."""
    from anyorder.questions.marginals import Marginals

    bodies = [{"given": {"count": 22 + number}} for number in range(5)]
    with asked({"table": models["table"]}, workers=1, remembered=0) as service:
        expected = [service.post(GIVEN, body).content for body in bodies]
        block = Marginals._block

        def broken(self: Any, questions: Any, wanted: Any) -> Any:
            if any(question.evidence["count"] == 24 for question in questions):
                raise RuntimeError("a fault")
            return block(self, questions, wanted)

        monkeypatch.setattr(Marginals, "_block", broken)
        found = service.at_once([(GIVEN, body) for body in bodies])
    assert [answer.status_code for answer in found] == [200, 200, 500, 200, 200]
    assert [one.content for one in found if one.status_code == 200] == [*expected[:2], *expected[3:]]


def test_other_machines_need_a_token() -> None:
    with pytest.raises(UserError, match="needs a token"):
        Settings(host="0.0.0.0")
    with pytest.raises(UserError, match="16 ASCII characters"):
        Settings(host="0.0.0.0", token="short")
    assert Settings(host="::1").local and Settings(host="localhost").local


def test_the_token(models: dict[str, Any]) -> None:
    with asked({"table": models["table"]}, host="192.0.2.1", token=TOKEN) as service:
        for path in ("/v1/models", "/metrics", "/openapi.json", "/docs", "/v2", f"{PATH}/schema", "/nope"):
            for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}):
                found = service.get(path, headers=headers)
                assert "token" in problem(found, 401).message and found.headers["www-authenticate"] == "Bearer"
        assert service.get("/v1/models", headers={"authorization": f"bearer {TOKEN}"}).status_code == 200
        for path in ("/", "/health/live", "/health/ready", "/v2/health/live"):
            assert service.get(path).status_code == 200
        # A token that is not ASCII must be refused and not raise.
        problem(service.get("/v1/models", headers={"authorization": b"Bearer \xff\xfe"}), 401)


def test_pages_of_others(service: Asking) -> None:
    assert problem(service.get("/v1/models", headers={"host": "evil.example"}), 421).kind == "misdirected"
    assert problem(service.get("/v1/models", headers={"origin": "https://evil.example"}), 403).kind == "forbidden"
    assert service.get("/v1/models", headers={"origin": service.base}).status_code == 200
    answer = service.get("/v1/models")
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_proxy_in_front(models: dict[str, Any]) -> None:
    """Of a service on this machine alone: one that keeps the name it was asked by, and one that does not."""
    page = {"origin": "https://wines.example"}
    kept, rewritten = {"host": "wines.example", **page}, {"host": "127.0.0.1:8642", **page}
    with asked({"table": models["table"]}, hosts=("wines.example",)) as service:
        for headers in (kept, rewritten):
            assert service.get("/v1/models", headers=headers).status_code == 200
            other = headers | {"origin": "https://wines.example.evil"}
            assert problem(service.get("/v1/models", headers=other), 403).kind == "forbidden"
        problem(service.get("/v1/models", headers={"host": "evil.example"}), 421)
    with asked({"table": models["table"]}) as service:
        problem(service.get("/v1/models", headers=kept), 421)
        problem(service.get("/v1/models", headers=rewritten), 403)


def test_in_another_application(models: dict[str, Any]) -> None:
    """Mounted below a path, where nobody tells it when to begin and to end."""
    from starlette.applications import Starlette
    from starlette.routing import Mount

    from anyorder.serve.app import create_app

    inner = create_app({"table": models["table"]}, Settings(host="192.0.2.1", token=TOKEN))
    with Asking(Starlette(routes=[Mount("/any", inner)])) as service:
        for path in ("/any/", "/any/health/ready", "/any/assets/page.js", "/any/v2/health/live"):
            assert service.get(path).status_code == 200, path
        problem(service.get("/any/v1/models"), 401)
        headers = {"authorization": f"Bearer {TOKEN}"}
        far = service.post("/any/v1/models/table/marginals", {"given": {"size": 1e4}}, headers=headers).json()
        assert "lies outside the data" in far["notes"][0]
        assert '="/' not in service.get("/any/").text
        rows = {"columns": ["count"], "rows": [[25]]}
        begun = service.post("/any/v1/models/table/fill?job=true", rows, headers=headers)
        assert service.get(begun.headers["location"], headers=headers).status_code == 200
        assert isinstance(service.get("/any/v2/models/no", headers=headers).json()["error"], str)


def test_a_body_that_does_not_come(models: dict[str, Any]) -> None:
    async def parts() -> Any:
        yield b"{"
        await asyncio.sleep(20)

    with asked({"table": models["table"]}, limits=Limits(seconds=0.2)) as service:
        found = problem(service.request("POST", f"{PATH}/ask", content=parts()), 408)
        assert found.kind == "time_limit" and found.where == "body"


def test_all_bodies_together(models: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyorder.serve.guard.BODIES", 2)
    with asked({"table": models["table"]}, limits=Limits(body=1000)) as service:
        release = asyncio.Event()

        async def parts() -> Any:
            yield b"{" + b" " * 900
            await release.wait()
            yield b'"question": "E[size]"}'

        async def several() -> list[int]:
            asking = [asyncio.ensure_future(service.client.post(f"{PATH}/ask", content=parts())) for _ in range(4)]
            await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
            release.set()
            return sorted(answer.status_code for answer in await asyncio.gather(*asking))

        assert service._run(several())[-2:] == [503, 503]
        # What they held is free again.
        assert service.post(f"{PATH}/ask", {"question": "E[size]" + " " * 900}).status_code == 200


def test_a_model_that_fails_does_not_take_the_others_down(tmp_path: Any) -> None:
    broken = tmp_path / "broken.anyorder"
    broken.write_bytes((FILES / f"{TABLE}.anyorder").read_bytes()[:5000])
    found = Models.read([broken, tmp_path / "absent.anyorder", f"good={FILES / TABLE}.anyorder"])
    with asked(found) as service:
        listed = {one["name"]: one for one in service.get("/v1/models").json()["models"]}
        assert [listed[name]["status"] for name in ("broken", "absent", "good")] == ["failed", "failed", "ready"]
        assert str(tmp_path) not in json.dumps(listed)
        assert problem(service.post("/v1/models/broken/ask", {"question": "size"}), 503).kind == "model_failed"
        assert service.post("/v1/models/good/ask", {"question": "E[size]"}).status_code == 200
        # Ready is what can answer anything.
        ready = service.get("/health/ready")
        assert (ready.status_code, ready.json()) == (200, {"status": "ok", "models": {"failed": 2, "ready": 1}})
        assert service.get("/v2/health/ready").json() == {"ready": True}
        assert [service.get(f"/v2/models/{name}/ready").status_code for name in ("good", "broken")] == [200, 503]
    with asked(Models.read([broken])) as service:
        assert service.get("/health/ready").status_code == service.get("/v2/health/ready").status_code == 503
        assert service.get("/health/live").status_code == 200
    with pytest.raises(UserError, match="two models are called"):
        Models.read([tmp_path / "broken.anyorder", f"broken={FILES / TABLE}.anyorder"])


def test_a_fault_of_our_own_is_told_without_its_inside(
    models: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        modality = "table"

        def given(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError("a secret path")

    with asked({"broken": Broken(), "table": models["table"]}) as service:  # type: ignore[dict-item]
        for route, body in (("marginals", {}), ("sample", {"count": 1})):
            found = problem(service.post(f"/v1/models/broken/{route}", body), 500)
            assert found.kind == "internal" and "secret" not in found.message
        assert service.post(f"{PATH}/ask", {"question": "E[size]"}).status_code == 200
    assert "a secret path" in caplog.text


def test_a_bomb_of_a_picture_is_not_unpacked(service: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    body = {"picture": png(1000), "known": [[True]]}
    monkeypatch.setattr(Image.Image, "convert", lambda *_: pytest.fail("it was unpacked"))
    assert "shape [8, 8], got [1000, 1000]" in problem(service.post(f"{PICTURES}/fill", body), 400).message


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("/v1/models/text/text/sample", {"length": 10_000, "beginning": "the"}, "length"),
        (f"{PATH}/next", {"about": ["kind"], "budget": -1.0}, "budget"),
        (f"{PATH}/next", {"about": ["kind"], "given": {"size": "plenty"}}, "given"),
    ],
)
def test_the_wrong_field_is_named(path: str, body: dict[str, Any], where: str, service: Asking) -> None:
    assert problem(service.post(path, body), 400).where == where
