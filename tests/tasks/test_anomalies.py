"""Cell and row scores against the closed-form Gaussian, and a planted typo found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import optimize, stats

from anyorder.errors import UserError
from anyorder.heads import GaussianMixture
from anyorder.heads._mixture import bounded
from anyorder.modalities.tables.model import TableModel
from anyorder.model import AnyOrderModel
from anyorder.protocols import Canonical
from anyorder.tasks import anomalies as tasks_anomalies
from anyorder.tasks import unseen_rows
from anyorder.tasks.anomalies import Anomalies, Anomaly, OwnRows, anomalies, cell_scores, row_scores, surprise
from anyorder.variables.codecs import LineCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp

from models import categorical_model, categorical_table, gaussian_model

NAMES = ["v0", "v1", "v2", "v3"]
MEAN = np.array([0.5, -1.0, 2.0, 0.0])
ROOT = np.array([[1.0, 0, 0, 0], [0.8, 0.3, 0, 0], [-0.5, 0.4, 0.3, 0], [0.2, 0.9, -0.3, 0.2]])
COVARIANCE = ROOT @ ROOT.T
SCALE = 10.0


def _frame(rows: int = 200, seed: int = 0) -> pd.DataFrame:
    drawn = np.random.default_rng(seed).multivariate_normal(MEAN, COVARIANCE, rows)
    return pd.DataFrame(SCALE * drawn, columns=NAMES, index=[f"row {number}" for number in range(rows)])


def _conditional(row: np.ndarray, target: int, known: list[int]) -> tuple[float, float]:
    gain = COVARIANCE[target, known] @ np.linalg.inv(COVARIANCE[np.ix_(known, known)])
    centre = MEAN[target] + gain @ (row[known] / SCALE - MEAN[known])
    return SCALE * centre, SCALE * np.sqrt(COVARIANCE[target, target] - gain @ COVARIANCE[known, target])


def test_cells_are_scored_given_all_others() -> None:
    frame = _frame(20)
    frame.iloc[3, 1] = np.nan
    nats, tail = cell_scores(gaussian_model(MEAN, COVARIANCE, scale=SCALE), frame)
    assert nats.index.equals(frame.index)
    assert nats.isna().equals(frame.isna())
    for row in range(20):
        for target in range(4):
            known = [i for i in range(4) if i != target and not np.isnan(frame.iloc[row, i])]
            if np.isnan(frame.iloc[row, target]):
                continue
            centre, deviation = _conditional(frame.iloc[row].to_numpy(), target, known)
            z = (frame.iloc[row, target] - centre) / deviation
            assert nats.iloc[row, target] == pytest.approx(
                -stats.norm.logpdf(frame.iloc[row, target], centre, deviation), abs=1e-5
            )
            assert tail.iloc[row, target] == pytest.approx(2 * stats.norm.sf(abs(z)), abs=1e-6)


def test_a_planted_typo_comes_first() -> None:
    frame = _frame()
    true = frame.iloc[117, 1]
    frame.iloc[117, 1] = true + 15.0  # within the range of its column, wrong beside the others
    assert abs(frame.iloc[117, 1] - SCALE * MEAN[1]) < 3 * SCALE * np.sqrt(COVARIANCE[1, 1])
    found = anomalies(gaussian_model(MEAN, COVARIANCE, scale=SCALE), frame, top=3)
    assert (found[0].row, found[0].column) == ("row 117", "v1")
    assert [one.row for one in found].count("row 117") == 1  # its neighbours are odd beside it, and not without it
    tails = cell_scores(gaussian_model(MEAN, COVARIANCE, scale=SCALE), frame)[1].loc["row 117"]
    assert (tails < 1e-6).sum() > 1
    assert [one.probability for one in found] == sorted(one.probability for one in found)
    typo = next(one for one in found if one.column == "v1")
    centre, deviation = _conditional(frame.iloc[117].to_numpy(), 1, [0, 2, 3])
    assert typo.value == frame.iloc[117, 1]
    assert typo.expected == pytest.approx(centre, abs=1e-3)
    assert typo.probability == pytest.approx(2 * stats.norm.sf(abs(typo.value - centre) / deviation), abs=1e-6)
    assert typo.surprise == surprise(gaussian_model(MEAN, COVARIANCE, scale=SCALE), frame).loc["row 117", "v1"]


def test_rows_are_compared_with_the_models_own_draws() -> None:
    """-2 log p of a Gaussian row is chi-square up to a constant, so the true tail probability is known."""
    frame = _frame(60, seed=3)
    frame.iloc[::3, 0] = np.nan
    scores = row_scores(gaussian_model(MEAN, COVARIANCE, scale=SCALE), frame, samples=4000)
    for row in range(60):
        seen = [i for i in range(4) if not np.isnan(frame.iloc[row, i])]
        x, part = frame.iloc[row, seen].to_numpy() / SCALE - MEAN[seen], COVARIANCE[np.ix_(seen, seen)]
        expected = stats.chi2.sf(x @ np.linalg.solve(part, x), len(seen))
        assert scores["probability"].iloc[row] == pytest.approx(expected, abs=0.035)  # over four errors of 4000 draws
        joint = stats.multivariate_normal(SCALE * MEAN[seen], SCALE**2 * part).logpdf(frame.iloc[row, seen])
        assert scores["surprise"].iloc[row] == pytest.approx(-joint, abs=1e-5)


def test_own_rows_are_drawn_once_for_many_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    model, frame, made = gaussian_model(MEAN, COVARIANCE, scale=SCALE), _frame(8), []
    expected = row_scores(model, frame, samples=50, seed=3)
    draws = tasks_anomalies.draws
    monkeypatch.setattr(tasks_anomalies, "draws", lambda *given, **more: made.append(1) or draws(*given, **more))
    kept = OwnRows(50, seed=3)
    for _ in range(2):
        pd.testing.assert_frame_equal(row_scores(model, frame, drawn=kept), expected)
    assert len(made) == 1
    with pytest.raises(UserError, match="samples must be 1 or more"):
        OwnRows(0)


def test_an_unlikely_level_is_named_with_the_likely_one() -> None:
    model = categorical_model({"name": "residual_mlp", "width": 32, "blocks": 1}, steps=300)
    # c = 1 goes with d in {2, 3}: d = 0 beside it is the odd one out.
    frame = pd.DataFrame({"a": ["0", "0"], "b": ["1", "0"], "c": ["1", "0"], "d": ["0", "1"]})
    nats, tail = cell_scores(model, frame)
    first = anomalies(model, frame, top=1)[0]
    assert first.row == 0
    assert first.column in ("c", "d")
    assert first.expected != first.value
    assert first.probability == tail.to_numpy().min()
    # The tail of a level is the mass of all levels at most as likely: with two of them just its own probability,
    # unless it is the likelier one.
    p = np.exp(-nats["c"].to_numpy())
    np.testing.assert_allclose(tail["c"], np.where(p > 0.5, 1.0, p), atol=1e-6)


def test_nothing_to_rank() -> None:
    model = gaussian_model(MEAN, COVARIANCE, scale=SCALE)
    assert anomalies(model, pd.DataFrame({"v0": [np.nan]})) == []
    assert len(anomalies(model, _frame(1), top=10)) == 4
    with pytest.raises(UserError, match="top"):
        anomalies(model, _frame(2), top=0)


def test_the_command_line_lists_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from anyorder.cli import main

    core = categorical_model({"name": "residual_mlp", "width": 8, "blocks": 1}, steps=5)
    TableModel(core, {}).save(tmp_path / "m.anyorder")
    frame = categorical_table(30, seed=4)
    frame.to_csv(tmp_path / "t.csv", index=False)
    files = [str(tmp_path / "m.anyorder"), str(tmp_path / "t.csv")]
    assert main(["anomalies", *files, "--top", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["anomalies"]
    assert [(one["row"], one["column"]) for one in found] == [
        (one.row, one.column) for one in anomalies(core, frame, top=3)
    ]
    assert main(["anomalies", *files, "--top", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["row", "column", "value", "expected", "probability", "surprise"]
    assert len(lines) == 4
    assert main(["anomalies", *files, "--top", "0"]) == 2


def test_upper_tails_keep_their_digits() -> None:
    """A mixture's weights in single precision add up to one give or take 1e-7; a tail of 1e-9 must survive that."""
    schema = Schema(tuple(Variable(name, Kind.CONTINUOUS) for name in NAMES))
    encoding = Encoding(schema, tuple(LineCodec(variable, Warp.affine(0.0, 1.0)) for variable in schema.variables))
    network = {"name": "residual_mlp", "width": 8, "blocks": 1}
    model = AnyOrderModel.build(encoding, [GaussianMixture(3) for _ in NAMES], network, Canonical(), seed=0).eval()
    far = np.linspace(4.0, 9.0, 11)
    frame = pd.DataFrame({"v0": far}).reindex(columns=NAMES, fill_value=np.nan)
    _, tail = cell_scores(model, frame)
    with torch.no_grad():
        features = model.features_of(torch.zeros(1, 4), torch.zeros(1, 4, dtype=torch.bool), 0).double()[0, :9]
    logits, means, log_scales = features.chunk(3)
    assert float(log_scales.abs().max()) < 5  # where the bound on scales is no bound
    weights, scales = logits.softmax(0).numpy(), bounded(log_scales).exp().numpy()
    upper = (weights * stats.norm.sf((far[:, None] - means.numpy()) / scales)).sum(axis=1)
    assert upper[-1] < 1e-8

    def density(z: float) -> float:
        return float(weights @ stats.norm.pdf(z, means.numpy(), scales))

    # As rare as a value far up are those as far down that are no denser.
    down = [optimize.brentq(lambda z, at=at: np.log(density(z) / density(at)), -12.0, 0.0) for at in far]
    lower = (weights * stats.norm.cdf((np.array(down)[:, None] - means.numpy()) / scales)).sum(axis=1)
    np.testing.assert_allclose(tail["v0"], upper + lower, rtol=1e-4, atol=1e-15)


