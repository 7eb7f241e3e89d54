"""Places, scores and coverage against closed forms, quadrature and enumeration."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import integrate, stats

from anyorder.errors import UserError
from anyorder.heads import Categorical, DiscretizedLogisticMixture, GaussianMixture
from anyorder.modalities.tables.model import TableModel
from anyorder.model import AnyOrderModel
from anyorder.protocols import Canonical
from anyorder.questions.conditional import Conditional
from anyorder.tasks.calibration import calibrate, kolmogorov_smirnov, mean_over_rows
from anyorder.tasks.hidden_cells import random_known, score_hidden_cells
from anyorder.variables.codecs import LatticeCodec, LevelCodec, LineCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp

from models import categorical_model, categorical_table, gaussian_model

MEAN = np.array([0.5, -1.0, 2.0])
COVARIANCE = np.array([[1.0, 0.6, -0.4], [0.6, 2.0, 0.3], [-0.4, 0.3, 1.5]])
SCALE = 3.0


def _normal_crps(x: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    z = (x - mean) / deviation
    return deviation * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / math.sqrt(math.pi))


def _frame(rows: int, seed: int = 0) -> pd.DataFrame:
    drawn = np.random.default_rng(seed).multivariate_normal(MEAN, COVARIANCE, rows)
    return pd.DataFrame(SCALE * drawn, columns=["v0", "v1", "v2"])


def test_a_gaussian_cell_is_judged_by_its_closed_form() -> None:
    model = gaussian_model(MEAN, COVARIANCE, scale=SCALE)
    frame = _frame(40)
    values, _ = model.encoding.encode(frame)
    known = np.tile([True, False, True], (40, 1))
    cells = score_hidden_cells(model, values, known, ~known, crps=True, rarity=True)
    e = [0, 2]
    gain = COVARIANCE[1, e] @ np.linalg.inv(COVARIANCE[np.ix_(e, e)])
    centre = SCALE * (MEAN[1] + (frame[["v0", "v2"]].to_numpy() / SCALE - MEAN[e]) @ gain)
    deviation = SCALE * math.sqrt(COVARIANCE[1, 1] - gain @ COVARIANCE[e, 1])
    x = frame["v1"].to_numpy()
    np.testing.assert_allclose(cells.below, stats.norm.cdf(x, centre, deviation), atol=1e-7)
    np.testing.assert_allclose(cells.at, 0.0)
    np.testing.assert_allclose(cells.log_prob, stats.norm.logpdf(x, centre, deviation), atol=1e-6)
    np.testing.assert_allclose(cells.crps, _normal_crps(x, centre, deviation), rtol=2e-3)
    np.testing.assert_allclose(cells.rarity, 2 * stats.norm.sf(np.abs(x - centre) / deviation), atol=1e-7)
    assert (cells.known == 2).all()


def _single(variable: Variable, codec: object, head: object, features: list[float]) -> AnyOrderModel:
    """A model of one variable whose marginal is the head at these features."""
    model = AnyOrderModel.build(
        Encoding(Schema((variable,)), (codec,)),  # type: ignore[arg-type]
        [head],  # type: ignore[list-item]
        {"name": "residual_mlp", "width": 8, "blocks": 1},
        Canonical(),
        seed=0,
    )
    fixed = torch.tensor(features)
    model.features_beside = lambda values, known: fixed.expand(len(values), 1, -1)  # type: ignore[method-assign,assignment]
    return model


def test_a_mixture_scores_as_its_integral() -> None:
    variable = Variable("x", Kind.CONTINUOUS)
    features = [0.3, -0.2, -1.5, 1.0, math.log(0.2), math.log(0.7)]
    model = _single(variable, LineCodec(variable, Warp.affine(4.0, 2.0)), GaussianMixture(2), features)
    weights = np.exp([0.3, -0.2]) / np.exp([0.3, -0.2]).sum()

    def cdf(x: float) -> float:
        z = (x - 4.0) / 2.0
        return float(weights @ stats.norm.cdf(z, [-1.5, 1.0], [0.2, 0.7]))

    x = np.array([[-1.5], [-0.3], [0.8], [3.5]])
    nothing = np.zeros(x.shape, dtype=bool)
    cells = score_hidden_cells(model, x, nothing, ~nothing, crps=True, rarity=True)
    for found, place, z in zip(cells.crps, cells.below, x[:, 0], strict=True):
        at = 4.0 + 2.0 * z
        assert place == pytest.approx(cdf(at), abs=1e-6)
        lower = integrate.quad(lambda y: cdf(y) ** 2, -20, at, points=[1.0, 6.0], limit=200)[0]
        upper = integrate.quad(lambda y: (1 - cdf(y)) ** 2, at, 30, points=[1.0, 6.0], limit=200)[0]
        assert found == pytest.approx(lower + upper, rel=0.02)


def test_whole_numbers_score_as_their_sum() -> None:
    variable = Variable("n", Kind.INTEGER, dtype="int64")
    codec = LatticeCodec(variable, Warp.affine(5.0, 3.0), 0, 12)
    head = DiscretizedLogisticMixture(1, codec.lattice)
    model = _single(variable, codec, head, [0.0, 0.1, math.log(0.5)])
    points = np.arange(-60, 80)
    distribution = head(torch.tensor([[0.0, 0.1, math.log(0.5)]]))
    mass = distribution.log_prob(torch.as_tensor(codec.from_measure(points[:, None].astype(float)))).exp().numpy()[:, 0]
    assert mass.sum() == pytest.approx(1.0, abs=1e-5)
    x = np.array([3, 5, 9])
    nothing = np.zeros((3, 1), dtype=bool)
    cells = score_hidden_cells(
        model, codec.from_measure(x.astype(float))[:, None], nothing, ~nothing, crps=True, rarity=True
    )
    for place, value in enumerate(x):
        assert cells.below[place] == pytest.approx(mass[points < value].sum(), abs=1e-5)
        assert cells.at[place] == pytest.approx(mass[points == value][0], abs=1e-5)
        energy = mass @ np.abs(points - value) - 0.5 * mass @ np.abs(points[:, None] - points) @ mass
        assert cells.crps[place] == pytest.approx(energy, abs=1e-4)


def test_levels_without_an_order_are_ranked_by_probability() -> None:
    variable = Variable("c", Kind.CATEGORICAL, levels=("a", "b", "c"), dtype="str")
    probabilities = np.array([0.2, 0.5, 0.3])
    model = _single(variable, LevelCodec(variable), Categorical(3), np.log(probabilities).tolist())
    x = np.arange(3.0)[:, None]
    nothing = np.zeros((3, 1), dtype=bool)
    cells = score_hidden_cells(model, x, nothing, ~nothing, crps=True, rarity=True)
    np.testing.assert_allclose(cells.below, [0.8, 0.0, 0.5], atol=1e-6)
    np.testing.assert_allclose(cells.at, probabilities, atol=1e-6)
    np.testing.assert_allclose(cells.rarity, [0.2, 1.0, 0.5], atol=1e-6)
    energy = 1 - probabilities - 0.5 * (1 - (probabilities**2).sum())
    np.testing.assert_allclose(cells.crps, energy, atol=1e-6)


def test_atoms_keep_the_order_and_distance_of_their_numbers() -> None:
    variable = Variable("a", Kind.ATOMS, levels=(2.0, 0.0, 0.5))
    mass, where = np.array([0.2, 0.5, 0.3]), np.array([2.0, 0.0, 0.5])
    model = _single(variable, LevelCodec(variable), Categorical(3), np.log(mass).tolist())
    nothing = np.zeros((3, 1), dtype=bool)
    cells = score_hidden_cells(model, np.arange(3.0)[:, None], nothing, ~nothing, crps=True, rarity=True)
    np.testing.assert_allclose(cells.below, [0.8, 0.0, 0.5], atol=1e-6)
    energy = np.abs(where[:, None] - where) @ mass - 0.5 * mass @ np.abs(where[:, None] - where) @ mass
    np.testing.assert_allclose(cells.crps, energy, atol=1e-6)


def test_a_right_model_is_calibrated_and_a_wrong_one_is_not() -> None:
    frame = _frame(1500, seed=1)
    right = calibrate(gaussian_model(MEAN, COVARIANCE, scale=SCALE), frame)
    coverage = right.coverage
    assert set(coverage["group"]) == {"all", "variable", "known"}
    # Every line within four of its own standard errors; with 28 lines chance alone hardly breaks that.
    assert ((coverage["coverage"] - coverage["level"]).abs() < 4 * coverage["standard_error"]).all()
    table = right.table()
    assert (table["ks_p"] > 1e-3).all()
    # The log score of all cells is the mean of the conditional log-densities; CRPS only within a variable.
    assert table["log_score"][0] == pytest.approx(right.cells.log_prob.mean())
    assert table["crps"].notna().tolist() == [False, True, True, True, False, False, False]
    # Half the deviation: a central interval of level c then covers 2 Phi(z_c / 2) - 1.
    wrong = calibrate(gaussian_model(MEAN, COVARIANCE / 4, scale=SCALE), frame)
    found = wrong.coverage.query("group == 'known' and which == 0").set_index("level")["coverage"]
    for level, share in found.items():
        assert share == pytest.approx(2 * stats.norm.cdf(stats.norm.ppf((1 + level) / 2) / 2) - 1, abs=0.05)
    assert wrong.table()["ks_p"][0] < 1e-6


def test_discrete_places_are_uniform_under_the_models_own_draws() -> None:
    model = categorical_model({"name": "residual_mlp", "width": 32, "blocks": 1})
    drawn = Conditional(model).sample(3000, seed=2)
    # Marginals only: under one canonical order the first variable's draws follow exactly its own conditional.
    values, observed = model.encoding.encode(drawn)
    asked = np.zeros_like(observed)
    asked[:, 0] = True
    cells = score_hidden_cells(model, values, np.zeros_like(observed), asked)
    assert stats.kstest(cells.pit(0), "uniform").pvalue > 1e-3
    assert stats.kstest(cells.depth(0), "uniform").pvalue > 1e-3
    assert calibrate(model, categorical_table(200)).table().shape[0] == 1 + 4 + 4


def test_masks_hide_a_uniform_number_and_never_touch_missing_cells() -> None:
    rng = np.random.default_rng(0)
    observed = rng.random((8000, 4)) < 0.7
    known = random_known(observed, rng)
    assert not (known & ~observed).any()
    full = observed.all(axis=1)
    sizes = np.bincount(known[full].sum(axis=1), minlength=5)
    assert sizes[4] == 0
    assert stats.chisquare(sizes[:4]).pvalue > 1e-3
    assert stats.chisquare(known[full].sum(axis=0)).pvalue > 1e-3


def test_kolmogorov_smirnov_is_scipys() -> None:
    for seed, count in ((0, 1), (1, 50), (2, 400), (3, 4000)):
        pit = np.random.default_rng(seed).beta(1.1, 1.0, count)
        distance, probability = kolmogorov_smirnov(pit)
        expected = stats.kstest(pit, "uniform", method="exact")
        assert distance == pytest.approx(expected.statistic, rel=1e-12)
        assert probability == pytest.approx(expected.pvalue, rel=1e-9)


def test_cells_that_say_the_same_are_worth_one() -> None:
    # Each number five times: the distance stays, and the p-value must be that of the single numbers.
    pit = np.random.default_rng(4).beta(1.3, 1.0, 200)
    expected = stats.kstest(pit, "uniform", method="exact")
    distance, probability = kolmogorov_smirnov(np.repeat(pit, 5), 200.4)
    assert distance == pytest.approx(expected.statistic, rel=1e-12)
    assert probability == pytest.approx(expected.pvalue, rel=1e-9)
    assert kolmogorov_smirnov(np.repeat(pit, 5))[1] < probability


def test_standard_errors_are_over_rows() -> None:
    # Each number three times in one row: the error must be that of the single numbers, not 1 / sqrt(3) of it.
    numbers = np.random.default_rng(0).normal(size=30)
    mean, error = mean_over_rows(np.repeat(numbers, 3), np.repeat(np.arange(30), 3))
    assert mean == pytest.approx(numbers.mean())
    assert error == pytest.approx(numbers.std(ddof=1) / math.sqrt(30))


def test_missing_cells_are_neither_shown_nor_judged() -> None:
    model = gaussian_model(MEAN, COVARIANCE, scale=SCALE)
    frame = _frame(100)
    frame.loc[:49, "v1"] = np.nan
    found = calibrate(model, frame)
    assert set(found.cells.row[found.of_variable("v1")]) <= set(range(50, 100))
    assert found.cells.known[found.cells.row < 50].max() <= 1
    with pytest.raises(UserError, match="no known cell"):
        calibrate(model, frame.assign(v0=np.nan, v1=np.nan, v2=np.nan))
    with pytest.raises(UserError, match="repeats"):
        calibrate(model, frame, repeats=0)


def test_the_command_line_reports_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from anyorder.cli import main

    core = categorical_model({"name": "residual_mlp", "width": 8, "blocks": 1}, steps=5)
    TableModel(core, {}).save(tmp_path / "m.anyorder")
    frame = categorical_table(60, seed=4)
    frame.to_csv(tmp_path / "t.csv", index=False)
    files = [str(tmp_path / "m.anyorder"), str(tmp_path / "t.csv")]
    assert main(["check", *files, "--json", "--plot", str(tmp_path / "p.png")]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (tmp_path / "p.png").stat().st_size > 10_000
    expected = calibrate(core, frame).table()
    assert [line["which"] for line in result["calibration"]] == expected["which"].tolist()
    np.testing.assert_allclose([line["90%"] for line in result["calibration"]], expected["90%"])
    assert set(result["coherence"]["gain"]) == {"1", "2", "4", "8"}
    assert main(["check", *files]) == 0
    text = capsys.readouterr().out
    assert "in 90%" in text
    assert "gain of averaging" in text
    assert main(["check", *files, "--repeats", "0"]) == 2
