"""Requests that should not be made: none may break the service, hang, or keep it from answering the next one.

    python benchmarks/serve/hostile.py --json benchmarks/results/serve_hostile.json    (five minutes)

3,000 requests: half are made up from the service's own description by Schemathesis, as it allows and as it forbids;
the others are our own: bodies that were right, with parts of them cut out, doubled or replaced; tables in four formats
with bytes changed; bytes that are no HTTP at all, and requests that break off. A fault is an answer of 500, an error of
another shape than the one that all errors have, or no answer within 30 seconds. After every 25 requests a question must
be answered as it always was.
"""

from __future__ import annotations

import asyncio
import json as json_format
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import schemathesis
import typer
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from anyorder.serve.errors import PROTOCOL, Failure, PlainFailure

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import ROOT, Json, Record, Smoke, print_rows
from served import Client, Server, serving

TIMES = ("serve",)
FILES = ROOT / "tests" / "files" / "v1"
MODELS = {"table": "table_both", "text": "text", "pictures": "pictures_few_levels"}
LONGEST = 30.0  # seconds
EVERY = 25
KNOWN = ("/v1/models/table/ask", {"question": "E[size | count=20]"})
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1e308,
    -(2**70),
    10**400,
    float("nan"),
    float("inf"),
    "",
    "x" * 3000,
    "\0",
    "\ud800",
    "'; --",
    "../../etc/passwd",
    [],
    {},
]
ODD += [
    [],
    {},
    [[]],
    {"low": 1},
    {"one_of": [[]]},
    {"missing": False},
    "{",
    "__import__('os')",
    "NaN",
    1.5,
    "2024-13-45",
    "😀",
]
PNG = [
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAADElEQVR4nGNgoA4AAABIAAEuuDx+AAAAAElFTkSuQmCC",  # 8 x 8
    "iVBORw0KGgoAAAANSUhEUgAAAAkAAAAJCAAAAADF+lnMAAAADElEQVR4nGNgoBUAAABaAAFUw4NUAAAAAElFTkSuQmCC",  # 9 x 9
]
ORIGINS = ["http://[", "null", "", "https://evil.example", "http://127.0.0.1:1", "\x7f", "http://::1"]
BODIES: list[tuple[str, Any]] = [
    ("/v1/models/table/marginals", {"given": {"count": 20, "kind": {"one_of": ["ash"]}}, "draws": 8, "seed": 1}),
    ("/v1/models/table/marginals", {"given": {"size": {"low": 0, "high": 1}}, "columns": ["rain"], "draws": 8}),
    ("/v1/models/table/evidence", {"given": {"count": 20, "day": "2024-03-01"}, "draws": 8}),
    ("/v1/models/table/ask", {"question": "P(size > 0, kind=ash | count=20..30)", "draws": 8}),
    ("/v1/models/table/sample", {"given": {"flag": True}, "count": 3, "columns": ["size"], "seed": 3}),
    ("/v1/models/table/next", {"about": ["kind"], "given": {"count": 20}, "draws": 4, "costs": {"size": 2.0}}),
    ("/v1/models/table/fill", {"columns": ["size", "kind"], "rows": [[0.5, None], [None, "ash"]]}),
    ("/v1/models/table/score", [{"size": 1.0, "kind": "ash"}, {"size": None, "kind": "cedar"}]),
    ("/v1/models/table/anomalies?rows=true", {"columns": ["size", "count"], "rows": [[0.5, 20], [90, 3]]}),
    ("/v1/models/text/text/fill", {"text": "the q__ck", "mark": "_", "draws": 2}),
    ("/v1/models/text/text/sample", {"beginning": "the", "count": 1, "length": 8}),
    (
        "/v1/models/pictures/pictures/fill",
        {"picture": [[1] * 8] * 8, "known": [[True] * 8] * 8, "steps": 2},
    ),
    ("/v1/models/pictures/pictures/fill", {"picture": PNG[0], "known": PNG[0], "steps": 2, "format": "png"}),
    ("/v1/models/pictures/pictures/score", {"pictures": [[[1] * 8] * 8, PNG[0]], "orders": 1}),
    ("/v1/models/pictures/pictures/score", {"pictures": PNG}),
    ("/v1/models/text/text/score", {"texts": ["the fox"], "orders": 1}),
    ("/v2/models/table/infer", {"inputs": [{"name": "size", "shape": [1], "datatype": "FP64", "data": [1.0]}]}),
]
RAW = [
    b"",
    b"\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01",
    b"POST /v1/models/table/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n{}",
    b"POST /v1/models/table/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{",
    b"POST /v1/models/table/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
]


