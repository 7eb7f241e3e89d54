"""Pictures of answers: the evidence in the title, a long tail on a logarithmic axis, the central 99 %."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import lognorm, norm

from anyorder.questions.plots import plot_answer, plot_answers
from anyorder.support.plotting import new_figure


def answer_of(law: Any) -> Any:
    return SimpleNamespace(
        variable=SimpleNamespace(levels=()),
        kind="continuous",
        discrete=False,
        quantile=law.ppf,
        mean=law.mean,
        pdf=law.pdf,
    )


@pytest.mark.parametrize(("law", "scale"), [(lognorm(1.5), "log"), (norm(5, 1), "linear"), (norm(0, 1), "linear")])
def test_a_long_tail_has_a_logarithmic_axis(law: Any, scale: str) -> None:
    axes = new_figure(4, 3).add_subplot()
    plot_answer(axes, answer_of(law), "income")
    assert axes.get_xscale() == scale
    x, y = (np.asarray(part, dtype=float) for part in axes.lines[0].get_data())
    assert x.min() >= law.ppf(0.001)
    assert x.max() <= law.ppf(0.999)
    area = np.trapezoid(y, np.log(x) if scale == "log" else x)
    assert area == pytest.approx(0.99, abs=0.005)


def test_the_evidence_is_in_the_title() -> None:
    class Given(dict[str, Any]):
        evidence: ClassVar[dict[str, Any]] = {"rooms": 6, "town": "St. John's, east"}

    figure = plot_answers(Given(price=answer_of(norm(5, 1))), ["price"])  # type: ignore[arg-type]
    assert figure.get_suptitle() == 'given rooms=6, town="St. John\'s, east"'
    figure.savefig(io.BytesIO(), format="png")
    Given.evidence = {f"a long name {number}": "value" for number in range(30)}
    assert len(plot_answers(Given(price=answer_of(norm(5, 1))), ["price"]).get_suptitle()) < 60  # type: ignore[arg-type]
    Given.evidence = {}
    assert plot_answers(Given(price=answer_of(norm(5, 1))), ["price"]).get_suptitle() == ""  # type: ignore[arg-type]
