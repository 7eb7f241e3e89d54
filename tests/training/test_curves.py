"""Training curves as they are written: lines of JSON, and TensorBoard."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest

from anyorder.errors import UserError
from anyorder.training.curves import JsonLines, TensorBoard, _quiet_threads

from disks import fill_up, mounted, no_file_above
from overlapping import enter_twice
from small_runs import small_trainer


def test_curve_is_one_json_object_a_line(tmp_path: Path) -> None:
    log = tmp_path / "curve.jsonl"
    small_trainer(curves=[JsonLines(log)], label="mine").run()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["step"] for line in lines] == [10, 20, 30, 40]
    assert all(line["run"] == "mine" and np.isfinite(line["validation"]) for line in lines)


def test_curve_for_tensorboard(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    small_trainer(curves=[TensorBoard(tmp_path)], label="mine").run()
    events = accumulator.EventAccumulator(str(tmp_path / "mine")).Reload()
    assert [event.step for event in events.Scalars("validation")] == [10, 20, 30, 40]


WHOLE = '{"run": "mine", "step": 10, "train": 1.0}\n{"run": "mine", "step": 20, "train": 2.0}\n'


@pytest.mark.parametrize("half", ["", "{", '{"ru', '{"run": "mine", "st', '{"run": "mine", "step": 30, "train": 3.0'])
def test_half_a_line_of_a_killed_run_is_dropped(tmp_path: Path, half: str) -> None:
    log = tmp_path / "curve.jsonl"
    log.write_text(WHOLE + half)
    JsonLines(log).forget("mine", 20)
    assert log.read_text() == WHOLE
    JsonLines(log).forget("mine", 10)
    assert log.read_text() == WHOLE.splitlines(keepends=True)[0]


def test_a_last_line_without_its_end_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "curve.jsonl"
    log.write_text(WHOLE.rstrip())
    JsonLines(log).forget("mine", 20)
    assert log.read_text() == WHOLE


def test_a_curve_that_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "curve.jsonl"
    log.write_text(WHOLE)

    def closed(self: Path, **_: object) -> str:  # root may read every file
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_text", closed)
    with pytest.raises(UserError, match=r"curve.jsonl' cannot be read \(Permission denied\)"):
        JsonLines(log).forget("mine", 10)


NESTED = "[" * 100_000
FOREIGN = ["notes of mine", WHOLE + "notes", "{\n" + WHOLE, '[1]\n{"run": "m', "\n", '{"x": 1}', NESTED, WHOLE + NESTED]


@pytest.mark.parametrize("text", FOREIGN, ids=range(len(FOREIGN)))
def test_a_file_that_is_no_curve_is_refused_and_stays(tmp_path: Path, text: str) -> None:
    log = tmp_path / "curve.jsonl"
    log.write_text(text)
    with pytest.raises(UserError, match="not a training curve"):
        JsonLines(log).forget("mine", 10)
    assert log.read_text() == text


def test_a_number_that_is_none_is_still_json(tmp_path: Path) -> None:
    log = tmp_path / "curve.jsonl"
    JsonLines(log).point("mine", 1, {"train": float("nan")})
    assert log.read_text() == '{"run": "mine", "step": 1, "train": null}\n'


def test_a_full_disk_costs_points_and_not_the_run(tmp_path: Path) -> None:
    log = tmp_path / "curve.jsonl"
    JsonLines(log).point("mine", 0, {"train": 1.0})
    trainer = small_trainer(curves=[JsonLines(log)], label="mine")
    with (
        no_file_above(log.stat().st_size + 5),
        pytest.warns(UserWarning, match=r"curve.jsonl.*training goes on") as said,
    ):
        trainer.run(share=0.5)
    assert len(said) == 1
    trainer.run()
    lines = [json.loads(line) for line in log.read_text().splitlines()]  # no half lines in between
    assert [line["step"] for line in lines] == [0, 30, 40]


def test_a_full_disk_does_not_end_tensorboard(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tensorboard")
    with mounted(tmp_path / "disk", "size=64k") as disk:
        curve = TensorBoard(disk / "curves")
        curve.point("mine", 1, {"train": 1.0})
        fill_up(disk)
        for step in range(2, 200):
            try:
                curve.point("mine", step, {"train": 1.0})
            except OSError:
                break
        else:
            pytest.fail("the disk was never full")
        with pytest.raises(OSError, match="No space"):
            curve.point("mine", 200, {"train": 1.0})
        (disk / "filler").unlink()
        curve.point("mine", 201, {"train": 1.0})
        curve._close("mine")
    for thread in threading.enumerate():
        if thread.name.startswith("Thread") and thread.daemon:
            thread.join(0.1)
    assert "Traceback" not in capfd.readouterr().err


def test_places_that_cannot_be_written_are_found_at_once(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="there is no folder"):
        JsonLines(tmp_path / "nowhere" / "curve.jsonl")
    with pytest.raises(UserError, match="tensorboard must be a folder"):
        TensorBoard(tmp_path / "file")
    with pytest.raises(UserError, match="cannot be made"):
        TensorBoard(tmp_path / "file" / "folder")


def test_two_curves_at_once_leave_the_hook_of_threads_as_it_was() -> None:
    before = threading.excepthook
    enter_twice(_quiet_threads)
    assert threading.excepthook is before