class Tally:
    """What came back."""

    def __init__(self, server: Server) -> None:
        self.server, self.statuses, self.faults = server, Counter[str](), list[str]()
        self.client = httpx.Client(base_url=f"http://{server.host}:{server.port}", timeout=LONGEST)
        self.expected = self.client.post(KNOWN[0], json=KNOWN[1]).content
        self.slowest = 0.0

    @property
    def count(self) -> int:
        return sum(self.statuses.values())

    def send(self, what: str, method: str, path: str, **options: Any) -> None:
        """One request, and whether its answer is as it should be."""
        began = time.perf_counter()
        try:
            answer = self.client.request(method, path, **options)
        except (httpx.InvalidURL, UnicodeError, ValueError, TypeError):
            return  # it cannot even be sent
        except httpx.HTTPError as error:
            self.statuses["none"] += 1
            self.faults.append(f"{what}: {error!r}")
            return
        self.slowest = max(self.slowest, time.perf_counter() - began)
        self.statuses[str(answer.status_code)] += 1
        if answer.status_code >= 400 and not _is_error(answer):
            self.faults.append(f"{what}: {answer.status_code} without the shape of an error: {answer.text[:200]}")
        if answer.status_code == 500:
            self.faults.append(f"{what}: {answer.text[:200]} to {method} {path} {str(options)[:300]}")
        if self.count % EVERY == 0:
            self.check(what)

    def check(self, what: str) -> None:
        """The service answers as ever."""
        try:
            if self.client.post(KNOWN[0], json=KNOWN[1]).content != self.expected:
                self.faults.append(f"after {what}: another answer")
        except httpx.HTTPError as error:
            self.faults.append(f"after {what}: {error!r}")


def _is_error(answer: httpx.Response) -> bool:
    """Whether this is the shape that all errors have: one of our own, and that of the Open Inference Protocol."""
    shape = PlainFailure if answer.url.path.startswith(PROTOCOL) else Failure
    try:
        shape.model_validate(answer.json(), strict=True)
    except ValueError:
        return False
    return True


