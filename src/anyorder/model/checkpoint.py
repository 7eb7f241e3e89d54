"""Model files, written atomically and read behind one boundary.

Files are written beside their target, flushed to disk and renamed: a process killed while saving leaves the old file.
A file may come from anybody. It is read whole, its checksum is compared, and the model that it describes is built only
as far as its own tensors go; whatever fails on the way is a ``UserError`` that names the file and the field.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.model.signed import check_signature
from anyorder.model.tensor_bytes import LENGTH, VERSION, from_bytes, header_end, to_bytes
from anyorder.support.allowance import Allowance
from anyorder.support.atomic import atomic_path
from anyorder.support.boundary import field, reading
from anyorder.support.memory import machine_memory
from anyorder.support.paths import checked_path
from anyorder.support.strict_json import check_finite

LARGEST = 1e9  # of a weight: none comes near it in training, and sums of products of larger ones soon overflow
COPIES = 3  # of its bytes are in memory while a file is read: as read, as tensors, in the model


def save_model(model: AnyOrderModel, card: dict[str, Any], path: str | Path) -> None:
    """Write the model and its training card as one ``.anyorder`` file."""
    write_tensors(checked_path(path), model.state_dict(), _words(model, card))


def load_model(
    path: str | Path, device: str = "cpu", *, signed_by: str | Path | None = None
) -> tuple[AnyOrderModel, dict[str, Any]]:
    """Read a ``.anyorder`` file; its answers are bit-identical to those of the model that was saved.

    ``signed_by``: minisign's public key, or its file; the very bytes that are read must be signed with it.
    """
    return _built(*read_tensors(checked_path(path), signed_by=signed_by), str(path), device)


def model_to_bytes(model: AnyOrderModel, card: dict[str, Any]) -> bytes:
    """What :func:`save_model` writes, as bytes: how a model travels to another process without running code there."""
    return to_bytes(model.state_dict(), _words(model, card))


def model_from_bytes(data: bytes) -> tuple[AnyOrderModel, dict[str, Any]]:
    """The model of :func:`model_to_bytes`, on the CPU."""
    where = "the model in these bytes"
    with reading(where):
        tensors, header = from_bytes(data)
    return _built(tensors, header, where, "cpu")


def _words(model: AnyOrderModel, card: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "model", "description": model.description(), "card": card}


def _built(
    tensors: dict[str, Tensor], header: dict[str, Any], where: str, device: str
) -> tuple[AnyOrderModel, dict[str, Any]]:
    if (kind := header.get("kind")) != "model":
        raise UserError(f"{where} is a {kind!s:.40} file, not a model; give the .anyorder file that fit wrote")
    with reading(where):
        with field("description"):
            check_finite(header["description"])
            allowance = Allowance(sum(tensor.numel() for tensor in tensors.values()), len(tensors))
            model = AnyOrderModel.from_description(header["description"], allowance)
        with field("tensors"):
            check_tensors(tensors, model.state_dict())
            model.load_state_dict(tensors)
        card = header["card"]
        if not isinstance(card, dict):
            raise UserError(f"card: expected an object, got {card!r:.80}")
    return model.to(device).eval(), card


def check_tensors(tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor], *, largest: float = LARGEST) -> None:
    """Refuse tensors that are not those expected, by name, shape and dtype, or whose numbers are out of range."""
    for name in [*expected, *tensors]:
        if name not in tensors or name not in expected:
            problem = "is missing" if name in expected else "is there, and nothing in the description has it"
            raise UserError(f"the tensor {name!r:.80} {problem}")
    for name, wanted in expected.items():
        tensor = tensors[name]
        if tensor.shape != wanted.shape or tensor.dtype != wanted.dtype:
            found, due = (f"{tuple(one.shape)} of {one.dtype}".replace("torch.", "") for one in (tensor, wanted))
            raise UserError(f"the tensor {name!r} is {found}, and the description asks for {due}")
        if tensor.is_floating_point() and tensor.numel():
            least, most = (float(end) for end in tensor.aminmax())  # NaN if any number is
            if not (math.isfinite(least) and math.isfinite(most)):
                raise UserError(f"the tensor {name!r} holds a number that is not finite")
            if tensor.dtype == torch.float32 and max(-least, most) > largest:
                raise UserError(f"the tensor {name!r} holds a weight beyond {largest:g}, and no training makes one")


def write_tensors(path: Path, tensors: dict[str, Tensor], header: dict[str, Any], *, version: int = VERSION) -> None:
    """Tensors and JSON header into one file, atomically; ``version`` is the one that the header is in."""
    data = to_bytes(tensors, header, version)
    with atomic_path(path) as beside:
        beside.write_bytes(data)  # not safetensors' own writing, which would replace a device or a pipe by a file


def read_tensors(path: Path, *, signed_by: str | Path | None = None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`write_tensors` wrote; anything else is refused by name."""
    if not os.path.isfile(path):  # also of a name that is too long
        raise UserError(f"no such file: {path}; check the name, or fit a model first")
    with reading(str(path)):
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            header_end(file.read(LENGTH), size)
            if COPIES * size > (memory := machine_memory()):
                raise UserError(
                    f"loading its {size} bytes takes {COPIES} times as much memory, but this machine has {memory} bytes"
                )
            file.seek(0)
            # Read whole and not mapped: a mapped file that is overwritten in place takes the process down with it.
            data = file.read(size)
        if signed_by is not None:
            check_signature(data, path, signed_by)
        return from_bytes(data)
