"""Small models of every modality, engine, network, head and protocol, and what they are asked.

A model is asked in its own words (its own draws are scored and filled in), so that a file whose columns were renamed
can still be asked. Answers are plain values; equal answers have equal JSON.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import anyorder as ao
from anyorder.cli import main as command_line
from anyorder.cli.configuration import read_configuration
from anyorder.data.tables import prepare
from anyorder.errors import UserError
from anyorder.heads import Gaussian
from anyorder.modalities.face import FittedModel
from anyorder.modalities.tables.model import TableModel
from anyorder.modalities.tables.options import TableOptions
from anyorder.model import AnyOrderModel
from anyorder.protocols import Canonical
from anyorder.training.rows import encoded_rows
from anyorder.variables.encoding import Encoding

STEPS = 2  # of training: a file is attacked, not admired
CORPUS = "the quick brown fox jumps over the lazy dog and sees that the bird sings. " * 12
ROWS = {"training": {"steps": STEPS, "minutes": None, "batch": 8, "validation_queries": 8, "validate_every": 2}}


MLP = {"name": "residual_mlp", "width": 8, "blocks": 1}
CHAIN = {"name": "causal_transformer", "width": 8, "blocks": 1, "heads": 2}
BOTH_WAYS = {"name": "bidirectional_transformer", "width": 8, "blocks": 1, "heads": 2}
UNET = {"name": "unet", "channels": 8, "blocks": 1, "levels": 1}


def table(rows: int = 60, seed: int = 0) -> pd.DataFrame:
    """A column of every kind, holes in some of them."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, rows)
    size = rng.normal(kind, 0.7)
    frame = pd.DataFrame(
        {
            "size": np.round(size, 4),
            "count": rng.poisson(3 + 6 * kind) + 20,
            "half": rng.choice([0.0, 0.5, 1.0], rows),
            "flag": (size > 1) ^ (rng.random(rows) < 0.1),
            "kind": np.array(["ash", "birch", "cedar"])[kind],
            "day": pd.Timestamp("2024-03-01") + pd.to_timedelta(rng.integers(0, 200, rows), unit="D"),
            "moment": pd.Timestamp("2024-03-01") + pd.to_timedelta(rng.integers(0, 10**7, rows), unit="s"),
            "grade": pd.Categorical(np.array(list("dcba"))[rng.integers(0, 4, rows)], list("dcba"), ordered=True),
            "rain": np.where(rng.random(rows) < 0.4, 0.0, np.round(rng.gamma(2.0, 1.5, rows), 3)),
            "share": np.round(rng.beta(2, 3, rows), 4),
        }
    )
    for name in ("size", "kind", "rain"):
        frame.loc[rng.random(rows) < 0.1, name] = None
    return frame


def numbers(rows: int = 60, columns: int = 4) -> pd.DataFrame:
    """Standard normal columns."""
    return pd.DataFrame(
        np.round(np.random.default_rng(1).standard_normal((rows, columns)), 4), columns=[*"abcdefgh"[:columns]]
    )


def fitted_table(
    path: Path,
    network: Mapping[str, Any],
    *,
    engine: str = "neural",
    frame: pd.DataFrame | None = None,
    head: Mapping[str, Any] | None = None,
    protocol: str = "canonical",
    encoding: str = "standard",
    **more: Any,
) -> None:
    """A model of a table."""
    config = {
        "network": dict(network),
        "components": 2,
        "protocol": {"name": protocol},
        "encoding": encoding,
        "trees": {"members": 1, "rounds": 2, "leaves": 3, "bins": 4, "shown": 200},
        "heads": {"continuous": dict(head)} if head else {},
        **ROWS,
    }
    given = table() if frame is None else frame
    _saved(ao.fit(given, engine=engine, config=config, seed=1, **more), path)


def fitted_text(path: Path, network: Mapping[str, Any], *, unit: str = "characters") -> None:
    """A model of windows of twelve characters."""
    config = {"network": dict(network), **ROWS}
    _saved(ao.fit_text(CORPUS, length=12, unit=unit, preset="tiny", config=config, seed=1), path)


def pictures(levels: int, channels: int = 1) -> np.ndarray:
    """Twelve pictures of 4 x 4 pixels."""
    shape = (12, 4, 4) if channels == 1 else (12, 4, 4, channels)
    return np.random.default_rng(2).integers(0, levels, shape).astype(np.uint8)


