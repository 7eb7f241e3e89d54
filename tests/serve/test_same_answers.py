"""Over HTTP, alone or among others, a question gets the numbers that Python gives: to the last bit."""

from __future__ import annotations

import io
import json
import warnings
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anyorder.questions.ask import reply_to
from anyorder.questions.evidence import MISSING
from anyorder.questions.facts import reply_facts
from anyorder.questions.grammar import parse_question
from anyorder.serve.answers import MarginalsAnswer, SchemaAnswer
from anyorder.serve.columns import marginal_facts
from anyorder.support.plain import plain
from anyorder.tasks.anomalies import row_anomalies
from anyorder.variables.ranges import Between, Either, NotOneOf, OneOf

from asking import Asking, asked

PATH = "/v1/models/table"
ASKED = ("size | count=20", "P(size > 0 | flag=true)", "E[rain | kind=ash]", "size=0.5 | count=25", "median(count)")
ASKED += ("H(kind | flag=false)", "grade, half | count > 25", "P(day > 2024-03-01)", "mode(kind)", "I(kind; flag)")


def evidence(model: Any, count: int) -> list[dict[str, Any]]:
    """Random evidence as JSON has it: values of drawn rows, ranges of numbers, sets of levels, missing cells."""
    rng = np.random.default_rng(0)
    rows = model.sample(count, seed=0)
    found = []
    for number in range(count):
        given: dict[str, Any] = {}
        for name in rng.choice(model.columns, size=int(rng.integers(0, 5)), replace=False).tolist():
            given[name] = plain(rows[name].iloc[number])
        if number % 5 == 1:
            given["size"] = {"low": -1.0, "high": 1.5, "high_open": bool(rng.random() < 0.5)}
        if number % 5 == 2:
            given["kind"] = {"one_of": ["ash", "cedar"]}
        if number % 10 == 3:
            given["rain"] = {"missing": True}
        found.append(given)
    return found


def python_of(said: Any) -> Any:
    """What a piece of evidence is in Python, written out by hand and not by the service."""
    if not isinstance(said, dict):
        return said
    if "one_of" in said:
        return OneOf(*said["one_of"])
    return MISSING if "missing" in said else Between(said["low"], said["high"], high_open=said["high_open"])


def batches(service: Asking) -> float:
    """How many there have been."""
    return float(service.get("/metrics").text.split("\nanyorder_answered_together_count ")[1].split()[0])


def test_all_columns_at_once(service: Asking, models: dict[str, Any]) -> None:
    model, questions = models["table"], evidence(models["table"], 30)
    expected = []
    for given in questions:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = model.marginals({name: python_of(said) for name, said in given.items()}, draws=16)
        expected.append(json.loads(json.dumps({name: marginal_facts(one) for name, one in found.items()})))
    alone = [service.post(f"{PATH}/marginals", {"given": given, "draws": 16}).json() for given in questions]
    assert [answer["columns"] for answer in alone] == expected
    order = np.random.default_rng(1).permutation(len(questions))
    before = batches(service)
    together = service.at_once([(f"{PATH}/marginals", {"given": questions[at], "draws": 16}) for at in order])
    assert [answer.json()["columns"] for answer in together] == [expected[at] for at in order]
    assert batches(service) - before < len(questions)  # so some of them were answered together


def test_questions_were_answered_together(models: dict[str, Any]) -> None:
    with asked({"table": models["table"]}, workers=1) as service:
        service.at_once([(f"{PATH}/marginals", {"given": {"count": 10 + number}}) for number in range(30)])
        count = batches(service)
    assert count < 10  # for thirty questions: they were not answered one by one


def test_the_same_question_is_asked_once(models: dict[str, Any]) -> None:
    with asked({"table": models["table"]}, workers=1) as service:
        body = {"given": {"count": 21}}
        answers = {one.content for one in service.at_once([(f"{PATH}/marginals", body)] * 20)}
        again = service.post(f"{PATH}/marginals", body).content
        shared = service.get("/metrics").text.split("\nanyorder_shared_answers_total ")[1].split()[0]
    assert answers == {again}
    assert float(shared) == 20  # nineteen at the same time, and one later


