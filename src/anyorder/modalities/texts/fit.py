"""Fitting a text: the corpus is cut, one model is trained on its windows, judged on the end of the corpus."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from anyorder.data.text import Alphabet, Unit, Windows, read_corpus
from anyorder.errors import UserError
from anyorder.masking import maskings
from anyorder.modalities.card import run_card
from anyorder.modalities.texts.core import WindowRows, codes_of, text_masking, text_model
from anyorder.modalities.texts.model import TextModel
from anyorder.modalities.texts.options import TextOptions
from anyorder.protocols import protocols
from anyorder.training.curves import curves_to
from anyorder.training.loop import Trainer
from anyorder.training.objectives import objective_for
from anyorder.training.progress import training_bar
from anyorder.training.run import check_run, chosen_device, run_folder


def fit_text(
    corpus: Any,
    *,
    length: int = 250,
    unit: Unit = "characters",
    minutes: float | None = None,
    preset: str | None = None,
    validation: Any = None,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    log: str | Path | None = None,
    tensorboard: str | Path | None = None,
    progress: bool = False,
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
        The most time to train (10 by default). Ctrl-C stops earlier and keeps the best model so far.
    preset
        The size of the network: ``tiny``, ``small`` (the default), ``medium``, ``mac``.
    validation
        Text to judge by; by default the last twentieth of the corpus is kept back for it.
    config, checkpoint, resume, log, tensorboard
        As in :func:`anyorder.fit`; options are those of :class:`~anyorder.modalities.texts.options.TextOptions`.
    """
    began = time.monotonic()
    check_run(seed, checkpoint, resume=resume)
    options = TextOptions.read(config, minutes=minutes, preset=preset)
    text = read_corpus(corpus)
    if not text:
        raise UserError("the corpus is empty: there is nothing to learn from")
    alphabet = Alphabet.of(text, unit)
    codes = codes_of(alphabet, text)
    if validation is None:
        held_out = max(length, round(options.validation_share * len(codes)))
        if len(codes) < held_out + length:
            raise UserError(
                f"a corpus needs two windows of {length} characters at least, one to learn from and one to judge by; "
                f"got {len(codes)} characters: make length smaller or give more text"
            )
        codes, judges = codes[:-held_out], codes[-held_out:]
    else:
        judges = codes_of(alphabet, read_corpus(validation))
    model = text_model(alphabet, length, options.described_network(), protocols.build(options.protocol), seed=seed)
    auto = options.masking.get("name") == "auto"
    masking = text_masking(alphabet, model.network) if auto else maskings.build(options.masking)
    folder = None if checkpoint is None else run_folder(Path(checkpoint))
    # Evenly spread over the held-out text, none twice.
    rows = WindowRows(Windows(judges, length))
    spread = torch.linspace(0, len(rows) - 1, options.training.validation_queries).long().unique()
    trainer = Trainer(
        model.to(chosen_device(device)),
        objective_for(model, masking, **options.objective),
        WindowRows(Windows(codes, length)),
        rows.take(spread),
        options.training,
        seed=seed,
        checkpoint=None if folder is None else folder / "text.checkpoint",
        curves=curves_to(log, tensorboard),
        label="text",
    )
    trainer.progress.seconds = time.monotonic() - began  # preparation counts against the budget
    trainer.take_up(resume=resume)
    with training_bar(progress) as watch:
        trainer.run(watch=watch)
    core = trainer.finish().cpu()
    card = run_card(
        trainer,
        time.monotonic() - began,
        "nats per character, held-out text, random queries",
        modality="text",
        alphabet={"symbols": alphabet.symbols, "unit": alphabet.unit},
        data={"characters": len(text), "fingerprint": _fingerprint(text)},
        arguments={"seed": seed, "length": length},
        config=options.to_json(),
    )
    return TextModel(core, card)


def _fingerprint(text: str) -> str:
    """Tells whether two models saw the same corpus; half a surrogate is a character like any other."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
