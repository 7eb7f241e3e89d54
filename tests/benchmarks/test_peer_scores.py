"""The scores and the hiding mechanisms of the comparison with other imputers, against closed forms."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "peers"


@pytest.fixture(scope="module", autouse=True)
def _benchmark_on_path():
    sys.path[:0] = [str(BENCHMARK), str(BENCHMARK.parent)]
    yield
    sys.path.remove(str(BENCHMARK))


def normal_crps(mean, deviation, truth):
    """CRPS of a normal distribution in closed form."""
    z = (truth - mean) / deviation
    return deviation * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))


@pytest.mark.parametrize("count", [2, 5, 20])
def test_fair_crps_is_unbiased_for_the_normals_closed_form(count):
    from score import crps

    rng = np.random.default_rng(0)
    truth = np.repeat([-1.5, 0.2, 3.0], 40_000)
    cells = crps(rng.normal(0.5, 2.0, (count, len(truth))), truth)
    for value in np.unique(truth):
        mine = cells[truth == value]
        error = mine.std() / np.sqrt(len(mine))
        assert abs(mine.mean() - normal_crps(0.5, 2.0, value)) < 4 * error


def test_plain_crps_is_the_integral_over_the_draws_step_function():
    from score import crps

    draws, truth = np.array([[0.0], [1.0], [4.0]]), np.array([2.0])
    grid = np.linspace(-1, 6, 700_001)
    steps = (draws <= grid).mean(axis=0)
    integral = np.trapezoid((steps - (grid >= truth)) ** 2, grid)
    assert crps(draws, truth, fair=False)[0] == pytest.approx(integral, abs=1e-4)
    # The same draws, fair: the mean distance of pairs is over the 3 * 2 ordered pairs of different draws.
    assert crps(draws, truth)[0] == pytest.approx((2 + 1 + 2) / 3 - (1 + 4 + 3) / 6)


def test_equal_draws_have_the_absolute_error_as_crps():
    from score import crps

    assert crps(np.full((20, 1), 3.0), np.array([5.0]))[0] == pytest.approx(2.0)


@pytest.mark.parametrize("count", [19, 20, 50])
def test_a_perfect_sampler_covers_nine_in_ten(count):
    from score import covered, covered_ties

    rng = np.random.default_rng(1)
    draws, truth = rng.random((count, 60_000)), rng.random(60_000)
    error = np.sqrt(0.09 / 60_000)
    assert abs(covered(draws, truth).mean() - 0.9) < 4 * error
    assert abs(covered_ties(draws, truth).mean() - 0.9) < 4 * error


def test_the_usual_quantiles_would_not():
    rng = np.random.default_rng(2)
    draws, truth = rng.random((20, 100_000)), rng.random(100_000)
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    assert ((low <= truth) & (truth <= high)).mean() == pytest.approx(0.9 * 19 / 21, abs=0.006)


def test_ties_make_the_closed_interval_too_wide_and_breaking_them_mends_it():
    from score import covered, covered_ties

    rng = np.random.default_rng(3)
    draws, truth = rng.integers(0, 3, (20, 100_000)), rng.integers(0, 3, 100_000)
    assert covered(draws, truth).mean() > 0.99
    assert covered_ties(draws, truth).mean() == pytest.approx(0.9, abs=0.002)


def test_coverage_by_rank_is_the_expectation_over_random_jitter():
    from score import covered_ties

    rng = np.random.default_rng(4)
    draws, truth = rng.integers(0, 4, (20, 6)).astype(float), np.array([0.0, 0, 1, 2, 3, 3])
    total = np.zeros(6)
    for _ in range(4000):
        total += covered_ties(draws + 1e-6 * rng.random(draws.shape), truth + 1e-6 * rng.random(6))
    np.testing.assert_allclose(total / 4000, covered_ties(draws, truth), atol=0.03)


def test_smoothed_log_loss_is_a_probability_and_zero_hits_are_finite():
    from score import is_mode, log_loss

    draws = np.array([[0.0], [0], [1], [0]])
    chances = [np.exp(-log_loss(draws, np.array([float(level)]), 3)[0]) for level in range(3)]
    assert chances == pytest.approx([(3 + 1 / 3) / 5, (1 + 1 / 3) / 5, (1 / 3) / 5])
    assert sum(chances) == pytest.approx(1.0)
    assert is_mode(draws, np.array([0.0]), 3)[0] and not is_mode(draws, np.array([1.0]), 3)[0]


def test_scores_come_from_hidden_cells_only_and_in_training_units():
    from score import cell_scores, means

    truth = np.array([[10.0, 0.0], [20.0, 1.0]])
    hidden = np.array([[True, False], [False, True]])
    draws = np.full((20, 2, 2), np.nan)  # what is not hidden is never looked at
    draws[:, 0, 0], draws[:, 1, 1] = 14.0, 1.0
    train = np.array([[0.0, 0.0], [4.0, 1.0], [np.nan, 1.0]])  # deviation 2
    found = means(cell_scores(draws, truth, hidden, train, {1: 2}))
    assert found["crps"] == pytest.approx(2.0) and found["rmse"] == pytest.approx(2.0)
    assert found["accuracy"] == 1.0 and (found["numeric_cells"], found["categorical_cells"]) == (1, 1)
    draws[3, 0, 0] = np.nan
    with pytest.raises(ValueError, match="missing or infinite"):
        cell_scores(draws, truth, hidden, train, {1: 2})


def test_draws_and_truths_beyond_the_training_range_are_counted():
    from score import cell_scores, means

    train, truth = np.array([[0.0], [10.0]]), np.array([[5.0], [12.0]])
    draws = np.array([[[5.0], [11.0]], [[-20.0], [9.0]]])
    found = means(cell_scores(draws, truth, np.ones((2, 1), dtype=bool), train, {}))
    assert found["draws_beyond"] == pytest.approx(0.5) and found["truth_beyond"] == pytest.approx(0.5)
    assert found["furthest"] == pytest.approx(2.0)  # 20 below the least, in widths of 10


def test_the_paired_error_of_rows_with_one_cell_is_that_of_a_mean():
    from score import Cells, paired_error

    rng = np.random.default_rng(0)
    rows, common = np.arange(400), 10 * rng.standard_normal(400)
    mine, best = Cells(rows, common + 0.3 + rng.standard_normal(400)), Cells(rows, common)
    difference, error = paired_error([mine], [best], repeats=4000)
    wanted = mine.values - best.values
    assert difference == pytest.approx(wanted.mean())
    assert error == pytest.approx(wanted.std() / 20, rel=0.05)  # what the cells share drops out
    # A row that is tested twice counts as one row: the same cells again make no smaller error.
    assert paired_error([mine, mine], [best, best], repeats=4000)[1] == pytest.approx(error)
    # Cells of one row that are alike count as one too.
    double = [Cells(np.repeat(rows, 2), np.repeat(one.values, 2)) for one in (mine, best)]
    assert paired_error(double[:1], double[1:], repeats=4000)[1] == pytest.approx(error)


def test_a_failed_method_ranks_last():
    from score import mean_rank

    values = pd.DataFrame({"a": [1.0, np.nan], "b": [2.0, 1.0], "c": [3.0, 2.0]})
    assert mean_rank(values).to_dict() == {"a": 2.0, "b": 1.5, "c": 2.5}


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({f"x{i}": rng.standard_normal(20_000) for i in range(6)})
    frame["colour"] = pd.Series(rng.choice(["red", "green", "blue"], len(frame)), dtype=object)
    frame.loc[rng.random(len(frame)) < 0.1, "x0"] = np.nan
    return frame


def test_completely_at_random_hides_three_in_ten_of_the_known_cells(mixed):
    from sets import hide

    hidden = hide(mixed, "mcar")
    assert not (hidden & mixed.isna().to_numpy()).any()
    shares = hidden.sum(axis=0) / mixed.notna().sum(axis=0).to_numpy()
    np.testing.assert_allclose(shares, 0.3, atol=4 * np.sqrt(0.21 / 18_000))


def test_at_random_depends_on_kept_columns_only(mixed):
    from sets import at_random, hide

    hidden = hide(mixed, "mar")
    kept = ~hidden.any(axis=0)
    assert kept.sum() == round(mixed.shape[1] / 3)
    others = np.flatnonzero(~kept)
    known = mixed.notna().to_numpy()
    shares = hidden[:, others].sum(axis=0) / known[:, others].sum(axis=0)
    np.testing.assert_allclose(shares, 0.3, atol=0.02)
    # The law reads nothing but kept columns: other columns may be permuted without changing any chance ...
    shuffled = mixed.copy()
    for column in others:
        shuffled.iloc[:, column] = shuffled.iloc[::-1, column].to_numpy()
    first, second = (at_random(frame, np.random.default_rng(1)) for frame in (mixed, shuffled))
    np.testing.assert_array_equal(first, second)
    # ... and it does read those: it is far from completely at random, and the draws follow it (a calibration test).
    assert first[:, others].std(axis=0).min() > 0.1
    for column in others:
        rows = known[:, column]
        for low, high in ((0.0, 0.1), (0.1, 0.4), (0.4, 0.7), (0.7, 1.0)):
            inside = rows & (first[:, column] >= low) & (first[:, column] < high)
            if inside.sum() > 200:
                wanted = first[inside, column].mean()
                assert abs(hidden[inside, column].mean() - wanted) < 4.5 * np.sqrt(wanted * (1 - wanted) / inside.sum())


def test_the_chance_is_logistic_in_one_direction_of_the_kept_columns():
    from sets import SLOPE, at_random

    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.standard_normal((500, 6)), columns=list("abcdef"))
    chance = at_random(frame, np.random.default_rng(1))
    kept = (chance == 0).all(axis=0)
    standard = (frame - frame.mean()) / frame.std(ddof=0)
    inputs = np.column_stack([np.ones(500), standard.to_numpy()[:, kept]])
    for column in np.flatnonzero(~kept):
        logit = np.log(chance[:, column] / (1 - chance[:, column]))
        weights, residual, *_ = np.linalg.lstsq(inputs, logit, rcond=None)
        assert residual.item() < 1e-12
        assert np.linalg.norm(weights[1:]) == pytest.approx(SLOPE)
        assert chance[:, column].mean() == pytest.approx(0.3)


def test_tables_come_back_from_their_files_as_they_were(tmp_path):
    from exchange import read_table, read_task, write_task

    frame = pd.DataFrame({"x": [0.1 + 0.2, np.nan, 1e-17], "level": pd.Series(["NA", None, "a, b"], dtype=object)})
    hidden = np.array([[False, True], [False, False], [False, False]])
    columns = {"kinds": {"x": "numeric", "level": "categorical"}, "levels": {"level": ["NA", "a, b"]}}
    write_task(tmp_path, frame, hidden, np.array([0, 1]), np.array([2]), columns)
    task = read_task(tmp_path, tmp_path / "answer")
    assert task.train["x"].iloc[0] == 0.1 + 0.2 and task.train["level"].isna().all()
    assert task.test["level"].tolist() == ["a, b"] and task.test["x"].iloc[0] == 1e-17
    np.testing.assert_array_equal(task.coded(read_table(tmp_path / "truth.csv", task.kinds)), [[1e-17, 1.0]])
    with pytest.raises(KeyError):  # a level that no column has is a fault, never a missing cell
        task.coded(pd.DataFrame({"x": [0.0], "level": ["other"]}))


def test_rows_hide_shares_of_their_own():
    from sets import MOST_OF_A_ROW, hide

    frame = pd.DataFrame(np.zeros((2000, 200)))
    shares = hide(frame, "varied").mean(axis=1)
    grid = np.linspace(0, MOST_OF_A_ROW, 9)
    assert np.abs((shares[:, None] <= grid).mean(axis=0) - grid / MOST_OF_A_ROW).max() < 0.05
    assert shares.max() < MOST_OF_A_ROW + 0.1


@pytest.mark.data
@pytest.mark.parametrize("name", ["concrete", "penguins", "adult", "kidney", "titanic", "miniboone", "power"])
def test_every_table_loads_with_its_split(name, data_dir):
    from sets import HIDDEN, WIDEST, hide, load

    table = load(name, seed=1)
    assert not set(table.train) & set(table.test) and len(table.train) + len(table.test) == len(table.frame)
    assert table.frame.shape[1] <= WIDEST and not np.array_equal(table.test, load(name).test)
    assert all(
        pd.api.types.is_float_dtype(table.frame[column]) == (kind == "numeric") for column, kind in table.kinds.items()
    )
    known = table.frame.notna().to_numpy()
    for mechanism in ("mcar", "mar"):
        hidden = hide(table.frame, mechanism)
        open_to_it = known & hidden.any(axis=0)
        assert hidden[~known].sum() == 0
        assert hidden.sum() / open_to_it.sum() == pytest.approx(HIDDEN, abs=0.04)
