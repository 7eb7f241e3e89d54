"""The explorer in a notebook: the real widget, behind a page that does what a notebook does for anywidget."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anyorder as ao

from browsing import until
from on_pages import expected, serious

pytest.importorskip("anywidget", reason="the notebook is an extra")

ADDRESS = "http://localhost:8888/"  # nobody is there: the pages are given below
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>notebook</title>
<style>body { color: COLOUR; background: GROUND; margin: 20px; }</style>
<main><h1>A notebook</h1><div id="output"></div></main>
<script type="module">
import widget from "./widget.js";
const state = JSON.parse(document.querySelector("#state").textContent), listeners = new Map(), changed = new Set();
const emit = (name, ...rest) => (listeners.get(name) ?? []).forEach((one) => one(...rest));
const model = {
  get: (name) => state[name],
  set: (name, value) => { state[name] = value; changed.add(name); emit(`change:${name}`); },
  save_changes: () => {
    const news = Object.fromEntries([...changed].map((name) => [name, state[name]]));
    changed.clear();
    to_python(JSON.stringify({ method: "update", state: news }));
  },
  send: (content) => { to_python(JSON.stringify({ method: "custom", content })); },
  on: (name, one) => listeners.set(name, [...(listeners.get(name) ?? []), one]),
  off: (name, one) => listeners.set(name, (listeners.get(name) ?? []).filter((other) => other !== one)),
};
const bytes = (text) => new DataView(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
// Echoes ("echo_update") are for other pages on the same kernel: a notebook drops those of what it said itself.
async function hear() {
  for (const [data, buffers] of JSON.parse(await of_python())) {
    if (data.method === "custom") emit("msg:custom", data.content, buffers.map(bytes));
    if (data.method !== "update") continue;
    for (const [name, value] of Object.entries(data.state)) { state[name] = value; emit(`change:${name}`); }
  }
  setTimeout(hear, PAUSE);
}
hear();
window.away = widget.render({ model, el: document.querySelector("#output") });
window.listeners = listeners;
</script><script type="application/json" id="state">STATE</script></html>"""


class Notebook:
    """A page with the widget's front end, joined to the widget by what playwright lets a page call."""

    def __init__(self, browser: Any, widget: Any, *, dark: bool = False, pause: int = 60, **options: Any) -> None:
        self.widget, self.sent, self.said = widget, [], []
        widget.comm.send = lambda data=None, buffers=None, **_: self.sent.append(
            [data, [base64.b64encode(one).decode() for one in buffers or []]]
        )
        self.context = browser.new_context(permissions=["clipboard-read", "clipboard-write"], **options)
        self.page, self.complaints = self.context.new_page(), []
        self.page.set_default_timeout(15_000)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.expose_function("to_python", self._heard)
        self.page.expose_function("of_python", self._taken)
        state = json.dumps({name: widget.get_state(name)[name] for name in ("model", "given", "target", "height")})
        colours = ("#eee", "#111") if dark else ("#111", "#fff")
        body = PAGE.replace("STATE", state).replace("COLOUR", colours[0]).replace("GROUND", colours[1])
        body = body.replace("PAUSE", str(pause))
        self.page.route(ADDRESS, lambda route: route.fulfill(body=body, content_type="text/html"))
        script = widget._esm
        self.page.route(ADDRESS + "widget.js", lambda route: route.fulfill(body=script, content_type="text/javascript"))
        self.page.route("**/favicon.ico", lambda route: route.fulfill(body=""))
        self.page.goto(ADDRESS)

    def _heard(self, message: str) -> None:
        self.said.append(json.loads(message))
        self.widget.comm.handle_msg({"content": {"data": json.loads(message)}, "buffers": []})

    def _taken(self) -> str:
        sent, self.sent[:] = list(self.sent), []
        return json.dumps(sent)

    def card(self, name: str) -> Any:
        return self.page.locator(f'article[data-column="{name}"]')

    def shares(self, column: str, levels: list[str]) -> dict[str, str]:
        texts = "row => ['.name', '.share'].map(part => row.querySelector(part).textContent)"
        rows = self.card(column).locator("button.level").evaluate_all(f"rows => rows.map({texts})")
        return {level: dict(rows)[level] for level in levels}

    def until(self, test: Any) -> None:
        for _ in range(400):
            if test():
                return
            self.page.wait_for_timeout(40)
        raise AssertionError("never came true")

    def close(self) -> None:
        self.context.close()
        self.widget.close()
        assert not self.complaints


@pytest.fixture
def open_notebook(browser: Any) -> Iterator[Any]:
    opened: list[Notebook] = []

    def begin(widget: Any, **options: Any) -> Notebook:
        opened.append(Notebook(browser, widget, **options))
        return opened[-1]

    yield begin
    for one in opened:
        one.close()


