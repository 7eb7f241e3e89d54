"""Make the picture and the numbers of docs/uncertainty.md: python docs/uncertainty_example.py

Everything that page says it measured is what this prints (seed 0, one minute of training).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_diabetes

import anyorder as ao
from anyorder.heads import Gaussian
from anyorder.model import AnyOrderModel
from anyorder.model.sampling import draws
from anyorder.networks import GaussianNetwork
from anyorder.protocols import Canonical
from anyorder.query import Query
from anyorder.tasks.hidden_cells import judge, random_known
from anyorder.tasks.pooling import pool_over
from anyorder.variables.codecs import LineCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp

PICTURE = Path(__file__).parent / "images" / "calibration.png"


def diabetes() -> pd.DataFrame:
    """The diabetes table that comes with scikit-learn, in its raw units."""
    frame = load_diabetes(as_frame=True, scaled=False).frame
    return frame.assign(sex=frame["sex"].map({1.0: "f", 2.0: "m"}))


def coverage_after_pooling(runs: int = 400, rows: int = 100, tables: int = 10) -> dict[str, float]:
    """How often the 95 % interval of a regression coefficient holds when 40 % of a covariate are missing at random.

    A Gaussian imputation, exactly of the right form, fitted once or once for each table to a bootstrap of the rows.
    """
    rng = np.random.default_rng(0)
    covariance = np.array([[1.0, 0.5, 0.6], [0.5, 1.0, 0.5], [0.6, 0.5, 1.0]])
    truth = np.linalg.solve(covariance[:2, :2], covariance[:2, 2])[0]
    root = np.linalg.cholesky(covariance)
    schema = Schema(tuple(Variable(name, Kind.CONTINUOUS) for name in "abc"))
    encoding = Encoding(schema, tuple(LineCodec(variable, Warp.affine(0.0, 1.0)) for variable in schema.variables))
    model = AnyOrderModel.build(encoding, [Gaussian()] * 3, {"name": "gaussian"}, Canonical(), seed=0).double()
    held = dict.fromkeys(("one fill taken for data", "draws of one fitted model", "a bootstrap fit a table"), 0)
    for run in range(runs):
        whole = rng.normal(size=(rows, 3)) @ root.T
        known = rng.random(rows) > 0.4
        evidence = torch.as_tensor(known[:, None] | np.array([False, True, True]))
        values = torch.as_tensor(whole).where(evidence, 0.0)
        for kind in list(held)[1:]:
            filled = []
            for table in range(tables):
                again = rng.integers(rows, size=rows) if kind.startswith("a boot") else np.arange(rows)
                assert isinstance(model.network, GaussianNetwork)
                model.network.set_moments(*map(torch.as_tensor, moments(whole[again], known[again])))
                filled.append(draws(model, values, Query(evidence, ~evidence), seed=run * tables + table))
            low, high = pool_over(filled, slope, degrees_of_freedom=rows - 3).interval(0.95)[0]
            held[kind] += low <= truth <= high
        beta, variance = slope(filled[0])
        held["one fill taken for data"] += abs(beta - truth) <= 1.985 * variance**0.5  # t of 97 degrees of freedom
    return {kind: count / runs for kind, count in held.items()}


def moments(rows: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By maximum likelihood, where only the first column has holes."""
    rest = rows[:, 1:]
    design = np.column_stack([np.ones(known.sum()), rest[known]])
    beta, left = np.linalg.lstsq(design, rows[known, 0], rcond=None)[:2]
    mean, inner = rest.mean(axis=0), np.cov(rest.T)
    cross = inner @ beta[1:]
    noise = left[0] / (known.sum() - 3) + beta[1:] @ cross
    covariance = np.block([[np.atleast_2d(noise), cross[None]], [cross[:, None], inner]])
    return np.array([beta[0] + beta[1:] @ mean, *mean]), covariance


def slope(rows: np.ndarray) -> tuple[float, float]:
    """The coefficient of the first column in the regression of the third on the others, and its variance."""
    design = np.column_stack([np.ones(len(rows)), rows[:, 0], rows[:, 1]])
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ rows[:, 2]
    left = rows[:, 2] - design @ beta
    return beta[1], float(left @ left) / (len(rows) - 3) * inverse[1, 1]


def conformal_coverage(model: ao.TableModel, adjust: pd.DataFrame, test: pd.DataFrame) -> tuple[float, float]:
    """Of the 90 % interval on test rows, before and after the adjustment, mean over variables."""
    adjusted = model.conformal(adjust)
    values, observed = model.core.encoding.encode(test)
    before, after = [], []
    for seed in range(20):
        known = random_known(observed, np.random.default_rng(seed))
        cells = judge(model.core, values, known, observed & ~known)
        levels = np.array([adjusted.adjusted_level(name, 0.9) for name in model.schema.names])
        before.append((cells.depth(seed) <= 0.9).mean())
        after.append((cells.depth(seed) <= levels[cells.variable]).mean())
    return float(np.mean(before)), float(np.mean(after))


if __name__ == "__main__":
    torch.set_num_threads(1)
    table = diabetes().sample(frac=1, random_state=0)
    train, adjust, test = table.iloc[:242], table.iloc[242:342], table.iloc[342:]
    model = ao.fit(train, minutes=1, seed=0)
    report = model.calibration(table.iloc[242:], repeats=3)
    PICTURE.parent.mkdir(exist_ok=True)
    report.plot(PICTURE)
    print(report)
    print(report.table().to_string())
    print("90 % intervals before and after the conformal adjustment:", conformal_coverage(model, adjust, test))
    print(model.coherence(table.iloc[242:]))
    typo = table.iloc[242:].copy()
    typo.iloc[7, typo.columns.get_loc("bmi")] *= 10
    print(*model.anomalies(typo, top=3), sep="\n")
    print("coverage of nominal 95 % after pooling:", coverage_after_pooling())
