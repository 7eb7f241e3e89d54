"""Joint missingness: indicators learned as Bayes says, own indicators without any effect, the law of what is seen."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

import anyorder as ao
from anyorder.cli import app
from anyorder.errors import UserError
from anyorder.heads import Bernoulli, GaussianMixture
from anyorder.masking import Univariate
from anyorder.model import AnyOrderModel
from anyorder.networks.residual_mlp import ResidualMLP
from anyorder.protocols import Canonical
from anyorder.query import Query
from anyorder.tasks.anomalies import row_scores
from anyorder.training.induced import Induced
from anyorder.training.unbiased_edges import unbiased_edges
from anyorder.variables.codecs import LevelCodec, LineCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.missingness import with_indicators
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp

QUICK = {
    "encoding": "standard",
    "folds": 1,  # all steps for one network
    "training": {"steps": 1000, "batch": 256, "learning_rate": 4e-3, "validation_queries": 500},
    "network": {"name": "residual_mlp", "width": 32, "blocks": 1},
}
RATE = {"a": 0.1, "b": 0.9}  # how often y is missing beside each z, which itself is missing half of the time


def informative(rows: int = 4000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    z = rng.choice(["a", "b"], rows)
    y = np.where(rng.random(rows) < np.where(z == "b", 0.7, 0.3), "yes", "no").astype(object)
    y[rng.random(rows) < pd.Series(z).map(RATE).to_numpy()] = None
    return pd.DataFrame({"z": np.where(rng.random(rows) < 0.5, z, None), "y": y})


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return informative()


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> ao.TableModel:
    return ao.fit(frame, seed=0, missingness="joint", config=QUICK)


def test_indicators_of_columns_with_holes_only(model: ao.TableModel) -> None:
    assert model.schema.names == ("z", "y", "missing(z)", "missing(y)")
    assert model.schema.pairs == {0: 2, 1: 3}
    assert model.schema.partners == (2, 3, 0, 1)
    whole = ao.fit(informative(50).dropna(), missingness="joint", config={**QUICK, "training": {"steps": 1}})
    assert whole.schema.names == ("z", "y") and whole.schema.partners == ()


def test_the_mask_speaks_as_bayes_says(model: ao.TableModel) -> None:
    # p(z = b | y missing) = .9 / (.9 + .1), p(z = b | y there) = .1, p(y missing | z) as generated.
    assert model.given({"missing(y)": True})["z"].probs()["b"] == pytest.approx(0.9, abs=0.04)
    assert model.given({"missing(y)": False})["z"].probs()["b"] == pytest.approx(0.1, abs=0.04)
    for level, rate in RATE.items():
        assert model.given(z=level)["missing(y)"].probs()[True] == pytest.approx(rate, abs=0.04)
    assert model["missing(y)"].probs()[True] == pytest.approx(0.5, abs=0.04)
    # z is missing at random: its indicator says nothing about y.
    for gone in (True, False):
        answer = model.given({"missing(z)": gone})["y"].probs()["yes"]
        assert answer == pytest.approx(0.9 * 0.3 + 0.1 * 0.7, abs=0.05)


def test_filling_listens_to_the_mask_and_ignoring_it_cannot(frame: pd.DataFrame, model: ao.TableModel) -> None:
    rng = np.random.default_rng(1)
    truth = rng.choice(["a", "b"], 2000)
    gone = rng.random(2000) < pd.Series(truth).map(RATE).to_numpy()
    asked = pd.DataFrame({"z": [None] * 2000, "y": np.where(gone, None, "yes")})
    deaf = ao.fit(frame, seed=0, config=QUICK)
    assert (model.fill(asked)["z"] == "b")[gone].all()
    # The log-score of the true z where y is missing: at best -H(.9) = -.325 nats.
    heard, not_heard = (
        np.mean([np.log(answer.probs()[level]) for level in truth[gone]])
        for answer in (model.given({"missing(y)": True})["z"], deaf["z"])
    )
    assert heard > -0.36 and not_heard < heard - 0.05
    with pytest.raises(UserError, match="missing"):
        deaf.given({"missing(y)": True})
    with pytest.raises(UserError, match="joint"):
        deaf.sample(3, holes=True)


def test_joint_draws_of_two_missing_cells_keep_what_the_mask_says(model: ao.TableModel) -> None:
    both = pd.DataFrame({"z": [None] * 3000, "y": [None] * 3000})
    drawn = model.fill(both, draws=1, seed=0)[0]
    assert list(drawn.columns) == ["z", "y"]
    assert (drawn["z"] == "b").mean() == pytest.approx(0.9, abs=0.06)
    # No self-censoring: y given z is what it is where y is there, and not its share among all y that are there, .34. A
    # drawn z that is missing as well is something no row has shown: the answer is less sure than it should be.
    assert (drawn["y"] == "yes")[drawn["z"] == "b"].mean() == pytest.approx(0.7, abs=0.2)


def test_the_law_of_what_is_seen_sums_to_one_and_fits(frame: pd.DataFrame, model: ao.TableModel) -> None:
    seen = pd.DataFrame(itertools.product(["a", "b", None], ["no", "yes", None]), columns=["z", "y"])
    probability = np.exp(model.log_prob(seen).to_numpy())
    assert probability.sum() == pytest.approx(1.0, abs=1e-5)
    counts = [((frame.fillna("?") == row.fillna("?")).all(axis=1)).mean() for _, row in seen.iterrows()]
    assert 0.5 * np.abs(probability - counts).sum() < 0.05
    # Given z, its own indicator is given too: the rest is a law over y's three outcomes.
    given_z = np.exp(model.log_prob(seen, given=["z"]).to_numpy()).reshape(3, 3).sum(axis=1)
    assert given_z == pytest.approx(np.ones(3), abs=1e-5)


def test_holes_are_as_frequent_as_in_the_data(frame: pd.DataFrame, model: ao.TableModel) -> None:
    drawn = model.sample(4000, seed=2, holes=True)
    assert list(drawn.columns) == ["z", "y"]
    patterns = [table.isna().value_counts(normalize=True) for table in (drawn, frame)]
    assert 0.5 * patterns[0].sub(patterns[1], fill_value=0).abs().sum() < 0.05
    seen = drawn.dropna()
    assert (seen["z"] == "b").mean() == pytest.approx((frame.dropna()["z"] == "b").mean(), abs=0.05)
    complete = model.sample(4000, seed=2)
    assert list(complete.columns) == ["z", "y"] and not complete.isna().any(axis=None)
    assert (complete.where(drawn.notna()).fillna("?") == drawn.fillna("?")).all(axis=None)
    assert (complete["z"] == "b").mean() == pytest.approx(0.5, abs=0.05)  # not .1, as among complete rows


def test_indicators_are_shown_only_by_name(model: ao.TableModel) -> None:
    named = model.asking("z", "missing(y)").sample(5)
    assert list(named.columns) == ["z", "missing(y)"] and named["missing(y)"].dtype == bool
    assert list(model.given({"missing(y)": True}).sample(5).columns) == ["z", "y", "missing(y)"]
    assert list(model.given(z="a").sample(5, holes=True).columns) == ["z", "y"]
    assert (model.given(z="a").sample(50, holes=True)["z"] == "a").all()  # evidence is there


def test_saved_and_loaded_alike(model: ao.TableModel, frame: pd.DataFrame, tmp_path: Path) -> None:
    model.save(tmp_path / "m.anyorder")
    again = ao.load(tmp_path / "m.anyorder")
    assert again.schema == model.schema and again.card["arguments"]["missingness"] == "joint"
    assert np.array_equal(again.log_prob(frame[:50]), model.log_prob(frame[:50]))
    assert again.sample(50, seed=3, holes=True).equals(model.sample(50, seed=3, holes=True))


# Untrained networks with large random weights: whatever they can see, they show.


def wild(expert: bool) -> AnyOrderModel:
    """Three real columns and one boolean, the first three with indicators; every weight is large."""
    columns = [Variable(name, Kind.CONTINUOUS) for name in "abc"]
    columns.append(Variable("d", Kind.BOOLEAN, levels=(False, True), dtype="bool"))
    observed = np.array([[True, True, False, True], [False, False, True, True]])
    schema = with_indicators(Schema(tuple(columns)), observed)
    lines = [v.kind is Kind.CONTINUOUS for v in schema.variables]
    codecs = [
        LineCodec(v, Warp.affine(0.0, 1.0)) if line else LevelCodec(v)
        for v, line in zip(schema.variables, lines, strict=True)
    ]
    heads = [GaussianMixture(3) if line else Bernoulli() for line in lines]
    described = {"name": "residual_mlp", "width": 16, "blocks": 1, "expert": expert}
    model = AnyOrderModel.build(Encoding(schema, tuple(codecs)), heads, described, Canonical(), seed=0)
    assert isinstance(model.network, ResidualMLP)
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator)
    if expert:
        root = torch.randn(3, 3, generator=generator).double()
        model.network.set_moments(torch.zeros(3).double(), root @ root.T + torch.eye(3).double())
    return model.eval()


@pytest.mark.parametrize("expert", [False, True])
def test_a_column_never_sees_its_own_indicator_nor_the_other_way_round(expert: bool) -> None:
    model = wild(expert)
    partners = model.schema.partners
    assert partners == (4, 5, 6, -1, 0, 1, 2)
    generator = torch.Generator().manual_seed(1)
    values = torch.randn(200, 7, generator=generator)
    values[:, 3:] = (values[:, 3:] > 0).float()
    evidence = torch.rand(200, 7, generator=generator) < 0.5
    for target, partner in enumerate(partners):
        known = evidence.clone()
        known[:, target] = False
        known[:, partner] = True
        asked = torch.zeros_like(known)
        asked[:, target] = True
        chain = model.chain(Query(known, asked))
        other = values.clone()
        other[:, partner] = 1 - other[:, partner]
        answers = []
        for row in (values, other):
            with torch.no_grad():
                drawn = model.draw(row, chain, torch.Generator().manual_seed(2))[:, target]
                answers.append((model.features_beside(row, known)[:, target], model.step_log_prob(row, chain), drawn))
        for before, after in zip(*answers, strict=True):
            assert torch.equal(before, after) or partner < 0
        # -1 stands for the last variable here, which is no partner of d: it is seen.
        assert torch.equal(answers[0][0], answers[1][0]) == (partner >= 0)
        # Beside and along say the same.
        with torch.no_grad():
            beside = model.log_prob_beside(values, known)[:, target]
        # Large weights make large numbers, of which single precision keeps some six digits.
        assert torch.allclose(beside, answers[0][1][:, 0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("expert", [False, True])
def test_all_other_indicators_matter(expert: bool) -> None:
    model = wild(expert)
    known = torch.ones(1, 7, dtype=torch.bool)
    known[0, 0] = False
    values = torch.zeros(1, 7)
    with torch.no_grad():
        answers = [model.features_beside(values.index_fill(1, torch.tensor([i]), 1.0), known)[0, 0] for i in (5, 6)]
        assert not torch.equal(answers[0], answers[1])


def test_training_weighs_an_edge_alike_whatever_lies_outside_it() -> None:
    partners = (3, 4, -1, 0, 1)  # x, y with indicators, w without
    drawn = Induced(Univariate(), Canonical(), reweight=False).draw(5000, 5, torch.Generator().manual_seed(0))
    totals = []
    for holes in itertools.product([True, False], repeat=2):
        observed = torch.tensor([[*holes, True, True, True]]).expand(5000, -1)
        edges = unbiased_edges(drawn, observed, partners)
        assert not (edges.known & ~observed).any()
        weighed = edges.weight > 0
        assert not (weighed & edges.known).any()
        assert not (weighed[:, [0, 1, 3, 4]] & edges.known[:, [3, 4, 0, 1]]).any()  # nobody sees its partner
        assert not weighed[:, ~observed[0]].any()
        silent = ~edges.known[:, [0, 1, 3, 4]].any(dim=1)  # nothing but w known, or nothing at all
        by_set = [edges.weight[silent & (edges.known[:, 2] == told)].sum(dim=0) for told in (True, False)]
        totals.append(torch.stack(by_set))
    for total in totals[1:]:
        assert torch.allclose(total[:, 2:], totals[0][:, 2:])  # w and both indicators, whichever cells are missing
    assert bool((totals[0][:, 3:] > 0).any())


def test_a_frame_says_its_own_holes(model: ao.TableModel, frame: pd.DataFrame) -> None:
    encoding = model.core.encoding
    values, known = encoding.encode(pd.DataFrame({"z": ["a", None], "y": [None, "no"]}))
    assert known.tolist() == [[True, False, True, True], [False, True, True, True]]
    assert values[:, 2:].tolist() == [[0, 1], [1, 0]]
    assert encoding.encode(pd.DataFrame({"z": ["a"]}))[1].tolist() == [[True, False, True, False]]
    with pytest.warns(UserWarning, match="never seen"):
        values, known = encoding.encode(pd.DataFrame({"z": ["new"], "y": ["no"]}), unseen="missing")
    assert known.tolist() == [[False, True, True, True]] and values[0, 2] == 0  # it is there, though unheard of
    with pytest.raises(UserError, match="follows from the missing cells"):
        model.log_prob(frame.assign(**{"missing(y)": False}))
    filled = model.fill(frame[["z"]][:20])
    assert list(filled.columns) == ["z", "y"] and not filled.isna().any(axis=None)


def test_mistakes_are_named(frame: pd.DataFrame) -> None:
    with pytest.raises(UserError, match="rename"):
        ao.fit(frame.assign(**{"missing(y)": 1}), missingness="joint", config=QUICK)
    with pytest.raises(UserError, match="joint"):
        ao.fit(frame, missingness="join", config=QUICK)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="causal_transformer"):
        ao.fit(frame, missingness="joint", config={"network": {"name": "causal_transformer"}})


def test_command_line(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame[:300].to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "c.toml").write_text(
        'encoding = "standard"\n[training]\nsteps = 60\n[network]\nname = "residual_mlp"\n'
    )
    out = str(tmp_path / "m.anyorder")
    run = CliRunner().invoke(
        app, ["fit", str(tmp_path / "t.csv"), "-o", out, "--config", str(tmp_path / "c.toml"), "--missingness", "joint"]
    )
    assert run.exit_code == 0, run.output
    drawn = str(tmp_path / "s.csv")
    run = CliRunner().invoke(app, ["sample", out, "-n", "200", "--holes", "-o", drawn])
    assert run.exit_code == 0, run.output
    share = pd.read_csv(drawn)["z"].isna().mean()
    assert list(pd.read_csv(drawn).columns) == ["z", "y"] and 0.3 < share < 0.7


def test_trees_do_not_take_rows_with_many_holes_for_smaller_sets() -> None:
    """Where y and z are missing together and x says nothing about it, knowing x must not change how often."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 3)), columns=["x", "y", "z"])
    table.loc[rng.random(300) < 0.5, ["y", "z"]] = np.nan
    quick = {"training": {"steps": 20}, "trees": {"members": 1, "shown": 3000}}
    trees = ao.fit(table, engine="trees", missingness="joint", seed=0, config=quick)
    share = float(table["y"].isna().mean())
    assert float(trees.given().prob("missing(y)=True")) == pytest.approx(share, abs=0.04)
    places = table["x"].quantile(np.linspace(0.05, 0.95, 19))
    given = [float(trees.given(x=float(x)).prob("missing(y)=True")) for x in places]
    assert float(np.mean(given)) == pytest.approx(share, abs=0.07)
    assert float(trees.given(z="missing").prob("missing(y)=True")) > 0.9


