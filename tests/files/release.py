"""The models that every release leaves behind, and what they are asked.

``python tests/files/release.py v2`` makes a folder of them; ``tests/test_release_files.py`` loads every folder and
compares. A folder is made once, by the release it is named after, and never again: files that people have saved
cannot be made again either.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import anyorder as ao

HERE = Path(__file__).resolve().parent


def every_kind(rows: int = 120, seed: int = 0) -> pd.DataFrame:
    """A table with a column of every kind, holes in some of them."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, rows)
    size = rng.normal(kind, 0.7)
    rain = np.where(rng.random(rows) < 0.4, 0.0, np.round(rng.gamma(2.0, 1.5, rows), 3))
    grade = np.clip(np.round(size + 1 + rng.normal(0, 0.5, rows)), 0, 3).astype(int)
    table = pd.DataFrame(
        {
            "size": np.round(size, 4),
            "count": rng.poisson(3 + 6 * kind) + 20,
            "half": rng.choice([0.0, 0.5, 1.0], rows, p=[0.2, 0.5, 0.3]),
            "flag": (size > 1) ^ (rng.random(rows) < 0.1),
            "kind": np.array(["ash", "birch", "cedar"])[kind],
            "day": pd.Timestamp("2024-03-01") + pd.to_timedelta(rng.integers(0, 200, rows), unit="D"),
            "moment": pd.Timestamp("2024-03-01") + pd.to_timedelta(rng.integers(0, 10**7, rows), unit="s"),
            "grade": pd.Categorical(
                np.array(["d", "c", "b", "a"])[grade], categories=["d", "c", "b", "a"], ordered=True
            ),
            "rain": rain,
        }
    )
    for name in ("size", "kind", "rain"):
        table.loc[rng.random(rows) < 0.1, name] = None
    return table


def fit_table(engine: str, **more: Any) -> Any:
    config = {
        "network": {"name": "residual_mlp", "width": 24, "blocks": 1},
        "components": 3,
        "trees": {"members": 1, "rounds": 4, "leaves": 3, "bins": 6, "shown": 600},
        "training": {"steps": 60, "batch": 32, "validation_queries": 50, "validate_every": 20, "minutes": None},
    }
    return ao.fit(every_kind(), engine=engine, config=config, seed=1, **more)  # type: ignore[arg-type]


def ask_table(model: Any) -> dict[str, Any]:
    new = every_kind(6, seed=9)
    given = model.given(kind="birch", count=25)
    out = {
        "kinds": {variable.name: variable.kind.value for variable in model.schema.variables},
        "log_prob": model.log_prob(new).tolist(),
        "log_prob given": model.log_prob(new, given=["kind", "count"]).tolist(),
        "log_prob over orders": model.log_prob(new, orders=3, seed=5).tolist(),
        "quantiles": [given[name].quantile([0.1, 0.5, 0.9]) for name in ("size", "rain", "moment", "day")],
        "probs": [list(given[name].probs().values()) for name in ("flag", "half", "grade")],
        "mean": given["size"].mean(),
        "sample": given.sample(5, seed=3),
        "fill": model.fill(new),
        "fill drawn": model.fill(new, draws=2, seed=4)[1],
        "prob": float(model.prob("size > 1, flag=true | count=25")),
        "range": float(model.given(count="20..25").using(draws=64, seed=2)["size"].mean()),
        "anomaly": [(str(found.column), found.row) for found in model.anomalies(new, top=3)],
    }
    return _plain(out)


def fit_words() -> Any:
    corpus = "the quick brown fox jumps over the lazy dog and sees that the bird sings. " * 30
    config = {
        "network": {"name": "causal_transformer", "width": 16, "blocks": 1, "heads": 2},
        "training": {"steps": 60, "minutes": None, "validation_queries": 20, "validate_every": 20},
    }
    return ao.fit_text(corpus, length=24, preset="tiny", config=config, seed=1)


def ask_text(model: Any) -> dict[str, Any]:
    filled = model.fill("the q__ck br_wn f_x")
    return _plain(
        {
            "log_prob": model.log_prob(["the quick", "lazy dog and sees"]),
            "fill": [filled.text, filled.nats, list(filled.confidence)],
            "fill drawn": [drawn.text for drawn in model.fill("the q__ck br_wn f_x", draws=3, seed=2)],
            "sample": model.sample(3, beginning="the ", seed=1),
            "sample by drafts": model.sample(2, seed=1, drafts=4),
            "sample in calls": model.sample(2, seed=1, calls=6),
            "bits": model.bits_per_character("the quick brown fox jumps over the lazy dog and sees"),
        }
    )


def crosses(count: int = 60, seed: int = 0, *, colour: bool = False) -> Any:
    """Pictures of 8 x 8 pixels in four levels: a cross of two bars."""
    if colour:
        return np.stack([crosses(count, seed + channel) for channel in range(3)], axis=-1)
    rng = np.random.default_rng(seed)
    out = rng.integers(0, 2, (count, 8, 8))
    for picture in out:
        picture[rng.integers(0, 8)] = 3
        picture[:, rng.integers(0, 8)] = 2
    return out.astype(np.uint8)


def fit_pictures(levels: int, *, colour: bool = False) -> Any:
    config = {
        "network": {"name": "unet", "channels": 8, "blocks": 1, "levels": 1},
        "training": {"steps": 40, "minutes": None, "validation_queries": 20, "validate_every": 20, "batch": 8},
        "head": "mixture" if levels > 32 else "auto",
        "components": 2,
    }
    pictures = crosses(colour=colour) * (64 if levels > 32 else 1)
    return ao.fit_images(pictures, levels=levels, preset="tiny", config=config, seed=1)


def ask_pictures(model: Any) -> dict[str, Any]:
    some = crosses(3, seed=5, colour=len(model.shape) == 3) * (64 if model.levels > 32 else 1)
    known = np.zeros((8, 8), dtype=bool)
    known[:, :4] = True
    return _plain(
        {
            "modes": list(model.modes),
            "log_prob": model.log_prob(some),
            "log_prob given": model.log_prob(some, known=known, orders=2, seed=3),
            "log_prob in a mode": model.log_prob(some, known=known, mode="left_to_right"),
            "fill": model.fill(some[0], known, draws=2, seed=1),
            "fill in steps": model.fill(some[0], known, steps=4, seed=1, mode="left_to_right"),
            "sample": model.sample(2, steps=6, seed=2),
        }
    )


MODELS: dict[str, tuple[Callable[[], Any], Callable[[Any], dict[str, Any]]]] = {
    "table_neural": (lambda: fit_table("neural"), ask_table),
    "table_trees": (lambda: fit_table("trees"), ask_table),
    "table_both": (lambda: fit_table("auto", missingness="joint"), ask_table),
    "text": (fit_words, ask_text),
    "pictures_few_levels": (lambda: fit_pictures(4), ask_pictures),
    "pictures_many_levels": (lambda: fit_pictures(256), ask_pictures),
    "pictures_in_colour": (lambda: fit_pictures(256, colour=True), ask_pictures),
}


def _plain(value: Any) -> Any:
    """As JSON holds it."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, pd.DataFrame):
        return {str(name): _plain(list(value[name])) for name in value.columns}
    if isinstance(value, np.ndarray | pd.Series | pd.Index):
        return _plain(list(value))
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    return str(value)


def make(folder: Path) -> None:
    folder.mkdir()
    for name, (fit, ask) in MODELS.items():
        model = fit()
        model.save(folder / f"{name}.anyorder")
        answers = ask(model)
        (folder / f"{name}.json").write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make(HERE / sys.argv[1])
