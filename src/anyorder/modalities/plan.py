"""What the papers' presets cost: parameters, memory, operations and time on a device, without training anything.

    operations of a run = steps x batch x operations of a row (forward and back: :mod:`anyorder.training.cost`)
    seconds = operations / (devices x operations a second) + steps x bytes that are added up / bytes a second

Operations a second are given, measured (``cpu`` and ``cuda`` are this machine's own), or a share of what the maker of a
device says that it does: a network with layers of usual sizes comes to about half of that. In float32 torch multiplies
matrices as they are, but convolves in TF32 where a device has it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from anyorder.data.text import Alphabet
from anyorder.errors import UserError, nearest
from anyorder.modalities.images.fit import untrained_pictures
from anyorder.modalities.images.options import ImageOptions
from anyorder.modalities.options import PresetOptions
from anyorder.modalities.texts.core import text_model
from anyorder.modalities.texts.options import TextOptions
from anyorder.model import AnyOrderModel
from anyorder.protocols import protocols
from anyorder.support.checks import positive, whole
from anyorder.support.memory import machine_memory
from anyorder.training.cost import Cost, cost_of
from anyorder.training.options import PRECISIONS, Options

SHARE = 0.5  # of a maker's figure that training comes to
LINK = 1e10  # bytes a second between devices: less than PCI Express 4 with 16 lanes, far less than NVLink
MEASURED_SIDE, MEASURED_SECONDS = 1024, 0.3  # of a product of matrices, and how long it is repeated


@dataclass(frozen=True)
class Device:
    """Operations a second in float32, TF32 (that of float32 where it has none) and bfloat16 (0: none), and memory."""

    float32: float
    tf32: float
    bfloat16: float
    memory: float


# From the makers' data sheets, of dense matrices.
DEVICES: Mapping[str, Device] = {
    "A40": Device(37.4e12, 74.8e12, 149.7e12, 48e9),
    "A100": Device(19.5e12, 156e12, 312e12, 80e9),
    "H100": Device(66.9e12, 494.7e12, 989e12, 80e9),
    "L4": Device(30.3e12, 60.5e12, 121e12, 24e9),
    "T4": Device(8.1e12, 8.1e12, 0.0, 16e9),
    "V100": Device(15.7e12, 15.7e12, 0.0, 32e9),
    "RTX3090": Device(35.6e12, 35.6e12, 71e12, 24e9),
    "RTX4090": Device(82.6e12, 82.6e12, 165e12, 24e9),
    "RTX5000": Device(11.2e12, 11.2e12, 0.0, 16e9),  # Quadro, on which SFARM was trained
}
HERE = ("cpu", "cuda")
LETTERS, WINDOW = "abcdefghijklmnopqrstuvwxyz ", 250  # of text8


@dataclass(frozen=True)
class Preset:
    """A paper's run: its data, and what the paper says of time and size. ``shape`` is None for text8."""

    paper: str
    epochs: int
    shape: tuple[int, ...] | None = None
    levels: int = 256
    said: str = "no time"


PRESETS: Mapping[str, Preset] = {
    "mac_text8": Preset("MAC, Table 1", 3_000, said="about two weeks on one A40"),
    "ardm_text8": Preset("MAC, Table 1", 3_000, said="about two weeks on one A40"),
    "mac_cifar10": Preset("MAC, Table 3", 1_200, (32, 32, 3), said="about two weeks on one A40"),
    "ardm_cifar10": Preset("MAC, Table 3", 1_200, (32, 32, 3), said="about two weeks on one A40"),
    "mac_imagenet32": Preset("MAC, Table 2", 16, (32, 32, 3), said="about two weeks on one A40"),
    "sfarm_mnist": Preset("SFARM, Table 4", 300, (28, 28), 2, said="no time; Quadro RTX 5000"),
    "sfarm_fashion": Preset("SFARM, Table 4", 300, (28, 28), said="no time; Quadro RTX 5000"),
    "sfarm_cifar10": Preset("SFARM, Table 4", 3_000, (32, 32, 3), said="no time; four Quadro RTX 5000"),
    "sfarm_celeba64": Preset("SFARM, Table 4", 3_000, (64, 64, 3), said="no time; four Quadro RTX 5000"),
    "sfarm_imagenet64": Preset("SFARM, Table 4", 20, (64, 64, 3), said="no time; four Quadro RTX 5000"),
}


def _days(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours / 24:.1f} days" if hours >= 48 else f"{hours:.1f} hours"


@dataclass(frozen=True)
class Plan:
    """What one run costs; numbers of bytes, operations and seconds."""

    preset: str
    paper: str
    epochs: int
    said: str
    device: str
    count: int
    steps: int
    batch: int
    rows_at_once: int  # on each device
    parameters: int
    memory: float  # of a step, on each device
    fits: bool  # whether the device has so much
    operations_of_step: float
    operations: float
    operations_a_second: float  # of each device
    seconds: float
    precision: str = field(default="float32")

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self), "days": self.seconds / 86_400}

    def to_text(self) -> dict[str, str]:
        """Lines for people to read, by name."""
        much = "" if self.fits else ", more than there is: --recompute, or more devices, makes it less"
        return {
            "preset": f"{self.preset} ({self.paper}: {self.epochs:,} epochs; the paper says {self.said})",
            "devices": f"{self.count} x {self.device}, {self.operations_a_second / 1e12:.3g} teraflops each",
            "parameters": f"{self.parameters:,}",
            "memory": f"{self.memory / 1e9:.1f} GB a device for {self.rows_at_once} of {self.batch} rows at once{much}",
            "operations": f"{self.operations_of_step:.3g} a step, {self.operations:.3g} in all",
            "time": f"{_days(self.seconds)} for {self.steps:,} steps",
        }


