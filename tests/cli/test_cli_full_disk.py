"""Commands and disks that refuse: found before the work where that can be known, and what is trained is never lost."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest

import anyorder as ao
from anyorder.cli import main
from anyorder.cli.training_run import TrainingRun
from anyorder.modalities.face import FittedModel
from anyorder.support.atomic import WriteError
from anyorder.training.loop import Progress, Trainer

from commands import refused, refused_late, run
from disks import fill_up, mounted, no_file_above

QUICK = "[training]\nminutes = 1\nsteps = 4\nvalidate_every = 2\ncheckpoint_every = 0.0\n"
FILES = Path(__file__).parents[1] / "files" / "v1"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.csv").write_text("a,b\n" + "1.5,2\n3,4.5\n" * 10, encoding="utf-8")
    (tmp_path / "c.txt").write_text("the quick brown fox", encoding="utf-8")
    (tmp_path / "run.toml").write_text(QUICK, encoding="utf-8")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path


FIT = "fit d.csv --engine neural --config run.toml -o"


@pytest.mark.parametrize(
    "line",
    [
        f"{FIT} disk/m.anyorder",
        f"{FIT} m.anyorder --log disk/log.jsonl",
        f"{FIT} m.anyorder --checkpoint disk/run",
        f"{FIT} m.anyorder --checkpoint disk",
        f"{FIT} m.anyorder --tensorboard disk",
        "fit-text c.txt --length 4 -o disk/m.anyorder",
        f"sample {FILES}/table_neural.anyorder -o disk/rows.csv",
        f"fill {FILES}/table_neural.anyorder d.csv -o disk/filled.csv",
        f"compress {FILES}/text.anyorder c.txt -o disk/c.aot",
    ],
)
@pytest.mark.parametrize("full", [True, False])
def test_a_place_that_cannot_be_written_is_found_before_any_work(
    line: str, full: bool, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(*_: Any, **__: Any) -> None:
        raise AssertionError("work has begun")

    monkeypatch.setattr("anyorder.data.files.read_table", too_late)
    monkeypatch.setattr("anyorder.modalities.texts.fit.fit_text", too_late)
    with mounted(folder / "disk", "size=64k" if full else "ro") as disk:
        if full:
            fill_up(disk)
        reason = "No space left on device" if full else "Read-only file system"
        assert reason in refused(capsys, *line.split())
        assert os.listdir(disk) == ["filler"] * full


@pytest.mark.parametrize("line", [f"{FIT} m.anyorder", f"{FIT} m.anyorder --checkpoint run"])
def test_a_disk_that_takes_no_byte_is_found_before_any_work(
    line: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a disk of its own, which only root can mount."""

    def too_late(*_: Any, **__: Any) -> None:
        raise AssertionError("work has begun")

    monkeypatch.setattr("anyorder.data.files.read_table", too_late)
    before = sorted(folder.iterdir())
    with no_file_above(0):
        assert "File too large" in refused(capsys, *line.split())
    assert sorted(folder.iterdir()) == before


def test_a_model_that_fits_nowhere_is_still_in_its_checkpoint(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "m.anyorder").write_text("the old one")
    save = TrainingRun._save

    def limited(self: TrainingRun, model: FittedModel) -> None:
        with no_file_above(1000):
            save(self, model)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingRun, "_save", limited)
        error = refused_late(capsys, *f"{FIT} m.anyorder --checkpoint run".split())
    assert "'m.anyorder': File too large" in error and "--resume with --checkpoint run" in error
    assert (folder / "m.anyorder").read_text() == "the old one" and not list(folder.glob(".*.part"))
    run(capsys, *f"{FIT} m.anyorder --checkpoint run --resume".split())
    assert ao.load("m.anyorder").card["training"]["steps"] == 4