def fitted_pictures(
    path: Path, levels: int, network: Mapping[str, Any], *, channels: int = 1, head: str = "auto", **more: Any
) -> None:
    """A model of small pictures."""
    config = {"network": dict(network), "head": head, "components": 2, **more, **ROWS}
    _saved(ao.fit_images(pictures(levels, channels), levels=levels, preset="tiny", config=config, seed=1), path)


def gaussian(path: Path) -> None:
    """The closed-form Gaussian, which no engine fits by itself."""
    schema, frame = prepare(numbers())
    encoding = Encoding.fit(frame, schema, "standard")
    model = AnyOrderModel.build(encoding, [Gaussian()] * 4, {"name": "gaussian"}, Canonical(), seed=0)
    rows = encoded_rows(encoding, frame)
    model.network.prepare(rows.values, rows.observed)
    _saved(TableModel(model, {"arguments": {}, "config": {}}), path)


def _saved(model: FittedModel, path: Path) -> None:
    """Written without what differs from run to run, so that a case can be run again."""
    model.card["created"] = "2026-01-01T00:00:00+00:00"
    if "training" in model.card:
        model.card["training"]["seconds"] = 1.0
    model.save(path)


def ask_model(path: Path, _: Path) -> Any:
    """What a model of any modality says of its own draws, and the command that shows its card."""
    model = ao.load(path)
    questions = {"table": _of_a_table, "text": _of_a_text, "images": _of_pictures}[model.modality]
    answers = {name: _answer(question) for name, question in questions(model, path).items()}
    answers["info"] = _answer(lambda: _shown(path))
    return answers


def _answer(question: Callable[[], Any]) -> Any:
    """The answer; of a question that is refused, that it was."""
    try:
        return plain(question())
    except UserError as error:
        return {"refused": re.sub(r"'/[^']*'", "", str(error))}


def _of_a_table(model: Any, path: Path) -> dict[str, Callable[[], Any]]:
    @cache
    def drawn() -> pd.DataFrame:
        return model.sample(2, seed=3)

    @cache
    def holes() -> pd.DataFrame:
        frame = drawn().copy().astype(object)
        for column, name in enumerate(frame.columns):
            if column % 2:
                frame[name] = None
        return frame

    first, last = model.schema.names[0], model.schema.names[-1]
    return {
        "log_prob": lambda: model.log_prob(table(2, seed=9)[[n for n in table(2).columns if n in model.schema.names]]),
        "sample": lambda: complete(drawn()),
        "log_prob of draws": lambda: scored(model.log_prob(drawn())),
        "fill": lambda: complete(model.fill(holes())),
        "first": lambda: _summary(model[first]),
        "last": lambda: _summary(model.given({first: drawn()[first].iloc[0]})[last]),
        "configuration": lambda: TableOptions.read(read_configuration(path)[1]).to_json(),
    }


def _summary(answer: Any) -> Any:
    try:
        probs = answer.probs()
    except UserError:
        return answer.quantile([0.1, 0.5, 0.9])
    return list(probs.values()) if len(probs) < 100 else len(probs)


def _of_a_text(model: Any, _: Path) -> dict[str, Callable[[], Any]]:
    @cache
    def drawn() -> list[str]:
        return model.sample(2, seed=3)

    def filled() -> Any:
        mark = next(mark for mark in "_?#~\0" if mark not in drawn()[0])
        found = model.fill(drawn()[0][:2] + mark * 2 + drawn()[0][4:], mark=mark)
        return [found.text, found.nats, list(found.confidence)]

    return {
        "log_prob": lambda: model.log_prob(["the qu", "lazy"]),
        "sample": drawn,
        "log_prob of draws": lambda: (
            scored(model.log_prob(drawn()[:1])) if model.alphabet.unit == "characters" else None
        ),
        "fill": filled,
        "sample by drafts": lambda: model.sample(1, seed=1, drafts=2),
        "bits": lambda: model.bits_per_character(CORPUS[:24]),
        "compressed": lambda: model.decompress(model.compress(CORPUS[:20])) == CORPUS[:20],
    }


