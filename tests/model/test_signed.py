"""Signatures that minisign 0.11 made of a file are taken, and whatever else is refused by name."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import numpy as np
import pytest

from anyorder.errors import UserError
from anyorder.model.checkpoint import load_model, save_model
from anyorder.model.signed import check_signature

from models import gaussian_model

pytest.importorskip("cryptography")

KEY = "RWT7qX/Wg0eMZsEQTgXKTNLX2Zyw9g2nTQYBdJ7n24UFjf2qgd1BbLVH"
DATA = b"hello\n"
OF_HASH = """untrusted comment: signature from minisign secret key
RUT7qX/Wg0eMZhigr6W2/8CYkyv2MsYTuWs9cfhYOIar2mk+TE0totHzWnwSSjACvk79aJltDHHbUEzu93K3nXqz1UK2CtlABAo=
trusted comment: a model é
ebAkyztijT7itk9KF13NEJvVRw/1TpGPbu6vBleuVRsC2LrCeh9w1+JXioa99UtkXzqwHUZC+M4+ykLOwxytAA==
"""
OF_FILE = """untrusted comment: signature from minisign secret key
RWT7qX/Wg0eMZhAclT6WgYEt2y1niemodUrjE8KvY7Y/dtovu8ObEw6Q5U5OCDFBwBUYZHMU+DMTeyiogmSEQHYGx62Sbb8qpAw=
trusted comment: timestamp:1794928347\tfile:m.anyorder
yRSTnbN/JcPHbO945ksDfBjHAV4zS4Uado991EM/qo4nnkPYa4mix6oMu6P21+dCGhzaE9D2o34R+5BuokDADA==
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "m.anyorder"
    path.write_bytes(DATA)
    return path


def sign(path: Path, signature: str) -> None:
    path.with_name("m.anyorder.minisig").write_bytes(signature.encode())


@pytest.mark.parametrize("signature", [OF_HASH, OF_FILE, OF_HASH.replace("\n", "\r\n")])
def test_what_minisign_signed_is_taken(path: Path, signature: str) -> None:
    sign(path, signature)
    check_signature(DATA, path, KEY)
    public = path.with_name("who.pub")
    public.write_text(f"untrusted comment: minisign public key 668C4783D67FA9FB\n{KEY}\n")
    check_signature(DATA, path, public)
    check_signature(DATA, path, str(public))


@pytest.mark.parametrize("signature", [OF_HASH, OF_FILE])
def test_other_bytes_and_other_comments_are_refused(path: Path, signature: str) -> None:
    sign(path, signature)
    with pytest.raises(UserError, match="was changed"):
        check_signature(b"hallo\n", path, KEY)
    sign(path, signature.replace("\ntrusted comment: ", "\ntrusted comment: not "))
    with pytest.raises(UserError, match="was changed"):
        check_signature(DATA, path, KEY)


def test_every_byte_of_a_signature_counts(path: Path) -> None:
    lines = OF_HASH.splitlines()
    for number in (1, 3):
        packed = base64.b64decode(lines[number])
        for position in range(len(packed)):
            other = bytes([*packed[:position], packed[position] ^ 1, *packed[position + 1 :]])
            changed = [*lines[:number], base64.b64encode(other).decode(), *lines[number + 1 :]]
            sign(path, "\n".join(changed))
            with pytest.raises(UserError, match=r"was changed|another key|not a signature of minisign"):
                check_signature(DATA, path, KEY)


def test_another_key_is_named(path: Path) -> None:
    sign(path, OF_HASH)
    packed = bytearray(base64.b64decode(KEY))
    packed[2:10] = b"\x01\x02\x03\x04\x05\x06\x07\x08"
    with pytest.raises(UserError, match=r"another key .668C4783D67FA9FB. than the one asked for .0807060504030201"):
        check_signature(DATA, path, base64.b64encode(packed).decode())


def test_a_missing_signature_says_how_to_make_one(path: Path) -> None:
    with pytest.raises(UserError, match=r"minisign -Sm m\.anyorder"):
        check_signature(DATA, path, KEY)


@pytest.mark.parametrize("broken", ["", "one line", OF_HASH[:200], "\n".join(["x"] * 4), OF_HASH + "more\n"])
def test_what_is_no_signature_is_refused(path: Path, broken: str) -> None:
    sign(path, broken)
    with pytest.raises(UserError, match="is not a signature of minisign"):
        check_signature(DATA, path, KEY)


@pytest.mark.parametrize("key", ["", "RWT", "é" * 50, KEY[:-4], "untrusted comment"])
def test_what_is_no_key_is_refused(path: Path, key: str) -> None:
    sign(path, OF_HASH)
    with pytest.raises(UserError, match="signed_by must be a public key"):
        check_signature(DATA, path, key)


def test_a_key_file_that_is_not_there_is_named(path: Path) -> None:
    sign(path, OF_HASH)
    with pytest.raises(UserError, match=r"no such file: .*who\.pub"):
        check_signature(DATA, path, path.with_name("who.pub"))


def test_only_a_signed_model_is_loaded_where_one_is_asked_for(path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    secret = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    key = base64.b64encode(b"Ed" + b"12345678" + secret.public_key().public_bytes_raw()).decode()
    model = gaussian_model(np.zeros(2), np.eye(2))
    save_model(model, {"note": "signed"}, path)
    with pytest.raises(UserError, match=r"m\.anyorder cannot be read: there is no signature"):
        load_model(path, signed_by=key)
    own = secret.sign(hashlib.blake2b(path.read_bytes()).digest())
    overall = secret.sign(own + b"mine")
    packed = (base64.b64encode(part).decode() for part in (b"ED12345678" + own, overall))
    sign(path, "untrusted comment: x\n{}\ntrusted comment: mine\n{}\n".format(*packed))
    assert load_model(path, signed_by=key)[1] == {"note": "signed"}
    save_model(model, {"note": "another"}, path)
    with pytest.raises(UserError, match="was changed"):
        load_model(path, signed_by=key)
