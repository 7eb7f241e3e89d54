"""How the benchmarks of texts compare rows: over common windows, with the errors of differences, asked only once."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import anyorder as ao

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import text_masks
import text_table
from text_questions import KINDS, OnceCounted, apart, bits_of, network_of, questions, windows_of

from smoke_data import text


@pytest.fixture(scope="module")
def model() -> ao.TextModel:
    quick = {"training": {"steps": 3, "minutes": None}}
    return ao.fit_text(text().training, length=12, preset="tiny", config=quick)


def test_counts_that_are_asked_once_say_what_they_say(model: ao.TextModel) -> None:
    windows, once = windows_of(model, text(), 6), OnceCounted()
    wanted = questions(6, 12)
    plain = {kind: bits_of(model, windows, wanted[kind]) for kind in KINDS}
    counts = model.core.network.inside[1]
    own = counts.along
    try:
        once.serve(counts)
        for _ in range(2):  # worked out, and remembered
            before = len(once.found)
            for kind in KINDS:
                torch.testing.assert_close(bits_of(model, windows, wanted[kind]), plain[kind], rtol=0, atol=1e-6)
        assert 0 < len(once.found) == before <= 4 * 6
    finally:
        counts.along = own  # type: ignore[method-assign]
    assert not torch.allclose(bits_of(network_of(model), windows, wanted["joint"]), plain["joint"], atol=0.1)


def test_the_first_windows_are_from_all_over_the_text_and_questions_stay_theirs(model: ao.TextModel) -> None:
    few, many = windows_of(model, text(), 400)[:5], windows_of(model, text(), 400)
    assert torch.equal(few, many[:5])
    assert not torch.equal(many[:5].sort(dim=0).values, many.sort(dim=0).values[:5])


def test_a_difference_is_that_of_the_windows_both_were_asked() -> None:
    rng = np.random.default_rng(0)
    base = {kind: rng.random(8).tolist() for kind in KINDS}
    asked = {kind: query.asked.sum(dim=1).double().numpy() for kind, query in questions(8, 40).items()}
    # Half a bit more a character, in every window: no error is left, whatever the windows have in common.
    more = {kind: (np.array(base[kind])[:3] + 0.5 * asked[kind][:3]).tolist() for kind in KINDS}
    assert apart(more, base, questions(8, 40)) == dict.fromkeys(KINDS, "+0.500 ± 0.000")


def test_rows_of_the_table_are_means_over_seeds_with_single_seeds_beside_them() -> None:
    options = {"windows": 4, "mask_windows": 2, "length": 40, "minutes": 1.0, "preset": "tiny"}
    asked = {kind: query.asked.sum(dim=1).double().numpy() for kind, query in questions(4, 40).items()}

    def facts(per: float, windows: int = 4) -> dict[str, object]:
        bits = {kind: (per * asked[kind][:windows]).tolist() for kind in KINDS}
        return {"bits": bits, "parameters": 1, "steps": 2, "fitting": 3.0, "asking": 4.0}

    by_row = {
        text_table.OURS: {"0": facts(2.0), "1": facts(2.2)},
        text_table.MAC_ROW: {"0": facts(3.0, 2), "1": facts(3.4, 2)},
        "counts": {"0": facts(1.5)},
    }
    content = text_table.payload({"plan": {}, "by_row": by_row}, options, text())
    rows = {line["row"]: line for line in content["rows"]}
    assert rows[text_table.OURS]["joint"] == "2.100 ± 0.000"
    assert rows[text_table.OURS]["spread of seeds"] == "0.200, 0.200, 0.200, 0.200"
    assert rows[text_table.MAC_ROW]["scattered holes"] == "(3.200 ± 0.000)" and rows[text_table.MAC_ROW]["windows"] == 2
    pair = content["above MAC's mask network, bits per character"]
    assert {line["row"]: line["runs of holes"] for line in pair}[text_table.OURS] == "-1.100 ± 0.000"
    above = {line["row"]: line for line in content["above the chain network in MAC's order, bits per character"]}
    assert above[text_table.MAC_ROW]["joint"] == "+1.100 ± 0.000"
    assert above[text_table.MAC_ROW]["seed 1"] == "+1.200, +1.200, +1.200, +1.200"
    assert above["counts"]["seed 1"].startswith("-0.700")  # the same counts for every seed


def test_an_error_has_a_part_of_windows_and_a_part_of_seeds() -> None:
    by_windows = np.tile([1.0, 2.0, 3.0], (2, 1))
    assert text_masks.judged(by_windows) == pytest.approx((2.0, 1 / np.sqrt(3)))
    by_seeds = np.repeat([[1.0], [2.0]], 3, axis=1)
    assert text_masks.judged(by_seeds) == pytest.approx((1.5, 0.5))


def test_a_ranking_holds_or_does_not_or_cannot_be_told() -> None:
    rng = np.random.default_rng(1)

    def law(level: float) -> dict[str, object]:
        return {
            seed: {"bits": {score: (level + 0.1 * rng.standard_normal(50)).tolist() for score in text_masks.SCORES}}
            for seed in ("0", "1", "2")
        }

    by_law = {text_masks.ARDM: law(3.0), "w-ablateA": law(2.8), "w-RND": law(3.2), "w-MAC": law(3.2)}
    found = {line["the paper"]: line["joint"].split(":")[0] for line in text_masks.ranking(by_law)}
    assert found == {
        f"w-ablateA ahead of {text_masks.ARDM}": "holds",
        f"w-RND ahead of {text_masks.ARDM}": "does not hold",
        "w-MAC ahead of w-ablateA": "does not hold",
        "w-MAC ahead of w-RND": "unresolved",
    }


def test_a_row_that_was_stopped_is_not_taken_for_a_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from anyorder.training.loop import Trainer

    step = Trainer._step

    def stopped(trainer: Trainer) -> None:
        step(trainer)
        if trainer.progress.step == 2:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Trainer, "_step", stopped)
    options = {"length": 12, "preset": "tiny"}
    for work in (
        lambda: text_table.trained(text_table.OURS, text(), options, 4),
        lambda: text_masks.trained("w-MAC, whole chains", text(), 4, 1e-3, 0),
    ):
        with pytest.raises(SystemExit, match="--resume"):
            work()
