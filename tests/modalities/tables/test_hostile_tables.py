"""Tables as people have them: each is fitted and answers every kind of question, or is refused by the column's name."""

from __future__ import annotations

import datetime
import json
import warnings
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

import anyorder as ao
from anyorder.cli import main
from anyorder.data.files import read_table
from anyorder.questions.grammar import write_evidence, write_names
from anyorder.variables.cells import missing_cells

from hostile_tables import TABLES, with_column

QUICK: dict[str, Any] = {
    "engine": "neural",
    "components": 3,
    "training": {"steps": 3, "batch": 32, "validation_queries": 30},
    "network": {"name": "residual_mlp", "width": 16, "blocks": 1},
}


def fitted(name: str, frame: Any, engine: str) -> ao.TableModel:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Both ways to encode numbers are tried, but for a wide table, where one is slow enough.
        encoding = "auto" if frame.shape[1] < 100 else "standard"
        model = ao.fit(frame, seed=0, config={**QUICK, "engine": engine, "encoding": encoding})
    later = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)  # of other packages: no concern of a user's
    messages = [str(item.message) for item in caught if not issubclass(item.category, later)]
    expected = TABLES[name].warned
    assert [message for message in messages if expected is None or expected not in message] == []
    assert len(messages) == (expected is not None)
    return model


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if table.refused])
def test_refused_by_name(name: str) -> None:
    with pytest.raises(ao.UserError) as refusal:
        ao.fit(TABLES[name].make(np.random.default_rng(0)), seed=0, config=QUICK)
    message = str(refusal.value)
    assert TABLES[name].refused in message, message
    assert len(message) < 500 and "object at 0x" not in message


OTHER_ENGINES = {
    "four_rows": "auto",
    "nearly_all_missing": "trees",
    "constant_columns_with_holes": "trees",
    "dates_with_gaps": "trees",
}


@pytest.mark.parametrize("name", OTHER_ENGINES)
def test_other_engines(name: str, tmp_path: Path) -> None:
    fits_and_answers(name, OTHER_ENGINES[name], tmp_path)


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if not table.refused])
def test_fits_and_answers(name: str, tmp_path: Path) -> None:
    fits_and_answers(name, "neural", tmp_path)


def fits_and_answers(name: str, engine: str, tmp_path: Path) -> None:
    frame = TABLES[name].make(np.random.default_rng(0))
    model = fitted(name, frame, engine)
    table = nw.from_native(frame).to_pandas() if isinstance(frame, pl.DataFrame) else frame
    table = table.set_axis([str(label) for label in table.columns], axis=1)

    alike: Counter[Any] = Counter()
    for variable in reversed(model.schema.variables):  # the hostile column, if it is one, comes last
        alike[variable.kind, variable.dtype] += 1
        if alike[variable.kind, variable.dtype] == 1:
            one_answer(model, variable.name, table[variable.name])
        assert repr(model.asking(variable.name)) and repr(model).startswith("TableModel(")

    scores = np.asarray(model.log_prob(frame), dtype=float)
    assert scores.shape == (len(frame),) and np.isfinite(scores).all()

    drawn = nw.from_native(model.sample(7, seed=1)).to_pandas()
    assert list(drawn.columns) == list(model.schema.names) and not drawn.isna().any().any()

    for filled in (model.fill(frame), *model.fill(frame, draws=2, seed=3)):
        whole(model, table, frame, filled)

    model.save(tmp_path / "hostile.anyorder")
    again = ao.load(tmp_path / "hostile.anyorder")
    np.testing.assert_array_equal(np.asarray(again.log_prob(frame), dtype=float), scores)
    pd.testing.assert_frame_equal(nw.from_native(again.sample(7, seed=1)).to_pandas(), drawn, check_exact=True)


def one_answer(model: ao.TableModel, name: str, column: Any) -> None:
    """Every question one variable can be asked, given nothing and given another column."""
    variable = model.schema[name]
    known = [
        cell
        for cell, gone in zip(column.astype(object), missing_cells(column, variable.missing, words=True), strict=True)
        if not gone
    ]
    others = [each for each in model.schema.names if each != name]
    for answer in [model[name], *(model.given({name: known[0]})[other] for other in others[:1])]:
        assert repr(answer)
        if answer.variable.levels:
            chances = answer.probs()
            assert len(chances) == len(answer.variable.levels)
            assert sum(chances.values()) == pytest.approx(1.0, abs=1e-5) and min(chances.values()) >= 0
            assert answer.mode() in chances
        else:
            low, middle, high = answer.quantile([0.05, 0.5, 0.95])
            if answer.variable.form == "text":
                low, middle, high = float(low), float(middle), float(high)
            assert low <= middle <= high
            assert np.isfinite(answer.std()) and not pd.isna(answer.mean()) and not pd.isna(answer.mode())
        drawn = answer.sample(3)
        assert len(drawn) == 3 and not pd.isna(pd.Series(drawn)).any()
        assert np.isfinite(answer.entropy())
    assert np.isfinite(model.given().log_prob({name: known[0]})), (variable, known[0])
    assert np.isfinite(model[name].log_prob(known[-1:])).all()


