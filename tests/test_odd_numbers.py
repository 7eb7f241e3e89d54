"""Every number that a public function takes, swept over odd ones: an answer or a ``UserError``, never anything else.

The functions are found by their signatures, so that a new parameter is swept without an edit here; a new method that
takes a number fails :func:`test_every_method_with_numbers_is_swept` until it is listed.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.errors import UserError
from anyorder.modalities.images.options import ImageOptions
from anyorder.modalities.options import FitOptions
from anyorder.modalities.tables.options import TableOptions
from anyorder.modalities.texts.options import TextOptions
from anyorder.sklearn import AnyOrderDensity, AnyOrderImputer
from anyorder.support.threads import most_threads

from commands import refused

ODD = (
    *(None, True, "3", -1, 0, 1.5, float("nan"), float("inf"), -float("inf"), 10**12, 2**70, 10**30),
    *(np.float32(2), np.int64(2), [1], np.array([1.0, 2.0])),
)
DEVICES = ("meta", "hpu", "privateuseone", "xla", "nothing", "", None, 3)
TRAINING = {"minutes": None, "steps": 2, "threads": 1, "validation_queries": 4, "batch": 4}
MLP = {"name": "residual_mlp", "width": 8, "blocks": 1}
WORDS = "to be or not to be " * 8

Case = tuple[Callable[..., Any], dict[str, Any]]


def table_frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rooms = rng.integers(1, 9, 30)
    river = np.where(rng.random(30) > 0.5, "yes", "no")
    return pd.DataFrame({"rooms": rooms, "river": river, "price": rooms * 5 + rng.normal(size=30)})


PICTURES = np.random.default_rng(0).integers(0, 2, (8, 4, 4)).astype(np.uint8)


@pytest.fixture(scope="module")
def table() -> ao.TableModel:
    return ao.fit(table_frame(), engine="neural", config={"training": TRAINING, "network": MLP})


@pytest.fixture(scope="module")
def texts() -> ao.TextModel:
    return ao.fit_text(WORDS, length=8, preset="tiny", config={"training": TRAINING})


@pytest.fixture(scope="module")
def pictures() -> ao.ImageModel:
    return ao.fit_images(PICTURES, levels=2, preset="tiny", config={"training": TRAINING})


def table_cases(model: ao.TableModel) -> dict[str, Case]:
    frame = table_frame()
    holes = frame.head(3).assign(price=None)
    needed: dict[str, dict[str, Any]] = {
        "anomalies": {"frame": frame},
        "ask": {"question": "price | rooms=3..5"},
        "calibration": {"frame": frame},
        "coherence": {"frame": frame},
        "conformal": {"frame": frame},
        "explore": {},
        "fill": {"frame": holes},
        "log_prob": {"frame": holes},
        "marginals": {"evidence": {"rooms": ao.Between(3, 5)}},
        "mutual_information": {"one": "price", "other": "rooms"},
        "next_question": {"about": "price", "draws": 4},
        "prob": {"event": "price > 3 | rooms=3..5"},
        "sample": {},
        "update": {"frame": frame, "minutes": None, "config": {"training": TRAINING, "trees": {"rounds": 1}}},
    }
    return {name: (getattr(model, name), arguments) for name, arguments in needed.items()}


def part_cases(model: ao.TableModel, folder: Path) -> dict[str, Case]:
    """The methods that read and write tables in many files."""
    source = folder / "holes.csv"
    table_frame().head(3).assign(price=None).to_csv(source, index=False)
    needed: dict[str, dict[str, Any]] = {
        "anomalies_files": {"source": source},
        "fill_files": {"source": source, "out": folder / "filled"},
        "sample_files": {"n": 3, "out": folder / "drawn"},
        "score_files": {"source": source, "out": folder / "scored"},
    }
    return {name: (getattr(model, name), arguments) for name, arguments in needed.items()}


def question_cases(model: ao.TableModel) -> dict[str, Case]:
    exact, ranged = model.given(rooms=5), model.given(rooms=ao.Between(3, 5)).using(draws=16)
    frame = table_frame()
    honest, calibrated = model.conformal(frame, given=["rooms"]), model.calibration(frame.iloc[1:])
    cases: dict[str, Case] = {}
    for label, known in (("exact", exact), ("ranged", ranged)):
        cases[f"{label}.sample"] = known.sample, {}
        cases[f"{label}.using"] = known.using, {}
        cases[f"{label}.log_prob"] = known.log_prob, {"price": 20.0}
        for column in ("price", "river"):
            answer = known[column]
            cases[f"{label}.{column}.hdi"] = answer.hdi, {}
            cases[f"{label}.{column}.sample"] = answer.sample, {}
        price = known["price"]
        cases |= {
            f"{label}.price.histogram": (price.histogram, {}),
            f"{label}.price.interval": (price.interval, {}),
            f"{label}.price.mass": (price.mass, {"model": 0.0}),
            f"{label}.price.quantile": (price.quantile, {"level": 0.5}),
            f"{label}.price.spread": (price.spread, {"count": 5}),
        }
    return cases | {
        "exact.order_spread": (exact.order_spread, {"price": 20.0}),
        "ranged.ranged_rows": (ranged.ranged_rows, {"n": 2}),
        "conformal.adjusted_level": (honest.adjusted_level, {"name": "price", "level": 0.9}),
        "conformal.adjusted_levels": (honest.adjusted_levels, {}),
        "conformal.interval": (honest.interval, {"evidence": {"rooms": 4}, "name": "price"}),
        "conformal.intervals": (honest.intervals, {"frame": frame.head(2).assign(price=None)}),
        "conformal.levels": (honest.levels, {"evidence": {"rooms": 4}, "name": "river"}),
        "calibration.of_known": (calibrated.of_known, {"count": 1}),
        "calibration.share": (calibrated.share, {"level": 0.9}),
        "pool": (ao.pool, {"estimates": [1.0, 2.0, 3.0], "variances": [1.0, 1.0, 1.0]}),
    }


def text_cases(model: ao.TextModel) -> dict[str, Case]:
    needed: dict[str, dict[str, Any]] = {
        "bits_per_character": {"text": "to be or not"},
        "budget": {"text": "to be or not to be", "calls": 2},
        "compress": {"data": "to be"},
        "explore": {},
        "fill": {"text": "to _e"},
        "log_prob": {"texts": ["to be or"]},
        "sample": {},
        "scores": {"text": "to be or not"},
    }
    return {name: (getattr(model, name), arguments) for name, arguments in needed.items()}


def picture_cases(model: ao.ImageModel) -> dict[str, Case]:
    half = np.arange(4)[:, None].repeat(4, axis=1) < 2
    needed: dict[str, dict[str, Any]] = {
        "bits_per_dimension": {"pictures": PICTURES},
        "budget": {"pictures": PICTURES, "steps": 2, "points": 2},
        "explore": {},
        "fill": {"picture": PICTURES[0], "known": half},
        "log_prob": {"pictures": PICTURES},
        "sample": {},
        "trace": {"picture": PICTURES[0], "known": half, "steps": 2},
    }
    return {name: (getattr(model, name), arguments) for name, arguments in needed.items()}


def numbers_of(function: Callable[..., Any]) -> list[str]:
    """The parameters that take a number, as their annotations say."""
    parameters = inspect.signature(function).parameters.values()
    return [one.name for one in parameters if re.search(r"\b(int|float|ArrayLike)\b", str(one.annotation))]


def swept(cases: dict[str, Case]) -> Iterator[tuple[str, Callable[[], Any]]]:
    for label, (function, arguments) in cases.items():
        for name in numbers_of(function):
            for odd in ODD:
                yield f"{label}({name}={odd!r})", lambda f=function, a={**arguments, name: odd}: f(**a)


def assert_answered_or_refused(calls: Iterator[tuple[str, Callable[[], Any]]]) -> None:
    wrong, count = [], 0
    for label, call in calls:
        count += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call()
        except UserError as error:
            if len(str(error)) < 20:
                wrong.append(f"{label}: says no more than {error}")
        except Exception as error:  # noqa: BLE001 (whatever it is, it is not for a user)
            wrong.append(f"{label}: {type(error).__name__}: {error}")
    assert count > 0
    assert not wrong, "\n".join(wrong)


def test_of_tables(table: ao.TableModel) -> None:
    assert_answered_or_refused(swept(table_cases(table)))


def test_of_tables_in_many_files(table: ao.TableModel, tmp_path: Path) -> None:
    assert_answered_or_refused(swept(part_cases(table, tmp_path)))


def test_of_questions(table: ao.TableModel) -> None:
    assert_answered_or_refused(swept(question_cases(table)))


def test_of_texts(texts: ao.TextModel) -> None:
    assert_answered_or_refused(swept(text_cases(texts)))


def test_of_pictures(pictures: ao.ImageModel) -> None:
    assert_answered_or_refused(swept(picture_cases(pictures)))


def test_of_fits() -> None:
    brief = {"training": TRAINING}
    cases: dict[str, Case] = {
        "fit": (ao.fit, {"frame": table_frame(), "engine": "neural", "config": {**brief, "network": MLP}}),
        "fit_text": (ao.fit_text, {"corpus": WORDS, "length": 8, "preset": "tiny", "config": brief}),
        "fit_images": (ao.fit_images, {"pictures": PICTURES, "preset": "tiny", "config": brief}),
    }
    assert_answered_or_refused(swept(cases))


def test_of_estimators() -> None:
    options = {"engine": "neural", "config": {"training": TRAINING, "network": MLP}}
    frame = table_frame()
    fitted = AnyOrderDensity(**options, random_state=0).fit(frame)

    def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
        for odd in ODD:
            yield f"sample({odd!r})", lambda odd=odd: fitted.sample(odd)
            yield f"sample(random_state={odd!r})", lambda odd=odd: fitted.sample(random_state=odd)
            for kind in (AnyOrderDensity, AnyOrderImputer):
                for name in ("minutes", "random_state"):
                    settings = {"random_state": 0, **options, name: odd}
                    yield f"{kind.__name__}({name}={odd!r})", lambda k=kind, s=settings: k(**s).fit(frame)

    assert_answered_or_refused(calls())


@pytest.mark.parametrize("options", [TableOptions, TextOptions, ImageOptions])
def test_of_options(options: type[FitOptions]) -> None:
    def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
        usual = options()
        for entry in dataclasses.fields(usual):
            value = getattr(usual, entry.name)
            for odd in ODD:
                if dataclasses.is_dataclass(value):
                    for part in dataclasses.fields(value):
                        config = {entry.name: {part.name: odd}}
                        yield f"{config}", lambda c=config: options.read(c)
                yield f"{entry.name}={odd!r}", lambda c={entry.name: odd}: options.read(c)

    assert_answered_or_refused(calls())


@pytest.mark.parametrize("threads", [most_threads() + 1, 1_000_000, 1e6])
@pytest.mark.parametrize("section", ["training", "trees"])
def test_more_threads_than_a_machine_can_start_are_refused(section: str, threads: float) -> None:
    with pytest.raises(
        UserError, match=f"threads must be a whole number, at most {most_threads()}, got {int(threads)}"
    ):
        TableOptions.read({section: {"threads": threads}})


@pytest.mark.parametrize("components", [1001, 10**9, 1e9])
@pytest.mark.parametrize("options", [TableOptions, ImageOptions])
def test_more_components_than_make_sense_are_refused(options: type[FitOptions], components: float) -> None:
    with pytest.raises(UserError, match="components must be a whole number, at most 1000"):
        options.read({"components": components})


def test_what_does_not_fit_into_memory_is_refused_with_a_way_out(table: ao.TableModel) -> None:
    with pytest.raises(UserError, match=r"n=1000000000000 needs at least 24,000\.0 GB .* ask for fewer at a time"):
        table.sample(10**12)


@pytest.mark.parametrize("device", DEVICES)
def test_devices_that_cannot_compute_are_refused(table: ao.TableModel, device: Any, tmp_path: Path) -> None:
    table.save(tmp_path / "m.anyorder")
    with pytest.raises(UserError, match=r"device .* cannot be used here \(.+\); try 'auto' or 'cpu'"):
        ao.load(tmp_path / "m.anyorder", device=device)
    with pytest.raises(UserError, match="cannot be used here"):
        ao.fit(table_frame(), device=device)


def test_every_method_with_numbers_is_swept(
    table: ao.TableModel, texts: ao.TextModel, pictures: ao.ImageModel, tmp_path: Path
) -> None:
    listed = {
        ao.TableModel: table_cases(table) | part_cases(table, tmp_path),
        ao.TextModel: text_cases(texts),
        ao.ImageModel: picture_cases(pictures),
        ao.Conditional: question_cases(table),
        ao.Answer: question_cases(table),
    }
    for cls, cases in listed.items():
        swept_names = {label.rpartition(".")[2] for label in cases}
        for name, method in inspect.getmembers(cls, inspect.isfunction):
            if not name.startswith("_") and numbers_of(method):
                assert name in swept_names, f"{cls.__name__}.{name} takes a number, and no case above sweeps it"


def test_on_the_command_line_they_end_with_status_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data, config, out = tmp_path / "d.csv", tmp_path / "c.toml", tmp_path / "m.anyorder"
    table_frame().to_csv(data, index=False)
    config.write_text("[training]\nthreads = 1000000\n", encoding="utf-8")
    assert "threads must be" in refused(capsys, "fit", str(data), "-o", str(out), "--config", str(config))
    assert "cannot be used here" in refused(capsys, "fit", str(data), "-o", str(out), "--device", "meta")
