"""One file for tensors and the metadata that explain them: safetensors with a JSON header, no pickle.

The header carries a SHA-256 over metadata and weights, so a damaged file is refused as a whole. Files are
written beside their target, flushed to disk and renamed: a process killed while saving leaves the old file.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_in
from safetensors.torch import save as tensors_as_bytes
from torch import Tensor

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.model.versions import as_version_2
from anyorder.support.atomic import atomic_path

FORMAT = "anyorder"
VERSION = 2
LENGTH = 8  # bytes at the beginning of a safetensors file, which say how long the JSON behind them is


def save_model(model: AnyOrderModel, card: dict[str, Any], path: str | Path) -> None:
    """Write the model and its training card as one ``.anyorder`` file."""
    write_tensors(Path(path), model.state_dict(), _words(model, card))


def load_model(path: str | Path, device: str = "cpu") -> tuple[AnyOrderModel, dict[str, Any]]:
    """Read a ``.anyorder`` file; its answers are bit-identical to those of the model that was saved."""
    return _built(*read_tensors(Path(path)), str(path), device)


def model_to_bytes(model: AnyOrderModel, card: dict[str, Any]) -> bytes:
    """What :func:`save_model` writes, as bytes: how a model travels to another process without running code there."""
    return _as_bytes(model.state_dict(), _words(model, card))


def model_from_bytes(data: bytes) -> tuple[AnyOrderModel, dict[str, Any]]:
    """The model of :func:`model_to_bytes`, on the CPU."""
    where = "the model in these bytes"
    return _built(*_from_bytes(data, where), where, "cpu")


def _words(model: AnyOrderModel, card: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "model", "description": model.description(), "card": card}


def _built(
    tensors: dict[str, Tensor], header: dict[str, Any], where: str, device: str
) -> tuple[AnyOrderModel, dict[str, Any]]:
    if header.get("kind") != "model":
        raise UserError(f"{where} is a {header.get('kind')} file, not a model; give the .anyorder file that fit wrote")
    model = AnyOrderModel.from_description(header["description"])
    model.load_state_dict(tensors)
    return model.to(device).eval(), header["card"]


def write_tensors(path: Path, tensors: dict[str, Tensor], header: dict[str, Any], *, version: int = VERSION) -> None:
    """Tensors and JSON header into one file, atomically; ``version`` is the one that the header is in."""
    data = _as_bytes(tensors, header, version)
    with atomic_path(path) as beside:
        beside.write_bytes(data)  # not safetensors' own writing, which would replace a device or a pipe by a file


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`write_tensors` wrote; anything else is refused by name."""
    if not path.is_file():
        raise UserError(f"no file {path}; check the name, or fit a model first")
    # Read whole and not mapped: a mapped file that is overwritten in place takes the process down with it.
    return _from_bytes(path.read_bytes(), str(path))


def _as_bytes(tensors: dict[str, Tensor], header: dict[str, Any], version: int = VERSION) -> bytes:
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    words = json.dumps(header, sort_keys=True)
    metadata = {"format": FORMAT, "version": str(version), "header": words, "sha256": _digest(tensors, words)}
    data = tensors_as_bytes(tensors, metadata=metadata)
    end = LENGTH + int.from_bytes(data[:LENGTH], "little")
    return data[:LENGTH] + _in_order(data[LENGTH:end]) + data[end:]


def _in_order(words: bytes) -> bytes:
    """The JSON at the beginning of a safetensors file, as long as before, its metadata sorted by name.

    safetensors writes them in an order that changes from call to call; a model saved twice should give equal files.
    """
    said = json.loads(words)
    said["__metadata__"] = dict(sorted(said["__metadata__"].items()))
    ordered = json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode().ljust(len(words))
    return ordered if len(ordered) == len(words) else words


def _from_bytes(data: bytes, where: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        end = LENGTH + int.from_bytes(data[:LENGTH], "little")
        tensors = tensors_in(data)  # checks the lengths that the next line goes by
        metadata = json.loads(data[LENGTH:end]).get("__metadata__", {})
    except (SafetensorError, ValueError) as error:
        raise UserError(f"{where} is not an anyorder file, or it is damaged ({error}); fit or copy it again") from error
    return _checked(tensors, metadata, where)


def _checked(
    tensors: dict[str, Tensor], metadata: dict[str, str], where: str
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the words that came with them, once it is certain that both are ours and whole."""
    if metadata.get("format") != FORMAT:
        raise UserError(f"{where} is a safetensors file, but not one of anyorder's")
    version = int(found) if (found := metadata.get("version", "")).isdecimal() else 0
    if version > VERSION:
        raise UserError(f"{where} was written by a newer anyorder (format {version}); upgrade to read it")
    words = metadata.get("header", "")
    if version < 1 or _digest(tensors, words) != metadata.get("sha256"):
        raise UserError(f"{where} is damaged (its checksum does not match); fit or copy it again")
    header: dict[str, Any] = json.loads(words)
    return as_version_2(tensors, header) if version == 1 else (tensors, header)


def _digest(tensors: dict[str, Tensor], words: str) -> str:
    digest = hashlib.sha256(words.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
