"""A visitor's whole way through the explorer, in a real browser: what the page says is what Python says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from anyorder.questions.grammar import parse_question

from on_pages import expected, percent, serious


def shares(visit: Any, column: str, levels: list[Any]) -> dict[Any, str]:
    return {level: visit.share(column, str(level)) for level in levels}


def settled(visit: Any, count: int) -> None:
    """Wait until the cards were drawn so many times."""
    visit.until(f"performance.getEntriesByName('anyorder:cards').length >= {count}")


def test_a_table(visit: Any, models: dict[str, Any], tmp_path: Path) -> None:
    model, here = models["table"], visit(viewport={"width": 1500, "height": 2600})
    page = here.open("#model=table")
    kinds, grades = ["ash", "birch", "cedar"], ["d", "c", "b", "a"]
    page.get_by_text("click a level").wait_for()
    settled(here, 1)
    assert shares(here, "kind", kinds) == expected(model.given()["kind"])
    assert not here.asked("/marginals")  # what holds before anything is known came with the schema
    assert page.get_by_role("button", name="undo").is_disabled()
    assert not serious(page)

    # A level, one more, and back to one: every other card moves, by one question a click.
    level = here.card("kind").get_by_role("button", name="birch")
    level.click()
    settled(here, 2)
    assert shares(here, "grade", grades) == expected(model.given(kind="birch")["grade"])
    assert level.get_attribute("aria-pressed") == "true"
    assert len(here.asked("/marginals")) == 1
    here.card("kind").get_by_role("button", name="cedar").click(modifiers=["Shift"])
    settled(here, 3)
    page.get_by_text("kind is birch or cedar").wait_for()
    assert page.get_by_text("given: is birch or cedar").count() == 1
    said = {"given": {"kind": {"one_of": ["birch", "cedar"]}}}
    answer = httpx.post(here.address + "v1/models/table/marginals", json=said, timeout=60).json()["columns"]
    assert shares(here, "kind", kinds) == {one["level"]: percent(one["prob"]) for one in answer["kind"]["probs"]}
    assert shares(here, "grade", grades) == {one["level"]: percent(one["prob"]) for one in answer["grade"]["probs"]}
    page.get_by_role("button", name="undo").click()
    settled(here, 4)
    assert shares(here, "grade", grades) == expected(model.given(kind="birch")["grade"])
    page.get_by_role("button", name="redo").click()
    settled(here, 5)
    page.get_by_text("kind is birch or cedar").wait_for()
    page.keyboard.press("Control+z")
    settled(here, 6)

    # A range by dragging, by typing, and a cell that is known to be empty.
    plot = here.card("size").locator(".plot")
    box = plot.bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 30, steps=4)
    page.mouse.up()
    settled(here, 7)
    said = json.loads(page.evaluate("new URLSearchParams(location.hash.slice(1)).get('given')"))
    columns = httpx.get(here.address + "v1/models/table/schema", timeout=60).json()["columns"]
    axis = columns[0]["axis"]["edges"]
    width = axis[-1] - axis[0]
    assert set(said["size"]) == {"low", "high"}
    assert said["size"]["low"] == pytest.approx(axis[0] + 0.3 * width, abs=0.03 * width)
    assert said["size"]["high"] == pytest.approx(axis[0] + 0.6 * width, abs=0.03 * width)
    field = here.card("count").get_by_role("textbox")
    low, high = (round(end["value"]) for end in columns[1]["seen"])
    field.fill(f"{low}..{high - 1}")
    field.press("Enter")
    settled(here, 8)
    page.get_by_text(f"count {low} to {high - 1}").wait_for()
    here.card("size").get_by_role("button", name="missing").click()
    settled(here, 9)
    page.get_by_text("size is missing").wait_for()
    page.get_by_text("log-probability").wait_for()

    # The link holds all of it, and so does what is copied.
    link = page.url
    page.get_by_role("button", name="copy as Python").click()
    page.get_by_text("Copied").wait_for()
    python = page.evaluate("navigator.clipboard.readText()")
    names: dict[str, Any] = {}
    exec(
        python.split("model =")[0] + "known = " + python.split("known = ")[1].split("\nprint")[0],
        {"model": model},
        names,
    )
    assert names["known"].evidence.keys() == {"kind", "size", "count"}
    page.get_by_role("button", name="copy as command").click()
    here.until("navigator.clipboard.readText().then(t => t.startsWith('anyorder ask table.anyorder'))")
    question = page.evaluate("navigator.clipboard.readText()").split("'")[1]
    assert parse_question(question).evidence.keys() == {"kind", "size", "count"}
    other = visit(viewport={"width": 1500, "height": 2600})
    other.open(link[len(here.address) :])
    settled(other, 1)
    assert shares(other, "grade", grades) == shares(here, "grade", grades)

    # Chips can be taken away, with the keyboard too.
    page.get_by_role("button", name="take back: size is missing").press("Enter")
    settled(here, 10)
    page.get_by_role("button", name="clear all").click()
    settled(here, 11)
    assert shares(here, "grade", grades) == expected(model.given()["grade"])


def test_evidence_far_from_the_data_is_warned_of(visit: Any) -> None:
    here = visit()
    page = here.open("#model=table&given=" + quote(json.dumps({"size": 1e6})))
    page.get_by_text("lies outside the data").wait_for()


def test_typed_questions(visit: Any, models: dict[str, Any]) -> None:
    here = visit()
    page = here.open("#model=table")
    box = page.get_by_role("combobox", name="ask a question")
    box.press_sequentially("P(gra")
    page.locator("#suggestions").get_by_text("grade").wait_for()
    box.press("Tab")
    assert box.input_value() == "P(grade"
    box.press_sequentially("=a | kind=bi")
    page.locator("#suggestions").get_by_text("birch").click()
    assert box.input_value() == "P(grade=a | kind=birch"
    box.press("End")
    box.press_sequentially(")")
    box.press("Enter")
    answer = percent(models["table"].prob("grade=a | kind=birch").value)
    page.locator(".reply strong").get_by_text(answer, exact=True).wait_for()
    # A mistake is marked where it is. The browser itself reports every answer that refuses.
    box.fill("P(grade=a | knd=ash)")
    box.press("Enter")
    page.locator("mark").get_by_text("knd", exact=True).wait_for()
    box.fill("P(grade=a | kind=ash")
    box.press("Enter")
    page.locator("mark").get_by_text("(", exact=True).wait_for()
    box.fill("P(grade=a | kind=ahs)")
    box.press("Enter")
    page.locator("mark").get_by_text("ahs", exact=True).wait_for()  # of a column and its value the latter is wrong
    assert len(here.complaints) == 3 and all("400" in text for text in here.complaints)
    here.complaints.clear()


def test_a_typed_question_follows_the_conditions(visit: Any, models: dict[str, Any]) -> None:
    here = visit(viewport={"width": 1500, "height": 2600})
    page = here.open("#model=table")
    box = page.get_by_role("combobox", name="ask a question")
    box.fill("P(grade=a)")
    box.press("Enter")
    reply = page.locator(".reply strong")
    reply.get_by_text(percent(models["table"].prob("grade=a").value), exact=True).wait_for()
    here.card("kind").get_by_role("button", name="birch").click()
    reply.get_by_text(percent(models["table"].prob("grade=a | kind=birch").value), exact=True).wait_for()
    assert page.get_by_text("The conditions above hold here too.").count() == 1
    assert len(here.asked("/ask")) == 2


def test_answers_to_typed_questions_are_written_for_people(visit: Any, models: dict[str, Any]) -> None:
    here = visit()
    page = here.open("#model=table")
    box = page.get_by_role("combobox", name="ask a question")
    box.fill("day, half | kind=birch")
    box.press("Enter")
    known = models["table"].given(kind="birch")
    low, high = (str(time)[:10] for time in known["day"].quantile([0.05, 0.95]))
    page.locator(".reply .row").get_by_text(f"90\u202f% between {low} and {high}", exact=True).wait_for()
    assert not re.search(r"\dT\d|\.\d{5}", page.locator(".reply").inner_text())


def test_a_click_draws_every_curve_once(visit: Any) -> None:
    here = visit(viewport={"width": 1500, "height": 2600})
    page = here.open("#model=table")
    settled(here, 1)
    page.wait_for_timeout(600)  # whatever a page asks for once nothing was clicked for a moment
    page.evaluate("""() => {
      window.drawn = new Map();
      const set = SVGPathElement.prototype.setAttribute;
      SVGPathElement.prototype.setAttribute = function (name, value) {
        if (name === "d") drawn.set(this, (drawn.get(this) ?? 0) + 1);
        return set.call(this, name, value);
      };
    }""")
    here.card("kind").get_by_role("button", name="birch").click()
    page.get_by_text("log-probability").wait_for()
    page.wait_for_timeout(300)
    assert set(page.evaluate("[...drawn.values()]")) == {1}


def test_a_link_to_a_model_that_is_not_here(visit: Any) -> None:
    here = visit()
    page = here.open("#model=gone&given=" + quote(json.dumps({"size": 1})))
    page.get_by_text("The model “gone” is not here.").wait_for()
    here.card("size").wait_for()
    assert page.locator(".chip").count() == 0
    page.get_by_role("combobox", name="model").select_option("text")
    page.get_by_role("button", name="Fill the holes").wait_for()
    assert page.get_by_text("is not here").count() == 0


def test_the_target_search_and_pins(visit: Any, models: dict[str, Any]) -> None:
    here = visit(viewport={"width": 1500, "height": 2600})
    page = here.open("#model=table")
    page.get_by_role("button", name="make it the target: kind").click()
    here.card("grade").get_by_text("tells").wait_for()
    shown = page.locator("article").evaluate_all("cards => cards.map(card => card.dataset.column)")
    ranked = [one.name for one in models["table"].next_question({}, ["kind"], draws=64, seed=0).candidates]
    assert shown == ["kind", *[name for name in ranked if name in shown]]
    costs = {name: 1000.0 if name == ranked[0] else 1.0 for name in ranked}
    page.get_by_label(f"cost of {ranked[0]}").fill("1000")
    page.get_by_label(f"cost of {ranked[0]}").press("Enter")
    found = models["table"].next_question({}, ["kind"], costs=costs, draws=64, seed=0).candidates
    priced = sorted(found, key=lambda one: -one.value)
    expected_order = ["kind", *[one.name for one in priced if one.name in shown]]
    assert expected_order != shown
    order = "[...document.querySelector('any-order-explorer').shadowRoot.querySelectorAll('article')]"
    here.until(f"{order}.map(card => card.dataset.column).join() === {json.dumps(','.join(expected_order))}")
    page.get_by_role("button", name="pin to the front: rain").click()
    assert page.locator("article").first.get_attribute("data-column") == "rain"
    page.get_by_role("searchbox", name="search columns").fill("gra")
    assert page.locator("article").evaluate_all("cards => cards.map(card => card.dataset.column)") == ["grade"]
    page.get_by_role("searchbox", name="search columns").fill("nothing of that name")
    page.get_by_text("No column has this").wait_for()


def test_rows_files_and_oddities(visit: Any, models: dict[str, Any], tmp_path: Path) -> None:
    here = visit()
    page = here.open("#model=table&given=" + quote(json.dumps({"kind": {"value": "ash"}})))
    page.get_by_role("tab", name="Rows").click()
    page.locator("tbody tr").nth(49).wait_for()
    assert set(page.locator("td.held").all_inner_texts()) == {"ash"}
    page.get_by_role("tab", name="Fill").click()
    frame = models["table"].sample(6, seed=3)
    frame.loc[[1, 4], "kind"] = None
    frame.to_csv(tmp_path / "some.csv", index=False, encoding="utf-16")  # a file goes as it is; the service reads it
    page.locator("input[type=file]").set_input_files(tmp_path / "some.csv")
    page.get_by_text("cells filled in 6 rows").wait_for()
    at = page.locator("th").all_inner_texts().index("kind")
    filled = page.locator(f"tbody tr td:nth-child({at + 1})").all_inner_texts()
    assert filled == models["table"].fill(frame, seed=0)["kind"].astype(str).tolist()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    assert download.value.suggested_filename == "some-filled.csv"
    assert Path(download.value.path()).read_text(encoding="utf-8").count("\n") == 7
    assert not serious(page)
    page.get_by_role("tab", name="Anomalies").click()
    page.get_by_role("button", name="take an example").click()
    page.locator("td.odd").first.wait_for()
    assert not serious(page)
    page.get_by_role("combobox", name="what to look for").select_option("true")
    page.locator("th").get_by_text("fits least").wait_for()
    assert page.locator("td.odd").count() == page.locator("tbody tr").count() < 30
    # Levels and times as people write them.
    texts = " ".join(page.locator("td").all_inner_texts())
    page.get_by_role("tab", name="Rows").click()
    texts += " ".join(page.locator("td").all_inner_texts())
    assert "T00:00" not in texts and "True" in texts and "true" not in texts


def test_texts_and_pictures(visit: Any, models: dict[str, Any]) -> None:
    here = visit()
    page = here.open("#model=text")
    page.get_by_role("textbox", name="a text with holes").fill("the c_t s_t")
    page.get_by_role("button", name="Fill the holes").click()
    page.get_by_text("2 holes filled").wait_for()
    assert page.locator(".text-answer").inner_text() == models["text"].fill("the c_t s_t", mark="_").text
    assert page.locator(".hole").count() == 2
    assert not serious(page)
    page.get_by_role("combobox", name="model").select_option("pictures")
    canvas = page.locator("figure canvas").first
    here.until("document.querySelector('any-order-explorer').shadowRoot.querySelector('canvas')?.width === 8")
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 40, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 160, box["y"] + 160, steps=5)
    page.mouse.up()
    page.get_by_role("button", name="Fill the hole").click()
    page.get_by_text("draw 5").wait_for()
    assert page.locator("canvas").count() == 6
    assert not serious(page)
    # By keys; another press of the button draws something else.
    page.get_by_role("button", name="Heal").click()
    canvas.focus()
    page.keyboard.press("ArrowUp")
    page.get_by_text("column 5, row 5").wait_for()
    for key in ("Space", "ArrowLeft", "Space"):
        page.keyboard.press(key)
    page.get_by_text("column 4, row 5: to be filled").wait_for()
    asked: list[Any] = []
    for _ in range(2):
        with page.expect_response("**/pictures/fill") as answer:
            page.get_by_role("button", name="Fill the hole").click()
        asked.append(answer.value.request.post_data_json)
    assert all(False in row for row in asked[0]["known"][4:5])
    assert asked[0]["seed"] != asked[1]["seed"]


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (3840, "light")])
def test_narrow_and_wide_light_and_dark(width: int, scheme: str, visit: Any) -> None:
    here = visit(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = here.open(
        "#model=table&given=" + quote(json.dumps({"kind": {"value": "ash"}, "size": {"low": 0, "high": 1}}))
    )
    page.get_by_text("log-probability").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not serious(page)


def test_only_what_is_seen_is_drawn(visit: Any) -> None:
    here = visit(viewport={"width": 400, "height": 300})
    here.open("#model=table")
    settled(here, 1)
    last = here.card("rain").locator("path.before")
    assert last.get_attribute("d") is None
    here.card("rain").scroll_into_view_if_needed()
    here.until(
        "[...document.querySelector('any-order-explorer').shadowRoot.querySelectorAll('article')].at(-1).querySelector('path.before').getAttribute('d')"
    )


def test_names_never_become_markup(visit: Any) -> None:
    here, odd = visit(), "<img src=x onerror=alert(1)>"

    def altered(route: Any) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace('"ash"', json.dumps(odd)))

    here.page.route("**/schema", altered)
    page = here.open("#model=table")
    page.get_by_text(odd, exact=True).first.wait_for()
    assert page.locator("img").count() == 0


def test_a_token_is_asked_for(visit: Any) -> None:
    here = visit()
    refusal = {"error": {"kind": "token", "message": "this service needs a token"}}

    def guarded(route: Any) -> None:
        if route.request.headers.get("authorization") == "Bearer right":
            route.continue_()
        else:
            route.fulfill(status=401, json=refusal)

    here.page.route("**/v1/**", guarded)
    page = here.open("#model=table")
    for token in ("wrong", "right"):
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Go on").click()
    here.card("kind").wait_for()
    # The browser reports each refusal; no other complaint is allowed.
    assert len(here.complaints) == 2 and all("401" in text for text in here.complaints)
    here.complaints.clear()