def described(tally: Tally, count: int, number: int) -> None:
    """Requests that Schemathesis makes up."""
    schema = schemathesis.openapi.from_dict(tally.client.get("/openapi.json").json())
    operations = [found.ok() for found in schema.get_all_operations()]
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            ask(tally, operation, mode, max(1, count // (2 * len(operations))), number)


def ask(tally: Tally, operation: Any, mode: GenerationMode, count: int, number: int) -> None:
    """So many requests to one operation."""
    what = f"{operation.method} {operation.path} ({mode.value})"
    served = "text" if "/text/" in operation.path else "pictures" if "/pictures/" in operation.path else "table"

    @seed(number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case: Any) -> None:
        if "name" in (case.path_parameters or {}) and mode is GenerationMode.POSITIVE:
            case.path_parameters["name"] = served
        sent = case.as_transport_kwargs(base_url=str(tally.client.base_url))
        content = {name: sent[name] for name in ("json", "content", "data") if sent.get(name) is not None}
        if isinstance(content.get("data"), str | bytes):
            content = {"content": content["data"]}
        headers = {key: value for key, value in dict(sent.get("headers") or {}).items() if key.lower() != "host"}
        tally.send(what, sent["method"], sent["url"], params=sent.get("params"), headers=headers, **content)

    try:
        run()
    except Unsatisfiable:
        return  # nothing wrong can be made of a request without parts


def damaged(said: Any, rng: np.random.Generator) -> Any:
    """What was right, with one part replaced, doubled, renamed or left out."""
    places = list(_places(said))
    if not places or rng.random() < 0.1:
        return ODD[int(rng.integers(len(ODD)))]
    copy = json_format.loads(json_format.dumps(said))
    holder, key = copy, None
    path = places[int(rng.integers(len(places)))]
    for key in path[:-1]:
        holder = holder[key]
    key, odd = path[-1], ODD[int(rng.integers(len(ODD)))]
    how = int(rng.integers(4))
    if how == 0 and isinstance(holder, dict):
        holder[str(odd)[:200]] = holder.pop(key)
    elif how == 1 and isinstance(holder, dict):
        holder.pop(key)
    elif how == 2 and isinstance(holder, list):
        holder.append(holder[key])
    else:
        holder[key] = odd
    return copy


def _places(said: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    parts = said.items() if isinstance(said, dict) else enumerate(said[:3]) if isinstance(said, list) else ()
    for key, part in parts:
        yield (*before, key)
        yield from _places(part, (*before, key))


def own(tally: Tally, count: int, number: int) -> None:
    """Our own attacks."""
    rng = np.random.default_rng(number)
    tables = {
        kind: tally.client.post("/v1/models/table/sample", json={"count": 4}, headers={"accept": kind}).content
        for kind in ("text/csv", "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream")
    }
    for _ in range(count):
        if rng.random() < 0.2:
            kind = str(rng.choice(list(tables)))
            content = bytearray(tables[kind])
            for _ in range(int(rng.integers(1, 5))):
                content[int(rng.integers(len(content)))] = int(rng.integers(256))
            bytes_ = bytes(content[: int(rng.integers(len(content) + 1))] if rng.random() < 0.3 else content)
            route = str(rng.choice(["fill", "score", "anomalies"]))
            tally.send(kind, "POST", f"/v1/models/table/{route}", content=bytes_, headers={"content-type": kind})
            continue
        path, said = BODIES[int(rng.integers(len(BODIES)))]
        for _ in range(int(rng.integers(1, 4))):
            said = damaged(said, rng) if isinstance(said, dict | list) else said
        headers = {"content-type": "application/json"}
        if rng.random() < 0.1:
            headers["origin"] = str(rng.choice(ORIGINS))
        tally.send(path, "POST", path, content=json_format.dumps(said).encode("utf-8"), headers=headers)


def raw(tally: Tally, rounds: int) -> None:
    """Bytes that are no request, and connections that break off."""
    for _ in range(rounds):
        for content in RAW:
            with socket.create_connection((tally.server.host, tally.server.port), timeout=LONGEST) as one:
                try:
                    one.sendall(content)
                    one.shutdown(socket.SHUT_WR)
                    answer = one.recv(1 << 16)
                except OSError:
                    answer = b""
            tally.statuses[f"raw {answer[9:12].decode('latin-1') or 'closed'}"] += 1
            if answer[9:12] == b"500":
                tally.faults.append(f"raw: {content[:80]!r}")
    asyncio.run(_gone(tally.server))
    tally.check("raw bytes")


async def _gone(server: Server) -> None:
    """Clients that go away before their answer comes."""
    for number in range(20):
        one = Client(server)
        body = json_format.dumps({"count": 200, "seed": number}).encode("ascii")
        try:
            await one.ask("/v1/models/table/sample", body, 0.01)
        except TimeoutError:
            one.close()


def main(count: int = 3000, number: int = 0, json: Json = None, smoke: Smoke = False) -> None:
    """Send them all, and print what came back."""
    record = Record(json, smoke=smoke)
    count = 90 if smoke else count
    limits = ("--most-rows", "200", "--most-draws", "64", "--most-seconds", "20")
    with serving(*(f"{name}={FILES / file}.anyorder" for name, file in MODELS.items()), *limits) as server:
        tally = Tally(server)
        raw(tally, 1 if smoke else 5)
        described(tally, count // 2, number)
        own(tally, max(count - tally.count, 0), number)
        alive = server.process.poll() is None
    print_rows([{"answer": status, "requests": times} for status, times in sorted(tally.statuses.items())])
    print(f"{tally.count} requests, {len(tally.faults)} faults, slowest answer {tally.slowest:.2f} s, alive: {alive}")
    for fault in tally.faults[:20]:
        print(f"  {fault}")
    counts = dict(tally.statuses)
    record.write(
        {
            "title": "Hostile requests to the service",
            "about": "Requests made up from the service's own description, as it allows and as it forbids, and "
            "our own: bodies with parts cut out, doubled or replaced, tables with bytes changed, bytes "
            "that are no HTTP. A fault is an answer of 500, an error of another shape, or no answer "
            f"within {LONGEST:g} seconds.",
            "seed": number,
            "requests": tally.count,
            "rows": [{"answer": status, "requests": times} for status, times in sorted(counts.items())],
            "faults": tally.faults,
            "slowest answer, seconds": round(tally.slowest, 2),
            "alive at the end": alive,
        }
    )
    if tally.faults or not alive:
        raise SystemExit(1)


if __name__ == "__main__":
    typer.run(main)