def _of_pictures(model: Any, _: Path) -> dict[str, Callable[[], Any]]:
    @cache
    def drawn() -> np.ndarray:
        return model.sample(1, steps=4, seed=3)

    def known() -> np.ndarray:
        out = np.zeros(model.shape[:2], dtype=bool)
        out[:, : model.shape[1] // 2] = True
        return out

    mode = model.modes[1] if len(model.modes) > 1 else None
    return {
        "sample": drawn,
        "log_prob of draws": lambda: scored(model.log_prob(drawn())),
        "log_prob": lambda: model.log_prob(drawn(), known=known(), mode=mode),
        "fill": lambda: model.fill(drawn()[0], known(), seed=1, mode=mode),
        "fill in steps": lambda: model.fill(drawn()[0], known(), steps=2, seed=1),
    }


def _shown(path: Path) -> str:
    """What ``anyorder info`` prints; it may end with 0 or 2."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = command_line(["info", str(path)])
    if status not in (0, 2):
        raise RuntimeError(f"anyorder info ended with {status}: {err.getvalue().strip()}")
    if status == 2:
        raise UserError(err.getvalue())
    return out.getvalue()


def scored(nats: Any) -> Any:
    """Log-probabilities, of which none may be nothing: a model gives its own draws some probability."""
    if not np.isfinite(np.asarray(nats, dtype=np.float64)).all():
        raise ArithmeticError(f"the log-probabilities {np.asarray(nats).tolist()} are not finite")
    return nats


def complete(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows that were drawn or filled in: none of their cells may be missing or infinite."""
    for name, column in rows.items():
        odd = [cell for cell in column if pd.isna(cell) or (isinstance(cell, float) and math.isinf(cell))]
        if odd:
            raise ArithmeticError(f"the column {name!r} has cells that are not known or not finite: {odd}")
    return rows


def plain(value: Any) -> Any:
    """As JSON holds it; a float that is no number is refused, missing cells of a frame are not."""
    if isinstance(value, pd.DataFrame):
        return {str(name): [str(cell) for cell in value[name]] for name in value.columns}
    if isinstance(value, pd.Series):
        return plain(value.to_numpy())
    if isinstance(value, np.ndarray | torch.Tensor):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        if math.isnan(value):
            raise ArithmeticError("an answer is not a number")
        return repr(value)
    return value if isinstance(value, str | int | bool | None) else str(value)


MODELS: tuple[tuple[str, str, Callable[[Path], None]], ...] = (
    ("table", "table_neural", partial(fitted_table, network=MLP)),
    ("table", "table_trees", partial(fitted_table, network=MLP, engine="trees")),
    (
        "table",
        "table_blend",
        partial(fitted_table, network=MLP, engine="auto", missingness="joint", bounds={"share": (0, 1)}),
    ),
    ("table", "table_expert", partial(fitted_table, network=MLP | {"expert": True}, encoding="normal_scores")),
    ("table", "table_gaussian", gaussian),
    ("table", "table_chain", partial(fitted_table, network=CHAIN, protocol="hashed")),
    ("table", "table_bidirectional", partial(fitted_table, network=BOTH_WAYS, protocol="random")),
    ("table", "table_perceptron", partial(fitted_table, network={"name": "sfarm_mlp", "width": 8, "layers": 1})),
    *(
        (
            "table",
            f"table_{head['name']}",
            partial(fitted_table, network=MLP, frame=numbers(), head=head, bounds={"a": (-9, None)}),
        )
        for head in (
            {"name": "spline", "bins": 4},
            {"name": "student_mixture", "components": 2},
            {"name": "energy", "components": 2, "latent": 2, "hidden": 4, "draws": 2, "evaluation_draws": 8},
        )
    ),
    ("text", "text_chain", partial(fitted_text, network=CHAIN | {"positions": "rotary"})),
    ("text", "text_bidirectional", partial(fitted_text, network=BOTH_WAYS)),
    ("text", "text_bytes", partial(fitted_text, network=CHAIN, unit="bytes")),
    ("pictures", "pictures_binary", partial(fitted_pictures, levels=2, network=UNET)),
    ("pictures", "pictures_levels", partial(fitted_pictures, levels=5, network=UNET | {"attention": "none"})),
    ("pictures", "pictures_mixture", partial(fitted_pictures, levels=64, network=UNET, head="mixture")),
    ("pictures", "pictures_colour", partial(fitted_pictures, levels=64, network=UNET, channels=3, head="mixture")),
    (
        "pictures",
        "pictures_channels",
        partial(fitted_pictures, levels=4, network=UNET, channels=3, variables="channels"),
    ),
    ("pictures", "pictures_mlp", partial(fitted_pictures, levels=4, network=MLP, head="categorical")),
)
