"""The models of pictures that several benchmarks ask: each is trained once for a budget, and kept with its curve."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyorder as ao
from anyorder.data.images import PictureSet
from anyorder.image_options import ImageOptions
from anyorder.images import ImageModel

UNIFORM = {"name": "modes", "modes": ["random_pixels"]}
ONE, SEVEN = "one uniform mode (ARDM)", "seven modes (SFARM)"
ROWS: dict[str, dict[str, Any]] = {ONE: {"masking": UNIFORM}, SEVEN: {}}


def trained(
    data: PictureSet, row: str, config: Mapping[str, Any], minutes: float, *, seed: int, threads: int, folder: Path
) -> ImageModel:
    """The model of this row, taken from the folder if it was trained there before with the very same options.

    A run that was killed is taken up where it stood.
    """
    folder.mkdir(parents=True, exist_ok=True)
    options = {**config, "training": {**config.get("training", {}), "threads": threads}}
    file = model_file(data, row, minutes, seed=seed, threads=threads, folder=folder)
    if file.exists():
        model = ao.load(file)
        assert isinstance(model, ImageModel)
        if model.card["config"] == _plain(ImageOptions.read(options, minutes=minutes).to_json()):
            return model
    model = ao.fit_images(
        data.training,
        levels=data.levels,
        minutes=minutes,
        validation=data.validation[:512],
        seed=seed,
        config=options,
        checkpoint=file.with_suffix(".run"),
        resume=not file.exists(),
        log=file.with_suffix(".jsonl"),
    )
    model.save(file)
    return model


def learning_curve(file: Path) -> list[tuple[float, float]]:
    """Seconds of training, and the mean log p of a validation pixel then, of the model in this file."""
    points = [json.loads(line) for line in file.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()]
    return [(point["seconds"], point["validation"]) for point in points]


def model_file(data: PictureSet, row: str, minutes: float, *, seed: int, threads: int, folder: Path) -> Path:
    """Where the model of a row is kept."""
    words = f"{data.name} {row} {minutes:g} minutes {threads} thread seed {seed}"
    return folder / ("".join(letter if letter.isalnum() else "_" for letter in words) + ".anyorder")


def _plain(value: Any) -> Any:
    """As it comes back from a file."""
    return json.loads(json.dumps(value))
