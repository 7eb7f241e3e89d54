"""Columns that are always known: nothing is learned of them, every question knows them, and answers stay exact."""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import anyorder as ao
from anyorder.errors import UserError
from anyorder.heads.context import Context
from anyorder.networks.blend import BlendNetwork
from anyorder.networks.boosted_trees import BoostedTrees
from anyorder.networks.linear import LinearNetwork
from anyorder.networks.regression_trees import RegressionTrees
from anyorder.networks.residual_mlp import ResidualMLP
from anyorder.query import Query

QUICK: dict[str, Any] = {
    "folds": 2,
    "training": {"steps": 30, "minutes": None, "batch": 64, "validation_queries": 100},
    "trees": {"members": 1, "shown": 500, "rounds": 5, "bins": 8},
    "network": {"name": "residual_mlp", "width": 16, "blocks": 1},
}
CONTEXT = ["size", "town", "age"]


def table(rows: int = 240, seed: int = 0) -> pd.DataFrame:
    """Three columns of context (a number, levels, a number with holes), and a number, levels and a whole number."""
    rng = np.random.default_rng(seed)
    size, town = rng.normal(size=rows), rng.choice(["east", "north", "west"], rows)
    age = np.where(rng.random(rows) < 0.2, np.nan, rng.normal(30, 5, rows))
    price = 2 * size + (town == "west") + 0.3 * rng.normal(size=rows)
    sold = np.where(rng.random(rows) < 1 / (1 + np.exp(-3 * price)), "yes", "no")
    rooms = np.clip(np.rint(4 + price + rng.normal(size=rows)), 0, 40).astype(int)
    rooms += 11 * (rng.random(rows) < 0.02)
    return pd.DataFrame({"size": size, "price": price, "town": town, "sold": sold, "age": age, "rooms": rooms})


def fitted(frame: pd.DataFrame, engine: Any = "auto", **options: Any) -> ao.TableModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ao.fit(frame, context=CONTEXT, engine=engine, seed=0, **{"config": QUICK, **options})


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return table()


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> ao.TableModel:
    return fitted(frame)


NETWORKS = {
    "mlp": {"name": "residual_mlp", "width": 16, "blocks": 1},
    "plain": {"name": "residual_mlp", "width": 16, "blocks": 1, "expert": False},
    "chain": {"name": "causal_transformer", "width": 16, "blocks": 1, "heads": 2},
    "tokens": {"name": "bidirectional_transformer", "width": 16, "blocks": 1, "heads": 2},
    "sfarm": {"name": "sfarm_mlp"},
}


@pytest.fixture(scope="module")
def all_models(frame: pd.DataFrame, model: ao.TableModel) -> dict[str, ao.TableModel]:
    found = {"auto": model, "trees": fitted(frame, "trees")}
    for name, network in NETWORKS.items():
        found[name] = fitted(frame, "neural", config={**QUICK, "folds": 1, "network": network})
    for name in ("parallel", "edges"):
        config = {**QUICK, "folds": 1, "network": NETWORKS["mlp"], "masking": {"name": "cardinality"}}
        found[name] = fitted(frame, "neural", config={**config, "objective": {"name": name, "reweight": True}})
    return found


MODELS = ("auto", "trees", *NETWORKS, "parallel", "edges")


@pytest.mark.parametrize("name", MODELS)
def test_answers_integrate_to_one_given_any_context(all_models: dict[str, ao.TableModel], name: str) -> None:
    model = all_models[name]
    for size, town, age in ((0.0, "east", 30.0), (2.5, "west", None), (-2.5, "north", 40.0)):
        known = model.given(size=size, town=town, age=age)
        grid = np.linspace(-25, 25, 100_001)
        assert np.trapezoid(known["price"].pdf(grid), grid) == pytest.approx(1, abs=5e-3)
        assert sum(known["sold"].probs().values()) == pytest.approx(1, abs=1e-5)
    cells = list(itertools.product(["yes", "no"], range(150)))
    rows = pd.DataFrame(cells, columns=["sold", "rooms"]).assign(size=0.3, town="east", age=30.0, price=1.0)
    assert np.exp(model.log_prob(rows, given=["price"])).sum() == pytest.approx(1, abs=5e-3)


