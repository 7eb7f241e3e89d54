"""Fitting a text: the corpus is cut, one model is trained on its windows, judged on the end of the corpus."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from anyorder.data.text import Alphabet, Unit, Windows, read_corpus
from anyorder.errors import UserError
from anyorder.masking import maskings
from anyorder.modalities.fit import Run, fit_card, run_fit
from anyorder.modalities.texts.core import WindowRows, codes_of, text_masking, text_model
from anyorder.modalities.texts.engines import WITH_BOTH, WITH_NETWORK, Counting, Engine, mixing_seconds
from anyorder.modalities.texts.model import TextModel
from anyorder.modalities.texts.options import TextOptions
from anyorder.protocols import protocols
from anyorder.support.checks import whole


def fit_text(
    corpus: Any,
    *,
    length: int = 250,
    unit: Unit = "characters",
    minutes: float | None = None,
    preset: str | None = None,
    engine: Engine | None = None,
    validation: Any = None,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    log: str | Path | None = None,
    tensorboard: str | Path | None = None,
    progress: bool | None = None,
    device: str = "auto",
) -> TextModel:
    """Fit one model to a corpus; afterwards fill, continue, score and draw texts.

    Parameters
    ----------
    corpus
        A text, a list of texts, or a ``pathlib.Path`` to one (UTF-8; .xz and .zip are unpacked).
    length
        How many positions a window has: how far the model sees.
    unit
        ``"characters"``: the alphabet is what the corpus has. ``"bytes"``: any text at all, as its UTF-8 bytes.
    minutes
        The most time to train (10 by default; a recipe has so many steps instead). Ctrl-C stops earlier and keeps the
        best model so far.
    preset
        The size of the network: ``tiny``, ``small`` (the default), ``medium``, ``mac``; or a paper's whole recipe for
        text8, under what else is said: ``mac_text8``, ``ardm_text8``.
    engine
        ``"auto"``: a network and counts of the corpus, which answer together. ``"counts"``: the counts alone, in
        seconds. ``"neural"``: the network alone.
    validation
        Text to judge by; by default the last twentieth of the corpus is kept back for it.
    seed
        Decides the first weights and the order of training; the same seed gives the same model.
    config, checkpoint, resume, log, tensorboard
        As in :func:`anyorder.fit`; options are those of :class:`~anyorder.modalities.texts.options.TextOptions`.
    progress
        How far it is, in a line: None for one on a terminal or in a notebook once two seconds have passed, True for one
        anywhere (where there is no terminal, a line now and then), False for none.
    device
        ``"auto"`` takes a graphics processor where there is one.

    Returns
    -------
    TextModel

    Examples
    --------
    >>> quick = {"training": {"steps": 5, "minutes": None}}
    >>> ao.fit_text("to be or not to be, " * 20, length=16, preset="tiny", config=quick)
    TextModel(length 16, 8 symbols)
    """
    run = Run.start(seed, device, checkpoint, resume=resume, log=log, tensorboard=tensorboard, progress=progress)
    options = TextOptions.read(config, minutes=minutes, preset=preset, engine=engine)
    length = whole("length", length, 2)
    text = read_corpus(corpus)
    if not text:
        raise UserError("the corpus is empty: there is nothing to learn from")
    alphabet = Alphabet.of(text, unit)
    codes = codes_of(alphabet, text)
    if validation is None:
        kept_back = max(length, round(options.validation_share * len(codes)))
        if len(codes) < kept_back + length:
            raise UserError(
                f"a corpus needs at least two windows of {length} characters, to learn from and for validation; "
                f"got {len(codes)} characters: make length smaller or give more text"
            )
        codes, held_out = codes[:-kept_back], codes[-kept_back:]
    else:
        held_out = codes_of(alphabet, read_corpus(validation))
    core = text_model(alphabet, length, options.described_network(), protocols.build(options.protocol), seed=run.seed)
    auto = options.masking.get("name") == "auto"
    masking = text_masking(alphabet, core.network) if auto else maskings.build(options.masking)
    # Evenly spread over the held-out text, none twice.
    rows = WindowRows(Windows(held_out, length))
    judges = rows.take(torch.linspace(0, len(rows) - 1, options.training.validation_queries).long().unique())
    more = held_out if validation is None else held_out[:0]
    counting = Counting(codes, more, options.order, core.network.layout, judges, masking, run.seed)
    facts: dict[str, Any] = {
        "modality": TextModel.modality,
        "unit": "nats per character, held-out text, random queries",
        "data": {"characters": len(text), "fingerprint": _fingerprint(text)},
        "arguments": {"length": length},
        "alphabet": {"symbols": alphabet.symbols, "unit": alphabet.unit},
    }
    if options.engine in WITH_NETWORK:
        together = options.engine in WITH_BOTH
        seconds = mixing_seconds(options.training.minutes)
        if together and run.processes.leads:
            counting.make_ready()
        core, card = run_fit(
            run,
            core,
            options,
            masking,
            WindowRows(Windows(codes, length)),
            judges,
            reserved=(seconds or 0.0) if together else 0.0,
            complete=(lambda trained, stop: counting.together(trained, seconds, stop)) if together else None,
            **facts,
        )
    else:
        if run.folder is not None or run.curves:
            raise UserError("counting takes seconds and has no curve: leave out checkpoint, log and tensorboard")
        core, scores = counting.alone(core)
        card = fit_card(run, core, options, [], scores, **facts)
    card["training"]["engine"] = options.engine
    return TextModel(core, card)


def _fingerprint(text: str) -> str:
    """Tells whether two models saw the same corpus; half a surrogate is a character like any other."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
