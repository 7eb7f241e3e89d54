"""Pictures of answers: what is known in the title, the column's own notation on the axis, the central 99 %."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import numpy as np
import pytest

import anyorder as ao
from anyorder.questions.outline import histogram, outline
from anyorder.questions.plots import plot_answers

import release
from written_tables import written_model

KINDS = ao.load(Path(release.__file__).parent / "v1" / "table_trees.anyorder")


@pytest.fixture(scope="module")
def model() -> ao.TableModel:
    return written_model()


@pytest.mark.parametrize("name", KINDS.columns)
def test_every_kind_is_drawn(name: str) -> None:
    figure = KINDS[name].plot()
    figure.savefig(io.BytesIO(), format="png")
    assert getattr(figure, "number", None) is None  # pyplot numbers its figures


def test_evidence_stands_in_the_title_and_the_interval_below(model: ao.TableModel) -> None:
    price = model.given(rooms=6, river="yes")["price"]
    axes = price.plot().axes[0]
    assert axes.get_title(loc="left") == "price"
    assert any(text.get_text() == "given rooms = 6, river = yes" for text in axes.texts)
    low, high = price.interval(0.9)
    assert f"90 % in \\{price.written(low)} .. \\{price.written(high)}" in axes.get_xlabel()


def test_skewed_positive_columns_have_a_logarithmic_axis_in_their_notation(model: ao.TableModel) -> None:
    answer = model.given(rooms=6)["price"]
    figure = answer.plot()
    axes = figure.axes[0]
    figure.canvas.draw()
    found = outline(answer)
    assert (axes.get_xscale() == "log") == found.logarithmic
    assert all(label.get_text().startswith(r"\$") for label in axes.get_xticklabels() if label.get_text())
    ends = axes.lines[0].get_xdata()
    assert np.isclose([ends[0], ends[-1]], answer.quantile([0.005, 0.995])).all(), "trimmed to the central 99 %"


def test_percentages_have_marks_that_are_true(model: ao.TableModel) -> None:
    figure = model["off"].plot()
    figure.canvas.draw()
    for at, label in zip(figure.axes[0].get_xticks(), figure.axes[0].get_xticklabels(), strict=True):
        assert label.get_text() == f"{at:.0f}%"


def test_atoms_are_stems(model: ao.TableModel) -> None:
    axes = model["rain"].plot().axes[0]
    share = model["rain"].probs()[0.0]
    assert any(text.get_text() == f"exactly 0: {share:.1%}" for text in axes.texts)
    assert np.isfinite(axes.get_ylim()).all()


def test_axes_that_are_shared_keep_one_scale(model: ao.TableModel) -> None:
    figure = plot_answers(model.given(), ["river"])
    first = figure.add_subplot(2, 1, 1)
    first.set_xscale("linear")
    second = figure.add_subplot(2, 1, 2, sharex=first)
    model.given(rooms=6)["price"].plot(axes=second)
    assert first.get_xscale() == second.get_xscale() == "linear"


def test_a_picture_goes_into_a_file_or_a_notebook(model: ao.TableModel, tmp_path: Path) -> None:
    figure = model["off"].plot(tmp_path / "off.png")
    assert (tmp_path / "off.png").stat().st_size > 1000
    assert figure._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(ao.UserError, match="must end in"):
        model["off"].plot(tmp_path / "off.docx")
    axes = figure.axes[0]
    assert model["off"].plot(axes=axes) is axes


@pytest.mark.parametrize("name", ["size", "count", "day", "moment", "rain"])
@pytest.mark.parametrize("evidence", [{}, {"half": ao.OneOf(0.0, 1.0)}], ids=["exact", "set"])
def test_cells_of_the_histogram_hold_what_the_cdf_says(name: str, evidence: dict[str, object]) -> None:
    answer = KINDS.given(evidence).using(draws=8)[name]
    edges, shares = histogram(answer, 12)
    assert len(edges) == len(shares) + 1 <= 14
    assert (np.diff(edges) > 0).all() and (shares >= 0).all()
    assert 0.97 < shares.sum() <= 1 + 1e-6
    drawn = answer.measured_quantiles(np.linspace(0.0005, 0.9995, 1000))
    counted = [((drawn > low) & (drawn <= high)).mean() for low, high in itertools.pairwise(edges[1:])]
    np.testing.assert_allclose(counted, shares[1:], atol=0.01)
    if name == "rain":
        assert shares[0] >= float(answer.probs()[0.0]) - 1e-9, "the atom at the lower end is in its cell"


def test_levels_have_no_histogram() -> None:
    with pytest.raises(ao.UserError, match="ask for probs"):
        KINDS["grade"].histogram()