@pytest.mark.parametrize("name", MODELS)
def test_no_unknown_value_reaches_an_answer(all_models: dict[str, ao.TableModel], name: str) -> None:
    core = all_models[name].core
    values, observed = core.encoding.encode(table(40, seed=5))
    answered = list(core.schema.answered)
    rng = np.random.default_rng(0)
    known = torch.as_tensor(observed)
    known[:, answered] = torch.as_tensor(rng.random((len(values), len(answered))) < 0.5)
    given = torch.as_tensor(values).float()
    other = torch.where(known, given, torch.as_tensor(rng.integers(0, 2, values.shape)).float())
    for variable in answered:
        rows = (~known[:, variable]).nonzero()[:, 0]
        laws = [
            core.heads.distribution(core.features_of(part[rows], known[rows], variable), variable)
            for part in (given, other)
        ]
        at = given[rows, variable]
        assert torch.equal(laws[0].log_prob(at), laws[1].log_prob(at))


@pytest.mark.parametrize("name", MODELS)
def test_answers_depend_on_the_context_but_its_law_is_free(all_models: dict[str, ao.TableModel], name: str) -> None:
    model = all_models[name]
    low, high = (model.given(size=size, town="east", age=30)["price"].mean() for size in (-1.5, 1.5))
    assert low < high
    # Rows that only differ in how often a context occurs have the same scores: nothing of it was learned or is counted.
    rows = table(30, seed=7)
    twice = pd.concat([rows, rows.iloc[:10]])
    scores = model.log_prob(rows)
    assert np.allclose(model.log_prob(twice)[:30], scores)
    assert np.allclose(model.log_prob(rows, given=CONTEXT), scores)


@pytest.mark.parametrize("name", MODELS)
def test_a_file_gives_the_same_answers(all_models: dict[str, ao.TableModel], name: str, tmp_path: Path) -> None:
    model, rows = all_models[name], table(20, seed=3)
    model.save(tmp_path / "m.anyorder")
    loaded = ao.load(tmp_path / "m.anyorder")
    assert loaded.schema == model.schema and loaded.log_prob(rows).equals(model.log_prob(rows))
    assert [v.name for v in loaded.schema.variables if v.context] == CONTEXT
    assert [v.name for v in loaded.schema.variables if v.optional] == ["age"]


def test_log_prob_is_the_chain_of_conditionals(model: ao.TableModel) -> None:
    row = table(1, seed=9).iloc[0]
    known = model.given({name: row[name] for name in CONTEXT})
    chains = []
    for order in (["price", "sold", "rooms"], ["rooms", "sold", "price"]):
        question, nats = known, 0.0
        for name in order:
            nats += float(question[name].log_prob(row[name]))
            question = question.given({name: row[name]})
        chains.append(nats)
    expected = np.logaddexp(*chains) - np.log(2)
    assert float(model.log_prob(pd.DataFrame([row])).iloc[0]) == pytest.approx(expected, abs=1e-4)
    wanted = {name: row[name] for name in ("price", "sold", "rooms")}
    assert float(known.log_prob(wanted)) == pytest.approx(expected, abs=1e-4)


def test_no_capacity_is_spent_on_context(all_models: dict[str, ao.TableModel]) -> None:
    core = all_models["auto"].core
    context, sizes = core.schema.context, core.network.layout.sizes
    assert all(sizes[index] == 0 for index in context) and all(isinstance(core.heads.of(i), Context) for i in context)
    assert isinstance(core.network, BlendNetwork)
    kinds = {type(part) for part in core.network.inside}
    assert kinds <= {ResidualMLP, LinearNetwork, BoostedTrees, RegressionTrees} and len(kinds) > 1
    for part in core.network.inside:
        if isinstance(part, ResidualMLP):
            assert part.leave.out_features == sum(part.layout.sizes)
            assert int(part.guessed.sum()) == sum(part.layout.levels[i] == 0 for i in core.schema.answered)
        if isinstance(part, BoostedTrees | RegressionTrees):
            assert all(not any(part.trees[index]) for index in context)
        if isinstance(part, LinearNetwork):
            assert not {*part.target.tolist()} & {*context}
            assert {*part.owner.tolist()} == set(range(core.variables))  # but all of them are inputs
    assert core.network.slopes.shape[2] == 2 + len(core.schema.answered)


