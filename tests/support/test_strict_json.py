"""JSON of strangers: what counts as a value, and keys that come twice."""

from __future__ import annotations

import json

import pytest

from anyorder.errors import UserError
from anyorder.support import strict_json
from anyorder.support.strict_json import read_json


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_commas_in_texts_are_no_values(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    monkeypatch.setattr(strict_json, "MOST_VALUES", 20)
    levels = [",[{" * 30, 'a "quoted, text"', "a\\", ",,∢,,", "\n,\u2028"]
    assert read_json(json.dumps(levels, ensure_ascii=False).encode(encoding)) == levels
    assert read_json(json.dumps(levels)) == levels
    many = json.dumps([*levels, *[{}] * 20], ensure_ascii=False)
    for text in (many, many.encode(encoding)):
        with pytest.raises(UserError, match="more than 20 values"):
            read_json(text)


@pytest.mark.parametrize("text", ['["' + '\\"' * 50_000 + "," * 50, '["' + "," * 50 + "\\", '"' * 51 + "," * 50])
def test_texts_without_an_end_are_no_json(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(strict_json, "MOST_VALUES", 20)
    with pytest.raises(UserError, match="no JSON"):
        read_json(text)


def test_a_key_that_comes_twice_is_found_among_many() -> None:
    keys = [*map(str, range(200_000)), "199999"]  # in a time that grows with the keys, not with their square
    with pytest.raises(UserError, match="the key '199999' twice"):
        read_json("{" + ", ".join(f'"{key}": 0' for key in keys) + "}")