def test_reports_are_about_columns_and_not_about_indicators(frame: pd.DataFrame, model: ao.TableModel) -> None:
    """Every judged cell is one of the user's, given cells of the user's: the same answers as by hand."""
    rows = frame.iloc[:200]
    calibration = model.calibration(rows)
    assert set(calibration.table()["which"]) == {"all", "z", "y", 0, 1}
    judged, first = np.unique(calibration.cells.row, return_index=True)
    filled = rows.notna().sum(axis=1).to_numpy()
    assert judged.tolist() == np.flatnonzero(filled).tolist()
    assert len(calibration.cells.row) == (filled[judged] - calibration.cells.known[first]).sum()
    for place in range(40):
        row, name = rows.iloc[calibration.cells.row[place]], ("z", "y")[calibration.cells.variable[place]]
        other = "y" if name == "z" else "z"
        evidence = {other: row[other]} if calibration.cells.known[place] else {}
        assert calibration.cells.log_prob[place] == pytest.approx(
            model.given(evidence)[name].log_prob(row[name]).value, abs=1e-5
        )
    adjusted = model.conformal(rows)
    assert list(adjusted.adjusted_levels([0.9])["variable"]) == ["z", "y"]
    assert set(adjusted.known.tolist()) == {0, 1}
    assert set(adjusted.variable.tolist()) == {0, 1}