def test_the_expert_is_the_gaussian_of_all_columns(all_models: dict[str, ao.TableModel]) -> None:
    """Where the context is known, it is taken out by one factor for all rows; the moments are the same."""
    part = all_models["mlp"].core.network
    assert isinstance(part, ResidualMLP) and part.expert
    core = all_models["mlp"].core
    values, observed = core.encoding.encode(table(50, seed=4).assign(age=31.0))
    known = torch.as_tensor(observed)
    known[:, list(core.schema.answered)] = torch.rand(50, 3, generator=torch.Generator().manual_seed(0)) < 0.5
    values = part.near(torch.as_tensor(values), known)
    from anyorder.networks.gaussian import conditional_moments

    location, deviation = part._moments(values, known)
    real, guessed = part.real, part.guessed[part.real]
    whole = conditional_moments(part.mean, part.covariance, values[:, real], known[:, real])
    unknown = ~known[:, part.guessed]
    assert torch.allclose(location[unknown], whole[0][:, guessed][unknown], atol=1e-8)
    assert torch.allclose(deviation[unknown], whole[1][:, guessed][unknown], atol=1e-6)
    chain = core.chain(Query(known, ~known & torch.as_tensor([not v.context for v in core.schema.variables])))
    along = part.along(values.float(), chain)
    for step in range(chain.steps):
        rows = (chain.order[:, step] >= 0).nonzero()[:, 0]
        target = chain.order[rows, step]
        alone = part.at(values.float()[rows], chain.known_before(step)[rows], target)
        assert torch.allclose(along[rows, step], alone, atol=1e-4)


def test_files_without_context_do_not_speak_of_it(frame: pd.DataFrame) -> None:
    plain = ao.fit(frame[["size", "price"]], engine="neural", config=QUICK, seed=0)
    said = json.dumps(plain.core.description())
    assert "context" not in said and "optional" not in said and "context" not in json.dumps(plain.card)


def test_the_card_and_info_name_the_context(model: ao.TableModel) -> None:
    assert model.card["arguments"]["context"] == CONTEXT
    assert "context: always known" in model._repr_html_()
    assert repr(model).startswith("TableModel(6 columns, 3 of them context: size, price, ")


@pytest.mark.parametrize(
    "ask",
    [
        lambda m, k: k["size"],
        lambda m, k: m.asking("size"),
        lambda m, k: k.asking("size", "price"),
        lambda m, k: k.answers("size"),
        lambda m, k: k.log_prob(size=1.0),
        lambda m, k: k.prob("size > 1"),
        lambda m, k: k.prob("town=east"),
        lambda m, k: k.entropy("size"),
        lambda m, k: k.entropy("size", "price"),
        lambda m, k: k.most_probable("town"),
        lambda m, k: k.order_spread(size=1.0),
        lambda m, k: m.mutual_information("size", "price"),
        lambda m, k: m.next_question({"size": 1, "town": "east"}, about="age"),
        lambda m, k: m.next_question({"size": 1, "town": "east"}, about="price", candidates=["age"]),
        lambda m, k: m.next_question({"size": 1, "town": "east"}, about="price", groups={"both": ["age", "rooms"]}),
        lambda m, k: m.predict(table(5), "town"),
        lambda m, k: m.given(table(5))["town"],
        lambda m, k: m.ask("E[size | price=1, town=east]"),
        lambda m, k: m.conformal(table(30)).adjusted_level("size", 0.9),
    ],
)
def test_asking_for_context_says_how_to_fit_otherwise(
    model: ao.TableModel, ask: Callable[[ao.TableModel, Any], Any]
) -> None:
    known = model.given(size=0.0, town="east")
    with pytest.raises(UserError, match=r"is context: .* fit again with .* left out of context=|is given"):
        ask(model, known)


