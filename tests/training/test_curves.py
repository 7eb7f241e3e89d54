"""Training curves as they are written: lines of JSON, and TensorBoard."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from anyorder.training.curves import JsonLines, TensorBoard

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