def test_contradictions_about_a_hole_are_not_swallowed(model: ao.TableModel) -> None:
    missing = float(model.prob("missing(y)=true"))
    for event in ("y=missing, missing(y)=false", "missing(y)=false, y=missing"):
        assert float(model.prob(event)) == 0.0
        assert float(model.prob(f"{event} | z=a")) == 0.0
        assert float(model.prob(f"{event}, z=a")) == 0.0
    assert float(model.prob("y=missing, missing(y)=true")) == pytest.approx(missing, rel=1e-9)
    assert float(model.given({"missing(z)": False}).prob("missing(y)={true, false}, y=missing")) == pytest.approx(
        float(model.given({"missing(z)": False}).prob("missing(y)=true")), rel=1e-9
    )
    for evidence in ({"y": ao.MISSING, "missing(y)": False}, {"missing(y)": "false", "y": "missing"}):
        with pytest.raises(UserError, match=r"contradicts itself about 'missing\(y\)'"):
            model.given(evidence)
    with pytest.raises(UserError, match="contradicts itself"):
        model.given(y=ao.MISSING).given({"missing(y)": False})
    alone = model.given(y=ao.MISSING)["z"].probs()
    for other in (True, ao.OneOf(True, False)):  # a statement that adds nothing changes nothing
        assert model.given({"missing(y)": other, "y": ao.MISSING})["z"].probs() == alone


