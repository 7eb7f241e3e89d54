"""A detached signature beside a model file, as ``minisign -S`` writes it: who vouches for these very bytes.

The checksum inside a file finds accidents; anybody who changes the file can also change the checksum. A signature can
only be made with the signer's secret key. Signing is minisign's own work (https://jedisct1.github.io/minisign); this
module only checks. The Ed25519 arithmetic is that of ``cryptography``, an extra.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyorder.errors import UserError
from anyorder.support.paths import checked_path

ENDING = ".minisig"
LONGEST_SIGNATURE = 10_000  # bytes: a key or a signature has some 300
KEY_ID, KEY, SIGNATURE = 8, 32, 64  # bytes
OF_HASH, OF_FILE = b"ED", b"Ed"  # a signature of the file's BLAKE2b hash; minisign before 0.10 signed the file itself
TRUSTED = "trusted comment: "


def check_signature(data: bytes, path: Path, signed_by: str | Path) -> None:
    """Raise a ``UserError`` unless ``path`` + ".minisig" is a signature of ``data`` by the holder of this key.

    ``signed_by``: minisign's public key as text, or the path of the ``.pub`` file that holds it.
    """
    key_id, key = _public_key(signed_by)
    beside = path.with_name(path.name + ENDING)
    if not os.path.isfile(beside):
        raise UserError(f"there is no signature {beside.name!r} next to it; sign it with: minisign -Sm {path.name}")
    found = _Signature.read(beside)
    if found.key_id != key_id:
        raise UserError(
            f"{beside} was made with another key ({_shown(found.key_id)}) than the one asked for ({_shown(key_id)})"
        )
    message = data if found.algorithm == OF_FILE else hashlib.blake2b(data).digest()
    if not (_signs(key, found.own, message) and _signs(key, found.overall, found.own + found.comment.encode())):
        raise UserError(f"it does not match its signature {beside.name!r}: the file or the signature was changed")


@dataclass(frozen=True)
class _Signature:
    """``own``: of the message; ``overall``: of that one and the trusted comment."""

    algorithm: bytes
    key_id: bytes
    own: bytes
    comment: str
    overall: bytes

    @classmethod
    def read(cls, path: Path) -> _Signature:
        lines = _lines(path)
        if len(lines) == 4 and lines[2].startswith(TRUSTED):
            first, overall = _decoded(lines[1]), _decoded(lines[3])
            algorithm = first[:2]
            sizes = len(first) == 2 + KEY_ID + SIGNATURE and len(overall) == SIGNATURE
            if sizes and algorithm in (OF_HASH, OF_FILE):
                comment = lines[2].removeprefix(TRUSTED)
                return cls(algorithm, first[2 : 2 + KEY_ID], first[2 + KEY_ID :], comment, overall)
        raise UserError(f"{path} is not a signature of minisign; sign the model again")


def _public_key(given: str | Path) -> tuple[bytes, bytes]:
    """The key's id and the key."""
    path = checked_path(given)
    if isinstance(given, Path) or path.suffix == ".pub":
        if not os.path.isfile(path):
            raise UserError(f"no such file: {path}; give minisign's public key, or the path of its .pub file")
        text = (_lines(path) or [""])[-1]
    else:
        text = str(given).strip()
    packed = _decoded(text)
    if len(packed) != 2 + KEY_ID + KEY or packed[:2] != OF_FILE:
        raise UserError(f"signed_by must be a public key of minisign (RW...) or a path to its .pub file, got {given!r}")
    return packed[2 : 2 + KEY_ID], packed[2 + KEY_ID :]


def _lines(path: Path) -> list[str]:
    with path.open("rb") as file:
        data = file.read(LONGEST_SIGNATURE)
    return [line.rstrip("\r") for line in data.decode(errors="replace").rstrip("\r\n").split("\n")]


def _decoded(text: str) -> bytes:
    """The bytes behind base64; none where it is something else."""
    try:
        return base64.b64decode(text.encode(), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _shown(key_id: bytes) -> str:
    return key_id[::-1].hex().upper()  # as minisign prints it


def _signs(key: bytes, signature: bytes, message: bytes) -> bool:
    ed25519, invalid = _library()
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except invalid:
        return False
    return True


def _library() -> tuple[Any, type[Exception]]:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise UserError("checking a signature needs cryptography: pip install 'anyorder[signed]'") from error
    return ed25519, InvalidSignature
