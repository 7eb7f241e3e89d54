"""A command never writes over what it reads, however the file is named."""

from __future__ import annotations

import inspect
import os
import shutil
from pathlib import Path

import pytest

from anyorder.cli import COMMANDS
from anyorder.cli.paths import FOLDERS, WRITTEN, check_apart, check_folder
from anyorder.cli.signatures import with_check
from anyorder.training.run import run_folder

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
    (tmp_path / "pics" / "more").mkdir(parents=True)
    (tmp_path / "pics" / "3.png").write_bytes(b"a picture")
    (tmp_path / "pics" / "more" / "4.png").write_bytes(b"a picture")
    (tmp_path / "ck").mkdir()
    (tmp_path / "ck" / "standard.checkpoint").write_bytes(b"a checkpoint")
    (tmp_path / "ck" / "events.out.tfevents.1").write_bytes(b"a curve")
    (tmp_path / "same_ck").symlink_to("ck")
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
        "fit-images pics -o pics/3.png",
        "fit-images pics -o new.anyorder --log pics/more/4.png",
        "fit d.csv -o ck/standard.checkpoint --checkpoint ck",
        "fit d.csv -o same_ck/standard.checkpoint --checkpoint ck",
        "fit d.csv -o ck/new.checkpoint --checkpoint ck",
        "fit d.csv -o new.anyorder --tensorboard ck --log ck/events.out.tfevents.1",
    ],
)
def test_nothing_that_is_read_is_written_over(line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert "would overwrite" in refused(capsys, *line.split())
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_run_may_keep_its_model_beside_its_checkpoints(folder: Path) -> None:
    check_apart({"out": Path("ck/m.anyorder"), "log": Path("ck/log.jsonl"), "checkpoint": Path("ck")})
    check_apart({"out": Path("pics/m.anyorder"), "pictures": Path("pics")})


def test_a_folder_of_any_content_can_be_written_into(folder: Path) -> None:
    (folder / "ck" / "anyorder").mkdir()
    before = sorted((folder / "ck").iterdir())
    check_folder(folder / "ck", "--checkpoint")
    check_folder(folder / "ck" / "new", "--checkpoint")
    assert run_folder(folder / "ck") == folder / "ck"
    assert sorted((folder / "ck").iterdir()) == before


def test_two_outputs_are_two_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "fit d.csv -o new.anyorder --log new.anyorder"
    assert "--out and --log are the same file" in refused(capsys, *line.split())
    assert not (folder / "new.anyorder").exists()


READ = {"model", "table", "corpus", "pictures", "file", "mask", "queries", "held_out", "config", "costs"} | {
    "token_file"
}


def test_every_path_of_every_command_is_known_as_read_or_written() -> None:
    """An option that writes and is not listed would not be kept from writing over an input."""
    for name, command in COMMANDS.items():
        for parameter in inspect.signature(with_check(command, check_apart)).parameters.values():
            if "Path" in str(parameter.annotation):
                assert parameter.name in READ.union(FOLDERS, WRITTEN), f"anyorder {name}: list {parameter.name!r}"