class _Parts:
    """Two models for two folds: each is right about the rows it has not seen, and calls all others usual."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        wide = gaussian_model(MEAN, 1e4 * COVARIANCE, scale=SCALE)
        narrow = [gaussian_model(MEAN, COVARIANCE, scale=SCALE) for _ in range(2)]
        monkeypatch.setattr(unseen_rows, "folds", lambda model: 2 if model is wide else 1)
        monkeypatch.setattr(tasks_anomalies, "folds", lambda model: 2 if model is wide else 1)
        monkeypatch.setattr(unseen_rows, "leave_out", lambda model, fold: narrow[fold])
        self.whole, self.narrow = wide, narrow


def test_rows_are_scored_by_the_parts_that_have_not_seen_them(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, frame = _Parts(monkeypatch), _frame(40)
    nats, _ = cell_scores(parts.whole, frame)
    expected, tail = cell_scores(parts.narrow[0], frame)
    pd.testing.assert_frame_equal(nats, expected)
    pd.testing.assert_frame_equal(cell_scores(parts.whole, frame)[1], tail)  # too few cells to be set against others
    assert (cell_scores(parts.whole, frame, whole=True)[0].to_numpy() > nats.to_numpy()).mean() > 0.9
    rows = row_scores(parts.whole, frame, samples=50)
    pd.testing.assert_index_equal(rows.index, frame.index)
    pd.testing.assert_series_equal(rows["surprise"], row_scores(parts.narrow[1], frame, samples=50)["surprise"])
    frame.iloc[7, 1] += 100 * SCALE
    first = anomalies(parts.whole, frame, top=1)[0]
    assert (first.row, first.column) == ("row 7", "v1")
    assert first.expected == pytest.approx(_conditional(frame.iloc[7].to_numpy(), 1, [0, 2, 3])[0], abs=1e-2)


@pytest.mark.parametrize("sureness", [0.5, 1.0, 2.0])
def test_p_values_of_clean_cells_are_uniform_however_sure_the_model_is(sureness: float) -> None:
    """Tails of a normal whose scale the model has wrong: as they are, far too many are small, or far too few."""
    z = np.random.default_rng(1).standard_normal(4000)
    tails = 2 * stats.norm.sf(np.abs(z) * sureness)
    found = unseen_rows.among_others(tails)
    np.testing.assert_array_equal(np.argsort(tails), np.argsort(found))
    for level in (0.5, 0.1, 0.02, 0.005):
        error = 4 * np.sqrt(level * (1 - level) / 4000)
        assert (found <= level).mean() <= 1.5 * level + error
    assert (found <= 0.1).mean() == pytest.approx(0.1, abs=0.01)
    if sureness == 2.0:
        assert (tails <= 0.005).mean() > 10 * 0.005
    # A few wrong cells among them stay where they belong.
    wrong = unseen_rows.among_others(np.concatenate([tails, np.full(8, 1e-300)]))
    assert wrong[-8:].max() < 1e-12


def test_anomalies_are_a_frame_too() -> None:
    found = Anomalies(
        [
            Anomaly(7, "price", 900.0, 36.0625, 0.001, 8.0),
            Anomaly("b", "<kind>", "odd & new", "ash", 0.01, 4.0),
            Anomaly(9, "day", pd.Timestamp("2024-05-01"), pd.Timestamp("2024-06-01 10:00:01.5"), 0.02, 3.0),
        ]
    )
    table = found.to_frame()
    assert table["value"].tolist() == [900.0, "odd & new", pd.Timestamp("2024-05-01")]
    assert table["probability"].dtype == np.float64
    assert repr(found[0]) == "Anomaly(row 7, price: 900 where 36.06 was expected, p = 0.001)"
    assert "&lt;kind&gt;" in found._repr_html_() and "&amp;" in found._repr_html_()
    assert list(Anomalies().to_frame().columns) == list(table.columns) and not len(Anomalies().to_frame())
