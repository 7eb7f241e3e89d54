"""Large sets are encoded at once, and weighed without a walk over their members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import anyorder as ao
from anyorder.distributions.region import Points
from anyorder.errors import LONGEST_MESSAGE, UserError
from anyorder.heads import Categorical
from anyorder.variables.codecs import Codec, LatticeCodec, LevelCodec

MANY = 20_000


@pytest.fixture(scope="module")
def model() -> ao.TableModel:
    rng = np.random.default_rng(0)
    count = rng.integers(0, 300, 60)
    frame = pd.DataFrame({"count": count, "kind": rng.choice(["a", "b", "c"], 60), "x": count + rng.normal(size=60)})
    brief = {"training": {"minutes": None, "steps": 2}, "network": {"name": "residual_mlp", "width": 8, "blocks": 1}}
    return ao.fit(frame, engine="neural", kinds={"count": "integer"}, config=brief)


def test_a_set_is_encoded_at_once(model: ao.TableModel, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    for codec in (LatticeCodec, LevelCodec):
        whole = codec.encode

        def counted(self: Codec, column: Any, marks: Sequence[str], whole: Any = whole, **options: Any) -> Any:
            calls.append(len(column))
            return whole(self, column, marks, **options)

        monkeypatch.setattr(codec, "encode", counted)
        monkeypatch.setattr(codec, "_encode_plain", lambda self, value, marks: pytest.fail("one by one"))
    model.given(count=ao.OneOf(*range(MANY)))
    model.given(kind=ao.OneOf(*"abc" * MANY))
    assert calls == [MANY, 3 * MANY]


@pytest.mark.parametrize("name", ["count", "kind"])
def test_at_once_and_one_by_one_are_the_same(model: ao.TableModel, name: str) -> None:
    codec = model.core.encoding.codec(name)
    values: list[object] = list("abc" * 10) if name == "kind" else [*range(30), "7", 8.0, " 9 "]
    assert codec.encode_each(values, ()) == [codec.encode_one(value, ()) for value in values]


@pytest.mark.parametrize("wrong", ["", None, "z", float("nan"), [1]])
@pytest.mark.parametrize("name", ["count", "kind"])
def test_what_is_no_value_is_refused_in_the_same_words(model: ao.TableModel, name: str, wrong: object) -> None:
    codec = model.core.encoding.codec(name)
    right: list[object] = ["a", "b"] * 10 if name == "kind" else list(range(20))
    with pytest.raises(UserError) as alone:
        codec.encode_one(wrong, ())
    with pytest.raises(UserError) as together:
        codec.encode_each([*right, wrong], ())
    assert str(together.value) == str(alone.value)


def test_a_large_set_is_answered_like_the_range_it_is(model: ao.TableModel) -> None:
    inside = ", ".join(map(str, range(MANY)))
    asked = f"P(count={{{inside}}} | kind=a)"
    assert model.ask(asked) == pytest.approx(float(model.ask(f"P(count=0..{MANY - 1} | kind=a)")), abs=1e-9)
    many, few = (model.given(count=said) for said in (ao.OneOf(*range(MANY)), ao.Between(0, MANY - 1)))
    assert many["count"].quantile(0.3) == few["count"].quantile(0.3)
    assert many["x"].mean() == pytest.approx(few["x"].mean(), rel=1e-6)


def test_points_of_a_law_by_enumeration() -> None:
    logits = torch.randn(5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    law = Categorical(7)(logits)
    mass, points = logits.softmax(-1), Points((1.0, 2.0, 5.0))
    torch.testing.assert_close(points.log_mass(law).exp(), mass[:, [1, 2, 5]].sum(1))
    for value, reached in ((0.0, []), (1.0, [1]), (3.0, [1, 2]), (6.0, [1, 2, 5])):
        torch.testing.assert_close(points.cdf(law, torch.full((5,), value)), mass[:, reached].sum(1))
    inside = points.contains(torch.arange(7.0)).tolist()
    assert inside == [False, True, True, False, False, True, False]
    one = Categorical(7)(logits[:1])
    levels = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)
    each = points.draw(Categorical(7)(logits[:1].expand(99, -1)), levels)
    assert points.draw(one, levels).equal(each)
    assert set(each.tolist()) == {1.0, 2.0, 5.0}


def test_a_message_about_a_very_long_text_is_cut() -> None:
    error = UserError("no variable " + "a" * 1_000_000 + "; valid names: 'x'")
    assert len(str(error)) < LONGEST_MESSAGE + 10
    assert str(error).startswith("no variable aaa") and str(error).endswith("valid names: 'x'")
