"""The demonstration on pictures: fit scikit-learn's digits, hide parts of digits the model has not seen, fill them.

The baseline is nearest neighbours: the training digits closest in the known pixels give the missing ones, as many as
there are draws. Both are scored by the root mean square error of their means on the missing pixels, and by the energy
score, a proper score: it rewards draws that are close and as spread out as they should be. The columns of the picture
are the digit, its known part, four draws and their mean.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, UInt8

from anyorder.data.images import digits
from anyorder.data.picture_files import write_picture
from anyorder.modalities.images.fit import fit_images
from anyorder.modalities.images.plots import grid, hidden, shades
from anyorder.modalities.images.scores import energy_score

SHOWN, DRAWS, TESTED = 8, 12, 64


def run_image_demo(out: Path, *, minutes: float, seed: int = 0, progress: bool = False) -> dict[str, Any]:
    """Fit, fill, score, and write the picture; returns the scores."""
    began = time.monotonic()
    data = digits()
    model = fit_images(
        data.training,
        levels=data.levels,
        minutes=minutes,
        preset="tiny",
        validation=data.validation,
        seed=seed,
        # A mixture over ordered levels learns sooner than free levels; pictures this small allow a larger batch.
        config={"head": "mixture", "training": {"batch": 32, "learning_rate": 4e-3}},
        progress=progress,
    )
    test = data.test[:TESTED]
    rows: list[np.ndarray] = []
    scores: list[dict[str, Any]] = []
    for name, known in holes().items():
        filled = model.fill(test, known, draws=DRAWS, seed=seed).astype(np.float64)
        nearest = neighbours(data.training, test, known)
        missing, masks = ~known, np.broadcast_to(known, test.shape)
        scores.append(
            {
                "hidden": name,
                "anyorder RMSE": rmse(filled.mean(axis=0), test, missing),
                "neighbours' RMSE": rmse(nearest.mean(axis=0), test, missing),
                "anyorder energy score": float(energy_score(filled, test, masks, data.levels - 1).mean()),
                "neighbours' energy score": float(energy_score(nearest, test, masks, data.levels - 1).mean()),
            }
        )
        shown = slice(len(rows), len(rows) + SHOWN)
        columns = [shades(test[shown], data.levels), hidden(shades(test[shown], data.levels), masks[shown])]
        columns += [shades(filled[draw, shown], data.levels) for draw in range(4)]
        columns.append(shades(filled[:, shown].mean(axis=0), data.levels))
        rows += [np.stack([column[digit] for column in columns]) for digit in range(SHOWN)]
    # Two digits a line.
    lines = [np.concatenate(rows[start : start + 2]) for start in range(0, len(rows), 2)]
    write_picture(grid(lines, scale=4), out)
    return {
        "scores": scores,
        "seconds": round(time.monotonic() - began, 1),
        "picture": str(out),
        "parameters": model.card["training"]["parameters"],
    }


def holes() -> dict[str, Bool[np.ndarray, "height width"]]:
    """The known pixels, by what is hidden: the right half, the lower half, a patch."""
    left, upper, around = (np.zeros((8, 8), dtype=bool) for _ in range(3))
    left[:, :4] = True
    upper[:4] = True
    around[:] = True
    around[2:6, 2:6] = False
    return {"right half": left, "lower half": upper, "patch in the middle": around}


def neighbours(
    training: UInt8[np.ndarray, "pictures height width"],
    test: UInt8[np.ndarray, "tests height width"],
    known: Bool[np.ndarray, "height width"],
) -> Float[np.ndarray, "draws tests height width"]:
    """The training pictures closest in the known pixels, closest first: as many as there are draws."""
    seen, asked = (part[:, known].astype(np.float64) for part in (training, test))
    distance = ((asked[:, None] - seen[None]) ** 2).sum(axis=2)
    order = distance.argsort(axis=1)[:, :DRAWS]
    return np.asarray(training[order.T], dtype=np.float64)


def rmse(
    guess: Float[np.ndarray, "tests height width"], truth: np.ndarray, missing: Bool[np.ndarray, "height width"]
) -> float:
    """Root mean square error over the missing pixels of all pictures, in levels."""
    return float(np.sqrt(((guess - truth)[:, missing] ** 2).mean()))
