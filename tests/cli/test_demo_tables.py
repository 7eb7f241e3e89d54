"""The demonstration's rival is the exact Gaussian conditional, and its report needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from anyorder.cli.demos.tables import LABEL, Experiment, Gaussian, prepare
from anyorder.cli.report import Picture, Section, write_report
from anyorder.support import plotting


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return prepare(seed=0)


def test_the_cut_is_clean(experiment: Experiment) -> None:
    assert len(experiment.train) + len(experiment.test) == 569
    both = pd.concat([experiment.train, experiment.test])
    assert not both.duplicated().any()
    assert experiment.holes.isna().to_numpy().tolist() == experiment.hidden.tolist()
    assert experiment.hidden.mean() == pytest.approx(0.3, abs=0.03)
    again = prepare(seed=0)
    pd.testing.assert_frame_equal(again.test, experiment.test)


def test_gaussian_is_the_ratio_of_two_joint_densities(experiment: Experiment) -> None:
    """log p(hidden | known) = log p(hidden, known) - log p(known), each from SciPy."""
    gaussian = Gaussian.fit(experiment)
    rows = Gaussian.columns(experiment, experiment.test, gaussian.levels)
    _, nats, _ = gaussian.answer(experiment)
    label = list(experiment.test.columns).index(LABEL)
    checked = 0
    for index in range(6):
        hidden = experiment.hidden_numbers[index]
        told = not experiment.hidden[index, label]
        known = np.append(~hidden, [told, told])
        scored = np.append(np.ones_like(hidden), [told, told])  # a hidden label is in neither

        def joint(inside: np.ndarray, index: int = index) -> float:
            places = np.flatnonzero(inside)
            covariance = gaussian.covariance[np.ix_(places, places)]
            return float(multivariate_normal(gaussian.centre[places], covariance).logpdf(rows[index, places]))

        assert nats[index] == pytest.approx(joint(scored) - joint(known), rel=1e-6)
        checked += int(hidden.sum())
    assert checked > 20


def test_gaussian_coverage_is_right_where_the_model_is(experiment: Experiment) -> None:
    """On rows drawn from the Gaussian itself its 90% intervals hold the truth in 90% of the cases."""
    gaussian = Gaussian.fit(experiment)
    count = len(experiment.numbers)
    drawn = np.random.default_rng(1).multivariate_normal(gaussian.centre, gaussian.covariance, size=1000)
    part = experiment.train[experiment.numbers].to_numpy(dtype=float)
    test = pd.DataFrame(drawn[:, :count] * part.std(axis=0) + part.mean(axis=0), columns=experiment.numbers)
    test[LABEL] = gaussian.levels[0]
    hidden = np.random.default_rng(2).random(test.shape) < 0.3
    hidden[:, -1] = True  # the label is not drawn from a Gaussian: leave it out
    ideal = Experiment(experiment.train, test, hidden)
    means, _, _ = gaussian.answer(ideal)
    assert gaussian.coverage(ideal, means) == pytest.approx(0.9, abs=0.015)


def test_report_is_one_file(tmp_path: Path) -> None:
    figure = plotting.new_figure(2, 1)
    figure.add_subplot().plot([0, 1], [0, 1])
    table = [{"method": "a<b", "score": 1.0}, {"method": "c", "score": 2.5}, {"method": "d", "score": None}]
    path = tmp_path / "report.html"
    section = Section("H & M", "One.\n\nTwo <script>", table, [Picture(figure, "a picture")], "x < y")
    write_report(path, "Title", [section], subtitle="sub")
    page = path.read_text(encoding="utf-8")
    assert "<script" not in page
    assert "a&lt;b" in page
    assert "2.500" in page
    assert "<b>" not in page  # who is ahead on one split has no error
    assert page.count("<p>") == 3  # the subtitle and two paragraphs
    assert re.findall(r'(?:src|href)="([^"]{0,22})', page) == ["data:image/png;base64,"]
    assert "://" not in re.sub(r"base64,[^\"]*", "", page)
    assert "script-src 'none'" in page


def test_sections_share_their_script_and_no_other_may_run(tmp_path: Path) -> None:
    text = "const end = '</script>';"
    sections = [Section("One", script=text), Section("Two", script=text)]
    write_report(tmp_path / "report.html", "Title", sections)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    (script,) = re.findall(r'<script type="module">(.*?)</script>', page, flags=re.DOTALL)
    assert script == "const end = '\\u003c/script>';"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page
