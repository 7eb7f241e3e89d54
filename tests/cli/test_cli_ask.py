"""``anyorder ask``: what it prints is what the closed form says."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from scipy.stats import norm

from commands import run


def test_ask_gives_the_exact_law(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(run(capsys, "ask", model, "price, river | rooms=6", "--json").out)
    law = norm(22, 3)
    facts = result["answers"]["price"]
    assert facts["mean"] == pytest.approx(22)
    assert facts["std"] == pytest.approx(3)
    for level, value in facts["quantiles"].items():
        assert value == pytest.approx(law.ppf(float(level)))
    assert result["answers"]["river"]["probs"] == {"no": 0.7, "yes": 0.3}
    assert result["evidence"] == {"rooms": "6"}
    assert "log_prob" not in result


def test_ask_with_a_value_gives_its_log_density(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(run(capsys, "ask", model, "price=25 | rooms=6", "--json").out)
    assert result["log_prob"] == pytest.approx(norm(22, 3).logpdf(25))
    assert result["answers"] == {}
    text = run(capsys, "ask", model, "price=25, rooms").out
    assert f"{norm(20, math.sqrt(13)).logpdf(25):.5g}" in text
    assert "log p(price=25)" in text
    assert "rooms" in text


def test_ask_prints_a_table(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "ask", model, "price, river | rooms=6").out
    assert "26.935" in text  # 22 + 1.6449 * 3
    assert "0.7000" in text
    assert "price, river | rooms=6" in text


def test_ask_draws_a_picture(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "out.png"
    run(capsys, "ask", model, "price, river", "--plot", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")
