"""Tiny data for ``--smoke``: generated, or shipped with Python and scikit-learn; nothing is fetched."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from anyorder.data.images import PictureSet, digits
from anyorder.data.text import Corpus, pydoc_topics

MINUTES = 0.01  # a budget of every training in a smoke run: some steps, no more


def numbers(rows: int = 80, columns: int = 4, seed: int = 0) -> pd.DataFrame:
    """Standardised columns that depend on each other; the last one is the sum of the others and noise."""
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((rows, columns))
    table[:, -1] = table[:, :-1].sum(axis=1) / np.sqrt(columns) + 0.3 * rng.standard_normal(rows)
    return pd.DataFrame(table, columns=[f"x{column}" for column in range(columns)])


def halves(rows: int = 80, columns: int = 4, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Three quarters to train on, and the rest."""
    frame = numbers(rows, columns, seed)
    cut = 3 * rows // 4
    return frame.iloc[:cut].reset_index(drop=True), frame.iloc[cut:].reset_index(drop=True)


def text() -> Corpus:
    """Python's help on its language in the alphabet of text8: letters and single spaces."""
    parts = pydoc_topics()
    training, validation, test = (
        re.sub(r"[^a-z]+", " ", part.lower()) for part in (parts.training, parts.validation, parts.test)
    )
    return Corpus("pydoc topics", training[:40_000], validation[:20_000], test[:20_000])


def pictures() -> PictureSet:
    """scikit-learn's digits."""
    return digits()
