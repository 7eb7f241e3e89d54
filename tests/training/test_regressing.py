"""Boosted regressions: what a plain booster says, normalised, and nothing of what is unknown."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from anyorder.data.tables import prepare
from anyorder.errors import UserError
from anyorder.heads import Head
from anyorder.modalities.tables.heads import head_for
from anyorder.model import layout_of
from anyorder.networks import networks
from anyorder.networks.regression_trees import RegressionTrees
from anyorder.support.registry import describe
from anyorder.training.linear import linear_head
from anyorder.training.rows import Rows, encoded_rows
from anyorder.training.trees.options import Clock
from anyorder.training.trees.regressing import fit_regressions
from anyorder.variables.encoding import Encoding

ROWS, FOLDS = 400, 2


def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    x, group = rng.normal(size=ROWS), rng.integers(0, 3, ROWS)
    steps = np.where(x > 0.3, 2.0, -1.0) * (group + 1) + 0.05 * rng.normal(size=ROWS)
    flag = np.where(rng.random(ROWS) < 1 / (1 + np.exp(-4 * x)), "yes", "no")
    return pd.DataFrame({"x": x, "group": np.array(list("abc"))[group], "steps": steps, "flag": flag})


@pytest.fixture(scope="module")
def fitted() -> tuple[RegressionTrees, list[Head], Rows, Rows]:
    schema, frame = prepare(table(), kinds=None, missing=(), drop=(), bounds=None)
    encoding = Encoding.fit(frame, schema, "standard")
    rows = encoded_rows(encoding, frame)
    heads = [linear_head(head_for(codec, 3, {})) for codec in encoding.codecs]
    fold = torch.arange(ROWS) % FOLDS
    training = [rows.take((fold != k).nonzero()[:, 0]) for k in range(FOLDS)]
    held_out = [rows.take((fold == k).nonzero()[:, 0]) for k in range(FOLDS)]
    found = fit_regressions(
        heads,
        layout_of(schema, heads),
        [False, True, False, False],
        training,
        held_out,
        seed=0,
        clock=Clock(len(heads), None, lambda: False),
        advance=lambda: None,
    )
    return found[0], heads, training[0], held_out[0]


def nats(network: RegressionTrees, heads: list[Head], rows: Rows, variable: int) -> float:
    known = rows.observed.clone()
    known[:, variable] = False
    features = network.beside(rows.values, known)[:, variable, : heads[variable].size]
    return float(heads[variable](features).log_prob(rows.values[:, variable]).double().mean())


def test_steps_are_found_and_said_of_rows_that_were_held_out(fitted: tuple) -> None:
    network, heads, _, held_out = fitted
    nothing = RegressionTrees(network.layout, atoms=network.atoms, logistic=network.logistic)
    # Noise of 0.05 around six values: a normal of all of them has some two nats less.
    assert nats(network, heads, held_out, 2) > nats(nothing, heads, held_out, 2) + 1.0
    assert nats(network, heads, held_out, 3) > np.log(0.5) + 0.15  # of the flag, x tells most


def test_the_law_of_a_number_integrates_to_one(fitted: tuple) -> None:
    network, heads, _, held_out = fitted
    known = held_out.observed.clone()
    known[:, 2] = False
    features = network.beside(held_out.values, known)[:5, 2, : heads[2].size]
    grid = torch.linspace(-12, 12, 400_001, dtype=torch.float64)
    for one in features.double():
        density = heads[2](one.expand(len(grid), -1)).log_prob(grid).exp()
        assert float(torch.trapezoid(density, grid)) == pytest.approx(1.0, abs=1e-5)


def test_neither_the_asked_cell_nor_an_unknown_one_is_looked_at(fitted: tuple) -> None:
    network, _, _, held_out = fitted
    known = held_out.observed.clone()
    known[:, [0, 2]] = False
    other = held_out.values.clone()
    other[:, [0, 2]] += 5.0
    target = torch.full((len(other),), 2)
    torch.testing.assert_close(network.at(held_out.values, known, target), network.at(other, known, target))
    torch.testing.assert_close(
        network.beside(held_out.values, known)[:, 2], network.at(held_out.values, known, target), rtol=0, atol=0
    )


def test_it_comes_back_from_its_description_to_the_last_bit(fitted: tuple) -> None:
    network, _, _, held_out = fitted
    again = networks.build(describe(network), layout=network.layout)
    again.load_state_dict(network.state_dict())
    known = torch.zeros_like(held_out.observed)
    assert torch.equal(again.beside(held_out.values, known), network.beside(held_out.values, known))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("start", lambda tensor: tensor + torch.inf),
        ("low", lambda tensor: tensor + 100.0),
        ("split_features", lambda tensor: tensor + 99),
    ],
)
def test_damaged_numbers_are_refused(fitted: tuple, name: str, change: object) -> None:
    network = fitted[0]
    again = networks.build(describe(network), layout=network.layout)
    state = {**network.state_dict(), name: change(network.get_buffer(name))}  # type: ignore[operator]
    with pytest.raises(UserError):
        again.load_state_dict(state)


def test_odd_descriptions_are_refused(fitted: tuple) -> None:
    network = fitted[0]
    described = describe(network)
    for odd in ({"atoms": [0]}, {"trees": [[1, 1]] * 4}, {"logistic": [1] * 4}, {"leaves": 1}):
        with pytest.raises(UserError):
            networks.build({**described, **odd}, layout=network.layout)


def added_up(*, in_units: bool) -> tuple[RegressionTrees, list[Head], Encoding, Rows]:
    """Regressions of a table whose last column is a sum of steps in its own units, and bent by normal scores."""
    rng = np.random.default_rng(5)
    steps = rng.integers(0, 4, (600, 3)) + rng.normal(scale=0.1, size=(600, 3))
    frame = pd.DataFrame(steps, columns=list("abc"))
    frame["sum"] = np.floor(steps + 0.5) @ [30.0, 6.0, 1.0] + 0.02 * rng.normal(size=600)
    schema, frame = prepare(frame, kinds=None, missing=(), drop=(), bounds=None)
    encoding = Encoding.fit(frame, schema, "normal_scores")
    rows = encoded_rows(encoding, frame)
    heads = [linear_head(head_for(codec, 3, {})) for codec in encoding.codecs]
    fold = torch.arange(len(frame)) % FOLDS
    held_out = [rows.take((fold == k).nonzero()[:, 0]) for k in range(FOLDS)]
    found = fit_regressions(
        heads,
        layout_of(schema, heads),
        [False] * 4,
        held_out[::-1],
        held_out,
        seed=0,
        clock=Clock(len(heads), None, lambda: False),
        advance=lambda: None,
        units=[codec.measure for codec in encoding.codecs] if in_units else (),
    )
    return found[0], heads, encoding, held_out[0]


@pytest.fixture(scope="module")
def bent() -> tuple[RegressionTrees, list[Head], Encoding, Rows]:
    return added_up(in_units=True)


def test_what_adds_up_in_the_units_of_the_data_is_learned_there(bent: tuple) -> None:
    network, heads, encoding, held_out = bent
    assert bool(network.bend[3].any())
    known = torch.ones_like(held_out.observed)
    known[:, 3] = False
    said = heads[3](network.beside(held_out.values, known)[:, 3, : heads[3].size]).quantile(torch.tensor([[0.5]]))[0]
    apart = encoding.codecs[3].measure(said.double().numpy()) - encoding.codecs[3].measure(
        held_out.values[:, 3].double().numpy()
    )
    assert float(np.median(np.abs(apart))) < 1.5  # of a range of 111
    plain, plain_heads, _, _ = added_up(in_units=False)
    assert plain.knots == 0 and "knots" not in describe(plain)
    assert nats(network, heads, held_out, 3) > nats(plain, plain_heads, held_out, 3) + 0.1


def test_bent_regressions_come_back_and_damaged_bends_do_not(bent: tuple) -> None:
    network, _, _, held_out = bent
    again = networks.build(describe(network), layout=network.layout)
    again.load_state_dict(network.state_dict())
    known = held_out.observed & (torch.arange(4) != 3)
    assert torch.equal(again.beside(held_out.values, known), network.beside(held_out.values, known))
    for damaged in (network.bend.flip(2), network.bend + torch.nan):
        with pytest.raises(UserError):
            again.load_state_dict({**network.state_dict(), "bend": damaged})
