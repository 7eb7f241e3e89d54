"""Pieces of HTML are well formed, whatever the content, and escape what is not markup."""

from __future__ import annotations

from xml.etree import ElementTree

from anyorder.support import html


def test_well_formed_and_escaped() -> None:
    shown = html.titled("a < b", html.table(["x", "<y>"], [["&", html.bar(0.5)], [1, html.columns([1, 2, 0])]], [1]))
    root = ElementTree.fromstring(shown)
    assert [cell.text for cell in root.iter("th")] == ["x", "<y>"]
    assert next(root.iter("td")).text == "&"
    assert len(list(root.iter("svg"))) == 2
    assert "a &lt; b" in shown


def test_a_bar_stays_within_its_width() -> None:
    for share, filled in ((-1.0, "0.0"), (0.5, "60.0"), (2.0, "120.0")):
        rectangles = list(ElementTree.fromstring(html.bar(share)).iter("rect"))
        assert rectangles[1].get("width") == filled


def test_a_remark_is_escaped_once() -> None:
    assert html.remark(html.Markup("<b>x</b>")).count("<b>") == 1
    assert "&lt;b&gt;" in html.remark("<b>")