def test_a_question_must_know_the_context(model: ao.TableModel) -> None:
    for ask in (
        lambda: model["price"],
        lambda: model.sample(3),
        lambda: model.given(price=1.0).sample(2),
        lambda: model.given(size=1.0)["price"],
        lambda: model.given(size=1.0).log_prob(price=1.0),
        lambda: model.given().prob("price > 1"),
        lambda: model.given().most_probable(),
        lambda: model.next_question(None, about="price"),
        lambda: model.mutual_information("price", "rooms"),
    ):
        with pytest.raises(UserError, match=r"every question must know; not given: .*'town'.*model\.given\(\{"):
            ask()
    # Evidence may come in parts, and a column with holes in training may be left out.
    assert model.given(size=1.0).given(town="east")["price"].mean() > -5


def test_ranges_and_sets_of_context_have_no_meaning(model: ao.TableModel) -> None:
    for said in ({"size": ao.Between(0, 1)}, {"town": ao.OneOf("east", "west")}, {"town": "!= east"}, {"size": "> 1"}):
        with pytest.raises(UserError, match=r"cannot be given as a range or a set .* give one value, or fit again"):
            model.given({"size": 0.0, "town": "east", **said})
    one = model.given(size=0.0, town=ao.OneOf("east"))["price"].mean()
    assert one == model.given(size=0.0, town="east")["price"].mean()
    with pytest.raises(UserError, match="leave it out"):
        model.given(size=0.0, town="east", age=ao.MISSING)
    # Ranges of the others are answered as ever, given the context.
    high = model.given(size=0.0, town="east", price=ao.Between(1.0, None)).using(draws=64)
    assert (
        high["rooms"].mean()
        > model.given(size=0.0, town="east", price=ao.Between(None, -1.0)).using(draws=64)["rooms"].mean()
    )


def test_rows_must_know_the_context(model: ao.TableModel) -> None:
    rows = table(6, seed=1)
    rows.loc[[2, 4], "size"] = np.nan
    for ask in (model.log_prob, model.fill, model.anomalies, model.calibration, model.coherence, model.given):
        with pytest.raises(UserError, match=r"'size' is context, .* unknown in rows 2, 4"):
            ask(rows)
    with pytest.raises(UserError, match="has no column 'town'"):
        model.log_prob(rows.drop(columns="town"))
    unseen = r"'town' is context, .* unknown, or none of the values seen in the fit, in rows 0, 1"
    with pytest.raises(UserError, match=unseen), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fill(table(6).assign(town="south"), unseen="missing")


def test_fill_leaves_the_holes_of_context(model: ao.TableModel) -> None:
    rows = table(30, seed=2)
    rows.loc[:9, ["price", "sold"]] = None
    rows.loc[5:14, "rooms"] = None
    for filled in (model.fill(rows), *model.fill(rows, draws=2, seed=0)):
        assert filled[["price", "sold", "rooms"]].notna().all(axis=None)
        assert filled["age"].equals(rows["age"]) and filled["size"].equals(rows["size"])
    assert "age" not in model.fill(rows.drop(columns="age")).columns
    # What is filled is the mean given the known cells of the row, its unknown context left out.
    row = rows.iloc[:10][rows["age"].iloc[:10].isna()].iloc[0]
    known = {name: row[name] for name in ("size", "town", "rooms") if not pd.isna(row[name])}
    assert model.fill(rows)["price"][row.name] == pytest.approx(float(model.given(known)["price"].mean()), abs=2e-2)


