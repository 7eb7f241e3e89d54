"""The models of pictures that several benchmarks ask: each is trained once for a budget, and kept with its curve."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyorder as ao
from anyorder.data.images import PictureSet
from anyorder.modalities.images.model import ImageModel
from anyorder.modalities.images.options import ImageOptions

ONE, SEVEN = "one uniform mode (ARDM)", "seven modes (SFARM)"
ROWS: dict[str, dict[str, Any]] = {ONE: {"masking": {"name": "modes", "modes": ["random_pixels"]}}, SEVEN: {}}


def trained(
    data: PictureSet, row: str, config: Mapping[str, Any], minutes: float, *, seed: int, threads: int, folder: Path
) -> tuple[ImageModel, list[tuple[float, float]]]:
    """The model of this row, and its curve: seconds, and the mean log p of a validation pixel then.

    Taken from the folder if it was trained there before with the very same options; a run that was killed is taken up
    where it stood.
    """
    folder.mkdir(parents=True, exist_ok=True)
    options = {**config, "training": {**config.get("training", {}), "threads": threads}}
    said = json.dumps([ImageOptions.read(options, minutes=minutes).to_json(), seed], sort_keys=True)
    words = "".join(letter if letter.isalnum() else "_" for letter in f"{data.name} {row}")
    file = folder / f"{words}_{hashlib.sha256(said.encode()).hexdigest()[:8]}.anyorder"
    if not file.exists():
        ao.fit_images(
            data.training,
            levels=data.levels,
            minutes=minutes,
            validation=data.validation[:512],
            seed=seed,
            config=options,
            checkpoint=file.with_suffix(".run"),
            resume=True,
            log=file.with_suffix(".jsonl"),
        ).save(file)
    model = ao.load(file)
    assert isinstance(model, ImageModel)
    points = [json.loads(line) for line in file.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()]
    return model, [(point["seconds"], point["validation"]) for point in points]