def whole(model: ao.TableModel, table: pd.DataFrame, frame: Any, filled: Any) -> None:
    """No cell is missing, and every known one is what it was."""
    assert type(filled) is type(frame) and filled.shape == frame.shape
    after = filled.to_pandas() if isinstance(filled, pl.DataFrame) else filled
    after = after.set_axis([str(label) for label in after.columns], axis=1)
    for name in model.schema.names:
        column = after[name]
        assert not column.isna().any(), name
        before = table[name]
        unknown = missing_cells(
            before, model.schema[name].missing, words=model.schema[name].numeric or bool(model.schema[name].resolution)
        )
        kept = zip(before.astype(object)[~unknown], column.astype(object)[~unknown], strict=True)
        assert all(one == two for one, two in kept), name
        assert not missing_cells(column, words=model.schema[name].numeric).any(), name


# The same through files and the command line


FILES = (
    "unicode_names",
    "names_full_of_grammar",
    "dates_with_gaps",
    "three_hundred_categories",
    "mixed_object_column",
    "numbers_with_words_for_missing",
)


def as_file(name: str, folder: Path) -> Path:
    (folder / "quick.toml").write_text(
        "engine = 'neural'\ncomponents = 3\n[training]\nsteps = 3\nbatch = 32\nvalidation_queries = 30\n"
        '[network]\nname = "residual_mlp"\nwidth = 16\nblocks = 1\n'
    )
    path = folder / f"{name}.csv"
    TABLES[name].make(np.random.default_rng(0)).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("name", FILES)
def test_command_line(name: str, tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    path = as_file(name, tmp_path)
    before = read_table(path)

    def run(*arguments: str) -> str:
        status = main(list(arguments))
        printed = capsys.readouterr()
        assert status == 0, printed.err
        return printed.out

    run("fit", path.name, "-o", "m.anyorder", "--config", "quick.toml")
    card = json.loads(run("info", "m.anyorder", "--json"))
    assert json.dumps(card, allow_nan=False)
    shown = run("info", "m.anyorder")  # a name may hold a line break, but takes one line
    assert all(repr(column)[1:-1] in shown for column in before.columns if "'" not in column)
    for column in before.columns[:3]:
        assert json.loads(run("ask", "m.anyorder", write_names([column]), "--json"))
        value = before[column].dropna().iloc[0]
        other = next(each for each in before.columns if each != column)
        evidence = write_evidence({column: str(value)})
        assert run("ask", "m.anyorder", f"{write_names([other])} | {evidence}")
    scored = json.loads(run("score", "m.anyorder", path.name, "--json"))
    assert json.dumps(scored, allow_nan=False)
    run("sample", "m.anyorder", "-n", "5", "-o", "drawn.csv")
    assert list(read_table(tmp_path / "drawn.csv").columns) == list(before.columns)
    run("fill", "m.anyorder", path.name, "-o", "filled.csv")
    after = read_table(tmp_path / "filled.csv")
    assert list(after.columns) == list(before.columns) and len(after) == len(before)
    assert not any(missing_cells(after[column]).any() for column in after.columns)


def test_command_line_refuses(tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    path = as_file("table_of_nothing", tmp_path)
    assert main(["fit", path.name, "-o", "m.anyorder", "--config", "quick.toml"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and TABLES["table_of_nothing"].refused in error
    assert not (tmp_path / "m.anyorder").exists()


@pytest.mark.parametrize("encoding", ["standard", "normal_scores"])
@pytest.mark.filterwarnings("ignore:.*outside the data")
def test_absurd_evidence_gives_no_nan(encoding: str) -> None:
    rng = np.random.default_rng(0)
    frame = with_column(rng, rng.choice(["a", "b"], 40), "level").assign(whole=rng.integers(0, 500, 40))
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, 40), unit="D")
    model = ao.fit(frame, seed=0, config={**QUICK, "encoding": encoding})
    far: dict[str, list[Any]] = {
        "x": [1e6, 1e39, -1e90, 1e-300],
        "whole": [10**12, -(2**51)],
        "day": [pd.Timestamp("1700-01-01"), datetime.date(9999, 12, 31)],
    }
    for name, values in far.items():
        for value in values:
            given = model.given({name: value})
            # Whole numbers from 0 up were seen, so 0 is a guessed bound, and a value below it is warned of.
            warned = pytest.warns(UserWarning, match="'whole'") if value == -(2**51) else nullcontext()
            with warned:
                assert not np.isnan(model.log_prob({name: [value]})).any()
            assert np.isfinite(given["y"].quantile([0.05, 0.5, 0.95])).all()
            assert sum(given["level"].probs().values()) == pytest.approx(1.0, abs=1e-5)
            for filled in (model.fill({name: [value]}), *model.fill({name: [value]}, draws=1)):
                assert not filled.isna().any().any()
