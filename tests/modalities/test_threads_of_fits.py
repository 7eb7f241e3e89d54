"""How many threads a fit takes: one, unless the environment or an option says otherwise, whatever it is fitted to."""

from __future__ import annotations

import pytest

from anyorder.errors import UserError
from anyorder.modalities.images.options import ImageOptions
from anyorder.modalities.options import FitOptions
from anyorder.modalities.tables.options import TableOptions
from anyorder.modalities.texts.options import TextOptions

ALL = (TableOptions, TextOptions, ImageOptions)


@pytest.fixture(autouse=True)
def no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)


@pytest.mark.parametrize("options", ALL)
def test_a_fit_takes_one_thread(options: type[FitOptions]) -> None:
    assert options.read(None).training.threads == 1


@pytest.mark.parametrize("options", ALL)
def test_a_fit_takes_what_the_environment_says(options: type[FitOptions], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert options.read(None).training.threads == 2


@pytest.mark.parametrize("options", ALL)
def test_an_option_wins_over_the_environment(options: type[FitOptions], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert options.read({"training": {"threads": 3.0}}).training.threads == 3
    for wrong in (0, 1.5, "two", True):
        with pytest.raises(UserError, match="threads"):
            options.read({"training": {"threads": wrong}})


def test_trees_take_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert TableOptions.read(None).trees.threads == 1
    monkeypatch.setenv("MKL_NUM_THREADS", "2")
    assert TableOptions.read(None).trees.threads == 2
