"""``!=``, "or" and "between": against the normal, against sums over a table, and in words where they say nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import anyorder as ao
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.questions.conditional import Conditional

from range_oracles import COVARIANCE, MEAN, SCALE, box, close

FILE = Path(__file__).parents[1] / "files" / "v1" / "table_trees.anyorder"


@pytest.fixture(scope="module")
def released() -> ao.TableModel:
    model = ao.load(FILE)
    assert isinstance(model, ao.TableModel)
    return model


def test_two_ranges_of_one_column(gaussian: AnyOrderModel) -> None:
    law = norm(SCALE * MEAN[0], SCALE * np.sqrt(COVARIANCE[0, 0]))
    found = Conditional(gaussian).prob("v0 < -1 or v0 > 2")
    assert found.exact
    assert float(found) == pytest.approx(law.cdf(-1) + law.sf(2), rel=1e-9)
    joint = Conditional(gaussian, {"v3": 1.0}).prob("v0 < -1 or > 2, v1 < 0 or 1 < v1 < 2")
    truth = 0.0
    for ends in (({}, {0: -1.0}), ({0: 2.0}, {})):
        truth += box(ends[0], {**ends[1], 1: 0.0}, {3: 1.0}) + box({**ends[0], 1: 1.0}, {**ends[1], 1: 2.0}, {3: 1.0})
    close(joint, truth, 1e-5)


def test_two_ranges_as_evidence(gaussian: AnyOrderModel) -> None:
    given = Conditional(gaussian, {"v0": "<-1 or >2"}).using(draws=4000)
    whole = box({}, {0: -1.0}, {}) + box({0: 2.0}, {}, {})
    close(given.prob("v3 < 0.5"), (box({}, {0: -1.0, 3: 0.5}, {}) + box({0: 2.0}, {3: 0.5}, {})) / whole, 1e-5)
    own = given["v0"]
    law = norm(SCALE * MEAN[0], SCALE * np.sqrt(COVARIANCE[0, 0]))
    assert float(own.cdf(0.0)) == pytest.approx(law.cdf(-1) / whole, rel=1e-6)
    drawn = given.sample(200, seed=0)["v0"]
    assert bool(((drawn < -1) | (drawn > 2)).all())
    close(given.prob("v0 > 3"), law.sf(3) / whole, 1e-9)


def test_all_but_a_level(released: ao.TableModel) -> None:
    shares = {level: float(share) for level, share in released["kind"].probs().items()}
    assert float(released.prob("kind != ash")) == pytest.approx(1 - shares["ash"])
    assert float(released.prob("kind != {ash, birch}")) == pytest.approx(shares["cedar"])
    assert float(released.prob("kind = ash or birch")) == pytest.approx(1 - shares["cedar"])
    assert float(released.prob("kind = ash or kind = birch")) == pytest.approx(1 - shares["cedar"])
    assert set(released.given(kind="!=ash").sample(20, seed=0)["kind"]) <= {"birch", "cedar"}
    grades = released["grade"].probs()
    assert float(released.prob("grade <= d or grade >= a")) == pytest.approx(float(grades["d"]) + float(grades["a"]))


def test_whole_numbers_and_spikes(released: ao.TableModel) -> None:
    three, four, more = (float(released.prob(event)) for event in ("count=3", "count=4", "count > 7"))
    assert float(released.prob("count != 3")) == pytest.approx(1 - three, abs=1e-9)
    assert float(released.prob("count != {3, 4}")) == pytest.approx(1 - three - four, abs=1e-9)
    assert float(released.prob("count = 3 or count > 7")) == pytest.approx(three + more, abs=1e-9)
    assert float(released.prob("count between 3 and 4")) == pytest.approx(three + four, abs=1e-9)
    dry = float(released["rain"].probs()[0.0])
    assert float(released.prob("rain != 0")) == pytest.approx(1 - dry, abs=1e-6)
    assert bool((released.given(rain="!=0").sample(50, seed=0)["rain"] != 0).all())


def test_a_level_with_or_in_its_name_is_that_level(released: ao.TableModel) -> None:
    from anyorder.questions.evidence import Value, read_statement
    from anyorder.variables.codecs import LevelCodec
    from anyorder.variables.schema import Kind, Variable

    codec = LevelCodec(Variable("k", Kind.CATEGORICAL, levels=("yes or no", "!=x", "between 1 and 2"), dtype="str"))
    for level in codec.variable.levels:
        assert read_statement(codec, level) == Value(level)


def test_medians_and_modes(released: ao.TableModel) -> None:
    assert released.ask("median(size | kind=ash)") == released.given(kind="ash")["size"].median()
    assert released.ask("mode(kind)") == released["kind"].mode()
    assert released.ask("mean(size)") == released["size"].mean()
    assert released.ask("median(size, count)").keys() == {"size", "count"}


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("P(size != 3)", "so != excludes nothing"),
        ("P(kind != ash or birch)", "can be read in two ways"),
        ("P(kind = ash or oak)", "oak"),
        ("P(kind < ash or kind > birch)", "no order"),
        ("P(size = missing or size > 3)", "cannot be joined"),
        ("size | kind != {ash, birch, cedar}", "probability 0"),
    ],
)
def test_what_makes_no_sense_is_refused(released: ao.TableModel, question: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        answer = released.ask(question)
        answer.mean()
    assert says in str(caught.value)


def test_or_beside_a_rule_is_refused(gaussian: AnyOrderModel) -> None:
    with pytest.raises(UserError, match="stands in a rule"):
        Conditional(gaussian, {"v0": "<-1 or >2"}).prob("v0 > v1")
