"""Fitting pictures: one model is trained on an array of them and judged on some that were kept back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyorder.data.images import Pictures, check_pictures
from anyorder.errors import UserError
from anyorder.heads import heads
from anyorder.masking import Masking, maskings
from anyorder.modalities.fit import Run, run_fit
from anyorder.modalities.images.augmentation import TURNS, check_turns, turned
from anyorder.modalities.images.core import described_head, encoded, image_masking, image_model, sized
from anyorder.modalities.images.model import ImageModel
from anyorder.modalities.images.options import ImageOptions
from anyorder.modalities.images.surprise import measured_surprise
from anyorder.modalities.options import option_names
from anyorder.model import AnyOrderModel
from anyorder.networks import networks
from anyorder.protocols import Protocol, protocols
from anyorder.training.rows import Digest, Rows

MEASURED, POINTS = 32, 16  # held-out pictures, and sizes of what is known of them, after training


def fit_images(
    pictures: Any,
    *,
    levels: int | None = None,
    minutes: float | None = None,
    preset: str | None = None,
    augment: str | None = None,
    validation: Any = None,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    log: str | Path | None = None,
    tensorboard: str | Path | None = None,
    progress: bool | None = None,
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
        The most time to train (10 by default; a recipe has so many steps instead). Ctrl-C stops earlier and keeps the
        best model so far.
    preset
        The network's size: ``tiny``, ``small`` (the default), ``mnist``, ``fashion_mnist``, ``cifar10``, ``64x64``,
        ``mac``; or a paper's whole recipe, under what else is said: ``mac_cifar10``, ``mac_imagenet32``,
        ``ardm_cifar10``, ``sfarm_mnist``, ``sfarm_fashion``, ``sfarm_cifar10``, ``sfarm_celeba64``,
        ``sfarm_imagenet64``.
    augment
        Learn from pictures that are turned as well: ``"mirror"`` (left to right) or ``"rotate_flip"`` (all eight ways
        to turn a square), each as often as the others. ``"none"`` by default; what is judged by is never turned.
    validation
        Pictures to judge by; by default a twentieth, drawn by the seed, is kept back for it.
    seed
        Decides the first weights and the order of training; the same seed gives the same model.
    config, checkpoint, resume, log, tensorboard
        As in :func:`anyorder.fit`; options are those of :class:`~anyorder.modalities.images.options.ImageOptions`.
    progress
        How far it is, in a line: None for one on a terminal or in a notebook once two seconds have passed, True for one
        anywhere (where there is no terminal, a line now and then), False for none.
    device
        ``"auto"`` takes a graphics processor where there is one.

    Returns
    -------
    ImageModel

    Examples
    --------
    >>> quick = {"training": {"steps": 2, "minutes": None}}
    >>> ao.fit_images(digits, preset="tiny", config=quick)
    ImageModel(8 x 8, 17 levels)
    """
    run = Run.start(seed, device, checkpoint, resume=resume, log=log, tensorboard=tensorboard, progress=progress)
    options = ImageOptions.read(config, minutes=minutes, preset=preset, augment=augment)
    array, levels = check_pictures(pictures, levels)
    if validation is None:
        order = np.random.default_rng(run.seed).permutation(len(array))
        kept_back = max(1, round(options.validation_share * len(array)))
        if len(array) <= kept_back:
            raise UserError(
                f"fitting needs at least two pictures, one to learn from and one for validation, got {len(array)}"
            )
        held_out, array = array[order[:kept_back]], array[order[kept_back:]]
    else:
        held_out, _ = check_pictures(validation, levels)
        if held_out.shape[1:] != array.shape[1:]:
            raise UserError(
                f"the pictures for validation have the shape {held_out.shape[1:]}, those for training {array.shape[1:]}"
            )
    shape = tuple(array.shape[1:])
    check_turns(options.augment, shape)
    core, masking = untrained_pictures(options, shape, levels, seed=run.seed)
    modes = masking.mode_names
    core, card = run_fit(
        run,
        core,
        options,
        masking,
        PictureRows(core, array, options.augment),
        PictureRows(core, held_out),
        modality=ImageModel.modality,
        unit="nats per value, held-out pictures, random queries",
        data={"pictures": len(array), "fingerprint": hashlib.sha256(array.tobytes()).hexdigest()[:16]},
        arguments={"levels": levels},
        pictures={"shape": list(shape), "levels": levels, "modes": list(modes) if core.network.modes else []},
    )
    if core.protocol.random:  # by which fewer steps than pixels begin where they cost least
        known, nats = measured_surprise(core, held_out[:MEASURED], POINTS, run.seed)
        card["pictures"]["surprise"] = {"known": known, "nats": nats}
    return ImageModel(core, card)


def untrained_pictures(
    options: ImageOptions, shape: tuple[int, ...], levels: int, *, seed: int
) -> tuple[AnyOrderModel, Masking]:
    """The model that these options say, before training, and the questions that it is to be trained for."""
    # A pixel can be answered for at once only by a network that couples channels, with a head that they can share.
    couples = "coupled" in option_names(networks.of(options.network))
    shared = heads.of(described_head(options.head, levels)).couples
    together = len(shape) == 3 and options.variables == "pixels" and couples and shared
    auto = options.masking.get("name") == "auto"
    masking = (
        image_masking(shape, together=together)
        if auto
        else maskings.build(sized(options.masking, shape, together=together))
    )
    modes = masking.mode_names
    core = image_model(
        shape,
        levels,
        options.described_network(modes=len(modes), coupled=levels if together else 0),
        _protocol(options.protocol, shape, together=together),
        head=options.head,
        components=options.components,
        seed=seed,
    )
    return core, masking


def _protocol(described: Mapping[str, Any], shape: tuple[int, ...], *, together: bool) -> Protocol:
    """The order that is asked for, or the usual one; where channels are answered together they must stay together."""
    if described.get("name") == "auto":
        described = {"name": "pixelwise"} if together else {"name": "random"}
    made = protocols.build(described)
    if together:
        everything = torch.ones(1, int(np.prod(shape)), dtype=torch.bool)
        order = made.keys(everything, torch.Generator().manual_seed(0))[0].argsort(stable=True).view(-1, shape[2])
        if not torch.equal(order, order[:, :1] + torch.arange(shape[2])) or bool((order[:, 0] % shape[2]).any()):
            raise UserError(
                f"the protocol {made.name!r} separates the channels of a pixel, but this model answers them together; "
                "use 'pixelwise', or variables='channels'"
            )
    return made


@dataclass(frozen=True)
class PictureRows:
    """Pictures as rows for the trainer, kept as bytes and encoded when they are taken; each in every way of turning."""

    model: AnyOrderModel
    pictures: Pictures
    augment: str = "none"

    @property
    def _ways(self) -> int:
        return len(TURNS[self.augment])

    def __len__(self) -> int:
        return len(self.pictures) * self._ways

    def take(self, index: Tensor) -> Rows:
        picture, way = np.divmod(index.cpu().numpy(), self._ways)
        values = encoded(self.model, turned(self.pictures[picture], way, self.augment)).to(self.model.device)
        return Rows(values, torch.ones_like(values, dtype=torch.bool), torch.zeros_like(values))

    def to(self, device: torch.device) -> PictureRows:
        return self

    def update(self, digest: Digest) -> None:
        digest.update(self.pictures.tobytes())
        digest.update(self.augment.encode() if self._ways > 1 else b"")
