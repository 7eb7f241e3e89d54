"""The explorer in a notebook, without a page: messages in, answers out, and what was said as Python has it."""

from __future__ import annotations

import asyncio
import builtins
import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import anyorder as ao
from anyorder.questions.evidence import Value
from anyorder.serve.statements import evidence_of, statements_of
from anyorder.variables.ranges import Either, NotOneOf

pytest.importorskip("anywidget", reason="the notebook is an extra")
from anyorder.serve.in_process import InProcess
from anyorder.serve.notebook import _GIVEN, Explorer

FILES = Path(__file__).resolve().parents[1] / "files" / "v1"


@pytest.fixture(scope="module")
def model() -> Any:
    return ao.load(FILES / "table_both.anyorder")


def beside(work: Callable[[], Any]) -> None:
    """Work in a thread that has no loop: that of the tests may have one, of a browser."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(work).result()


class Front:
    """What stands at the other end of a widget's comm: says messages, and hears what comes back."""

    def __init__(self, widget: Any) -> None:
        self.widget, self.heard = widget, []
        widget.comm.send = lambda data=None, buffers=None, **_: self.heard.append((data, buffers))

    def say(self, data: dict[str, Any]) -> None:
        message = {"content": {"data": data}, "buffers": []}
        beside(lambda: self.widget.comm.handle_msg(message))

    def ask(self, identity: str, path: str, body: Any = None, **more: str) -> None:
        content = body if body is None or isinstance(body, str) else json.dumps(body)
        method = "GET" if body is None else "POST"
        message = {"id": identity, "path": path, "method": method, "body": content, **more}
        self.say({"method": "custom", "content": message})

    def answer(self, identity: str) -> tuple[int, bytes]:
        for _ in range(3000):
            for data, buffers in list(self.heard):
                if data["method"] == "custom" and data["content"]["id"] == identity:
                    return data["content"]["status"], bytes(buffers[0])
            time.sleep(0.01)
        raise AssertionError(f"no answer to {identity}")


@pytest.fixture
def front(model: Any) -> Iterator[Front]:
    widget = model.explore(given={"kind": "birch"}, target="grade")
    yield Front(widget)
    widget.close()


def test_answers_are_those_of_python(front: Front, model: Any) -> None:
    path = "models/model/"
    front.ask("1", path + "marginals", {"given": {"kind": "birch", "size": {"low": 0}}})
    front.ask("2", path + "sample", {"count": 5, "seed": 3}, accept="text/csv")
    front.ask("3", path + "ask", {"question": "P(grade=a | kind=birch"})
    front.ask("4", "models/nothing/schema")
    status, content = front.answer("1")
    found = json.loads(content)["columns"]
    for name, one in model.marginals({"kind": "birch", "size": ao.Between(0, None)}).items():
        if one.cells is not None:
            assert found[name]["cells"] == one.cells.tolist()
        assert [each["prob"] for each in found[name].get("probs", [])] == list(one.probs.values())
    assert front.answer("2")[1].decode() == model.sample(5, seed=3).to_csv(index=False)
    status, content = front.answer("3")
    problem = json.loads(content)["error"]
    assert status == 400 and problem["at"] == 1 and problem["where"] == "question"
    status, content = front.answer("4")
    assert status == 404 and json.loads(content)["error"]["kind"] == "not_found"


def test_a_dropped_question_is_never_answered(front: Front) -> None:
    front.ask("long", "models/model/sample", {"count": 2000})
    front.say({"method": "custom", "content": {"id": "long", "drop": True}})
    front.say({"method": "custom", "content": {"id": "never asked", "drop": True}})
    front.ask("next", "models")
    assert front.answer("next")[0] == 200
    assert [data["content"]["id"] for data, _ in front.heard] == ["next"]


def test_answers_are_sent_from_the_loop_that_asked(model: Any) -> None:
    """A kernel's own: what it sends by must not be touched by other threads."""
    widget = model.explore()
    where: list[threading.Thread] = []

    async def kernel() -> threading.Thread:
        send = widget.comm.send

        def sent(**message: Any) -> None:
            where.append(threading.current_thread())
            send(**message)

        widget.comm.send = sent
        question = {"id": "1", "path": "models/model/schema", "method": "GET"}
        widget.comm.handle_msg({"content": {"data": {"method": "custom", "content": question}}, "buffers": []})
        while not where:
            await asyncio.sleep(0.01)  # the loop goes on meanwhile
        return threading.current_thread()

    beside(lambda: where.append(asyncio.run(asyncio.wait_for(kernel(), 60))))
    assert len(where) == 2 and where[0] is where[1]
    widget.close()


