"""Everything that trains and answers, on a device other than the CPU: one tensor left behind, and it fails.

The device is not there (see ``pretended``), so this runs everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import anyorder as ao
from anyorder.heads import Head, heads
from anyorder.masking import Masking, maskings
from anyorder.modalities.images.core import image_masking, image_model
from anyorder.networks import networks
from anyorder.protocols import protocols
from anyorder.training.loop import Trainer
from anyorder.training.objectives import objective_for, objectives
from anyorder.training.options import Options
from anyorder.training.rows import Rows
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp

from pretended import META, Generator, Pretended, pretended_device
from texts import CORPUS

SHAPE, LEVELS = (4, 4), 3
SIZE = {"height": 4, "width": 4}
CARDINALITY = {"name": "cardinality"}
REST = {"name": "conditional", "evidence": {"name": "cardinality", "least": 0, "spare": 1}}
MASKINGS: dict[str, dict[str, Any]] = {
    "bernoulli": {"probability": 0.3},
    "conditional": {"evidence": CARDINALITY},
    "known_context": {"masking": CARDINALITY, "context": [1]},
    "mixture": {"maskings": [CARDINALITY, {"name": "suffix"}], "weights": [1.0, 2.0]},
    "modes": {"modes": [{"name": "top_down", **SIZE}, {"name": "interior_patch", **SIZE}]},
    "observed": {"patterns": [[True] * 16, [False, True] * 8], "weights": [0.5, 0.5]},
    "stretch": {"inner": REST},
    "targets": {"targets": [0, 3]},
    "words": {"separators": [2]},
    **dict.fromkeys(
        (
            *("random_pixels", "left_to_right", "right_to_left", "top_down"),
            *("bottom_up", "interior_patch", "exterior_patch"),
        ),
        SIZE,
    ),
}
NETWORKS: dict[str, dict[str, Any]] = {
    "bidirectional_transformer": {"width": 8, "blocks": 1, "heads": 2, "positions": "rotary", "dropout": 0.1},
    "causal_transformer": {"width": 8, "blocks": 1, "heads": 2, "dropout": 0.1},
    "residual_mlp": {"width": 8, "blocks": 1},
    "sfarm_mlp": {},
    "unet": {"channels": 8, "blocks": 1, "modes": 7, "attention": "every", "dropout": 0.1},
}
OBJECTIVES = {"chain": "causal_transformer", "edges": "residual_mlp", "parallel": "unet", "stages": "unet"}
# Made of trained models, which are brought to the CPU first: asked below, in the blend of a table.
MADE_OF_OTHERS = {"binned", "blend", "compatible", "context"}
WRAPPED = {"name": "gaussian_mixture", "components": 2}


def head(name: str) -> Head:
    lattice = Lattice(-2.0, 0.5, 9, Warp.affine(0.0, 1.0))
    if name == "discretized_logistic_mixture":
        return heads.get(name)(2, lattice)
    given: dict[str, Any] = {
        "bounded": {"base": WRAPPED, "low": -3.0, "high": 3.0},
        "spiked": {"base": WRAPPED, "atoms": [0.0]},
        "categorical": {"levels": 3},
        "ordinal": {"levels": 3},
    }.get(name, {})
    return heads.build({"name": name, **given})


@pytest.mark.parametrize("name", sorted(set(heads.names()) - MADE_OF_OTHERS))
def test_heads(name: str) -> None:
    untrained = head(name)
    with pretended_device():
        made = untrained.to("meta")
        features = torch.randn(6, made.size, generator=Generator().manual_seed(0), device="meta").requires_grad_()
        law = made.train()(features)
        nats = law.log_prob(torch.ones(6, device="meta"))
        nats.sum().backward()
        assert isinstance(nats, Pretended) and bool(features.grad.isfinite().all())
        with torch.no_grad():
            assert made.eval()(features).sample(Generator().manual_seed(1)).device == META


@pytest.mark.parametrize("name", maskings.names())
def test_maskings(name: str) -> None:
    masking: Masking = maskings.build({"name": name, **MASKINGS.get(name, {})})
    with pretended_device():
        values = torch.ones(5, 16, device="meta")
        for _ in range(8):  # a mixture does not draw from all of its parts each time
            if masking.staged:
                stage = masking.stage(5, 16, Generator().manual_seed(0))
                assert stage.known.device == stage.next.device == META
            else:
                query = masking.draw_for(values, Generator().manual_seed(0))
                assert query.asked.device == META
                for protocol in protocols.names():
                    if protocol != "pixelwise":  # pictures alone
                        chain = protocols.build({"name": protocol}).chain(query, Generator().manual_seed(0))
                        assert chain.order.device == META


@pytest.mark.parametrize(
    ("network", "objective"),
    [(name, "auto") for name in networks.names() if networks.get(name).trainable]
    + [(network, name) for name, network in OBJECTIVES.items()],
)
def test_steps_of_every_network_and_objective(network: str, objective: str) -> None:
    levels = 2 if network == "sfarm_mlp" else LEVELS
    kind = "bernoulli" if network == "sfarm_mlp" else "categorical"
    described = {"name": network, **NETWORKS[network]}
    model = image_model(
        SHAPE, levels, described, protocols.build({"name": "canonical"}), head=kind, components=1, seed=0
    )
    values = torch.randint(levels, (12, 16), generator=torch.Generator().manual_seed(1)).float()
    rows = Rows(values, torch.rand(12, 16, generator=torch.Generator().manual_seed(2)) < 0.9, torch.zeros(12, 16))
    masking = image_masking(SHAPE) if objective == "stages" else maskings.build(REST)
    if objective == "edges":
        masking = maskings.build(CARDINALITY)
    options = Options(minutes=None, steps=2, validate_every=1, batch=6, parts=2, validation_queries=12)
    with pretended_device():
        trainer = Trainer(model.to("meta"), objective_for(model, masking, name=objective), rows, rows, options, seed=0)
        progress = trainer.run()
        assert trainer.model.device == META and progress.step == 2 and np.isfinite(progress.best)


def test_every_component_is_run_here() -> None:
    trainable = {name for name in networks.names() if networks.get(name).trainable}
    assert trainable == set(NETWORKS) and set(objectives.names()) == set(OBJECTIVES)


def budget(steps: int, **more: Any) -> dict[str, Any]:
    return {"training": {"steps": steps, "minutes": None, "batch": 8, "validation_queries": 8}, **more}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    numbers = np.random.default_rng(0).normal(size=(40, 2))
    frame = pd.DataFrame(numbers + numbers[:, :1], columns=["a", "b"]).assign(d=np.where(numbers[:, 1] > 0, "u", "v"))
    return frame.assign(n=np.arange(40) % 9)


def test_a_table_is_fitted_and_asked(table: pd.DataFrame) -> None:
    config = budget(2, engine="auto", folds=2, trees={"rounds": 3})
    with pretended_device():
        model = ao.fit(table, config=config, device="meta")
        assert model.core.device.type == "cpu"  # wherever it was trained
        expected = [float(one) for one in model.log_prob(table.head(4))]
        model.core.to("meta")
        case = model.given(a=0.3)
        assert [float(one) for one in model.log_prob(table.head(4))] == pytest.approx(expected, rel=1e-5)
        assert np.isfinite([case["b"].mean(), case["n"].quantile(0.5), case.log_prob(d="u")]).all()
        assert len(case.sample(3, seed=0)) == 3 and case["d"].probs()["u"] > 0
        assert not model.fill(table.head(3).assign(b=np.nan)).isna().any().any()
        assert len(model.marginals({"a": 0.3})) and np.isfinite(model.given(a="> 0")["b"].mean())


def test_a_text_is_fitted_and_asked() -> None:
    with pretended_device():
        model = ao.fit_text(CORPUS, length=12, preset="tiny", engine="neural", config=budget(2), device="meta")
        model.core.to("meta")
        assert np.isfinite(model.log_prob(["the quick"])).all()
        assert len(model.sample(1, seed=0)[0]) == 12 and model.fill("the q__ck")


def test_pictures_are_fitted_and_asked() -> None:
    colour = np.arange(10 * 27).reshape(10, 3, 3, 3) * 7 % 250
    known = np.arange(9).reshape(3, 3) % 2 == 0
    with pretended_device():
        model = ao.fit_images(colour, preset="tiny", config=budget(1), device="meta")
        model.core.to("meta")
        assert np.isfinite(model.log_prob(colour[:1])).all()
        assert model.fill(colour[:1], known, seed=0).shape[-3:] == (3, 3, 3)


def test_what_stays_behind_is_noticed() -> None:
    with pretended_device():
        there = torch.ones(3, device="meta")
        assert (there + torch.tensor(1.0)).tolist() == [2.0] * 3  # single numbers go along, as they do anywhere
        for work in (
            lambda: there + torch.ones(3),
            lambda: torch.rand(3, generator=torch.Generator(), device="meta"),
            lambda: torch.ones(3).index_put((torch.arange(3),), there),
            lambda: torch.ones(3)[there > 0],
        ):
            with pytest.raises(AssertionError):
                work()
        with pytest.raises(RuntimeError, match="numpy"):
            there.numpy()
