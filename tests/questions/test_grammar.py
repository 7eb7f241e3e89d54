"""The language of questions: read as its grammar says, written so that it reads back, wrong text refused in words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyorder.errors import UserError
from anyorder.questions.grammar import (
    Looks,
    Question,
    parse_evidence,
    parse_names,
    parse_question,
    read_value,
    write_evidence,
    write_names,
    write_question,
    write_set,
)
from anyorder.support.words import TextError


@pytest.mark.parametrize(
    ("text", "asked", "values", "evidence"),
    [
        ("price", ("price",), {}, {}),
        ("price, tax | rooms=6, river=yes", ("price", "tax"), {}, {"rooms": "6", "river": "yes"}),
        ("price=22.5,tax|rooms = 6", ("price", "tax"), {"price": "22.5"}, {"rooms": "6"}),
        ("sepal length (cm) | petal width (cm) = 0.2", ("sepal length (cm)",), {}, {"petal width (cm)": "0.2"}),
        ('"a,b" | "c|d"="x = y"', ("a,b",), {}, {"c|d": "x = y"}),
        ("'it''s'", None, None, None),
        (r"'it\'s' | a=1", ("it's",), {}, {"a": "1"}),
        ("price |", ("price",), {}, {}),
        ("| rooms=-1e-3", (), {}, {"rooms": "-1e-3"}),
        ("", (), {}, {}),
        ("when | day=2024-05-01 12:30", ("when",), {}, {"day": "2024-05-01 12:30"}),
        ('a | b=""', ("a",), {}, {"b": ""}),
        ('a | b="\\\\"', ("a",), {}, {"b": "\\"}),
    ],
)
def test_reads_as_the_grammar_says(
    text: str, asked: tuple[str, ...] | None, values: dict[str, str], evidence: dict[str, str]
) -> None:
    if asked is None:
        with pytest.raises(UserError):
            parse_question(text)
        return
    assert parse_question(text) == Question(asked, values, evidence)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a | b=1 | c=2", "second '|'"),
        ("a | b", "write b=VALUE"),
        ("a,, b", "name is missing"),
        ("a, | b=1", "name is missing"),
        (", a", "name is missing"),
        ("a | =3", "expected 'name'"),
        ("a | b=", "no value"),
        ("a | b=1=2", "expected 'name'"),
        ('a | b="x', "never closed"),
        ("a | b=O'Hara", "quote inside a word"),
        ('a | "b" c=1', "expected 'name'"),
        ("a, a", "twice"),
        ("a | b=1, b=2", "twice"),
        ("a | a=1", "asked and given"),
    ],
)
def test_wrong_text_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(UserError, match=r".") as caught:
        parse_question(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_take_no_values() -> None:
    assert parse_names("a, 'b, c'") == ["a", "b, c"]
    with pytest.raises(UserError, match="only names"):
        parse_names("a=1")


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("P(price > 30 | rooms=6)", Question(("price",), {"price": ">30"}, {"rooms": "6"}, "P")),
        ("price>30|rooms=6", Question(("price",), {"price": ">30"}, {"rooms": "6"})),
        ("P(20 < price <= 30)", Question(("price",), {"price": ">20 <=30"}, {}, "P")),
        ("30 >= price > 20", Question(("price",), {"price": ">20 <=30"}, {})),
        ("a | age = 30..40, b<=-5", Question(("a",), {}, {"age": "30..40", "b": "<=-5"})),
        (
            "a | t=-5..-1, day=2024-01-01..2024-02-01",
            Question(("a",), {}, {"t": "-5..-1", "day": "2024-01-01..2024-02-01"}),
        ),
        ('a | c={red, "b, c"}, d=1', Question(("a",), {}, {"c": '{red, "b, c"}', "d": "1"})),
        ("E[price | rooms=6]", Question(("price",), {}, {"rooms": "6"}, "E")),
        ("H(a, b)", Question(("a", "b"), {}, {}, "H")),
        ("I(a, b; c | d=1)", Question(("a", "b"), {}, {"d": "1"}, "I", ("c",))),
        ("P(sepal length (cm) > 5)", Question(("sepal length (cm)",), {"sepal length (cm)": ">5"}, {}, "P")),
        ("a | a > 3", Question(("a",), {}, {"a": ">3"})),
        ('"P(x)" | a=1', Question(("P(x)",), {}, {"a": "1"})),
        ("P(x) y | a=1", Question(("P(x) y",), {}, {"a": "1"})),
        ("P(kind != ash | a=1)", Question(("kind",), {"kind": "!=ash"}, {"a": "1"}, "P")),
        ("kind!=ash", Question(("kind",), {"kind": "!=ash"}, {})),
        ("a | kind != {ash, 'b, c'}", Question(("a",), {}, {"kind": "!={ash, 'b, c'}"})),
        ("P(kind = a or b)", Question(("kind",), {"kind": "a or b"}, {}, "P")),
        ("P(kind = a or kind = b)", Question(("kind",), {"kind": "{a, b}"}, {}, "P")),
        ("""kind = "a, b" or 'c'""", Question(("kind",), {"kind": '{"a, b", c}'}, {})),
        ("P(price < 10 or price > 90)", Question(("price",), {"price": "<10 or >90"}, {}, "P")),
        ("P(price < 10 or > 90)", Question(("price",), {"price": "<10 or >90"}, {}, "P")),
        ("price = 3 or price > 5", Question(("price",), {"price": "=3 or >5"}, {})),
        ("a | 1 < b < 2 or b between 5 and 6", Question(("a",), {}, {"b": ">1 <2 or 5..6"})),
        ("P(price between 3 and 5 | a=1)", Question(("price",), {"price": "3..5"}, {"a": "1"}, "P")),
        ("a | price between '$1,000' and '$2,000', b=1", Question(("a",), {}, {"price": "$1,000..$2,000", "b": "1"})),
        ("price > '$1,204.50'", Question(("price",), {"price": ">$1,204.50"}, {})),
        ("a | day='16/07/2024'", Question(("a",), {}, {"day": "16/07/2024"})),
        ("median(price | rooms=6)", Question(("price",), {}, {"rooms": "6"}, "median")),
        ("mode[price, kind]", Question(("price", "kind"), {}, {}, "mode")),
        ("mean(price)", Question(("price",), {}, {}, "E")),
        ("P(price > cost)", Question(("price",), {"price": ">cost"}, {}, "P")),
        ("P(a = b)", Question(("a",), {"a": "b"}, {}, "P")),
        ("30 < price", Question(("price",), {"price": ">30"}, {})),
        ("'30' < price", Question(("30",), {"30": "<price"}, {})),
        ("gap between posts | black or white=1", Question(("gap between posts",), {}, {"black or white": "1"})),
        ("more or less > 5", Question(("more or less",), {"more or less": ">5"}, {})),
    ],
)
def test_events_ranges_and_forms(text: str, question: Question) -> None:
    assert parse_question(text) == question
    assert parse_question(write_question(question)) == question


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("P(Attendance > 50,000 | team=A)", "50,000"),
        ("P(Attendance > 1,250,000)", "1,250,000"),
        ("Attendance | price=1,200.50, team=A", "1,200.50"),
        ("team | Attendance between 1,000 and 2,000", "1,000"),
    ],
)
def test_a_comma_between_thousands_is_named(text: str, number: str) -> None:
    with pytest.raises(TextError, match="comma stands between two statements") as wrong:
        parse_question(text)
    assert f"write {number.replace(',', '')}, or '{number}' in quotes" in wrong.value.what
    assert wrong.value.at == text.index(number)
    quoted = re.sub(r"\d[\d,]*,[\d.]+", lambda found: f"'{found[0]}'", text)
    assert parse_question(quoted)


def test_names_that_are_numbers_are_no_thousands() -> None:
    assert parse_names("1,100,200") == ["1", "100", "200"]
    assert parse_question("P(a=1,100=2)").values == {"a": "1", "100": "2"}


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("30..40", Looks("30", "40")),
        ("30..", Looks("30", None)),
        ("..40", Looks(None, "40")),
        (" -5 .. -1 ", Looks("-5", "-1")),
        ("2024-01-01..2024-02-01", Looks("2024-01-01", "2024-02-01")),
        (">30", Looks("30", low_open=True)),
        (">= 30", Looks("30")),
        ("<5", Looks(high="5", high_open=True)),
        ("<=-5e-3", Looks(high="-5e-3")),
        (">20 <=30", Looks("20", "30", low_open=True)),
        ("{red, 'b, c'}", Looks(members=("red", "b, c"))),
        ("Missing", Looks(missing=True)),
        ("22.5", None),
        ("..", None),
        ("{}", None),
        ("{a,}", None),
        ("2024-05-01 12:30", None),
        ("", None),
        ("!=red", Looks(excluded=("red",))),
        ("!= {red, blue}", Looks(excluded=("red", "blue"))),
        ("red or blue", Looks(either=("red", "blue"))),
        ("<10 or >90", Looks(either=("<10", ">90"))),
        ("'this or that'", None),
        ("Oregon or", None),
        ("between 3 and 5", Looks("3", "5")),
        ("between friends", None),
    ],
)
def test_what_a_value_looks_like(text: str, looks: Looks | None) -> None:
    assert read_value(text) == looks


@given(st.lists(st.text(max_size=8), min_size=1, max_size=4))
def test_sets_read_back(members: list[str]) -> None:
    looks = read_value(write_set(members))
    assert looks is not None
    assert looks.members == tuple(members)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("P(price | rooms=6)", "needs an event"),
        ("E[price > 3]", "names without values"),
        ("I(a, b)", "one ';'"),
        ("I(a; b=3)", "names without values"),
        ("I(a; a)", "twice"),
        ("20 < price > 30", "same way"),
        ("price >", "no value after '>'"),
        ("a | a = 3", "asked and given"),
        ("P(price < 10 or cost > 90)", "about one column, got 'price' and 'cost'"),
        ("median(price=3)", "the median is asked of names without values (character 8)"),
        ("a | b > 3 and c < 4", "put a comma, not 'and'"),
        ("P(a < 3 or)", "missing beside 'or'"),
        ("kind !=", "no value after '!='"),
    ],
)
def test_wrong_forms_are_refused(text: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_question(text)
    assert says in str(caught.value)


words = (
    st.text(st.characters(codec="utf-8"), max_size=12)
    | st.text("ab ,|='\"\\<>{}.()[]P;!", max_size=8)
    | st.lists(
        st.sampled_from(["a", "b", "or", "and", "between", "!=", "=", "<", "3", "4", "'c or d'", "{", "}"]), max_size=6
    ).map(" ".join)
)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    names = draw(st.lists(words, unique=True, max_size=6))
    cut = draw(st.integers(0, len(names)))
    asked, known = names[:cut], names[cut:]
    evidence = {name: draw(words) for name in known}
    form = draw(st.sampled_from(["", "P", "E", "H", "I", "median", "mode"])) if asked else ""
    if form == "I":
        middle = draw(st.integers(0, len(asked)))
        if 0 < middle < len(asked):
            return Question(tuple(asked[:middle]), {}, evidence, form, tuple(asked[middle:]))
        form = "H"
    values = {name: draw(words) for name in asked if form == "P" or (not form and draw(st.booleans()))}
    return Question(tuple(asked), values, evidence, form)


@given(questions())
def test_what_is_written_reads_back(question: Question) -> None:
    assert parse_question(write_question(question)) == question


@given(st.dictionaries(words, words, max_size=5))
def test_evidence_and_names_read_back(evidence: dict[str, str]) -> None:
    assert parse_evidence(write_evidence(evidence)) == evidence
    assert parse_names(write_names(evidence)) == list(evidence)


@given(st.text("ab ,|='\"\\<>{}.()[]PI;!", max_size=20) | words | st.lists(words, max_size=4).map(" or ".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        question = parse_question(text)
    except UserError:
        return
    assert parse_question(write_question(question)) == question


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("P(price >> 3 | a=1)", "> 3"),
        ("P(price > 3 | a=1, a=2)", "a=2"),
        ("E[price | price=3]", "price=3"),
        ("price | rooms", "rooms"),
        ("P(price > 3 | a=1 | b=2)", "| b"),
        ("H(a, b=3)", "b=3"),
        ("P(a > 3, b)", "b)"),
    ],
)
def test_a_mistake_knows_its_place(text: str, at: str) -> None:
    with pytest.raises(TextError) as caught:
        parse_question(text)
    assert text[caught.value.at :].startswith(at)
    assert caught.value.text == text


@pytest.mark.parametrize(
    ("text", "at"), [("P(price > 30", 2), (" E[price | rooms=6", 3), ('H(price | a="("', 2), ("I (a; b", 3)]
)
def test_an_unclosed_bracket_is_named(text: str, at: int) -> None:
    with pytest.raises(UserError, match=rf"never closed \(character {at}\)"):
        parse_question(text)


def test_a_name_that_looks_like_an_open_bracket_is_written_between_quotes() -> None:
    question = Question(("P(x",), {}, {"E[y": "3"})
    assert parse_question(write_question(question)) == question
    assert parse_question('P("P(x" > 3)').values == {"P(x": ">3"}
