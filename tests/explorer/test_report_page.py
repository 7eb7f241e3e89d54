"""The explorer inside of a report: a file that answers by itself, as pandas does on the rows that the model drew."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.cli.explored import drawn_rows, explorer_section
from anyorder.cli.report import write_report

from on_pages import percent, serious

ROWS = 4000
EPOCH = pd.Timestamp(0)


@pytest.fixture(scope="module")
def report(models: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, "A report", explorer_section(models["table"], "table", file="my table.anyorder"), subtitle="s")
    return path


@pytest.fixture(scope="module")
def frame(models: dict[str, Any]) -> pd.DataFrame:
    drawn = models["table"].sample(ROWS, seed=0, holes=True)
    assert isinstance(drawn, pd.DataFrame)
    return drawn


class Opened:
    """A page opened from a file, and whatever it complained of or asked for."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page, self.complaints, self.asked = self.context.new_page(), [], []
        self.page.set_default_timeout(15_000)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def card(self, name: str) -> Any:
        return self.page.locator(f'article[data-column="{name}"]')

    def ask(self, what: str, body: Any) -> Any:
        script = "([what, body]) => document.querySelector('any-order-explorer').ask(`models/table/${what}`, body)"
        return self.page.evaluate(script, [what, body])


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Any]:
    pages: list[Opened] = []

    def begin(path: Path = report, **options: Any) -> Opened:
        pages.append(Opened(browser, path, **options))
        return pages[-1]

    yield begin
    for one in pages:
        one.context.close()
        assert not one.complaints
        assert all(url.startswith(("file:", "blob:")) for url in one.asked)


def days(column: pd.Series) -> pd.Series:
    return (pd.to_datetime(column) - EPOCH) / pd.Timedelta(days=1)


def as_numbers(column: pd.Series) -> pd.Series:
    return days(column) if column.dtype.kind == "M" else column.astype(float)


CASES: list[tuple[dict[str, Any], str]] = [
    ({"kind": "birch"}, "kind == 'birch'"),
    ({"kind": {"one_of": ["ash", "cedar"]}, "flag": True}, "kind in ['ash', 'cedar'] and flag"),
    ({"kind": {"not_one_of": ["ash"]}}, "kind in ['birch', 'cedar']"),
    (
        {"size": {"low": 0.21, "high": 1.93}, "count": {"low": 25, "low_open": True}},
        "0.21 <= size <= 1.93 and count > 25",
    ),
    ({"size": "< 0.11 or > 1.77", "half": {"value": 0.5}}, "(size < 0.11 or size > 1.77) and half == 0.5"),
    ({"size": {"missing": True}}, "size.isna()"),
    ({"count": 30}, "count == 30"),
    ({"count": "{22, 23}", "rain": 0}, "count in [22, 23] and rain == 0"),
    ({"rain": "> 0", "grade": {"low": "c", "high": "b"}}, "rain > 0 and grade in ['c', 'b']"),
    ({"day": "2024-04-01..2024-06-15"}, "'2024-04-01' <= day <= '2024-06-15'"),
    (
        {"moment": {"low": "2024-03-20T10:00:00"}, "kind": "!= ash"},
        "moment >= '2024-03-20 10:00' and kind in ['birch', 'cedar']",
    ),
]


