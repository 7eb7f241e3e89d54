"""A command never writes over what it reads, however the file is named."""

from __future__ import annotations

import inspect
import os
import shutil
from pathlib import Path

import pytest

from anyorder.cli import COMMANDS
from anyorder.cli.paths import WRITTEN, check_apart
from anyorder.cli.signatures import with_check

from commands import refused

FILES = Path(__file__).parents[1] / "files" / "v1"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("text", "table_neural"):
        shutil.copy(FILES / f"{name}.anyorder", tmp_path)
    (tmp_path / "c.txt").write_text("the quick brown fox", encoding="utf-8")
    (tmp_path / "d.csv").write_text("a,b\n" + "1,2\n3,4\n" * 5, encoding="utf-8")
    (tmp_path / "q.csv").write_text("size | count=25\n", encoding="utf-8")
    (tmp_path / "run.toml").write_text("components = 3\n", encoding="utf-8")
    (tmp_path / "link").symlink_to("c.txt")
    os.link(tmp_path / "d.csv", tmp_path / "twin.csv")
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "compress text.anyorder c.txt -o text.anyorder",
        "compress text.anyorder c.txt -o link",
        "compress text.anyorder link -o c.txt",
        "decompress text.anyorder c.txt -o ./c.txt",
        "fit d.csv -o d.csv",
        "fit d.csv -o twin.csv",
        "fit d.csv -o new.anyorder --log d.csv",
        "fit d.csv -o run.toml --config run.toml",
        "fit-text c.txt -o c.txt",
        "ask table_neural.anyorder --queries q.csv -o q.csv",
        "ask table_neural.anyorder size --plot table_neural.anyorder",
        "fill table_neural.anyorder d.csv -o d.csv",
        "sample table_neural.anyorder -o table_neural.anyorder",
    ],
)
def test_nothing_that_is_read_is_written_over(line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "would be lost" in refused(capsys, *line.split())
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_two_outputs_are_two_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "fit d.csv -o new.anyorder --log new.anyorder"
    assert "--out and --log both name" in refused(capsys, *line.split())
    assert not (folder / "new.anyorder").exists()


READ = {"model", "table", "corpus", "pictures", "file", "mask", "queries", "held_out", "config", "costs"}
FOLDERS = {"checkpoint", "tensorboard"}


def test_every_path_of_every_command_is_known_as_read_or_written() -> None:
    """An option that writes and is not listed would not be kept from writing over an input."""
    for name, command in COMMANDS.items():
        for parameter in inspect.signature(with_check(command, check_apart)).parameters.values():
            if "Path" in str(parameter.annotation):
                assert parameter.name in READ | FOLDERS | set(WRITTEN), f"anyorder {name}: list {parameter.name!r}"
