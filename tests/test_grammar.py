"""The language of questions: read as its grammar says, written so that it reads back, wrong text refused in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyorder.errors import UserError
from anyorder.grammar import (
    Question,
    parse_evidence,
    parse_names,
    parse_question,
    write_evidence,
    write_names,
    write_question,
)


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


words = st.text(st.characters(codec="utf-8"), max_size=12) | st.text("ab ,|='\"\\", max_size=8)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    names = draw(st.lists(words, unique=True, max_size=6))
    cut = draw(st.integers(0, len(names)))
    asked, known = names[:cut], names[cut:]
    values = {name: draw(words) for name in asked if draw(st.booleans())}
    return Question(tuple(asked), values, {name: draw(words) for name in known})


@given(questions())
def test_what_is_written_reads_back(question: Question) -> None:
    assert parse_question(write_question(question)) == question


@given(st.dictionaries(words, words, max_size=5))
def test_evidence_and_names_read_back(evidence: dict[str, str]) -> None:
    assert parse_evidence(write_evidence(evidence)) == evidence
    assert parse_names(write_names(evidence)) == list(evidence)


@given(st.text("ab ,|='\"\\", max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        question = parse_question(text)
    except UserError:
        return
    assert parse_question(write_question(question)) == question
