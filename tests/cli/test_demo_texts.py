"""The demonstration on text: it runs to its picture, and is ahead of counting three characters."""

from __future__ import annotations

from pathlib import Path

from anyorder.cli.demos.texts import LENGTH, holes, run_text_demo


def test_stretches_are_as_long_as_they_say() -> None:
    hidden = holes(3, 6, seed=0)
    assert (hidden.sum(axis=1) == 48).all()
    assert hidden.shape == (3, LENGTH)


def test_it_runs(tmp_path: Path) -> None:
    out = tmp_path / "fills.png"
    result, _, fillings = run_text_demo(out, minutes=0.05)
    assert out.read_bytes()[:4] == b"\x89PNG"
    assert len(fillings) == 2
    for row in result["scores"]:
        assert row["anyorder, bits"] < row["4-gram, bits"] < row["letters alone, bits"]
