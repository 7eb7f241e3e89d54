"""Trees as arrays: LightGBM answers from them to the bit, and arrays that are not those of trees are refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np
import pytest
from lightgbm_writer import write_trees

from anyorder.errors import UserError
from anyorder.networks.parts.lightgbm_text import read_trees
from anyorder.networks.parts.tree_arrays import ANY_NUMBER, DTYPES, TreeArrays

FEATURES = 4
LEVELS = 70  # so that a set of levels takes more than one word


def table(rows: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    cells = generator.normal(size=(rows, FEATURES))
    cells[:, 2] = generator.integers(0, LEVELS, rows)
    cells[generator.random(cells.shape) < 0.3] = np.nan
    cells[:, 3] = generator.integers(0, 4, rows)
    return cells


def booster(answers: int, rounds: int = 12) -> lightgbm.Booster:
    cells = table(900, 0)
    target = (
        np.nan_to_num(cells[:, 2]) * 7 % 5 + 5 * np.isnan(cells[:, 0]) + (np.nan_to_num(cells[:, 1]) > 0)
    ) % answers
    kind = {"objective": "binary"} if answers == 2 else {"objective": "multiclass", "num_class": answers}
    options = {
        **kind,
        "verbose": -1,
        "num_leaves": 12,
        "min_data_in_leaf": 3,
        "min_data_per_group": 5,
        "num_threads": 1,
    }
    data = lightgbm.Dataset(cells, np.floor(target), categorical_feature=[2], params=options)
    return lightgbm.train(options, data, rounds)


@pytest.fixture(scope="module", params=[2, 3], ids=["yes or no", "which"])
def grown(request: pytest.FixtureRequest) -> tuple[int, lightgbm.Booster, TreeArrays]:
    answers: int = request.param
    model = booster(answers)
    return 1 if answers == 2 else answers, model, read_trees(model.model_to_string())


@pytest.fixture(scope="module")
def trees() -> TreeArrays:
    return read_trees(booster(3).model_to_string())


def equal(one: TreeArrays, other: TreeArrays) -> bool:
    return all(
        getattr(one, name).dtype == dtype and getattr(one, name).tobytes() == getattr(other, name).tobytes()
        for name, dtype in DTYPES.items()
    )


def test_lightgbm_answers_to_the_bit(grown: tuple[int, lightgbm.Booster, TreeArrays]) -> None:
    scores, model, trees = grown
    trees.check(FEATURES)
    assert {1, 9} & set(trees.decisions) and {8, 10} <= set(trees.decisions)  # sets, and the unknown on either side
    assert trees.set_words.max() > 1
    assert (trees.thresholds == ANY_NUMBER).any()  # "is anything known?"
    again = lightgbm.Booster(model_str=write_trees(trees, scores, FEATURES))
    unseen = table(500, 1)
    odd = [[np.inf, -np.inf, 1e9, 0], [1e300, -1e300, -3, 9], [np.nan] * 4, [0.0, -0.0, 2.5, -1], [5e-324, 1, 69, 2]]
    unseen = np.concatenate([unseen, odd])
    assert np.array_equal(model.predict(unseen, raw_score=True), again.predict(unseen, raw_score=True))
    assert equal(read_trees(again.model_to_string()), trees)


def test_every_number_comes_back_with_the_same_bits() -> None:
    bits = np.random.default_rng(0).integers(0, 2**64, 5_000, dtype=np.uint64)
    numbers = np.concatenate([bits.view(np.float64), [5e-324, 2.2250738585072014e-308, 1e-35, 0.1, ANY_NUMBER]])
    numbers = numbers[np.isfinite(numbers)]
    count = len(numbers)
    stumps = dataclasses.replace(
        TreeArrays.none(),
        leaf_counts=np.full(count, 2, np.int32),
        split_leaves=np.zeros(count, np.int32),
        split_features=np.zeros(count, np.int32),
        decisions=np.full(count, 8, np.uint8),
        thresholds=numbers,
        leaf_values=np.repeat(numbers, 2) / 4,
    )
    model = lightgbm.Booster(model_str=write_trees(stumps, count, 2))
    assert equal(read_trees(model.model_to_string()), stumps)


def test_children_are_those_of_the_growth() -> None:
    generator = np.random.default_rng(0)
    counts = np.array([1, 2, 9, 1, 30], np.int32)
    split = np.concatenate([[generator.integers(0, step + 1) for step in range(count - 1)] for count in counts])
    forest = dataclasses.replace(TreeArrays.none(), leaf_counts=counts, split_leaves=split.astype(np.int32))
    left, right = forest.children()
    start = 0
    for count in counts:
        own = split[start : start + count - 1].astype(int)
        # Grown step by step: who hangs where a leaf is.
        sides = [[0, 0] for _ in own]
        where: dict[int, tuple[int, int] | None] = {0: None}
        for step, leaf in enumerate(own):
            if (place := where[leaf]) is not None:
                sides[place[0]][place[1]] = step
            sides[step] = [~leaf, ~(step + 1)]
            where[leaf], where[step + 1] = (step, 0), (step, 1)
        assert np.stack([left, right], axis=1)[start : start + count - 1].tolist() == sides
        # Every node but the root and every leaf hangs in exactly one place.
        hanging = sorted(child for pair in sides for child in pair)
        assert hanging == [*range(-count, 0), *range(1, count - 1)] if count > 1 else not hanging
        start += count - 1


def test_parts_are_what_was_joined() -> None:
    several = [read_trees(booster(answers, rounds=3).model_to_string()) for answers in (2, 3)]
    several.insert(1, TreeArrays.none())
    joined = TreeArrays.joined(several)
    joined.check(FEATURES)
    parts = joined.parts([len(part.leaf_counts) for part in several])
    assert all(equal(one, other) for one, other in zip(parts, several, strict=True))
    assert TreeArrays.joined([]).parts([]) == []


def with_value(index: int, value: Any) -> Callable[[np.ndarray], np.ndarray]:
    def change(column: np.ndarray) -> np.ndarray:
        changed = column.copy()
        changed[index] = value
        return changed

    return change


def swapped(old: int, new: int) -> Callable[[np.ndarray], np.ndarray]:
    """The first of one value becomes another."""
    return lambda column: with_value(int(np.flatnonzero(column == old)[0]), new)(column)


def moved(column: np.ndarray) -> np.ndarray:
    """One leaf less for the first, one more for the second: the sum is as before."""
    changed = column.copy()
    changed[:2] += [-column[0], column[0]]
    return changed


CRAFTED: list[tuple[str, Callable[[np.ndarray], np.ndarray], str]] = [
    ("leaf_counts", moved, "without a leaf"),
    ("leaf_counts", with_value(0, -5), "without a leaf"),
    ("leaf_counts", with_value(0, 10_000), "do not add up"),
    ("leaf_counts", lambda column: column[:-1], "do not add up"),
    ("leaf_counts", lambda column: column.astype(np.int64), "must be one row of int32"),
    ("leaf_counts", lambda column: column[None], "must be one row of int32"),
    ("split_leaves", with_value(0, 1), "not there yet"),
    ("split_leaves", with_value(3, 4), "not there yet"),
    ("split_leaves", with_value(3, -1), "not there yet"),
    ("split_leaves", lambda column: column[:-1], "as long as there are nodes"),
    ("split_features", with_value(-1, FEATURES), "not there"),
    ("split_features", with_value(0, -1), "not there"),
    ("split_features", lambda column: np.append(column, column[:1]), "as long as there are nodes"),
    ("decisions", swapped(9, 3), "unknown"),
    ("decisions", swapped(8, 4), "unknown"),
    ("decisions", swapped(8, 9), "set_words"),
    ("decisions", swapped(9, 8), "set_words"),
    ("decisions", lambda column: column[:0], "as long as there are nodes"),
    ("thresholds", lambda column: column[1:], "thresholds"),
    ("thresholds", with_value(5, np.nan), "thresholds must be finite"),
    ("thresholds", with_value(5, np.inf), "thresholds must be finite"),
    ("thresholds", lambda column: np.zeros(len(column), np.float32), "must be one row of float64"),
    ("set_words", lambda column: column[1:], "set_words"),
    ("set_words", moved, "without a word"),
    ("set_words", with_value(0, 1000), "do not add up"),
    ("set_bits", lambda column: column[1:], "do not add up"),
    ("set_bits", lambda column: column.view(np.float32), "must be one row of int32"),
    ("leaf_values", with_value(2, np.nan), "must be finite"),
    ("leaf_values", with_value(2, -np.inf), "must be finite"),
    ("leaf_values", lambda column: np.full(len(column), 1e308), "their sum must be finite"),
    ("leaf_values", lambda column: column[:-1], "do not add up"),
]


@pytest.mark.parametrize(("name", "change", "said"), CRAFTED, ids=[f"{name}-{said}" for name, _, said in CRAFTED])
def test_crafted_arrays_are_refused(
    trees: TreeArrays, name: str, change: Callable[[np.ndarray], np.ndarray], said: str
) -> None:
    changed = change(getattr(trees, name))
    with pytest.raises(UserError, match=f"damaged .*{said}"):
        dataclasses.replace(trees, **{name: changed}).check(FEATURES)


TEXT = """tree
Tree=0
num_leaves=3
num_cat=1
split_feature=1 0
threshold=0.5 0
decision_type=8 9
left_child=1 -1
right_child=-2 -3
leaf_value=1 2 3
cat_boundaries=0 1
cat_threshold=6