def test_what_was_clicked_goes_on_in_python(front: Front, model: Any) -> None:
    widget, heard = front.widget, []
    assert widget.given == {"kind": "birch"} and widget.target == "grade"
    widget.observe(lambda change: heard.append(change["new"]), "given")
    said = {"kind": {"one_of": ["ash", "cedar"]}, "size": {"low": 0.5, "high_open": True, "high": 2}, "count": 25}
    front.say({"method": "update", "state": {"given": said, "target": None}})
    expected = {"kind": ao.OneOf("ash", "cedar"), "size": ao.Between(0.5, 2, high_open=True), "count": 25}
    assert widget.given == expected == heard[0] and widget.target is None
    assert model.given(widget.given).evidence == expected
    # And back: what Python says is sent to the page, in the page's words.
    front.heard.clear()
    widget.given = {"day": ao.Between(pd.Timestamp("2024-04-01"), None), "size": ao.MISSING}
    state = front.heard[0][0]["state"]["given"]
    assert state == {"day": {"low": "2024-04-01T00:00:00"}, "size": {"missing": True}}


def test_statements_there_and_back() -> None:
    parts = Either((ao.Between(None, 10), ao.OneOf(90, 91)))
    evidence = {
        "a": 6,
        "b": "yes",
        "c": True,
        "d": "30..40",
        "e": Value("30..40"),
        "f": ao.Between(1, None, low_open=True),
        "g": ao.OneOf("x", "y"),
        "h": NotOneOf(("x",)),
        "i": parts,
        "j": ao.MISSING,
    }
    said = statements_of(evidence)
    assert evidence_of(_GIVEN.validate_python(json.loads(json.dumps(said)))) == evidence


def test_closing_frees_the_threads_and_says_so(model: Any) -> None:
    def ours() -> list[str]:
        return [one.name for one in threading.enumerate() if one.name.startswith(("anyorder-answers", "answers"))]

    before = ours()
    answers = InProcess({"table": model})
    assert ours() == before  # none until the first question
    assert answers.ask("models").result(60).status == 200
    work = answers.ask("models/table/sample", method="POST", body=json.dumps({"count": 3})).result(60)
    assert work.status == 200 and len(ours()) > len(before)
    under_way = answers.ask("models/table/sample", method="POST", body=json.dumps({"count": 5000}))
    answers.close()
    answers.close()
    assert under_way.cancelled() or under_way.result(0).status == 200
    assert ours() == before
    refused = answers.ask("models").result(1)
    assert refused.status == 503 and b"explore() again" in refused.content


def test_notes_reach_the_page_and_warnings_of_the_notebook_stay_its_own(front: Front) -> None:
    filters, place = list(warnings.filters), warnings.showwarning
    front.ask("far", "models/model/evidence", {"given": {"size": 1e6}})
    assert "lies outside the data" in json.loads(front.answer("far")[1])["notes"][0]
    assert warnings.filters == filters and warnings.showwarning is place


def test_mistakes(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ao.UserError, match="'knd'"):
        model.explore(given={"knd": "ash"})
    with pytest.raises(ao.UserError, match="'grad'"):
        model.explore(target="grad")
    with pytest.raises(ao.UserError, match="height"):
        model.explore(height=3)
    with pytest.raises(ao.UserError, match="models by name"):
        ao.explore({})
    with pytest.raises(ao.UserError, match="letters, digits"):
        ao.explore({"a/b": model})
    with pytest.raises(ao.UserError, match="leave them out"):
        ao.load(FILES / "text.anyorder").explore(target="a")
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "anyorder.serve.notebook":
            raise ModuleNotFoundError("No module named 'anywidget'")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ao.UserError, match=r"pip install 'anyorder\[notebook\]'"):
        model.explore()


def test_the_text_of_the_widget_is_one_module() -> None:
    text = Explorer._esm
    assert "export default { render };" in text
    assert "overMessages" in text and "overHttp(new URL" not in text  # no page around it