def test_counts_are_those_of_pandas(opened: Any, models: dict[str, Any], frame: pd.DataFrame) -> None:
    here = opened()
    here.card("kind").wait_for()
    axes = {
        one["name"]: one["axis"]["edges"]
        for one in drawn_rows(models["table"], "table")["schema"]["columns"]
        if "axis" in one
    }
    assert axes.keys() == {"size", "count", "day", "moment", "rain"}
    for given, query in [({}, "index >= 0"), *CASES]:
        kept = frame.query(query, engine="python")
        assert 20 < len(kept) <= ROWS, query
        answer = here.ask("marginals", {"given": given})
        assert (f"From {len(kept):,} of the 4,000 rows" in answer["basis"]) == bool(given), query
        assert bool(answer["notes"]) == (len(kept) < 100)
        for name, one in answer["columns"].items():
            cells = kept[name].dropna()
            for level in one.get("probs", []):
                assert level["prob"] == pytest.approx(float((cells == level["level"]).mean()), abs=1e-12), (query, name)
            if name not in axes:
                assert one["best"] in cells.mode().tolist()
                continue
            numbers, edges = as_numbers(cells).to_numpy(), np.array(axes[name])
            slack = 2e-5 * (edges[-1] - edges[0])
            parse = (
                (lambda text: (pd.Timestamp(text).tz_localize(None) - EPOCH) / pd.Timedelta(days=1))
                if name in ("day", "moment")
                else float
            )
            ends = np.quantile(numbers, [0.05, 0.5, 0.95], method="inverted_cdf")
            expected = [numbers.mean(), *ends]
            found = [parse(one[part]) for part in ("mean", "low", "median", "high")]
            assert found == pytest.approx(expected, abs=slack), (query, name)
            beyond = (float((numbers <= edges[0]).mean()), float((numbers > edges[-1]).mean()))
            assert (one["below"], one["above"]) == pytest.approx(beyond, abs=1e-12)
            counts = np.histogram(-numbers[numbers > edges[0]], -edges[::-1])[0][::-1] / len(
                numbers
            )  # (a, b], as cells are
            shown = np.array(one["cells"])
            assert shown.sum() == pytest.approx(1 - sum(beyond), abs=1e-9)
            if name in ("count", "day"):  # whole numbers are counted, and not spread
                assert shown == pytest.approx(counts, abs=1e-12)
            else:  # spread by a kernel: little of the mass moves far
                assert np.abs(np.cumsum(shown) - np.cumsum(counts)).max() < 0.06, (query, name)
        drawn = here.ask("sample", {"given": given, "count": 50})
        assert len(drawn["rows"]) == min(50, len(kept))
        assert (
            pd.DataFrame(drawn["rows"], columns=drawn["columns"])["kind"].tolist()
            == kept["kind"].head(50).where(kept["kind"].head(50).notna(), None).tolist()
        )
    # A range holds all of its mass, and an exact number is taken as a range.
    edges = np.array(here.ask("schema", None)["columns"][0]["axis"]["edges"])
    inside = here.ask("marginals", {"given": {"size": {"low": 0.5, "high": 1.5}}})["columns"]["size"]
    outside = (edges[1:] <= 0.5) | (edges[:-1] >= 1.5)
    assert np.array(inside["cells"])[outside].max() == 0 and sum(inside["cells"]) == pytest.approx(1)
    answer = here.ask("marginals", {"given": {"size": 1.0}})
    reach = (edges[-1] - edges[0]) / 40
    count = int(frame["size"].between(1 - reach, 1 + reach).sum())
    assert f"From {count} of" in answer["basis"]
    assert f"size 1 is taken as {1 - reach:.4g} to {1 + reach:.4g}" in answer["basis"]
    # An atom has draws of its own.
    assert f"From {int((frame['rain'] == 0).sum()):,} of" in here.ask("marginals", {"given": {"rain": 0}})["basis"]


