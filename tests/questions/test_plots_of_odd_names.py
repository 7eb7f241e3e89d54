"""Names and levels that Matplotlib would typeset, or that would turn the writing, in every drawing of the package."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest

from anyorder.questions.plots import plot_answer
from anyorder.support.plotting import new_figure
from anyorder.tasks.acquisition.plots import plot_ranking
from anyorder.tasks.calibration_plots import plot_pit

ODD = "$\\frac{$ \x1b[31m \u202e"


def test_an_answer_is_drawn_whatever_its_names_are() -> None:
    figure = new_figure(4, 3)
    answer: Any = SimpleNamespace(
        variable=SimpleNamespace(levels=("a",)),
        kind="categorical",
        probs=lambda: {ODD: 1.0},
        given=f"{ODD} = {ODD} " * 20,
        written=str,
    )
    plot_answer(figure.add_subplot(), answer, ODD)
    figure.savefig(io.BytesIO(), format="png")


@pytest.mark.parametrize("count", [0, 2])
def test_a_ranking_is_drawn_whatever_its_names_are(count: int) -> None:
    gain = type("Gain", (float,), {"error": 0.1})(0.5)
    candidates = [SimpleNamespace(name=ODD, gain=gain, cost=1.0, worth=True, ahead=None)] * count
    found: Any = SimpleNamespace(candidates=candidates, about=[ODD], chosen=[ODD], stop=ODD, unit=ODD)
    plot_ranking(found).savefig(io.BytesIO(), format="png")


def test_a_calibration_is_drawn_whatever_its_names_are() -> None:
    import numpy as np

    figure = new_figure(4, 3)
    calibration: Any = SimpleNamespace(
        of_variable=lambda name: np.arange(50),
        pit=np.linspace(0, 1, 50),
        cells=SimpleNamespace(row=np.arange(50)),
        share=lambda level, some: (level, 0.0),
    )
    plot_pit(figure.add_subplot(), calibration, ODD)
    figure.savefig(io.BytesIO(), format="png")
