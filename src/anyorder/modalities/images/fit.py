"""Fitting pictures: one model is trained on an array of them and judged on some that were kept back."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyorder.data.images import Pictures, check_pictures
from anyorder.errors import UserError
from anyorder.masking import Modes, TwoStage, maskings
from anyorder.modalities.card import run_card
from anyorder.modalities.images.core import MODES, chosen_head, encoded, image_masking, image_model
from anyorder.modalities.images.model import ImageModel
from anyorder.modalities.images.options import ImageOptions
from anyorder.model import AnyOrderModel
from anyorder.protocols import protocols
from anyorder.training.curves import curves_to
from anyorder.training.loop import Trainer
from anyorder.training.objectives import objective_for
from anyorder.training.progress import training_bar
from anyorder.training.rows import Digest, Rows
from anyorder.training.run import check_run, chosen_device, run_folder


def fit_images(
    pictures: Any,
    *,
    levels: int | None = None,
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
) -> ImageModel:
    """Fit one model to pictures; afterwards fill, draw and score them.

    Parameters
    ----------
    pictures
        An array [pictures, height, width] or [pictures, height, width, 3] of whole numbers, 0 .. levels - 1.
    levels
        How many values a pixel can have; 2 where there are only 0 and 1, else up to 32 as found, else 256.
    minutes
        The most time to train (10 by default). Ctrl-C stops earlier and keeps the best model so far.
    preset
        The network's size: ``tiny``, ``small`` (the default), ``mnist``, ``fashion_mnist``, ``cifar10``, ``64x64``.
    validation
        Pictures to judge by; by default a twentieth, drawn by the seed, is kept back for it.
    config, checkpoint, resume, log, tensorboard
        As in :func:`anyorder.fit`; options are those of :class:`~anyorder.modalities.images.options.ImageOptions`.
    """
    began = time.monotonic()
    check_run(seed, checkpoint, resume=resume)
    options = ImageOptions.read(config, minutes=minutes, preset=preset)
    array, levels = check_pictures(pictures, levels)
    if validation is None:
        order = np.random.default_rng(seed).permutation(len(array))
        kept_back = max(1, round(options.validation_share * len(array)))
        if len(array) <= kept_back:
            raise UserError(
                f"fitting needs two pictures at least, one to learn from and one to judge by, got {len(array)}"
            )
        judges, array = array[order[:kept_back]], array[order[kept_back:]]
    else:
        judges, _ = check_pictures(validation, levels)
        if judges.shape[1:] != array.shape[1:]:
            raise UserError(f"validation has pictures of {judges.shape[1:]}, training of {array.shape[1:]}")
    shape = tuple(array.shape[1:])
    auto = options.masking.get("name") == "auto"
    # Only a U-Net with a mixture can answer for a pixel at once; all others take channels one by one.
    unet = options.network.get("name") == "unet"
    mixture = chosen_head(options.head, levels) in ("mixture", "logistic")
    together = len(shape) == 3 and options.variables == "pixels" and unet and mixture
    masking = (
        image_masking(shape, together=together)
        if auto
        else maskings.build(_sized(options.masking, shape, together=together))
    )
    modes = [mode.name for mode in masking.modes] if isinstance(masking, Modes) else []
    core = image_model(
        shape,
        levels,
        options.described_network(len(modes), levels if together else 0),
        protocols.build(_protocol(options.protocol, together=together)),
        head=options.head,
        components=options.components,
        seed=seed,
    )
    folder = None if checkpoint is None else run_folder(Path(checkpoint))
    trainer = Trainer(
        core.to(chosen_device(device)),
        objective_for(core, masking, **options.objective),
        PictureRows(core, array),
        PictureRows(core, judges),
        options.training,
        seed=seed,
        checkpoint=None if folder is None else folder / "images.checkpoint",
        curves=curves_to(log, tensorboard),
        label="images",
    )
    trainer.progress.seconds = time.monotonic() - began  # preparation counts against the budget
    trainer.take_up(resume=resume)
    with training_bar(progress) as watch:
        trainer.run(watch=watch)
    core = trainer.finish().cpu()
    card = run_card(
        trainer,
        time.monotonic() - began,
        "nats per value, held-out pictures, random queries",
        modality="images",
        pictures={"shape": list(shape), "levels": levels, "modes": modes if _told(core) else []},
        data={"pictures": len(array), "fingerprint": hashlib.sha256(array.tobytes()).hexdigest()[:16]},
        arguments={"seed": seed, "levels": levels},
        config=options.to_json(),
    )
    return ImageModel(core, card)


def _told(core: AnyOrderModel) -> bool:
    return bool(getattr(core.network, "modes", 0))


def _protocol(described: Mapping[str, Any], *, together: bool) -> Mapping[str, Any]:
    if described.get("name") != "auto":
        return described
    return {"name": "pixelwise"} if together else {"name": "random"}


def _sized(described: Mapping[str, Any], shape: tuple[int, ...], *, together: bool) -> dict[str, Any]:
    """A masking mode by its name alone: the size of the pictures is known here."""
    out = dict(described)
    if out.get("name") == "modes":
        listed = out.get("modes", [mode.name for mode in MODES])
        named = [{"name": mode} if isinstance(mode, str) else mode for mode in listed]
        out["modes"] = [_sized(mode, shape, together=together) for mode in named]
    elif out.get("name") in maskings.names() and issubclass(maskings.get(out["name"]), TwoStage):
        channels = shape[2] if len(shape) == 3 else 1
        out = {"height": shape[0], "width": shape[1], "channels": channels, "together": together, **out}
    return out


@dataclass(frozen=True)
class PictureRows:
    """Pictures as rows for the trainer, kept as bytes and encoded when they are taken."""

    model: AnyOrderModel
    pictures: Pictures

    def __len__(self) -> int:
        return len(self.pictures)

    def take(self, index: Tensor) -> Rows:
        values = encoded(self.model, self.pictures[index.cpu().numpy()]).to(self.model.device)
        return Rows(values, torch.ones_like(values, dtype=torch.bool), torch.zeros_like(values))

    def to(self, device: torch.device) -> PictureRows:
        return self

    def update(self, digest: Digest) -> None:
        digest.update(self.pictures.tobytes())
