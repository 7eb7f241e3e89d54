"""Answers over HTTP against those of Python: the same to the last bit, asked alone and many at once.

    python benchmarks/serve/exact.py --json benchmarks/results/serve_exact.json    (three minutes)

500 random questions about the wines: all columns given values, ranges and sets, typed questions of every form, rows
drawn, tables filled and scored. Each is put to the service, 50 at a time, and to the model in this process.
"""

from __future__ import annotations

import asyncio
import json as json_format
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

import anyorder as ao

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from anyorder.questions.ask import reply_to
from anyorder.questions.facts import reply_facts
from anyorder.questions.grammar import parse_question
from anyorder.serve.columns import marginal_facts
from anyorder.support.plain import plain

from common import Json, Record, Smoke, print_rows
from served import Client, Server, rows_of_wine, serving, wine_model

TIMES = ("serve", "questions")
FORMS = ("{a} | {e}", "P({a} > {v} | {e})", "E[{a} | {e}]", "median({a} | {e})", "{a}={v} | {e}", "H({a} | {e})")
AT_ONCE = 50
DRAWS = 32


def question(number: int, rng: np.random.Generator, wines: pd.DataFrame) -> tuple[str, Any, dict[str, Any]]:
    """A route, its body, and the evidence as Python takes it."""
    row, names = wines.iloc[int(rng.integers(len(wines)))], list(wines.columns)
    known = rng.choice(names, size=int(rng.integers(1, 5)), replace=False).tolist()
    given: dict[str, Any] = {name: row[name] if name == "cultivar" else float(row[name]) for name in known}
    evidence = dict(given)
    kind = ("marginals", "marginals", "ranges", "ask", "ask", "sample", "fill", "score")[number % 8]
    asked = str(rng.choice([name for name in names[:-1] if name not in known]))
    if kind == "ranges":
        given[asked] = {"low": float(row[asked]) * 0.9, "high": float(row[asked]) * 1.1, "low_open": True}
        evidence[asked] = ao.Between(float(row[asked]) * 0.9, float(row[asked]) * 1.1, low_open=True)
        return "marginals", {"given": given, "draws": DRAWS}, evidence
    if kind == "ask":
        typed = ", ".join(f'"{name}"={value}' for name, value in given.items())
        form = FORMS[int(rng.integers(len(FORMS)))]
        return "ask", {"question": form.format(a=f'"{asked}"', e=typed, v=float(row[asked])), "doubts": True}, evidence
    if kind == "sample":
        return "sample", {"given": given, "count": 3, "seed": number}, evidence
    if kind in ("fill", "score"):
        rows = [[None if rng.random() < 0.3 else plain(cell) for cell in row] for _ in range(3)]
        return kind, {"columns": names, "rows": rows}, evidence
    return "marginals", {"given": given, "draws": DRAWS}, evidence


def in_python(model: Any, route: str, body: Any, evidence: dict[str, Any]) -> Any:
    """What Python answers, as JSON would have it."""
    if route == "marginals":
        found: Any = {name: marginal_facts(one) for name, one in model.marginals(evidence, draws=DRAWS).items()}
    elif route == "ask":
        read = parse_question(body["question"])
        found = reply_facts(reply_to(read, model.schema, model.given, body["question"]), read)
    elif route == "sample":
        found = _cells(model.given(evidence).sample(3, seed=body["seed"]))
    else:
        frame = pd.DataFrame(body["rows"], columns=body["columns"])
        found = _cells(model.fill(frame)) if route == "fill" else model.log_prob(frame).tolist()
    return json_format.loads(json_format.dumps(plain(found)))


def _cells(frame: pd.DataFrame) -> list[list[Any]]:
    return [[None if pd.isna(cell) else plain(cell) for cell in row] for row in frame.astype(object).to_numpy()]


async def over_http(server: Server, asked: list[tuple[str, Any, dict[str, Any]]]) -> list[Any]:
    """The answers, many at once."""
    clients = [Client(server) for _ in range(AT_ONCE)]
    waiting = list(enumerate(asked))[::-1]
    found: list[Any] = [None] * len(asked)

    async def one(client: Client) -> None:
        while waiting:
            number, (route, body, _) = waiting.pop()
            content = json_format.dumps(body).encode("utf-8")
            status, answer = await client.ask(f"/v1/models/wine/{route}", content, 600.0)
            said = json_format.loads(answer)
            assert status == 200, said
            part = {"marginals": "columns", "sample": "rows", "fill": "rows", "score": "log_prob"}.get(route)
            said.pop("notes")
            found[number] = said[part] if part else said

    await asyncio.gather(*map(one, clients))
    return found


def main(count: int = 500, minutes: float = 0.5, json: Json = None, smoke: Smoke = False) -> None:
    """Ask both, and count where they differ."""
    record = Record(json, smoke=smoke)
    count, minutes = (16, 0.02) if smoke else (count, minutes)
    rng, wines = np.random.default_rng(0), rows_of_wine()
    asked = [question(number, rng, wines) for number in range(count)]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        path = Path(folder) / "wine.anyorder"
        wine_model(path, minutes)
        with serving(str(path), "--most-seconds", "600") as server:
            answers = asyncio.run(over_http(server, asked))
        model = ao.load(path)
        same = [in_python(model, *one) == answer for one, answer in zip(asked, answers, strict=True)]
    tally = Counter((route, equal) for (route, _, _), equal in zip(asked, same, strict=True))
    rows = [{"route": route, "same bits": equal, "questions": times} for (route, equal), times in sorted(tally.items())]
    print_rows(rows)
    print(f"{sum(same)} of {count} the same to the last bit")
    record.write(
        {
            "title": "Answers over HTTP against those of Python",
            "about": f"{count} random questions about the wines, {AT_ONCE} at a time over HTTP and one by one in "
            "Python: how many answers are the same to the last bit.",
            "seed": 0,
            "rows": rows,
            "the same": f"{sum(same)} of {count}",
        }
    )
    if not all(same):
        raise SystemExit(1)


if __name__ == "__main__":
    typer.run(main)
