"""A model that answers NaN loses every comparison: between encodings, and against trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.errors import UserError
from anyorder.heads.blend import Blend
from anyorder.networks.blend import BlendNetwork
from anyorder.networks.boosted_trees import BoostedTrees
from anyorder.networks.linear import LinearNetwork
from anyorder.networks.residual_mlp import ResidualMLP
from anyorder.training import blending
from anyorder.training.gates import JudgedCells
from anyorder.training.loop import Trainer

QUICK = {"folds": 4, "training": {"steps": 20, "minutes": None, "validate_every": 5, "validation_queries": 50}}


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a = rng.normal(size=80)
    return pd.DataFrame({"a": a, "b": a + rng.normal(size=80)})


@pytest.mark.filterwarnings("ignore:training diverged")
@pytest.mark.parametrize("broken", ["standard", "normal_scores"])
def test_an_encoding_that_only_diverges_loses_the_race(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Trainer._step

    def diverging(self: Trainer) -> None:
        if self.label == broken:
            self.progress.step += 1
            self._diverge("this")
        else:
            step(self)

    monkeypatch.setattr(Trainer, "_step", diverging)
    card = ao.fit(table(), engine="neural", config=QUICK).card
    assert card["chosen"] != broken
    assert card["scores"]["encodings"][broken] is None
    assert card["training"]["diverged"] == 0 and np.isfinite(card["scores"]["held_out"])


def with_nan(monkeypatch: pytest.MonkeyPatch, labels: set[str]) -> None:
    """NaN for one held-out cell of the first variable, from these members of a blend."""
    judged = blending.judged

    def broken(members: list[blending.Member], *given: Any) -> JudgedCells:
        cells = judged(members, *given)
        first = int((cells.variable == 0).nonzero()[3])
        for number, member in enumerate(members):
            if member.label in labels:
                cells.nats[number, first] = np.nan
        return cells

    monkeypatch.setattr(blending, "judged", broken)


@pytest.mark.parametrize("label", ["neural", "trees", "linear"])
def test_a_member_of_a_blend_has_no_say_where_it_answers_nan(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_nan(monkeypatch, {label})
    model = ao.fit(table(), engine="auto", config=QUICK)
    assert np.isfinite(model.card["scores"]["held_out"])
    first = model.core.heads.of(0)
    assert isinstance(first, Blend) and isinstance(model.core.network, BlendNetwork)
    kinds = {"neural": ResidualMLP, "trees": BoostedTrees, "linear": LinearNetwork}
    own = [isinstance(part, kinds[label]) for part in model.core.network.parts]
    assert sum(weight for weight, broken in zip(first.weights, own, strict=True) if broken) == 0


def test_a_variable_that_nobody_can_score_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with_nan(monkeypatch, {"neural", "trees", "linear", "regressions"})
    with pytest.raises(UserError, match="held-out cells of a;"):
        ao.fit(table(), engine="auto", config=QUICK)