def test_clicking_and_going_on_in_python(open_notebook: Any, models: dict[str, Any], tmp_path: Path) -> None:
    model, grades = models["table"], ["d", "c", "b", "a"]
    widget = ao.explore(models, given={"kind": "birch"}, height=None)
    here = open_notebook(widget, viewport={"width": 1500, "height": 1800})
    page = here.page
    # The beginning is what Python said.
    page.get_by_text("kind = birch", exact=True).wait_for()
    here.until(lambda: here.shares("grade", grades) == expected(model.given(kind="birch")["grade"]))
    assert here.card("kind").get_by_role("button", name="birch").get_attribute("aria-pressed") == "true"
    assert not serious(page)
    # A click is Python's to read.
    here.card("kind").get_by_role("button", name="cedar").click(modifiers=["Shift"])
    here.until(lambda: widget.given == {"kind": ao.OneOf("birch", "cedar")})
    field = here.card("size").get_by_role("textbox")
    field.fill("0.5..1.5")
    field.press("Enter")
    here.until(lambda: widget.given.get("size") == ao.Between(0.5, 1.5))
    assert model.given(widget.given).ranged
    # An atom, by its button: one step, however the two sides write it.
    here.card("rain").get_by_role("button", name="exactly 0").click()
    here.until(lambda: widget.given.get("rain") == 0)
    page.get_by_role("button", name="undo").click()
    here.until(lambda: "rain" not in widget.given)
    # What Python says, the page shows; and it is not said back.
    before = len(here.said)
    widget.given = {"kind": "ash"}
    page.get_by_text("kind = ash", exact=True).wait_for()
    here.until(lambda: here.shares("grade", grades) == expected(model.given(kind="ash")["grade"]))
    assert not [one for one in here.said[before:] if one["method"] == "update"]
    # Ctrl Z is the notebook's, except inside of the element.
    page.locator("h1").click()
    page.keyboard.press("Control+z")
    page.wait_for_timeout(50)
    assert widget.given == {"kind": "ash"}
    page.get_by_role("button", name="undo").focus()
    page.keyboard.press("Control+z")
    here.until(lambda: "size" in widget.given)
    assert page.url == ADDRESS  # no link: the address is the notebook's
    page.get_by_role("button", name="clear all").click()
    here.until(lambda: widget.given == {})
    # Clicks so quick that none is answered before the next: what is no longer wanted is dropped, the last is shown.
    buttons = [here.card("kind").get_by_role("button", name=level) for level in ("ash", "birch", "cedar")]
    page.evaluate("buttons => buttons.forEach((one) => one.click())", [one.element_handle() for one in buttons])
    here.until(lambda: here.shares("grade", grades) == expected(model.given(kind="cedar")["grade"]))
    assert [one for one in here.said if one.get("content", {}).get("drop")]
    # Mistakes have their place, and copied code needs no file.
    page.get_by_role("combobox", name="ask a question").fill("P(grade=a | knd=ash)")
    page.get_by_role("button", name="Ask").click()
    page.locator("mark").get_by_text("knd", exact=True).wait_for()
    assert page.get_by_role("button", name="copy as command").is_hidden()
    page.get_by_role("button", name="copy as Python").click()
    page.get_by_text("Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert 'known = model.given({\n    "kind": "cedar",\n})' in copied and "ao.load" not in copied
    # A file goes in, and the filled one comes out.
    page.get_by_role("tab", name="Fill").click()
    frame = model.sample(6, seed=3)
    frame.loc[[1, 4], "kind"] = None
    frame.to_csv(tmp_path / "some.csv", index=False)
    page.locator("input[type=file]").set_input_files(tmp_path / "some.csv")
    page.get_by_text("cells filled in 6 rows").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    assert Path(download.value.path()).read_text(encoding="utf-8").count("\n") == 7
    # Another model, of another kind.
    page.get_by_role("combobox", name="model").select_option("text")
    page.get_by_role("textbox", name="a text with holes").fill("the c_t s_t")
    page.get_by_role("button", name="Fill the holes").click()
    page.get_by_text("2 holes filled").wait_for()
    here.until(lambda: widget.model == "text")
    # Taken off the page, it listens no more; closed, it says so.
    page.evaluate("window.away()")
    assert page.evaluate("[...listeners.values()].flat().length") == 0
    assert page.locator("any-order-explorer").count() == 0


def test_what_was_said_is_not_said_back(open_notebook: Any, models: dict[str, Any]) -> None:
    """What is taken back before anything of Python's arrives stays taken back, however slow the line is."""
    widget = models["table"].explore()
    here = open_notebook(widget, pause=500, viewport={"width": 1500, "height": 1800})
    here.card("rain").get_by_role("button", name="exactly 0").click()
    here.until(lambda: widget.given == {"rain": 0})
    here.page.get_by_role("button", name="undo").click()
    here.until(lambda: widget.given == {})
    here.page.wait_for_timeout(1_000)
    assert widget.given == {}
    widget.given = {"kind": "ash"}
    here.page.get_by_text("kind = ash", exact=True).wait_for()


def test_a_notebook_that_is_dark_and_one_that_was_closed(open_notebook: Any, models: dict[str, Any]) -> None:
    widget = models["table"].explore(height=400)
    here = open_notebook(widget, dark=True, viewport={"width": 360, "height": 700})
    here.card("kind").wait_for()
    element = "document.querySelector('any-order-explorer')"
    assert here.page.evaluate(f"getComputedStyle({element}).colorScheme") == "dark"
    assert here.page.evaluate(f"{element}.getBoundingClientRect().height") <= 400
    assert here.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert not serious(here.page)
    # Of a target, said before anything is answered, the order of the cards is the first thing that is seen.
    widget.target, widget.height = "grade", 300
    until(here.page, f"{element}.getBoundingClientRect().height <= 300")
    here.until(lambda: here.page.locator("article").first.get_attribute("data-column") == "grade")
    # What each card tells moves the cards once more: a click before that could meet another one.
    here.card("kind").scroll_into_view_if_needed()
    here.card("kind").get_by_text("tells").wait_for()
    widget._answers.close()
    here.card("kind").get_by_role("button", name="ash").dispatch_event("click")
    here.page.get_by_text("this explorer was closed").wait_for()
