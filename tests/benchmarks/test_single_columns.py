"""One column given all the others: the losses against closed forms, the plain methods against what they must find."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def _benchmarks_on_path() -> Iterator[None]:
    added = [str(BENCHMARKS / "peers"), str(BENCHMARKS)]
    sys.path[:0] = added
    yield
    for path in added:
        sys.path.remove(path)


def question(target: str, rows: int = 300, seed: int = 0):
    """A number and a level that depend on x and on a level with holes; a third of the rows are asked."""
    from columns import Question

    rng = np.random.default_rng(seed)
    x, group = rng.standard_normal(rows), rng.integers(0, 3, rows)
    frame = pd.DataFrame({"x": x, "group": pd.Series([f"g{g}" for g in group], dtype=object)})
    frame["y"] = 2 * x + group + 0.5 * rng.standard_normal(rows)
    frame["yes"] = pd.Series(np.where(x + rng.logistic(size=rows) / 3 > 0, "yes", "no"), dtype=object)
    frame.loc[::7, "group"] = None
    frame.loc[::11, "x"] = np.nan
    kinds = {"x": "numeric", "group": "categorical", "y": "numeric", "yes": "categorical"}
    cut = 2 * rows // 3
    return Question(target, kinds, ["no", "yes"] if target == "yes" else [], frame[:cut], frame[cut:])


def test_the_loss_of_normal_quantiles_is_the_closed_form() -> None:
    from columns import LEVELS, losses

    asked = question("y")
    truth, unit = asked.test["y"].to_numpy(), asked.truth.std()
    found = losses(asked, np.tile(stats.norm.ppf(LEVELS, 1.0, 2.0), (len(truth), 1)))
    z = (truth - 1) / 2
    wanted = 2 * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi)) / unit
    assert found == pytest.approx(wanted, abs=0.003)


def test_the_loss_of_probabilities_is_that_of_the_true_level() -> None:
    from columns import LEAST, losses

    asked = question("yes")
    no = asked.test["yes"].to_numpy() == "no"
    found = losses(asked, np.tile([0.25, 0.75], (len(no), 1)))
    assert found == pytest.approx(np.where(no, np.log(4), np.log(4 / 3)))
    assert losses(asked, np.tile([1.0, 0.0], (len(no), 1)))[~no] == pytest.approx(-np.log(LEAST))


@pytest.mark.parametrize("method", ["linear", "forest", "LightGBM", "LightGBM quantiles"])
def test_a_number_is_found_with_holes_in_the_evidence(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import columns

    monkeypatch.setattr(columns, "TREES", 50)
    asked = question("y")
    found = columns.NUMBERS[method](asked)
    assert found.shape == (len(asked.test), 100) and (np.diff(found, axis=1) >= -1e-9).all()
    nothing = np.tile(np.quantile(asked.truth, columns.LEVELS), (len(asked.test), 1))
    assert columns.losses(asked, found).mean() < 0.6 * columns.losses(asked, nothing).mean()
    # The truth of the asked rows is not looked at.
    asked.test.loc[:, "y"] = 0.0
    assert np.array_equal(columns.NUMBERS[method](asked), found)


@pytest.mark.parametrize("method", ["logistic", "forest", "LightGBM"])
def test_a_class_is_found_with_holes_in_the_evidence(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import columns

    monkeypatch.setattr(columns, "TREES", 50)
    asked = question("yes")
    found = columns.CLASSES[method](asked)
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert columns.losses(asked, found).mean() < 0.6


def test_every_row_is_tested_once() -> None:
    from columns import FOLDS, fold_rows

    tested = np.concatenate([fold_rows(103, fold)[1] for fold in range(FOLDS)])
    assert sorted(tested) == list(range(103))
    train, test = fold_rows(103, 0)
    assert not set(train) & set(test) and len(train) + len(test) == 103


def test_a_level_that_training_has_not_is_a_hole() -> None:
    asked = question("y")
    asked.test.loc[asked.test.index[0], "group"] = "new"
    coded = asked.coded(asked.test)
    assert np.isnan(coded[0, asked.inputs.index("group")])
    _, test = asked.indicators()
    assert np.isfinite(test).all()


def test_a_part_is_made_again_once_its_code_has_changed(tmp_path: Path) -> None:
    import parts

    source = tmp_path / "runner.py"
    source.write_text("a = 1\n", encoding="utf-8")
    code = parts.digest("method", files=(source,))
    assert parts.done(tmp_path / "part.json", code) is None
    parts.write(tmp_path / "part.json", {"code": code, "commit": "abc", "nats": [1.0]})
    said = parts.done(tmp_path / "part.json", code)
    assert said is not None and said["nats"] == [1.0]
    source.write_text("a = 2\n", encoding="utf-8")
    parts.digest.cache_clear()
    changed = parts.digest("method", files=(source,))
    assert changed != code and parts.done(tmp_path / "part.json", changed) is None
    (tmp_path / "part.json").write_text("{", encoding="utf-8")  # what a killed run may leave elsewhere
    assert parts.done(tmp_path / "part.json", code) is None
    assert parts.of_one_version([{"commit": "a"}, {"commit": "a", "uncommitted_changes": True}]) == [
        "a",
        "a with uncommitted changes",
    ]