def test_tasks_judge_the_others_alone(model: ao.TableModel, frame: pd.DataFrame) -> None:
    rows = table(40, seed=6)
    others = {"price", "sold", "rooms"}
    assert {one.column for one in model.anomalies(rows, top=30)} <= others
    assert set(model.surprise(rows).columns) == others
    report = model.calibration(rows, seed=0)
    assert {report.names[index] for index in report.cells.variable} <= others
    known = model.schema.context[:2]
    assert report.cells.known.min() >= len(known)
    assert np.isfinite(model.coherence(rows, seed=0).gap)
    adjusted = model.conformal(rows, given=["price"])
    assert set(adjusted.given or ()) == {"price", *CONTEXT}
    assert set(model.conformal(rows).adjusted_levels()["variable"]) == others
    holes = rows.assign(price=None)
    assert set(model.conformal(rows, like=holes).intervals(holes, 0.8)["column"]) == {"price"}
    found = model.next_question({"size": 0.0, "town": "east"}, about="price", draws=16)
    assert {one.name for one in found.candidates} == {"sold", "rooms"}
    drawn = model.given(size=0.0, town="east").sample(4, seed=0)
    assert list(drawn.columns) == ["size", "price", "town", "sold", "rooms"]
    assert np.isfinite(float(model.given(size=0.0, town="east").entropy("price", "rooms")))
    assert set(model.given(size=0.0, town="east").most_probable("sold", "price").row) == {"sold", "price"}
    summary = model.summary(frame)
    assert {one.column for one in summary.predicted} == others
    assert not any("sample" in step.command or " next " in step.command for step in summary.steps)
    assert len(str(summary)) > 100


def test_an_order_is_searched_among_the_others(model: ao.TableModel) -> None:
    from anyorder.tasks.order_search import learn_order

    assert np.isfinite(learn_order(model.core, table(20, seed=13), seed=0, rounds=2).gain)


def test_odd_rows_are_odd_given_their_context(model: ao.TableModel) -> None:
    from anyorder.tasks.anomalies import row_scores

    rows = table(6, seed=12)
    rows.loc[3, "price"] += 8.0
    scores = row_scores(model.core, rows, samples=30)
    assert scores["probability"].idxmin() == 3
    assert np.isfinite(scores).all(axis=None)


def test_compression_is_lossless(model: ao.TableModel) -> None:
    rows = table(60, seed=8)
    back = model.decompress(model.compress(rows))
    pd.testing.assert_frame_equal(back, rows)
    # Cells that a model would refuse are kept as well.
    odd = rows.assign(town="south", size=np.nan)
    pd.testing.assert_frame_equal(model.decompress(model.compress(odd)), odd)


def test_an_update_knows_the_context(model: ao.TableModel) -> None:
    rows = table(60, seed=11).assign(price=lambda one: one["price"] + 3)
    newer = model.update(rows, minutes=None, config={**QUICK, "training": {"steps": 5, "minutes": None}}, seed=0)
    assert newer.schema.context == model.schema.context and newer.card["updates"]
    assert newer.log_prob(rows).mean() >= model.log_prob(rows).mean() - 1e-6
    with pytest.raises(UserError, match="'size' is context"):
        model.update(rows.assign(size=np.nan), minutes=None)


def test_joint_missingness_has_no_word_for_context(frame: pd.DataFrame) -> None:
    holes = frame.assign(rooms=frame["rooms"].where(frame["price"] < 1))
    joint = fitted(holes, missingness="joint")
    assert "missing(rooms)" in joint.schema and "missing(age)" not in joint.schema
    known = joint.given(size=0.0, town="east")
    assert 0 < known.prob({"missing(rooms)": True}) < 1
    assert np.isfinite(joint.log_prob(holes.head(20))).all()
    assert joint.fill(holes.head(20))["rooms"].notna().all()