def test_a_visit(opened: Any, frame: pd.DataFrame) -> None:
    here = opened(viewport={"width": 1280, "height": 1100})
    page = here.page
    page.get_by_text("click a level", exact=True).wait_for()
    here.card("kind").get_by_role("button", name="birch").click()
    page.get_by_text(re.compile(f"From {(frame['kind'] == 'birch').sum():,} of the 4,000 rows")).wait_for()
    share = (frame.query("kind == 'birch'")["grade"] == "a").mean()
    row = here.card("grade").locator("button.level").filter(has=page.get_by_text("a", exact=True))
    here.card("grade").scroll_into_view_if_needed()
    row.locator(".share").get_by_text(percent(share), exact=True).wait_for()
    assert not serious(page)
    assert page.get_by_text("anyorder serve 'my table.anyorder'").is_visible()
    # What a report cannot do is not offered.
    shown = page.get_by_role("tab").all_inner_texts()
    assert [name for name in shown if name] == ["Explore", "Rows"]
    assert page.get_by_role("combobox", name="ask a question").is_hidden()
    assert page.get_by_role("button", name="make it the target: kind").is_hidden()
    # Few rows, none, and text that cannot be read.
    field = here.card("size").get_by_role("textbox")
    field.fill("3..3.2")
    field.press("Enter")
    page.get_by_text("this is rough").wait_for()
    field.fill("50..60")
    field.press("Enter")
    page.get_by_text("None of the 4,000 rows").wait_for()
    field.fill("quite large")
    field.press("Enter")
    page.get_by_text("cannot be read in a report").wait_for()
    page.get_by_role("button", name="take back: size").click()
    page.get_by_role("tab", name="Rows").click()
    assert set(page.locator("td.held").all_inner_texts()) == {"birch"}
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    rows = pd.read_csv(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8")))
    assert rows["kind"].eq("birch").all() and len(rows) == min(1000, (frame["kind"] == "birch").sum())
    page.get_by_role("button", name="undo").click()
    assert page.url.endswith("report.html")


def test_narrow_printed_and_without_scripts(opened: Any, browser: Any, report: Path) -> None:
    here = opened(viewport={"width": 360, "height": 800})
    here.card("kind").wait_for()
    assert here.page.evaluate("document.documentElement.scrollWidth") <= 360
    here.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    here.page.emulate_media(media="print")
    assert all(
        here.page.locator("article path.before").evaluate_all("all => all.map(one => Boolean(one.getAttribute('d')))")
    )
    assert here.page.get_by_role("searchbox").is_hidden()
    bare = opened(java_script_enabled=False)
    assert bare.page.get_by_text("needs JavaScript").is_visible()
    assert bare.page.get_by_text("This page answers from 4,000 rows").is_visible()
    assert bare.page.locator("article").count() == 0


def test_names_never_become_markup_nor_end_the_script(tmp_path: Path, opened: Any) -> None:
    odd = "</script><img src=x onerror=alert(1)>"
    rows = pd.DataFrame({odd: [odd, "<!--"] * 20, "y": np.arange(40.0) ** 1.5})
    config = {"training": {"steps": 2, "minutes": None}}
    model = ao.fit(rows, engine="neural", config=config, seed=0)
    path = tmp_path / "odd.html"
    write_report(path, odd, explorer_section(model, odd))
    here = opened(path)
    here.page.get_by_role("button", name=odd).first.wait_for()
    assert here.page.locator("img").count() == 0
    text = path.read_text(encoding="utf-8")
    assert "onerror" not in re.sub(r"&lt;/script&gt;&lt;img src=x onerror=alert\(1\)&gt;", "", text)


def test_no_explorer_where_nothing_can_be_drawn_alone() -> None:
    rows = pd.DataFrame({"age": np.arange(40.0), "pulse": 60 + np.arange(40.0) ** 0.5})
    config = {"training": {"steps": 2, "minutes": None}}
    model = ao.fit(rows, context=["age"], engine="neural", config=config, seed=0)
    assert explorer_section(model, "model") == []


def test_the_rows_are_those_of_sample(models: dict[str, Any], frame: pd.DataFrame) -> None:
    drawn = json.loads(json.dumps(drawn_rows(models["table"], "table")))
    assert drawn["rows"] == ROWS and drawn["cells"].keys() == set(frame.columns)
    for name, cells in drawn["cells"].items():
        column = frame[name]
        assert [cell is None for cell in cells] == column.isna().tolist()
        facts = next(one for one in drawn["schema"]["columns"] if one["name"] == name)
        if facts["levels"]:
            found = [None if cell is None else facts["levels"][cell]["level"] for cell in cells]
            assert found == column.astype(object).where(column.notna(), None).tolist()
        else:
            there = column.notna().to_numpy()
            width = facts["axis"]["edges"][-1] - facts["axis"]["edges"][0]
            numbers = np.array(cells, dtype=float)[there]
            assert numbers == pytest.approx(as_numbers(column[there]).to_numpy(), abs=2e-5 * width)
            for atom in facts.get("atoms") or []:  # neither lost nor made by rounding
                assert ((numbers == atom) == (column[there] == atom).to_numpy()).all()