def test_checkpoints_and_curves_that_cannot_be_written_cost_no_model(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    train = Trainer.run

    def limited(self: Trainer, **given: Any) -> Progress:
        with no_file_above(20):
            return train(self, **given)

    monkeypatch.setattr(Trainer, "run", limited)
    notes = run(capsys, *f"{FIT} m.anyorder --checkpoint run --log log.jsonl".split()).err
    assert notes.count("anyorder: note:") == notes.count("\n") - 1 >= 2  # and the line about what is read
    assert "checkpoint' could not be written (cannot write" in notes and "'log.jsonl' could not be written" in notes
    assert not list(folder.glob("run/*.checkpoint")) and (folder / "log.jsonl").read_text() == ""
    assert ao.load("m.anyorder")["a"].mean() > 0


def test_a_model_that_does_not_fit_onto_its_disk_is_saved_elsewhere(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mounted(folder / "disk", "size=12k") as disk:
        (disk / "m.anyorder").write_text("the old one")
        error = refused_late(capsys, *f"{FIT} disk/m.anyorder".split())
        assert (disk / "m.anyorder").read_text() == "the old one" and os.listdir(disk) == ["m.anyorder"]
    said = re.fullmatch(
        r"anyorder: cannot write 'disk/m.anyorder': No space left on device; the model is in '(.*)': move it.*", error
    )
    assert said
    place = Path(said[1])
    assert place.parent.parent == folder / "temporary" and place.name == "m.anyorder"
    assert place.parent.stat().st_mode & 0o077 == 0  # in a folder that is everybody's
    assert ao.load(place)["a"].mean() > 0


def test_if_the_temporary_folder_is_full_too_the_current_one_will_do(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save = FittedModel.save

    def refuse(self: FittedModel, path: Path) -> None:
        if path == Path("m.anyorder") or path.is_relative_to(folder / "temporary"):
            raise WriteError(f"cannot write {str(path)!r}: full")
        save(self, path)

    monkeypatch.setattr(FittedModel, "save", refuse)
    error = refused_late(capsys, *f"{FIT} m.anyorder".split())
    (place,) = folder.glob("anyorder-*/m.anyorder")
    assert f"the model is in '{place}'" in error and ao.load(place)["a"].mean() > 0
    assert not list((folder / "temporary").glob("anyorder-*"))


def test_if_no_folder_takes_the_model_the_checkpoint_still_has_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: FittedModel, path: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(FittedModel, "save", refuse)
        error = refused_late(capsys, *f"{FIT} m.anyorder --checkpoint run".split())
    assert "No space left" in error and "it could not be saved" in error and "--resume with --checkpoint run" in error
    assert not list(folder.glob("anyorder-*")) and not list(folder.glob("temporary/anyorder-*"))
    run(capsys, *f"{FIT} m.anyorder --checkpoint run --resume".split())
    assert ao.load("m.anyorder").card["training"]["steps"] == 4


def test_a_full_disk_of_checkpoints_and_curves_costs_no_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with mounted(folder / "disk", "size=8k"):
        line = f"{FIT} m.anyorder --checkpoint disk/run --log disk/log.jsonl"
        notes = run(capsys, *line.split()).err
    assert notes.count("anyorder: note:") == notes.count("\n") - 1 >= 1
    assert "No space left on device); training goes on" in notes
    assert ao.load("m.anyorder")["a"].mean() > 0


def test_a_signal_while_the_model_is_saved_does_not_cost_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save = FittedModel.save

    def interrupted(self: FittedModel, path: Path) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        save(self, path)

    monkeypatch.setattr(FittedModel, "save", interrupted)
    run(capsys, *f"{FIT} m.anyorder".split())
    assert ao.load("m.anyorder")["a"].mean() > 0


@pytest.mark.parametrize("signals", [1, 2])
@pytest.mark.parametrize("line", [FIT, "fit-text c.txt --length 4 --preset tiny --config run.toml -o"])
def test_a_signal_between_training_and_saving_does_not_cost_the_model(
    line: str, signals: int, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save = TrainingRun._save

    def interrupted(self: TrainingRun, model: FittedModel) -> None:
        for _ in range(signals):
            os.kill(os.getpid(), signal.SIGTERM)
        save(self, model)

    monkeypatch.setattr(TrainingRun, "_save", interrupted)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # not to end the tests where it is not deferred
    try:
        run(capsys, *f"{line} m.anyorder".split())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ao.load("m.anyorder").card["training"]["steps"] == 4


@pytest.mark.parametrize("part", ["anyorder.data.files.read_table", "anyorder.modalities.tables.race.divide"])
def test_a_signal_before_training_interrupts_at_once(part: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(part, interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        assert main(f"{FIT} m.anyorder".split()) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert not (folder / "m.anyorder").exists()