@pytest.mark.parametrize("question", ASKED)
def test_typed_questions(question: str, service: Asking, models: dict[str, Any]) -> None:
    model, read = models["table"], parse_question(question)
    reply = reply_to(read, model.schema, lambda known: model.given(known).using(draws=64), question)
    expected = json.loads(json.dumps(plain(reply_facts(reply, read))))
    answer = service.post(f"{PATH}/ask", {"question": question, "draws": 64, "doubts": True}).json()
    assert answer.pop("notes") == []
    assert answer == expected


def test_rows(service: Asking, models: dict[str, Any]) -> None:
    model = models["table"]
    rows = model.sample(12, seed=4)
    holes = rows.assign(size=rows["size"].where(rows["count"] > 25), kind=None)
    table = {
        "columns": list(holes),
        "rows": [plain([None if pd.isna(c) else c for c in row]) for row in holes.to_numpy(object)],
    }
    drawn = service.post(f"{PATH}/sample", {"count": 12, "seed": 4}).json()
    assert drawn["rows"] == [plain(list(row)) for row in rows.astype(object).itertuples(index=False)]
    filled = service.post(f"{PATH}/fill", table).json()
    expected = model.fill(pd.DataFrame(table["rows"], columns=table["columns"]))
    assert filled["rows"] == [plain(list(row)) for row in expected.astype(object).itertuples(index=False)]
    scored = service.post(f"{PATH}/score", table).json()
    assert scored["log_prob"] == model.log_prob(pd.DataFrame(table["rows"], columns=table["columns"])).tolist()
    odd = service.post(f"{PATH}/anomalies?top=3", table).json()["anomalies"]
    found = model.anomalies(pd.DataFrame(table["rows"], columns=table["columns"]), top=3)
    assert [(one["row"], one["column"], one["probability"]) for one in odd] == [
        (one.row, one.column, one.probability) for one in found
    ]
    odd = service.post(f"{PATH}/anomalies?top=3&rows=true", table).json()["anomalies"]
    frame = pd.DataFrame(table["rows"], columns=table["columns"])
    assert odd == [plain(asdict(one)) for one in row_anomalies(model.core, frame, top=3)]
    following = service.post(f"{PATH}/next", {"about": ["kind"], "given": {"count": 20}, "draws": 8}).json()
    assert following.pop("notes") == []
    assert following == json.loads(
        json.dumps(plain(model.next_question({"count": 20}, about="kind", draws=8).to_json()))
    )


def test_texts(service: Asking, models: dict[str, Any]) -> None:
    model = models["text"]
    found = service.post("/v1/models/text/text/fill", {"text": "the q__ck", "draws": 3, "seed": 5}).json()["fillings"]
    expected = model.fill("the q__ck", draws=3, seed=5)
    assert [(one["text"], one["nats"], one["holes"]) for one in found] == [(f.text, f.nats, [5, 6]) for f in expected]
    assert [one["confidence"] for one in found] == [[f.confidence[5], f.confidence[6]] for f in expected]
    drawn = service.post("/v1/models/text/text/sample", {"beginning": "the ", "count": 2, "seed": 1}).json()["texts"]
    assert drawn == model.sample(2, beginning="the ", seed=1)
    scores = service.post("/v1/models/text/text/score", {"texts": ["the fox", "xqz"]}).json()["log_prob"]
    assert scores == model.log_prob(["the fox", "xqz"]).tolist()


def test_pictures(service: Asking, models: dict[str, Any]) -> None:
    import base64

    from PIL import Image

    model = models["pictures"]
    picture = model.sample(1, seed=2)[0]
    known = np.zeros((8, 8), dtype=bool)
    known[:5] = True
    body = {"picture": picture.tolist(), "known": known.tolist(), "draws": 2, "seed": 3}
    filled = service.post("/v1/models/pictures/pictures/fill", body).json()
    expected = model.fill(picture, known, draws=2, seed=3)
    assert filled["pictures"] == expected.tolist() and filled["shape"] == [8, 8]
    as_file = service.post("/v1/models/pictures/pictures/fill", body | {"format": "png"}).json()["pictures"][0]
    levels = np.asarray(Image.open(io.BytesIO(base64.b64decode(as_file))))
    assert (np.rint(levels / 255 * (model.levels - 1)) == expected[0]).all()
    mask = np.where(known, 0, 255).astype(np.uint8)  # white where to fill in, as for the command
    files = {}
    for name, array in (("picture", levels), ("known", mask)):
        buffer = io.BytesIO()
        Image.fromarray(array).save(buffer, format="PNG")
        files[name] = base64.b64encode(buffer.getvalue()).decode()
    again = service.post("/v1/models/pictures/pictures/fill", {**files, "seed": 3}).json()["pictures"][0]
    assert (np.array(again)[:5] == expected[0][:5]).all()
    drawn = service.post("/v1/models/pictures/pictures/sample", {"count": 2, "seed": 9}).json()["pictures"]
    assert drawn == model.sample(2, seed=9).tolist()
    scores = service.post("/v1/models/pictures/pictures/score", {"pictures": drawn}).json()["log_prob"]
    assert scores == model.log_prob(np.array(drawn, dtype=np.uint8)).tolist()


