"""What a user says is read once, and ranges cost only those who give one."""

from __future__ import annotations

from typing import Any

import pytest

import anyorder.questions.conditional as conditional_module
from anyorder.model import AnyOrderModel
from anyorder.questions.ask import reply_to
from anyorder.questions.conditional import Conditional
from anyorder.questions.evidence import MISSING, Between, Missing, OneOf, Value, read_statement
from anyorder.questions.grammar import parse_question
from anyorder.variables.codecs import LatticeCodec, LevelCodec, LineCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp

WORDS = LevelCodec(Variable("word", Kind.CATEGORICAL, levels=("red", "5..6", "missing", "{a, b}", ">3"), dtype="str"))
COUNT = LatticeCodec(Variable("count", Kind.INTEGER, dtype="int64"), Warp.affine(10.0, 4.0), 0, 20)
SIZE = LineCodec(Variable("size", Kind.CONTINUOUS), Warp.affine(0.0, 1.0))


@pytest.fixture(scope="module")
def model() -> AnyOrderModel:
    from anyorder.modalities.tables.heads import head_for
    from anyorder.protocols import Canonical

    codecs = (WORDS, COUNT, SIZE)
    encoding = Encoding(Schema(tuple(codec.variable for codec in codecs)), codecs)
    described = {"name": "residual_mlp", "width": 16, "blocks": 1}
    heads = [head_for(codec, 2, {}) for codec in codecs]
    return AnyOrderModel.build(encoding, heads, described, Canonical(), seed=0)


def test_a_statement_is_one_of_four_things() -> None:
    for text in ("5..6", "missing", "{a, b}", ">3", " 5..6 "):
        assert read_statement(WORDS, text) == Value(text)
        assert not isinstance(read_statement(COUNT, text), Value)
    assert read_statement(COUNT, "5..6") == Between("5", "6")
    assert read_statement(COUNT, "{5, 6}") == OneOf("5", "6")
    assert isinstance(read_statement(COUNT, "missing"), Missing)
    for said in (Between(1, 2), OneOf(3), MISSING):
        assert read_statement(COUNT, said) is said
    for said in ("7", 7, 7.5, None, "seven", [7]):
        assert read_statement(COUNT, said) == Value(said)


def test_a_value_that_looks_like_a_range_is_asked_as_a_value(model: AnyOrderModel) -> None:
    def reply(text: str) -> Any:
        return reply_to(parse_question(text), model.schema, lambda evidence: Conditional(model, evidence), text)

    assert list(reply('word="5..6"').numbers) == ["log_prob"]
    assert list(reply("count=5..6").numbers) == ["probability"]


def test_without_a_range_nothing_of_ranges_is_made(model: AnyOrderModel, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Watched(conditional_module.Ranged):
        def __init__(self, *args: Any, **more: Any) -> None:
            made.append(self)
            super().__init__(*args, **more)

    monkeypatch.setattr(conditional_module, "Ranged", Watched)
    exact = Conditional(model, {"word": "red", "count": "7"})
    exact["size"].mean()
    exact.log_prob(size=0.3)
    exact.sample(2)
    exact.given(size=1.0).asking().using(draws=8)
    assert not exact.ranged
    assert made == []
    ranged = Conditional(model, {"count": "5..9"}, draws=8)
    assert ranged.ranged
    ranged["size"].mean()
    ranged.sample(2)
    assert len(made) == 1


def test_a_set_of_one_value_is_that_value(model: AnyOrderModel) -> None:
    for said in (OneOf(7), "{7}", OneOf("7")):
        known = Conditional(model, {"count": said})
        assert not known.ranged
        drawn = known.sample(3, seed=1)
        assert drawn["count"].tolist() == [7, 7, 7]
        assert drawn.equals(Conditional(model, {"count": 7}).sample(3, seed=1))
