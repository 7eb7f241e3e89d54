"""Trees evaluated at once: the sums that LightGBM finds, for every kind of tree, split and input."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest
from lightgbm_writer import write_trees

from anyorder.networks.parts import tree_masks
from anyorder.networks.parts.forest import Forest, forest
from anyorder.networks.parts.lightgbm_text import read_trees
from anyorder.networks.parts.tree_arrays import ANY_NUMBER, TreeArrays
from anyorder.networks.parts.tree_masks import Masks
from anyorder.networks.parts.tree_nodes import Nodes
from anyorder.networks.parts.tree_walk import Walked

FEATURES = 6
ODD = (
    0.0,
    -0.0,
    1.0,
    2.0,
    2.9,
    -0.9,
    -1.0,
    31.0,
    32.0,
    69.0,
    1e9,
    -1e9,
    1e300,
    -1e300,
    5e-324,
    np.inf,
    -np.inf,
    np.nan,
)


def crafted(counts: list[int], seed: int, levels: int = 70) -> TreeArrays:
    """Trees of so many leaves with every kind of decision, thresholds that are often equal, and any set of levels."""
    generator = np.random.default_rng(seed)
    steps = np.concatenate([np.zeros(0, int), *(np.arange(count - 1) for count in counts)])
    decisions = generator.choice(np.array([0, 2, 8, 10, 1, 9], np.uint8), len(steps))
    sets = int((decisions & 1).sum())
    words = generator.integers(1, 1 + -(-levels // 32), sets).astype(np.int32)
    thresholds = generator.choice(
        [0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, ANY_NUMBER, *generator.normal(size=5)], len(steps) - sets
    )
    return TreeArrays(
        leaf_counts=np.array(counts, np.int32),
        split_leaves=generator.integers(0, steps + 1).astype(np.int32),
        split_features=generator.integers(0, FEATURES, len(steps)).astype(np.int32),
        decisions=decisions,
        thresholds=thresholds,
        set_words=words,
        set_bits=generator.integers(0, 1 << 32, words.sum(), dtype=np.uint32).view(np.int32),
        leaf_values=generator.normal(size=sum(counts)),
    )


def inputs(rows: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    cells = np.where(generator.random((rows, FEATURES)) < 0.5, generator.normal(size=(rows, FEATURES)), 0)
    cells[:, 1] = generator.integers(0, 75, rows)
    odd = generator.random(cells.shape) < 0.4
    cells[odd] = generator.choice(ODD, odd.sum())
    return cells


def said_by_lightgbm(trees: TreeArrays, scores: int, cells: np.ndarray) -> np.ndarray:
    model = lightgbm.Booster(model_str=write_trees(trees, scores, FEATURES))
    return np.asarray(model.predict(cells, raw_score=True, num_threads=1)).reshape(len(cells), scores)


def both(trees: TreeArrays, score: np.ndarray, scores: int) -> tuple[Forest | None, Forest]:
    nodes = Nodes.of(trees)
    return Masks.of(nodes, trees, score, scores), Walked.of(nodes, trees, score, scores)


@pytest.mark.parametrize(
    ("counts", "scores"),
    [([15] * 70, 1), ([1, 2, 16, 1, 3, 9] * 9, 3), ([31, 5, 17] * 6, 2), ([64, 40, 1] * 5, 5), ([2], 1)],
    ids=["one score", "16 bits", "32 bits", "64 bits", "a stump"],
)
def test_crafted_trees_add_up_as_in_lightgbm(counts: list[int], scores: int) -> None:
    trees = crafted(counts, seed=len(counts))
    trees.check(FEATURES)
    cells = inputs(400, seed=1)
    right = said_by_lightgbm(trees, scores, cells)
    masks, walked = both(trees, np.arange(len(counts)) % scores, scores)
    assert masks is not None
    for found in (masks.scores(cells), walked.scores(cells)):
        np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-12)


def test_grown_trees_add_up_as_in_lightgbm() -> None:
    cells = inputs(600, seed=2)
    cells[np.isinf(cells) | (np.abs(cells) > 100)] = np.nan
    target = (np.nan_to_num(cells[:, 1]) * 7 % 5 + 2 * np.isnan(cells[:, 0]) + (np.nan_to_num(cells[:, 2]) > 0)) % 3
    options = {"objective": "multiclass", "num_class": 3, "verbose": -1, "num_leaves": 15, "num_threads": 1}
    options |= {"min_data_in_leaf": 3, "min_data_per_group": 5}
    data = lightgbm.Dataset(cells, np.floor(target), categorical_feature=[1], params=options)
    model = lightgbm.train(options, data, 20)
    trees = read_trees(model.model_to_string())
    assert len(trees.set_words) and {8, 10} <= set(trees.decisions)
    unseen = inputs(300, seed=3)
    found = forest(trees, np.arange(60) % 3, 3)
    assert isinstance(found, Masks)
    np.testing.assert_allclose(found.scores(unseen), model.predict(unseen, raw_score=True), rtol=1e-12, atol=1e-12)


def test_large_trees_and_sets_are_walked() -> None:
    many_leaves, long_sets = crafted([65, 3], seed=4), crafted([9] * 4, seed=5, levels=20_000)
    for trees in (many_leaves, long_sets):
        found = forest(trees, np.zeros(len(trees.leaf_counts), int), 1)
        assert isinstance(found, Walked)
        cells = inputs(200, seed=6)
        np.testing.assert_allclose(found.scores(cells), said_by_lightgbm(trees, 1, cells), rtol=1e-12, atol=1e-12)


def test_tables_that_would_be_too_large_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    trees = crafted([15] * 40, seed=7)
    for name in ("FREE_BYTES", "MOST_TIMES"):
        monkeypatch.setattr(tree_masks, name, 0)
    assert isinstance(forest(trees, np.zeros(40, int), 1), Walked)


def test_a_score_without_trees_is_zero_and_trees_of_one_leaf_add_it() -> None:
    trees = crafted([1, 1, 4], seed=8)
    masks, walked = both(trees, np.array([3, 1, 3]), 5)
    assert masks is not None
    cells = inputs(50, seed=9)
    for found in (masks.scores(cells), walked.scores(cells)):
        assert not found[:, [0, 2, 4]].any()
        np.testing.assert_array_equal(found[:, 1], trees.leaf_values[1])
        np.testing.assert_allclose(found[:, 3], said_by_lightgbm(trees, 1, cells)[:, 0] - trees.leaf_values[1])
    bare = crafted([1, 1], seed=8)
    np.testing.assert_array_equal(forest(bare, np.array([0, 1]), 2).scores(cells), np.tile(bare.leaf_values, (50, 1)))


def test_scores_have_the_same_bits_in_whatever_company() -> None:
    trees = crafted([15] * 90, seed=10)
    found = forest(trees, np.arange(90) % 4, 4)
    cells = inputs(500, seed=11)
    together = found.scores(cells)
    assert np.array_equal(together, np.concatenate([found.scores(cells[row : row + 1]) for row in range(500)]))
    # Equal rows, and rows that lie between the same thresholds, are answered once and put back in their places.
    again = np.concatenate([cells[:7]] * 30)
    assert np.array_equal(found.scores(again), np.concatenate([together[:7]] * 30))
    assert found.scores(cells[:0]).shape == (0, 4)