def test_the_evidence_itself(service: Asking, models: dict[str, Any]) -> None:
    model = models["table"]
    given = {"count": 20, "kind": "ash"}
    answer = service.post(f"{PATH}/evidence", {"given": given, "rarity": True}).json()
    assert answer["log_prob"]["value"] == float(model.given().log_prob(given))
    assert 0 <= answer["rarity"] <= 1
    # Values and a range: the density of the values, times the probability of the range given them.
    both = service.post(f"{PATH}/evidence", {"given": given | {"size": {"low": 0}}}).json()["log_prob"]["value"]
    inside = np.log(float(model.given(given).prob(size=Between(0, None))))
    assert both == pytest.approx(float(model.given().log_prob(given)) + inside, abs=1e-12)
    assert service.post(f"{PATH}/evidence", {"given": {}}).json()["log_prob"] is None
    # A value may be marked as one, whatever it looks like.
    marked = {"given": {name: {"value": value} for name, value in given.items()}, "rarity": True}
    assert service.post(f"{PATH}/evidence", marked).json() == answer


def test_far_evidence_is_noted(models: dict[str, Any]) -> None:
    with asked({"table": models["table"]}) as service:
        far = service.post(f"{PATH}/marginals", {"given": {"size": 1e4}, "columns": ["kind"], "evidence": True}).json()
        assert "lies outside the data" in far["notes"][0] and far["evidence"]["log_prob"]["value"] < -20


def test_what_is_known_in_json() -> None:
    from pydantic import TypeAdapter

    from anyorder.serve.statements import Given, evidence_of

    said = {
        "a": 6,
        "b": "30..40",
        "c": None,
        "d": True,
        "e": {"low": 1, "high_open": False, "high": 2.5, "low_open": True},
    }
    said |= {"f": {"one_of": ["x", 1]}, "g": {"not_one_of": [3]}, "h": {"missing": True}}
    said |= {"i": {"either": [{"high": 1}, {"one_of": [7]}]}}
    read = evidence_of(TypeAdapter(Given).validate_python(said))
    assert read == {
        "a": 6,
        "b": "30..40",
        "d": True,
        "e": Between(1, 2.5, low_open=True),
        "f": OneOf("x", 1),
        "g": NotOneOf((3,)),
        "h": MISSING,
        "i": Either((Between(None, 1), OneOf(7))),
    }


def test_the_schema_describes_every_column(service: Asking, models: dict[str, Any]) -> None:
    model = models["table"]
    answer = service.get(f"{PATH}/schema").json()
    SchemaAnswer.model_validate(answer)
    columns = {column["name"]: column for column in answer["columns"]}
    assert list(columns) == model.columns
    assert [level["level"] for level in columns["kind"]["levels"]] == ["ash", "birch", "cedar"]
    shares = [level["share"] for level in columns["kind"]["levels"]]
    assert shares == list(model.marginals()["kind"].probs.values())
    assert columns["size"]["missing_can_be_given"] and not columns["count"]["missing_can_be_given"]
    axis = columns["day"]["axis"]
    assert axis["values"][3] == str(pd.Timestamp(0) + pd.Timedelta(days=axis["edges"][3])).replace(" ", "T")
    # An edge can be sent back as the end of a range, for every column that has an axis.
    for name, column in columns.items():
        if "axis" in column:
            third = len(column["axis"]["values"]) // 3
            ends = {"low": column["axis"]["values"][third], "high": column["axis"]["values"][-third]}
            found = service.post(f"{PATH}/marginals", {"given": {name: ends}, "columns": [name], "draws": 16})
            inside = found.json()["columns"][name]
            MarginalsAnswer.model_validate(found.json())
            assert found.status_code == 200 and sum(inside["cells"][third - 1 : 1 - third]) == pytest.approx(
                1, abs=1e-9
            ), name
