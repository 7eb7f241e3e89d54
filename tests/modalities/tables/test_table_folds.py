"""Short tables are fitted by folds: every row judges a part that has never seen it, and teaches the others."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.data.tables import prepare
from anyorder.modalities.tables.folds import Folds, divide
from anyorder.modalities.tables.options import TableOptions
from anyorder.modalities.tables.race import Race
from anyorder.networks.blend import BlendNetwork
from anyorder.networks.boosted_trees import BoostedTrees
from anyorder.variables.encoding import Encoding
from anyorder.variables.folds import folds_of

QUICK = {
    "folds": 3,
    "encoding": "standard",
    "training": {"steps": 6, "minutes": None, "batch": 16, "validation_queries": 40, "validate_every": 1},
    "trees": {"shown": 200, "rounds": 3, "bins": 4},
    "network": {"name": "residual_mlp", "width": 8, "blocks": 1},
}


def numbers(rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a = rng.normal(size=rows)
    return pd.DataFrame({"a": a, "b": a + rng.normal(size=rows), "c": rng.choice(["x", "y"], size=rows)})


def divided(frame: pd.DataFrame, **options: object) -> Folds:
    schema, table = prepare(frame)
    return divide(TableOptions.read(options), schema, table, seed=0)


def test_every_row_is_held_out_once_in_the_fold_of_its_content() -> None:
    frame = numbers(200)
    folds = divided(frame)
    schema, table = prepare(frame)
    own = folds_of(Encoding.fit(table, schema), table, 4)
    assert len(folds) == folds.recorded == 4
    for number, (training, held_out) in enumerate(zip(folds.training, folds.held_out, strict=True)):
        assert (own[held_out] == number).all() and (own[training] != number).all()
        assert len(training) + len(held_out) == 200


def test_a_table_that_repeats_itself_is_dealt_out() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).choice(["u", "v"], size=(120, 3)), columns=list("abc"))
    folds = divided(frame)
    assert len(folds) == 4 and folds.recorded == 1
    assert [len(rows) for rows in folds.held_out] == [30] * 4
    assert sorted(np.concatenate(folds.held_out)) == list(range(120))


@pytest.mark.parametrize(
    "rows, options",
    [
        (30, {}),
        (200, {"folds": 1}),
        (200, {"folds_below": 200}),
        (200, {"network": {"name": "causal_transformer"}}),
        (200, {"training": {"minutes": 0.01}}),
    ],
    ids=["few rows", "not wanted", "many rows", "reads an order", "no time"],
)
def test_others_are_split_once(rows: int, options: dict[str, object]) -> None:
    folds = divided(numbers(rows), **options)
    assert len(folds) == folds.recorded == 1
    assert len(folds.held_out[0]) == round(0.1 * rows)
    assert not set(folds.training[0]) & set(folds.held_out[0])


def test_a_model_knows_which_fold_its_parts_have_not_seen(tmp_path: Path) -> None:
    model = ao.fit(numbers(), config=QUICK)
    network = model.core.network
    assert isinstance(network, BlendNetwork) and network.fold_count == 3
    kinds = {type(part) for part in network.parts}
    for kind in kinds:
        assert [fold for fold, part in zip(network.folds, network.parts, strict=True) if type(part) is kind] == [
            0,
            1,
            2,
        ]
    model.save(tmp_path / "model")
    again = ao.load(tmp_path / "model").core.network
    assert (again.folds, again.fold_count) == (network.folds, network.fold_count)
    assert model.card["training"]["folds"] == 3


def test_each_engine_alone_has_folds_too() -> None:
    for engine, kind in (("neural", "residual_mlp"), ("trees", "boosted_trees")):
        network = ao.fit(numbers(), engine=engine, config=QUICK).core.network  # type: ignore[arg-type]
        assert isinstance(network, BlendNetwork) and network.folds == (0, 1, 2)
        assert {part.name for part in network.parts} == {kind}


def test_ctrl_c_before_the_networks_leaves_what_was_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    train = Race.train

    def interrupted(self: Race, watch: object) -> object:
        os.kill(os.getpid(), signal.SIGINT)
        return train(self, watch)  # type: ignore[arg-type]

    monkeypatch.setattr(Race, "train", interrupted)
    model = ao.fit(numbers(), config=QUICK)
    assert model.card["training"]["interrupted"]
    network = model.core.network
    assert isinstance(network, BlendNetwork)
    assert sum(isinstance(part, BoostedTrees) for part in network.parts) in (0, 3)
    assert np.isfinite(model.log_prob(numbers())).all()
