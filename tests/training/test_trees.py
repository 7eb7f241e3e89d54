"""The second engine: trees behind the contract of a network, and the blend of both engines."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import anyorder as ao
from anyorder.errors import UserError
from anyorder.heads import Bernoulli, Binned, Bounded, Categorical, GaussianMixture, Head, Spiked
from anyorder.networks.boosted_trees import BoostedTrees
from anyorder.networks.layout import Layout
from anyorder.networks.parts.halving import halves
from anyorder.networks.parts.tree_arrays import TreeArrays
from anyorder.testing import check_calls_agree, check_no_leak
from anyorder.training.rows import Rows
from anyorder.training.trees.classes import tree_head
from anyorder.training.trees.growing import (
    Plan,
    all_rows,
    grow_trees,
    grow_trial_trees,
    one_after_another,
    random_subsets,
)
from anyorder.training.trees.options import Clock, TreeOptions, least_seconds, shown_within

QUICK = {"training": {"minutes": None, "steps": 40}, "trees": {"threads": 1, "shown": 3000, "bins": 12}}


def rows(values: np.ndarray, observed: np.ndarray | None = None) -> Rows:
    seen = np.ones(values.shape, dtype=bool) if observed is None else observed
    return Rows(torch.as_tensor(values).float(), torch.as_tensor(seen), torch.zeros(values.shape))


def grown(heads: list[Head], table: np.ndarray, options: TreeOptions, partners: tuple[int, ...] = ()) -> BoostedTrees:
    layout = Layout(
        levels=tuple(head.levels for head in heads),
        sizes=tuple(head.size for head in heads),
        groups=tuple(range(len(heads))),
        grid=(len(heads),),
        partners=partners,
    )
    cut = len(table) // 5
    flags, clock = [False] * len(heads), Clock(len(heads), None, lambda: False)
    trial = grow_trial_trees(
        heads, layout, flags, rows(table[cut:]), rows(table[:cut]), options,
        seed=0, clock=clock, advance=lambda: None,
    )  # fmt: skip
    assert all(0 <= plan.rounds <= options.rounds for plans in trial.plans for plan in plans)
    assert all(plans[0].rounds > 0 for plans in trial.plans)
    return grow_trees(
        heads, layout, flags, rows(table), trial.plans, options, seed=1, clock=clock, advance=lambda: None
    )


@pytest.fixture(scope="module")
def mixed() -> tuple[list[Head], np.ndarray]:
    generator = np.random.default_rng(0)
    x = generator.normal(size=600)
    level = generator.integers(0, 3, size=600)
    y = x + level + 0.1 * generator.normal(size=600)
    flag = (generator.random(600) < np.where(x > 0, 0.9, 0.1)).astype(float)
    spike = np.where(flag > 0, 0.0, generator.normal(size=600))
    table = np.stack([x, level, y, flag, spike], axis=1)
    smooth: list[Head] = [
        GaussianMixture(2),
        Categorical(3),
        Bounded(GaussianMixture(2), -4.0, None),
        Bernoulli(),
        Spiked((0.0,), GaussianMixture(2)),
    ]
    values = table.astype(np.float32)
    return [tree_head(head, values[:, place], 12, 0.5) for place, head in enumerate(smooth)], table


@pytest.fixture(scope="module")
def trees(mixed: tuple[list[Head], np.ndarray]) -> BoostedTrees:
    return grown(*mixed, TreeOptions(shown=6000, rounds=60, threads=1))


def test_subsets_have_uniform_sizes() -> None:
    subsets = random_subsets(40_000, 4, np.random.default_rng(0))
    sizes = np.bincount(subsets.sum(axis=1), minlength=5) / 40_000
    np.testing.assert_allclose(sizes, np.full(5, 0.2), atol=0.01)
    two = subsets[subsets.sum(axis=1) == 2]
    np.testing.assert_allclose(two.mean(axis=0), np.full(4, 0.5), atol=0.02)


def test_the_clock_shares_out_what_is_left() -> None:
    clock = Clock(jobs=4, deadline=time.monotonic() - 1, stop=lambda: False)
    assert clock.begin()()  # no time left
    patient = Clock(jobs=4, deadline=time.monotonic() + 60, stop=lambda: False)
    assert not patient.begin()()
    assert patient.jobs == 3
    assert Clock(1, None, stop=lambda: True).begin()()  # Ctrl-C


def test_classes_part_atoms_from_the_continuum() -> None:
    head = Spiked((0.0, 1.0), Binned((-0.5, 0.5)))
    classes, count = head.classes(torch.tensor([0.0, 1.0, -2.0, 0.1, 3.0]))
    assert classes.tolist() == [0, 1, 2, 3, 4]
    assert count == 5


@pytest.mark.parametrize("atoms", [0, 1, 3])
def test_questions_end_in_single_classes(atoms: int) -> None:
    counts = np.random.default_rng(atoms).integers(1, 50, size=13).astype(float)
    depths = halves(counts, atoms)
    assert sum(map(len, depths)) == 12  # one less than there are classes
    if atoms:
        assert depths[0][0].middle == atoms
    # Answers that are each as frequent as they are in play multiply to the frequency of the class.
    probs = np.ones(13)
    for low, middle, high in (split for splits in depths for split in splits):
        share = counts[middle:high].sum() / counts[low:high].sum()
        probs[low:middle] *= 1 - share
        probs[middle:high] *= share
    np.testing.assert_allclose(probs, counts / counts.sum())


def test_without_boosters_the_questions_are_answered_by_the_marginal(trees: BoostedTrees) -> None:
    parts = [[TreeArrays.none() for _ in own] for own in trees.splits]
    # Only the first question, so that the others are asked too.
    parts[0][0] = trees.grown(0)[0]
    bare = BoostedTrees.of(trees.layout, trees.splits, parts, trees.atoms, trees.marginal)
    bare.doubt = 1e-12
    nothing = torch.zeros(1, 5)
    marginal = trees.marginal[0, : trees.layout.sizes[0]].softmax(0)
    split = trees.splits[0][0]
    found = bare.beside(nothing, nothing.bool())[0, 0, : len(marginal)].double().exp()
    for part in (slice(split.low, split.middle), slice(split.middle, split.high)):
        torch.testing.assert_close(found[part] / found[part].sum(), marginal[part] / marginal[part].sum())
    assert float(found.sum()) == pytest.approx(1.0)


def test_network_keeps_the_contract(trees: BoostedTrees) -> None:
    check_no_leak(trees)
    check_calls_agree(trees)


def test_answers_are_those_of_the_law(mixed: tuple[list[Head], np.ndarray], trees: BoostedTrees) -> None:
    heads, _ = mixed
    values = torch.zeros(2, 5, dtype=torch.float64)
    values[:, 0] = torch.tensor([1.0, -1.0])
    known = torch.tensor([[True, False, False, False, False]] * 2)
    flag = heads[3](trees.beside(values, known)[:, 3, :1])
    np.testing.assert_allclose(flag.mean().numpy(), [0.9, 0.1], atol=0.06)
    # The atom stands or falls with the flag.
    values[:, 3] = torch.tensor([1.0, 0.0])
    known[:, 3] = True
    spike = heads[4](trees.beside(values, known)[:, 4, : heads[4].size])
    np.testing.assert_allclose(
        spike.mass_at(torch.zeros(2, dtype=torch.float64)).numpy(), [1, 0], atol=0.12
    )  # boosting stops short of certainty
    # y = x + level + noise.
    values[:, 1], known[:, 1] = torch.tensor([0.0, 2.0]), True
    y = heads[2](trees.beside(values, known)[:, 2, : heads[2].size])
    np.testing.assert_allclose(y.mean().numpy(), [1.0, 1.0], atol=0.25)


def test_a_partner_is_never_used(mixed: tuple[list[Head], np.ndarray]) -> None:
    heads, table = mixed
    # Spike and flag tell all about each other; as partners neither may see the other.
    trees = grown(heads, table, TreeOptions(shown=1000, rounds=10, threads=1), partners=(-1, -1, -1, 4, 3))
    for place, partner in ((3, 4), (4, 3)):
        for own in trees.grown(place):
            assert partner not in own.split_features


def test_trees_survive_the_file_bit_by_bit(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    frame = pd.DataFrame({"a": generator.normal(size=80), "b": generator.integers(0, 40, 80)})
    frame["c"] = np.where(frame.a > 0, "yes", "no")
    for engine in ("trees", "auto"):
        model = ao.fit(frame, engine=engine, config=QUICK, seed=0)  # type: ignore[arg-type]
        model.save(tmp_path / "model.anyorder")
        again = ao.load(tmp_path / "model.anyorder")
        assert np.array_equal(model.log_prob(frame), again.log_prob(frame))
        holes = frame.mask(generator.random(frame.shape) < 0.3)
        for one, other in zip(model.fill(holes, draws=2), again.fill(holes, draws=2), strict=True):
            pd.testing.assert_frame_equal(one, other)
        assert again.card["training"]["engine"] == engine


def test_jumps_are_learnt_sooner_by_trees_and_auto_listens() -> None:
    generator = np.random.default_rng(2)
    code = generator.integers(0, 12, size=500)
    y = 3 * generator.permutation(12)[code] + 0.3 * generator.normal(size=500)
    frame = pd.DataFrame({"code": [f"k{number}" for number in code], "y": y})
    model = ao.fit(frame, engine="auto", seed=0, config=QUICK)
    scores = model.card["scores"]
    assert scores["members"]["trees"] > scores["members"]["neural"] + 0.1
    assert scores["held_out"] > max(scores["members"].values()) - 0.05
    assert scores["weights"]["neural"] < 0.5


def test_probabilities_of_a_blend_add_up() -> None:
    generator = np.random.default_rng(3)
    frame = pd.DataFrame({"a": generator.choice(list("xyz"), 60), "b": generator.choice(list("uv"), 60)})
    model = ao.fit(frame, engine="auto", config=QUICK, seed=0)
    pairs = pd.DataFrame([(a, b) for a in "xyz" for b in "uv"], columns=["a", "b"])
    assert np.exp(model.log_prob(pairs)).sum() == pytest.approx(1.0, abs=1e-5)


def test_unknown_engine_is_refused() -> None:
    frame = pd.DataFrame({"a": range(20), "b": range(20)})
    with pytest.raises(UserError, match="engine"):
        ao.fit(frame, engine="forest")  # type: ignore[arg-type]


def test_a_table_too_long_for_trees_is_left_to_the_network() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    model = ao.fit(frame, config={**QUICK, "trees": {"most_rows": 50}}, seed=0)
    assert "trees" not in model.card["scores"]["members"]


def test_without_time_the_marginal_answers(mixed: tuple[list[Head], np.ndarray]) -> None:
    heads, table = mixed
    layout = Layout(
        levels=tuple(head.levels for head in heads),
        sizes=tuple(head.size for head in heads),
        groups=tuple(range(len(heads))),
        grid=(len(heads),),
    )
    late = Clock(len(heads), time.monotonic() - 1, lambda: False)
    plans, options = [[Plan(5)]] * len(heads), TreeOptions(threads=1)
    flags, quiet = [False] * len(heads), lambda: None
    none = grow_trees(heads, layout, flags, rows(table), plans, options, seed=0, clock=late, advance=quiet)
    assert not any(none.learned)
    clock = Clock(len(heads), None, lambda: False)
    some = grow_trees(heads, layout, flags, rows(table), plans, options, seed=0, clock=clock, advance=quiet)
    for place, own in enumerate(some.splits):
        assert len(some.grown(place)) == len(own)
        assert all(len(part.leaf_counts) for part in some.grown(place))


def test_without_time_the_trial_trees_stand_in_as_they_were_grown() -> None:
    # Held-out rows that shift the halves, and a value of their own: other questions than those of the trial.
    generator = np.random.default_rng(5)
    x = generator.normal(size=300)
    few = np.concatenate([generator.integers(0, 12, size=240), np.full(60, 12)]) + 0.5 * (np.arange(300) == 299)
    table = np.stack([np.concatenate([x[:240], x[240:] + 4]), few, 2 * x], axis=1).astype(np.float32)
    heads = [tree_head(GaussianMixture(2), table[:240, place], 12, 0.5) for place in range(3)]
    layout = Layout(levels=(0, 0, 0), sizes=tuple(head.size for head in heads), groups=(0, 1, 2), grid=(3,))
    options, flags, quiet = TreeOptions(threads=1, shown=2000, rounds=15), [False] * 3, lambda: None
    clock = Clock(3, None, lambda: False)
    training, held_out = rows(table[:240]), rows(table[240:])
    trial = grow_trial_trees(heads, layout, flags, training, held_out, options, seed=0, clock=clock, advance=quiet)
    late = Clock(3, time.monotonic() - 1, lambda: False)
    everything = all_rows(training, held_out)
    kept = grow_trees(
        heads, layout, flags, everything, trial.plans, options, seed=0, clock=late, advance=quiet, instead=trial
    )
    anew = grow_trees(heads, layout, flags, everything, trial.plans, options, seed=0, clock=clock, advance=quiet)
    assert anew.splits != trial.network.splits  # else there is nothing to mix up
    assert kept.splits == trial.network.splits
    values, known = torch.as_tensor(table[:50]).double(), torch.zeros(50, 3, dtype=torch.bool)
    known[:, 0] = True
    kept.load_state_dict({**kept.state_dict(), "marginal": trial.network.marginal})  # which is that of other rows
    torch.testing.assert_close(kept.beside(values, known), trial.network.beside(values, known))


@pytest.mark.parametrize(
    "change", [{"bins": 1}, {"leaves": 1}, {"members": 0}, {"rounds": 2.5}, {"learning_rate": 1.5}]
)
def test_senseless_options_of_trees_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"trees: {next(iter(change))} must be"):
        TreeOptions(**change)


def test_two_fits_grow_their_trees_one_after_the_other() -> None:
    """Together they would share LightGBM's count of threads, which crashes a process now and then."""
    growing = threading.Lock()

    def work(job: Any) -> bool:
        alone = growing.acquire(blocking=False)
        time.sleep(0.01)
        if alone:
            growing.release()
        return alone

    with ThreadPoolExecutor(2) as pool:
        fits = [pool.submit(one_after_another, work, [None] * 5, lambda: None) for _ in range(2)]
        assert all(all(fit.result()) for fit in fits)


def test_with_little_time_there_are_fewer_cells_and_fewer_trees() -> None:
    unhurried = TreeOptions(threads=1)
    assert shown_within(1e6, 10_000, 40, unhurried) == unhurried
    hurried = shown_within(4.0, 10_000, 40, unhurried)
    assert 500 < hurried.shown < unhurried.shown / 4 and hurried.learning_rate > unhurried.learning_rate
    assert hurried.rounds < unhurried.rounds and hurried.leaves > unhurried.leaves
    assert shown_within(4.0, 10_000, 40, TreeOptions(threads=1, rounds=5)).rounds == 5
    # Few rows are seen often enough even then.
    assert shown_within(4.0, 200, 40, unhurried).learning_rate == unhurried.learning_rate
    # Whoever sets a rate has it.
    assert shown_within(4.0, 10_000, 40, TreeOptions(threads=1, learning_rate=0.05)).learning_rate == 0.05
    # What they need is what shows as many cells as they are said to need.
    seconds = least_seconds(300, 40, unhurried)
    assert shown_within(seconds, 300, 40, unhurried).shown == pytest.approx(300 * 8, abs=1)
    assert least_seconds(10**6, 40, unhurried) == least_seconds(10**5, 40, unhurried) < 40