def test_rows_are_not_surprising_for_their_holes(model: ao.TableModel) -> None:
    """The law of the known cells given which are missing has four points at most: its tails can be summed."""
    rows = pd.DataFrame(
        [(z, y) for z in ("a", "b", None) for y in ("yes", "no", None)], columns=["z", "y"], dtype=object
    )
    samples = 2000
    scores = row_scores(model.core, rows, samples=samples, seed=3)
    for place, row in rows.iterrows():
        given = model.given({f"missing({name})": pd.isna(row[name]) for name in ("z", "y")})
        known = [name for name in ("z", "y") if not pd.isna(row[name])]
        if not known:
            assert scores.loc[place].tolist() == [0.0, 1.0]
            continue
        values = {"z": ("a", "b"), "y": ("yes", "no")}
        law = {
            each: given.log_prob(dict(zip(known, each, strict=True))).value
            for each in itertools.product(*(values[name] for name in known))
        }
        assert sum(np.exp(list(law.values()))) == pytest.approx(1, abs=1e-5)
        own = law[tuple(row[known])]
        tail = sum(np.exp(nats) for nats in law.values() if nats <= own + 1e-6)
        assert scores.loc[place, "surprise"] == pytest.approx(-own, abs=1e-5)
        assert scores.loc[place, "probability"] == pytest.approx(tail, abs=4 * np.sqrt(0.25 / samples))
