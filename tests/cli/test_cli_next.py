"""``anyorder next`` on the command line."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anyorder as ao

from commands import refused, run


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> str:
    """y is a or b, as the bit x says nine times of ten; z is noise."""
    rows = list(itertools.product(range(2), repeat=2)) * 60
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rows, columns=["x", "z"])
    frame["y"] = np.where((frame["x"] == 1) ^ (rng.random(len(frame)) < 0.1), "b", "a")
    frame = frame.astype({"x": str, "z": str}).replace({"x": {"0": "no", "1": "yes"}, "z": {"0": "low", "1": "high"}})
    path = tmp_path_factory.mktemp("next") / "parts.anyorder"
    ao.fit(frame, engine="neural", config={"training": {"steps": 200, "minutes": 1.0}}).save(path)
    return str(path)


def test_ranking_and_json(parts: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = run(capsys, "next", parts, "--about", "y").out
    assert shown.splitlines()[-1] == "ask for x"
    found = json.loads(run(capsys, "next", parts, "--about", "y", "--json").out)
    assert found["best"] == "x"
    gains = {one["name"]: one["gain"]["value"] for one in found["candidates"]}
    assert gains["x"] > 0.15 > 0.05 > gains["z"]
    done = json.loads(run(capsys, "next", parts, "--about", "y", "--given", "x=yes", "--least", "0.2", "--json").out)
    assert done["best"] is None
    assert "worth its cost" in done["stop"]


def test_costs_groups_and_a_picture(parts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    costs, picture = tmp_path / "costs.csv", tmp_path / "ranking.png"
    costs.write_text("name,cost\nx,100\nz,1\n")
    options = ["next", parts, "--about", "y", "--costs", str(costs), "--least", "0"]
    shown = run(capsys, *options, "--plot", str(picture), "--look-ahead", "2").out
    assert "per cost" in shown
    assert picture.read_bytes()[:4] == b"\x89PNG"
    found = json.loads(run(capsys, *options, "--budget", "10", "--json").out)
    assert [one["name"] for one in found["candidates"]] == ["z"]
    both = json.loads(run(capsys, "next", parts, "--about", "y", "--group", "both=x, z", "--json").out)
    assert [one["columns"] for one in both["candidates"]] == [["x", "z"]]


def test_mistakes_are_one_line(parts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'y'" in refused(capsys, "next", parts, "--about", "yy")
    assert "NAME=COLUMN" in refused(capsys, "next", parts, "--about", "y", "--group", "x z")
    bad = tmp_path / "costs.csv"
    bad.write_text("name,price\nx,1\n")
    assert "name and cost" in refused(capsys, "next", parts, "--about", "y", "--costs", str(bad))
    bad.write_text("name,cost\nx,cheap\nz,1\n")
    assert "'cheap'" in refused(capsys, "next", parts, "--about", "y", "--costs", str(bad))
    assert "no such file" in refused(capsys, "next", parts, "--about", "y", "--costs", str(tmp_path / "none.csv"))
    assert ".txt" in refused(capsys, "next", parts, "--about", "y", "--plot", str(tmp_path / "x.txt"))
