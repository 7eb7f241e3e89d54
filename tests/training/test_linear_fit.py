"""Fitting the linear expert against scikit-learn, and from tables with holes, atoms and lattices."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from torch import Tensor

from anyorder.data.tables import prepare
from anyorder.modalities.tables.heads import head_for
from anyorder.model import AnyOrderModel, layout_of
from anyorder.protocols import protocols
from anyorder.support.registry import describe
from anyorder.training.linear import SoftmaxRegression, fit_linear, linear_head, residual_law, ridge_path, unbending
from anyorder.training.rows import encoded_rows
from anyorder.variables.encoding import Encoding


def some(rows: int = 300) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(rows, 4, generator=generator, dtype=torch.float64)
    return inputs, inputs @ torch.tensor([1.0, -0.5, 0.0, 0.3], dtype=torch.float64)


@pytest.mark.parametrize("classes", [2, 4])
def test_softmax_regression_is_that_of_scikit_learn(classes: int) -> None:
    inputs, score = some()
    noise = torch.randn(len(score), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    codes = ((score + noise).argsort().argsort() * classes // len(score)).long()
    fit = SoftmaxRegression(inputs, codes, classes)
    fit.solve(2.0, precision=1e-12)
    # Two classes have one set of weights there, ours two that are opposite: the penalty of each is half of it.
    oracle = LogisticRegression(C=1.0 if classes == 2 else 0.5, tol=1e-10, max_iter=10_000)
    expected = torch.as_tensor(oracle.fit(inputs.numpy(), codes.numpy()).predict_log_proba(inputs.numpy()))
    found = fit._log_probs(fit.parameters, fit.inputs)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def test_ridge_is_that_of_scikit_learn() -> None:
    inputs, score = some()
    values = score + 3 + torch.randn(len(score), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weights, intercepts = ridge_path(inputs, values, (0.5, 0.01))
    oracle = Ridge(alpha=0.5 * len(values)).fit(inputs.numpy(), values.numpy())
    torch.testing.assert_close(weights[1], torch.as_tensor(oracle.coef_))
    torch.testing.assert_close(float(intercepts[1]), float(oracle.intercept_))
    assert torch.equal(weights[0], torch.zeros(4, dtype=torch.float64))


def test_residuals_have_the_law_that_made_them() -> None:
    generator = torch.Generator().manual_seed(0)
    wide = torch.rand(4000, generator=generator) < 0.2
    residuals = torch.randn(4000, generator=generator, dtype=torch.float64) * torch.where(wide, 3.0, 0.5)
    log_shares, offsets, log_scales = residual_law(residuals, 1.0)

    def nats(shares: Tensor, middle: Tensor, scales: Tensor) -> float:
        standard = (residuals[:, None] - middle) / scales
        return float((shares.log() - scales.log() - standard.square() / 2).logsumexp(1).mean())

    truth = nats(torch.tensor([0.8, 0.2]).double(), torch.zeros(2).double(), torch.tensor([0.5, 3.0]).double())
    assert float(log_shares.exp().sum()) == pytest.approx(1)
    assert nats(log_shares.exp(), offsets, log_scales.exp()) > truth - 0.005


def frame(rows: int = 240) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    x = generator.normal(size=rows)
    level = np.where(x + generator.normal(size=rows) > 0, "high", "low")
    rain = np.where(generator.random(rows) < 0.4 + 0.2 * (x > 0), 0.0, np.exp(x + generator.normal(size=rows) / 2))
    table = pd.DataFrame(
        {
            "x": x,
            "level": level,
            "rain": rain,
            "count": generator.poisson(np.exp(x / 2 + 1)),
            "colour": generator.choice(["red", "green", "blue"], rows),
        }
    )
    return table.mask(pd.DataFrame(generator.random(table.shape) < 0.1, columns=table.columns))


def fitted(table: pd.DataFrame, parts: int = 2) -> tuple[list[AnyOrderModel], Encoding]:
    schema, cells = prepare(table, kinds={"rain": "spiked"})
    encoding = Encoding.fit(cells, schema, "normal_scores")
    heads = [linear_head(head_for(codec, 3, {})) for codec in encoding.codecs]
    rows = encoded_rows(encoding, cells)
    number = torch.arange(len(rows))
    training = [rows.take(number[number % parts != part]) for part in range(parts)]
    held_out = [rows.take(number[number % parts == part]) for part in range(parts)]
    made = fit_linear(heads, layout_of(schema, heads), training, held_out)
    protocol = protocols.build({"name": "canonical"})
    return [AnyOrderModel(encoding, network, heads, protocol).eval() for network in made], encoding


def test_all_kinds_of_columns_with_holes_are_better_known_than_by_their_marginals() -> None:
    table = frame()
    models, encoding = fitted(table)
    rows = encoded_rows(encoding, prepare(table, kinds={"rain": "spiked"})[1])
    for variable, name in enumerate(encoding.schema.names):
        known = rows.observed.clone()
        known[:, variable] = False
        here = rows.observed[:, variable]
        for model in models:
            told = model.log_prob_beside(rows.values, known)[here, variable]
            plain = model.log_prob_beside(rows.values, torch.zeros_like(known))[here, variable]
            assert bool(told.isfinite().all() and plain.isfinite().all()), name
            assert float((told - plain).mean()) > (-0.02 if name == "colour" else 0.01), name


def test_a_class_that_hangs_on_the_units_of_the_data_is_told_by_them() -> None:
    generator = np.random.default_rng(0)
    size, other = np.exp(generator.normal(size=(2, 600)))
    chance = 1 / (1 + np.exp(-3 * (size + other - 3)))
    level = np.where(generator.random(600) < chance, "yes", "no")
    schema, cells = prepare(pd.DataFrame({"size": size, "other": other, "level": level}))
    encoding = Encoding.fit(cells, schema, "normal_scores")
    heads = [linear_head(head_for(codec, 3, {})) for codec in encoding.codecs]
    rows = encoded_rows(encoding, cells)
    fold = torch.arange(len(rows)) % 4
    training, held_out = ([rows.take((keep(part)).nonzero()[:, 0]) for part in range(4)] for keep in (fold.ne, fold.eq))
    bends = {number: unbending(encoding.codecs[number].measure, rows.values[:, number].numpy()) for number in (0, 1)}
    protocol = protocols.build({"name": "canonical"})
    known = torch.tensor([True, True, False]).expand(len(rows), 3)
    truth = np.where(level == "yes", chance, 1 - chance)

    def lost(bends: dict[int, Tensor]) -> float:
        """Nats a cell that a model of the first fold loses against the law that made the classes."""
        network = fit_linear(heads, layout_of(schema, heads), training, held_out, bends=bends)[0]
        assert network.unbent == tuple(bends), "numbers have a bend of their own for the class alone"
        model = AnyOrderModel(encoding, network, heads, protocol).eval()
        said = model.log_prob_beside(rows.values, known)[:, 2].double()
        return float((np.log(truth) - said.numpy())[fold.numpy() == 0].mean())

    assert lost(bends) < 0.03 < 0.06 < lost({})


def test_units_that_nothing_asks_for_are_left_out() -> None:
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"a": np.exp(generator.normal(size=200)), "b": generator.normal(size=200)})
    schema, cells = prepare(table)
    encoding = Encoding.fit(cells, schema, "normal_scores")
    heads = [linear_head(head_for(codec, 3, {})) for codec in encoding.codecs]
    rows = encoded_rows(encoding, cells)
    bend, straight = (
        unbending(codec.measure, rows.values[:, number].numpy()) for number, codec in enumerate(encoding.codecs)
    )
    assert bend is not None and straight is None
    plain, bent = (
        fit_linear(heads, layout_of(schema, heads), [rows], [rows.take(torch.arange(0))], bends=bends)[0]
        for bends in ({}, {0: bend})
    )
    assert bent.unbent == () and describe(bent) == describe(plain)
    for name, tensor in plain.state_dict().items():
        torch.testing.assert_close(bent.state_dict()[name], tensor, rtol=0, atol=0.02)


def test_without_evidence_levels_have_their_frequencies() -> None:
    table = frame()
    models, encoding = fitted(table, parts=2)
    variable = encoding.schema.index("level")
    nothing = torch.zeros(1, len(encoding.codecs), dtype=torch.bool)
    features = models[0].features_beside(torch.zeros(1, len(encoding.codecs)), nothing)
    found = float(models[0].heads.distribution(features[:, variable], variable).mean())
    part = prepare(table, kinds={"rain": "spiked"})[1].iloc[1::2]["level"].dropna()
    expected = float((part == encoding.schema.variables[variable].levels[1]).mean())
    assert found == pytest.approx(expected, abs=0.01)


def test_once_it_is_late_marginals_answer() -> None:
    schema, cells = prepare(frame()[["x", "level"]])
    encoding = Encoding.fit(cells, schema, "standard")
    heads = [linear_head(head_for(codec, 3, {})) for codec in encoding.codecs]
    rows = encoded_rows(encoding, cells)
    (network,) = fit_linear(heads, layout_of(schema, heads), [rows], [rows], late=lambda: True)
    assert not network.weight.any()
    assert network.log_scales.isfinite().all()


@pytest.mark.parametrize("column", [[0.1, 0.7, -0.3, 1.2, 0.4, 0.0], list("xyzxyz")])
def test_a_column_alone_is_its_marginal(column: list[object]) -> None:
    schema, cells = prepare(pd.DataFrame({"a": column}))
    encoding = Encoding.fit(cells, schema, "normal_scores")
    heads = [linear_head(head_for(codec, 3, {})) for codec in encoding.codecs]
    rows = encoded_rows(encoding, cells)
    (network,) = fit_linear(heads, layout_of(schema, heads), [rows], [rows])
    model = AnyOrderModel(encoding, network, heads, protocols.build({"name": "canonical"})).eval()
    found = model.log_prob_beside(rows.values, torch.zeros_like(rows.observed))
    assert bool(found.isfinite().all()) and network.learned == (False,)
