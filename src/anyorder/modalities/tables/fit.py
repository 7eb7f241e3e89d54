"""From a frame to a fitted model of a table."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anyorder.data.tables import prepare
from anyorder.errors import UserError
from anyorder.modalities.card import make_card
from anyorder.modalities.tables.engines import Engine, Run, fit_engine
from anyorder.modalities.tables.model import TableModel
from anyorder.modalities.tables.options import Config
from anyorder.training.curves import curves_to
from anyorder.training.run import check_run, chosen_device, run_folder
from anyorder.variables.encoding import Encoding
from anyorder.variables.missingness import Missingness, check_missingness, with_indicators

FEWEST_ROWS = 4  # two to learn from and two to judge by


def fit(
    frame: Any,
    *,
    minutes: float | None = None,
    engine: Engine | None = None,
    seed: int = 0,
    kinds: Mapping[str, str] | None = None,
    missing: Sequence[str] = (),
    drop: Sequence[str] = (),
    bounds: Mapping[str, tuple[float | None, float | None]] | None = None,
    missingness: Missingness = "ignore",
    config: Mapping[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    log: str | Path | None = None,
    tensorboard: str | Path | None = None,
    progress: bool = False,
    device: str = "auto",
) -> TableModel:
    """Fit one model to a table; afterwards ask it any conditional question.

    Parameters
    ----------
    frame
        pandas or polars; NaN, None and the marks in ``missing`` are unknown cells, in training too.
    minutes
        The most time to train (2 by default). Ctrl-C stops earlier and keeps the best model so far.
    engine
        ``"neural"``: a network; ``"trees"``: boosted trees, quick and strong on short tables; ``"auto"``, the default:
        both, blended by how well they do on held-out rows.
    kinds
        Overrides of what a column is, such as ``{"zip": "categorical"}``.
    bounds
        The least and greatest value of a number column, such as ``{"age": (0, None)}``; ``(None, None)`` for none.
    missingness
        ``"ignore"``: a missing cell is never asked and never evidence. ``"joint"``: which cells are missing is modelled
        too, by one variable ``missing(COLUMN)`` for each column with holes (see :mod:`anyorder.variables.missingness`).
    config
        Further options, as a TOML file holds them (see :class:`~anyorder.modalities.tables.options.Config`).
    checkpoint, resume
        A folder that keeps the state of the run; with ``resume`` a killed run goes on from there.
    log, tensorboard
        A file to which the training curve is written, one JSON object a line; a folder for TensorBoard.
    """
    began = time.monotonic()
    check_run(seed, checkpoint, resume=resume)
    check_missingness(missingness)
    settings = Config.read(config, minutes=minutes, engine=engine)
    schema, table = prepare(frame, kinds=kinds, missing=missing, drop=drop, bounds=bounds)
    if len(table) < FEWEST_ROWS:
        raise UserError(f"a table needs at least {FEWEST_ROWS} rows to learn from, got {len(table)}")
    if missingness == "joint":
        _, observed = Encoding.fit(table, schema, "standard").encode(table)
        schema = with_indicators(schema, observed)
    curves = curves_to(log, tensorboard)
    folder = None if checkpoint is None else run_folder(Path(checkpoint))
    run = Run(settings, schema, table, seed, chosen_device(device), folder, curves, resume, progress, began)
    fitted = fit_engine(run)
    arguments = {"seed": seed, "kinds": dict(kinds or {}), "missing": list(missing), "drop": list(drop)}
    if bounds:
        arguments["bounds"] = {str(name): list(ends) for name, ends in bounds.items()}
    if missingness != "ignore":
        arguments["missingness"] = missingness
    return TableModel(fitted.core, make_card(fitted, settings, table, arguments))