def plan(
    preset: str,
    device: str = "A40",
    count: int = 1,
    *,
    teraflops: float | None = None,
    precision: str = "float32",
    recompute: bool = False,
) -> Plan:
    """What the run of a paper's preset would cost on so many devices of this kind.

    ``teraflops``: 10^12 operations a second that one device comes to, if that is known. ``precision`` and
    ``recompute`` are the options of training (:mod:`anyorder.training.speed`).
    """
    if preset not in PRESETS:
        raise UserError(f"unknown preset of a paper {preset!r}; {nearest(preset, PRESETS)}")
    count = whole("count", count)
    if precision not in PRECISIONS:
        raise UserError(f"unknown precision {precision!r}; {nearest(precision, PRECISIONS)}")
    speeds = _device(device, precision)
    if teraflops is not None:
        speeds = replace(speeds, matrices=(given := 1e12 * positive("teraflops", teraflops)), convolutions=given)
    options, core, staged = _untrained(preset)
    training = replace(options.training, recompute=recompute, precision=precision)
    assert training.steps is not None  # a paper's run has so many
    cost = cost_of(core, replace(training, precision="float32"), staged=staged)
    return plan_of(preset, cost, training, device, speeds, count)


def plan_of(preset: str, cost: Cost, training: Options, device: str, speeds: Speeds, count: int = 1) -> Plan:
    """What a run of this cost takes on so many devices of these speeds."""
    steps = training.steps or 0
    convolved = cost.convolved / cost.operations
    speed = 1 / ((1 - convolved) / speeds.matrices + convolved / speeds.convolutions)
    rows = -(-training.batch // (count * -(-training.parts // count)))
    of_step = cost.operations * training.batch
    added = 4.0 * cost.parameters * 2 * (count - 1) / count  # bytes that a device sends in a ring, of every step
    needed = cost.memory(rows) + (4.0 * cost.parameters if count > 1 else 0.0)
    told = PRESETS[preset]
    return Plan(
        preset=preset,
        paper=told.paper,
        epochs=told.epochs,
        said=told.said,
        device=device,
        count=count,
        steps=steps,
        batch=training.batch,
        rows_at_once=rows,
        parameters=cost.parameters,
        memory=needed,
        fits=needed <= speeds.memory,
        operations_of_step=of_step,
        operations=of_step * steps,
        operations_a_second=speed,
        seconds=steps * (of_step / (count * speed) + added / LINK),
        precision=training.precision,
    )


@dataclass(frozen=True)
class Speeds:
    """Operations a second that training comes to on one device, of matrices and of convolutions, and its memory."""

    matrices: float
    convolutions: float
    memory: float


def _device(name: str, precision: str) -> Speeds:
    """What one device comes to; ``cpu`` and ``cuda`` are measured."""
    if name in HERE:
        if name == "cuda" and not torch.cuda.is_available():
            raise UserError(f"this machine has no graphics processor; name one of: {', '.join(DEVICES)}")
        memory = torch.cuda.get_device_properties(0).total_memory if name == "cuda" else machine_memory()
        speed = SHARE * _measured(name, getattr(torch, precision))
        return Speeds(speed, speed, float(memory))
    if name not in DEVICES:
        raise UserError(f"unknown device {name!r}; {nearest(name, [*DEVICES, *HERE])}")
    known = DEVICES[name]
    if precision == "float32":
        return Speeds(SHARE * known.float32, SHARE * known.tf32, known.memory)
    if not known.bfloat16:
        raise UserError(f"the device {name} has no products of matrices in {precision}; leave --precision out")
    return Speeds(SHARE * known.bfloat16, SHARE * known.bfloat16, known.memory)


def _measured(device: str, dtype: torch.dtype) -> float:
    """Operations a second of products of large matrices on this machine, on the threads that torch has."""
    matrix = torch.ones(MEASURED_SIDE, MEASURED_SIDE, device=device, dtype=dtype)
    best, until = math.inf, time.perf_counter() + MEASURED_SECONDS
    while time.perf_counter() < until:
        began = time.perf_counter()
        float((matrix @ matrix)[0, 0])  # whatever is under way on a device ends before this
        best = min(best, time.perf_counter() - began)
    return 2.0 * MEASURED_SIDE**3 / best


def _untrained(preset: str) -> tuple[PresetOptions, AnyOrderModel, bool]:
    """The options of a paper's run, its network before training, and whether that is asked by masking modes."""
    shape = PRESETS[preset].shape
    if shape is None:
        options = TextOptions.read({"preset": preset})
        alphabet = Alphabet.of(LETTERS, "characters")
        protocol = protocols.build(options.protocol)
        return options, text_model(alphabet, WINDOW, options.described_network(), protocol, seed=0), False
    pictures = ImageOptions.read({"preset": preset})
    core, masking = untrained_pictures(pictures, shape, PRESETS[preset].levels, seed=0)
    return pictures, core, masking.staged and pictures.objective.get("name") == "stages"