end of trees
"""


def test_a_text_is_read() -> None:
    found = read_trees(TEXT)
    found.check(2)
    assert found.split_leaves.tolist() == [0, 0]
    assert found.set_bits.tolist() == [6]


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("num_leaves=3", "num_leaves=4"),
        ("num_leaves=3", "num_leaves=three"),
        ("num_leaves=3\n", ""),
        ("num_cat=1", "num_cat=0"),
        ("num_cat=1", "num_cat=1\nis_linear=1"),
        ("split_feature=1 0", "split_feature=1 99999999999"),
        ("threshold=0.5 0", "threshold=0.5 1"),
        ("threshold=0.5 0", "threshold=0.5"),
        ("decision_type=8 9", "decision_type=8 700"),
        ("left_child=1 -1", "left_child=0 -1"),  # below itself
        ("left_child=1 -1", "left_child=7 -1"),
        ("left_child=1 -1", "left_child=-1 -1"),  # a node that hangs nowhere
        ("left_child=1 -1", "left_child=1 -2"),  # a leaf in two places
        ("right_child=-2 -3", "right_child=1 -3"),  # a node in two places
        ("leaf_value=1 2 3", "leaf_value=1 2 " + "3" * 200),
        ("leaf_value=1 2 3", "leaf_value=1 2 x"),
        ("cat_boundaries=0 1", "cat_boundaries=1 1"),
        ("cat_boundaries=0 1", "cat_boundaries=0 9"),
        ("cat_threshold=6", "cat_threshold=-6"),
        ("cat_threshold=6\n", ""),
        ("end of trees\n", ""),
    ],
)
def test_crafted_texts_are_refused(line: str, instead: str) -> None:
    assert line in TEXT
    with pytest.raises(UserError, match="damaged"):
        read_trees(TEXT.replace(line, instead))


@pytest.mark.parametrize(
    "counts",
    [(0, 0), (-1, 0), (999_999_999, 0), (3, -1), (3, 3)],
    ids=lambda counts: f"{counts[0]} leaves, {counts[1]} sets",
)
def test_counts_that_no_tree_has_are_refused_before_they_are_used(counts: tuple[int, int]) -> None:
    crafted = TEXT.replace("num_leaves=3", f"num_leaves={counts[0]}").replace("num_cat=1", f"num_cat={counts[1]}")
    with pytest.raises(UserError, match=f"a tree of {counts[0]} leaves and {counts[1]} sets"):
        read_trees(crafted)