def test_dependencies_speak_from_context_and_never_of_it() -> None:
    rng = np.random.default_rng(0)
    city = rng.choice(list("abcdefgh"), 600)
    country = np.array([{"a": "x", "b": "x", "c": "y", "d": "y"}.get(one, "z") for one in city])
    rows = pd.DataFrame({"city": city, "country": country, "size": rng.normal(size=600)})
    for context in (["city", "size"], ["country", "size"]):
        model = ao.fit(rows, context=context, config=QUICK, seed=0)
        assert model.card["dependencies"][0]["fixed_by"] == "city"
        if context[0] == "city":
            assert model.given(city="a", size=0.0)["country"].probs()["x"] > 0.99
        else:
            probs = model.given(country="y", size=0.0)["city"].probs()
            assert probs["c"] + probs["d"] > 0.98


def test_rules_may_speak_of_context_that_is_known(frame: pd.DataFrame) -> None:
    model = fitted(frame)
    known = model.given(size=0.5, town="east", rules=["price > size"])
    assert (known.sample(50, seed=0)["price"] > 0.5).all()
    rows = table(8, seed=3).assign(price=np.nan)
    assert (model.fill(rows, draws=1, rules=["price > size"])[0]["price"] > rows["size"]).all()
    with pytest.raises(UserError, match="'age', which is context and unknown here"):
        model.given(size=0.5, town="east", rules=["price < age"]).sample(2)
    assert model.given(size=0.5, town="east").prob("price > size") == pytest.approx(
        float(model.given(size=0.5, town="east").prob(price=ao.Between(0.5, None, low_open=True))), abs=1e-6
    )


@pytest.mark.parametrize(
    ("context", "said"),
    [
        (["sise"], "context: no column 'sise'.*did you mean 'size'"),
        (["size", "size"], "context names 'size' more than once"),
        ("size", "context must be a list of columns"),
        (3, "context must be a list of columns"),
        (["size", "price", "town", "sold", "age", "rooms"], "every column is context"),
        (["name"], r"column 'name' is left out of the model \(.*remove it from context=, or say what it is"),
        (["none"], r"column 'none' is left out of the model \(every cell is missing\).*remove it from context=$"),
        (["gone"], "in both context= and drop="),
    ],
)
def test_context_that_cannot_be(frame: pd.DataFrame, context: Any, said: str) -> None:
    rows = frame.assign(gone=1.5, none=np.nan)
    if context == ["name"]:
        rows = rows.assign(name=[f"house number {number} of all" for number in range(len(rows))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(UserError, match=said):
            ao.fit(rows, context=context, drop=["gone"], config=QUICK)


def test_a_target_without_a_value_is_named_where_only_context_is_left(frame: pd.DataFrame) -> None:
    rows = frame[["size"]].assign(price=np.nan)
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(UserError, match=r"'price' \(every cell is missing"),
    ):
        ao.fit(rows, context=["size"], config=QUICK)


def test_texts_and_pictures_have_no_context() -> None:
    with pytest.raises(TypeError, match="context"):
        ao.fit_text("some words " * 50, context=["a"])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="context"):
        ao.fit_images(np.zeros((8, 4, 4), np.uint8), context=["a"])  # type: ignore[call-arg]


def test_one_target_and_any_order_of_columns() -> None:
    """The smallest cases: a single target, before or behind its context."""
    rows = table(120)[["size", "price"]]
    for columns in itertools.permutations(["size", "price"]):
        model = ao.fit(rows[list(columns)], context=["size"], config=QUICK, seed=0)
        assert (
            model.log_prob(rows[list(columns)]).mean()
            > ao.fit(rows[["price"]], config=QUICK).log_prob(rows[["price"]]).mean()
        )
        assert model.anomalies(rows[list(columns)], top=1)[0].column == "price"


def test_a_damaged_schema_is_refused(model: ao.TableModel) -> None:
    from anyorder.model import AnyOrderModel

    said = model.core.description()
    for change in (False, True):
        wrong = json.loads(json.dumps(said))
        variables = wrong["encoding"]["schema"]["variables"]
        variables[1 if change else 0]["context"] = change
        variables[0].pop("optional", None)
        with pytest.raises(UserError, match="has a head unless it is context"):
            AnyOrderModel.from_description(wrong)
