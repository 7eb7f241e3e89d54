"""The demonstration on text: fit Python's own help on its language, hide parts of pages it has not seen, fill them.

The baselines are what anyone can count: how often each character occurs, and which character follows the last three
(a 4-gram, which is asked for holes as exactly as the model is). All are scored in bits per hidden character.
"""

from __future__ import annotations

import math
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool

from anyorder.data.text import Corpus, pydoc_topics
from anyorder.modalities.texts.fit import fit_text
from anyorder.modalities.texts.model import Filling, TextModel
from anyorder.modalities.texts.plots import plot_fillings
from anyorder.support.plotting import save_figure

LENGTH, TESTED, MARK = 200, 12, "\x00"


def run_text_demo(
    out: Path, *, minutes: float, seed: int = 0, progress: bool = False
) -> tuple[dict[str, Any], TextModel, list[Filling]]:
    """Fit, fill, score, and draw the fills; returns the scores, the model and how it filled one page, twice."""
    began = time.monotonic()
    corpus = prose()
    model = fit_text(
        corpus.training, length=LENGTH, minutes=minutes, validation=corpus.validation, seed=seed, progress=progress
    )
    fitted = time.monotonic() - began
    plain = fit_text(corpus.training, length=LENGTH, engine="counts", validation=corpus.validation, config={"order": 4})
    letters = fit_text(
        corpus.training, length=LENGTH, engine="counts", validation=corpus.validation, config={"order": 1}
    )
    windows = pages(corpus, model)
    fillings: list[Filling] = []
    names: list[str] = []
    shown: list[str] = []
    scores = []
    for name, run in (("scattered characters", None), ("stretches of six", 6)):
        hidden = holes(len(windows), run, seed)
        given = ~hidden
        bits = {
            label: -float(own.log_prob(windows, given=given).sum()) / math.log(2) / hidden.sum()
            for label, own in (("anyorder", model), ("4-gram", plain), ("letters", letters))
        }
        asked = "".join(MARK if hole else character for character, hole in zip(windows[0], hidden[0], strict=True))
        filled = model.fill(asked, mark=MARK)
        right = np.mean([filled.text[at] == windows[0][at] for at in filled.holes])
        fillings.append(filled)
        names.append(name.split()[0])
        shown.append(asked.replace(MARK, "_"))
        scores.append(
            {
                "hidden": name,
                "anyorder, bits": bits["anyorder"],
                "4-gram, bits": bits["4-gram"],
                "letters alone, bits": bits["letters"],
                "right on this page": f"{right:.0%}",
            }
        )
    save_figure(plot_fillings(shown, fillings, names), out)
    result = {
        "scores": scores,
        "fit_seconds": round(fitted, 1),
        "seconds": round(time.monotonic() - began, 1),
        "picture": str(out),
    }
    return result, model, fillings


def prose() -> Corpus:
    """Python's help with its line breaks and tables made single spaces."""
    own = pydoc_topics()
    parts = (re.sub(r"[\s|+=\-*]+", " ", part) for part in (own.training, own.validation, own.test))
    return Corpus(own.name, *parts)


def pages(corpus: Corpus, model: TextModel) -> list[str]:
    """Stretches of the test part, evenly spread, all of whose characters the model knows; the plainest one first."""
    starts = np.linspace(0, len(corpus.test) - LENGTH - 1, 4 * TESTED).astype(int)
    found = [corpus.test[start : start + LENGTH] for start in starts]
    known = [text for text in found if (model.alphabet.encode(text) >= 0).all()][:TESTED]
    return sorted(known, key=lambda text: -sum(character.islower() or character == " " for character in text))


def holes(count: int, run: int | None, seed: int) -> Bool[np.ndarray, "texts positions"]:
    """Three in ten positions, or stretches of so many."""
    rng = np.random.default_rng(seed)
    if run is None:
        return rng.random((count, LENGTH)) < 0.3
    hidden = np.zeros((count, LENGTH), dtype=bool)
    for row in hidden:
        for start in rng.choice(np.arange(0, LENGTH - run, 2 * run), 8, replace=False):
            row[start : start + run] = True
    return hidden
