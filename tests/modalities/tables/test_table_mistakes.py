"""A user's mistake with a table is explained: what was expected, what came, and what to write."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import anyorder as ao

from messy_tables import QUICK


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda m, f: m.given(roms=3), "did you mean 'rooms'"),
        (lambda m, f: m.given(river="yess"), "did you mean 'yes'"),
        (lambda m, f: m.given(size="big"), "size"),
        (lambda m, f: m.given().log_prob(rooms=2.5), "whole"),
        (lambda m, f: m.log_prob(f.assign(rooms=2.5)), "whole"),
        (lambda m, f: m.given(rooms="many"), "expected a number"),
        (lambda m, f: m.given(river="yes")["river"], "is given"),
        (lambda m, f: m.given(river="yes").asking("river"), "both asked and given"),
        (lambda m, f: m["river"].mean(), "no order"),
        (lambda m, f: m["size"].probs(), "no list of levels"),
        (lambda m, f: m["size"].quantile(1.5), "between 0 and 1"),
        (lambda m, f: m.given().log_prob(), "needs values"),
        (lambda m, f: m.log_prob(f.rename(columns={"size": "siz"})), "did you mean 'size'"),
        (lambda m, f: m.log_prob(f, given=["siz"]), "did you mean 'size'"),
        (lambda m, f: m.log_prob(f, given=np.zeros((2, 2), bool)), "shape"),
        (lambda m, f: m.log_prob(f, orders=0), "orders"),
        (lambda m, f: m.fill(f, draws=0), "draws"),
        (lambda m, f: m.sample(-1), "n must be"),
        (lambda m, f: ao.fit(f.head(3)), "at least 4 rows"),
        (lambda m, f: ao.fit(f, config={"netwrk": {}}), "did you mean 'network'"),
        (lambda m, f: ao.fit(f, config={"training": {"stepz": 3}}), "did you mean 'steps'"),
        (lambda m, f: ao.fit(f, config={"network": {"name": "residual_mpl"}}), "did you mean 'residual_mlp'"),
        (lambda m, f: ao.fit(f, config={"network": {"name": "residual_mlp", "widht": 3}}), "did you mean 'width'"),
        (lambda m, f: ao.fit(f, config={"training": {"steps": "many"}}), "must be a number"),
        (lambda m, f: ao.fit(f, minutes=-1), "minutes"),
        (lambda m, f: ao.fit(f, config={"network": {"name": "gaussian"}}), "is not trained|cannot be trained"),
        (lambda m, f: ao.fit(f, config={"masking": {"name": "targets", "targets": ["pric"]}}), "valid names"),
        (lambda m, f: ao.fit(f, device="gpu9"), "device"),
        (lambda m, f: ao.fit(f, config={"network": {"name": ["x"]}}), "'name' must be a text"),
        (lambda m, f: ao.fit(f, config={"heads": {"continuous": {"name": ["x"]}}}), r"unknown head \['x'\]"),
        (lambda m, f: ao.fit(f, config={"objective": {"name": "parallel", "masking": 3}}), "no option 'masking'"),
        (lambda m, f: ao.fit(f, seed=-1), "seed"),
        (lambda m, f: ao.fit(f, seed="a"), "seed"),
        (lambda m, f: ao.fit(f, resume=True), "resume needs checkpoint"),
        (lambda m, f: ao.fit(f, config="run.toml"), "config must be a mapping"),
        (lambda m, f: ao.fit(f, config={"network": {"name": "residual_mlp", "width": "x"}}), "cannot be made"),
        (lambda m, f: ao.fit(f, config={"network": {"name": "residual_mlp", "width": -1}}), "cannot be made"),
        (lambda m, f: ao.fit(f, config={"network": {"name": "causal_transformer", "width": 50}}), "multiple"),
        (lambda m, f: ao.fit(f, config={"masking": {"name": "bernoulli"}}), "cannot be made"),
        (lambda m, f: ao.fit(f, config={"objective": {"name": "parallel", "foo": 1}}), "no option 'foo'"),
        (lambda m, f: ao.fit(f, config={"objective": {"name": "chain", "reweight": True}}), "leave reweight out"),
        (lambda m, f: ao.fit(f, config={"training": {"patience": -1}}), "patience"),
        (lambda m, f: m.log_prob(f, given=pd.DataFrame({"zz": [True] * len(f)})), "zz"),
        (lambda m, f: m["rooms"].quantile([0, 0.5]), "no smallest"),
    ],
)
def test_mistakes_are_explained(model: ao.TableModel, frame: pd.DataFrame, action, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ao.UserError, match=words):
        action(model, frame)


def test_advice_reads_in_python_and_on_the_command_line() -> None:
    frame = pd.DataFrame({"the name": [f"n{i}" for i in range(30)], "x": [1, 2, 3] * 10})
    with pytest.warns(UserWarning, match=r"kinds=\{'the name': 'categorical'\} \(command line: --kind 'the name=cat"):
        ao.fit(frame, config={**QUICK, "training": {"steps": 2}})
    model = ao.fit(frame[["x"]], config={**QUICK, "training": {"steps": 2}})
    with pytest.raises(ao.UserError, match=r"kinds=\{'x': 'integer'\} \(command line: --kind x=integer\)"):
        model.fill(pd.DataFrame({"x": [4]}))
    with pytest.raises(ao.UserError, match=r"row 7: expected a whole number below 2\*\*52, got 0.126"):
        ao.fit(pd.DataFrame({"x": [0.126, 2.0] * 5}, index=range(7, 17)), kinds={"x": "integer"})
