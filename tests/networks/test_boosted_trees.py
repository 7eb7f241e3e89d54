"""The network of trees: all it is told is checked when it is built and loaded, and many threads may ask it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from anyorder.errors import UserError
from anyorder.model.checkpoint import load_model
from anyorder.networks.boosted_trees import FREE_TEXT, BoostedTrees
from anyorder.networks.layout import Layout
from anyorder.networks.parts.class_trees import scores_of
from anyorder.networks.parts.forest import forest
from anyorder.networks.parts.halving import Split
from anyorder.networks.parts.tree_arrays import TreeArrays

HERE = Path(__file__).resolve().parent
OLD = HERE.parent / "files" / "v1" / "table_trees.anyorder"
LAYOUT = Layout(levels=(3, 0), sizes=(3, 4), groups=(0, 1), grid=(2,))
SPLITS = ((Split(0, 0, 3),), (Split(0, 2, 4), Split(0, 1, 2), Split(2, 3, 4)))


def stump(feature: int, count: int = 1) -> TreeArrays:
    return TreeArrays(
        leaf_counts=np.full(count, 2, np.int32),
        split_leaves=np.zeros(count, np.int32),
        split_features=np.full(count, feature, np.int32),
        decisions=np.full(count, 10, np.uint8),
        thresholds=np.linspace(0, 1, count),
        set_words=np.zeros(0, np.int32),
        set_bits=np.zeros(0, np.int32),
        leaf_values=np.linspace(-1, 1, 2 * count),
    )


def network() -> BoostedTrees:
    trees = [[stump(1, 3)], [stump(0), TreeArrays.none(), stump(2)]]
    return BoostedTrees.of(LAYOUT, SPLITS, trees, (0, 0), torch.zeros(2, 4, dtype=torch.float64))


def options() -> dict[str, Any]:
    own = network()
    return {name: getattr(own, name) for name in ("splits", "trees", "leaves", "sets", "words", "atoms", "doubt")}


def test_what_was_told_is_answered() -> None:
    own = network()
    assert own.learned == (True, True)
    assert [len(part.leaf_counts) for part in own.grown(1)] == [1, 0, 1]
    values = torch.tensor([[-1.0, 0], [1, 0], [5, 0]], dtype=torch.float64)
    known = torch.tensor([[True, False], [True, False], [False, False]])
    # Yes or no to the first question has the log-odds of a leaf; the unknown goes left. The second has even odds.
    odds = torch.tensor([-1.0, 1.0, -1.0], dtype=torch.float64)
    shares = (1 - own.doubt) * torch.stack([-odds, odds], 1).sigmoid() + own.doubt / 2
    probs = own.beside(values, known)[:, 1].exp()
    torch.testing.assert_close(torch.stack([probs[:, :2].sum(1), probs[:, 2:].sum(1)], 1), shares)
    torch.testing.assert_close(probs[:, 0], probs[:, 1])
    again = BoostedTrees(LAYOUT, **options())
    again.load_state_dict(own.state_dict())
    values, known = torch.randn(5, 2), torch.tensor([[True, False]] * 5)
    assert torch.equal(own.beside(values, known), again.beside(values, known))


def test_loading_other_trees_forgets_those_before() -> None:
    own, other = network(), network()
    values, known = torch.zeros(1, 2), torch.tensor([[True, False]])
    before = own.beside(values, known)
    state = {**own.state_dict(), "leaf_values": own.state_dict()["leaf_values"] + 1}
    for one in (own, other):
        one.load_state_dict(state)
    assert torch.equal(own.beside(values, known), other.beside(values, known))
    assert not torch.equal(own.beside(values, known), before)


def test_trees_are_checked_when_they_are_loaded() -> None:
    own, state = network(), network().state_dict()
    own.load_state_dict(state)
    with pytest.raises(UserError, match="split_features"):  # two variables and the count of the known ones
        own.load_state_dict({**state, "split_features": state["split_features"] + 1})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("splits", SPLITS[:1], "for each of 2 variables"),
        ("trees", ((3,),), "for each of 2 variables"),
        ("atoms", (0,), "for each of 2 variables"),
        ("atoms", (0, 4), "4 atoms of 4 classes"),
        ("atoms", (0, -1), "atoms must be a whole number"),
        ("trees", ((3,), (1, 0)), "2 counts of trees for 3 questions"),
        ("trees", ((2,), (1, 0, 1)), "3 scores a round"),
        ("trees", ((3,), (1, 0, -1)), "trees must be a whole number"),
        ("leaves", 4, "4 leaves are too few"),
        ("leaves", 10.5, "leaves must be a whole number"),
        ("sets", 6, "leaves are too few"),
        ("words", -1, "words must be a whole number"),
        ("doubt", 1.5, "doubt must be a number in"),
        ("splits", (SPLITS[0], ((0, 2, 4), (0, 1, 2), (2, 2, 3))), "does not follow"),
        ("splits", (SPLITS[0], ((0, 2, 4), (0, 1, 2), (0, 1, 2))), "does not follow"),
        ("splits", (SPLITS[0], ((0, 2, 4), (0, 1, 2), (2, 4, 4))), "does not follow"),
        ("splits", (((0, 0, 3),), ((0, 1, 4), (1, 2, 4), (0, 0, 1))), "does not follow"),
        ("splits", (((0, 0, 10**12),), SPLITS[1]), "does not follow"),
        ("splits", (((0, 1, 3),), SPLITS[1]), "do not tell all 3 classes apart"),
        ("splits", (((0, 0, 3.0),), SPLITS[1]), "splits must be a whole number"),
    ],
)
def test_crafted_options_are_refused(name: str, value: Any, said: str) -> None:
    BoostedTrees(LAYOUT, **options())
    with pytest.raises(UserError, match=said):
        BoostedTrees(LAYOUT, **{**options(), name: value})


def test_many_threads_may_ask_first() -> None:
    values, known = torch.randn(20, 2), torch.tensor([[True, False]] * 10 + [[False, True]] * 10)
    right = network().beside(values, known)
    for _ in range(5):
        own, answers = network(), []
        gate = threading.Barrier(8)

        def ask(own: BoostedTrees = own, gate: threading.Barrier = gate, answers: list[Tensor] = answers) -> None:
            gate.wait()
            answers.append(own.beside(values, known))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 8
        assert all(torch.equal(answer, right) for answer in answers)


def old_network() -> tuple[dict[str, Any], dict[str, Tensor]]:
    with safe_open(OLD, framework="pt") as file:
        described = json.loads(file.metadata()["header"])["description"]["network"]
        return described, {name: file.get_tensor(f"network.{name}") for name in ("text", "marginal")}


def test_the_text_of_an_old_file_answers_as_lightgbm_reads_it() -> None:
    import lightgbm

    described, tensors = old_network()
    data = tensors["text"].numpy().tobytes()
    model, _ = load_model(OLD)
    network = model.network
    assert isinstance(network, BoostedTrees)
    cells = np.random.default_rng(0).normal(size=(50, network.layout.variables + 1)) * 3
    cells[np.random.default_rng(1).random(cells.shape) < 0.3] = np.nan
    start = asked = 0
    for variable, lengths in enumerate(described["lengths"]):
        for split, part, length in zip(network.splits[variable], network.grown(variable), lengths, strict=True):
            trees = len(part.leaf_counts)
            assert (trees == 0) == (length == 0)
            if trees:
                then = lightgbm.Booster(model_str=zlib.decompress(data[start : start + length]).decode())
                scores = scores_of(split)
                now = forest(part, np.arange(trees) % scores, scores).scores(cells)
                right = then.predict(cells, raw_score=True).reshape(now.shape)
                np.testing.assert_allclose(now, right, rtol=1e-12, atol=1e-12)
                start, asked = start + length, asked + 1
    assert asked > 20


def packed(text: bytes) -> Callable[[dict[str, Any], dict[str, Tensor]], None]:
    def change(described: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        data = zlib.compress(text)
        described["lengths"] = [[len(data)]]
        tensors["text"] = torch.frombuffer(bytearray(data), dtype=torch.uint8)

    return change


def shorter(described: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    described["lengths"][0][0] -= 1


def one_byte_to_the_next(described: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    own = next(own for own in described["lengths"] if sum(length > 0 for length in own) > 1)
    first, second = [place for place, length in enumerate(own) if length][:2]
    own[first], own[second] = own[first] + 1, own[second] - 1


def below_nothing(described: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    described["lengths"][0][0] = -1


def overwritten(described: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    tensors["text"] = torch.zeros_like(tensors["text"])


def followed(described: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    described["lengths"][-1][-1] += 3
    tensors["text"] = torch.cat([tensors["text"], torch.zeros(3, dtype=torch.uint8)])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (shorter, "do not add up"),
        (below_nothing, "lengths must be a whole number"),
        (one_byte_to_the_next, "end where it should"),
        (followed, "end where it should"),
        (overwritten, "damaged"),
        (packed(b"not trees"), "does not end"),
        (packed("Tree=\u00e9".encode()), "ascii"),
        (packed(b"\n" * (FREE_TEXT + 1_000_000)), "end where it should"),  # so small that it may be a bomb
    ],
)
def test_crafted_old_trees_are_refused(change: Callable[[dict[str, Any], dict[str, Tensor]], None], said: str) -> None:
    described, tensors = old_network()
    BoostedTrees.from_version_1(described, tensors)
    change(described, tensors)
    with pytest.raises(UserError, match=said):
        BoostedTrees.from_version_1(described, tensors)


def test_files_with_crafted_trees_are_refused_or_answer(tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "crafted_trees.py"), str(OLD), str(tmp_path), "60", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    refused, answered = map(int, done.stdout.split())
    assert refused > 15
    assert answered > 5
