"""TOML files made on purpose, and cards that do not say how a model was fitted: refused by the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from anyorder.cli.configuration import LONGEST_OPTIONS, read_configuration, read_toml
from anyorder.errors import UserError
from anyorder.model.checkpoint import load_model, save_model

FILES = Path(__file__).resolve().parents[1] / "files" / "v1"


@pytest.mark.parametrize(
    "content, problem",
    [
        (b"a = " + b"[" * 3000 + b"]" * 3000, "cannot be read: it is nested too deeply"),
        (b"a = " + b"[" * 80 + b"]" * 80, "cannot be read: it is nested deeper than 64"),
        (b".".join([b"a"] * 100) + b" = 1", "nested deeper than 64"),
        (b".".join([b"a"] * 100_000) + b" = 1", "keys have too many parts"),
        (b"a = " + b"9" * 5000, "not valid TOML"),
        (b"a = 1\na = 2", "not valid TOML"),
        (b"a = \xff", "not valid TOML"),
        (b"# " + b"long " * (LONGEST_OPTIONS // 5), "longer than"),
    ],
)
def test_odd_toml_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "options.toml"
    path.write_bytes(content)
    with pytest.raises(UserError, match=problem) as error:
        read_toml(path)
    assert str(path) in str(error.value)


def test_a_card_without_its_arguments_is_refused(tmp_path: Path) -> None:
    core, card = load_model(FILES / "table_neural.anyorder")
    assert read_configuration(FILES / "table_neural.anyorder")[1] == card["config"]
    save_model(core, {"modality": "table"}, tmp_path / "m.anyorder")
    with pytest.raises(UserError, match="does not record how the model was fitted"):
        read_configuration(tmp_path / "m.anyorder")
