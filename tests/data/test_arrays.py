"""Arrays in files: what is declared is compared with what is there, and nothing in them can run."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from anyorder.data.arrays import read_array
from anyorder.errors import UserError

PICTURES = np.arange(24).reshape(2, 3, 4)


def npy(declared: str, content: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    header = declared.encode().ljust(117) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header + content


def test_arrays_come_back(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", PICTURES)
    np.save(tmp_path / "f.npy", np.asfortranarray(PICTURES))
    np.savez(tmp_path / "a.npz", labels=[1], images=PICTURES)
    np.savez_compressed(tmp_path / "b.npz", other=PICTURES)
    for name in ("a.npy", "f.npy", "a.npz", "b.npz"):
        assert np.array_equal(read_array(tmp_path / name), PICTURES)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "magic string"),
        (b"nonsense" * 9, "magic string"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }"), "declares 8,000,000,000,000"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-3, 4), }"), "declares"),
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", b"x" * 99), "may run code"),
        (npy("{'descr': '|u1', 'fortran_order': False, 'shape': (9,), }", b"xxx", b"\x03\x00"), "version"),
        (npy("{'descr': '|S0', 'fortran_order': False, 'shape': (9,), }", b"xxx"), "cannot read"),
        (npy("{'descr': 'nonsense', 'fortran_order': False, 'shape': (9,), }"), "cannot read"),
        (npy("(((((((("), "cannot read"),
        (npy("{'descr': '|u1', 'fortran_order': False, 'shape': (), }", b"x"), "single value"),
    ],
)
def test_odd_files_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", content)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(UserError, match=words) as caught:
            read_array(tmp_path / name)
        assert name in str(caught.value)


def test_damaged_archives_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros((200, 100, 100), dtype=np.uint8))
    monkeypatch.setattr("anyorder.data.arrays.UNPACKED", 1000)  # two megabytes of zeros pack to two kilobytes
    with pytest.raises(UserError, match="declares 2,000,000 bytes"):
        read_array(tmp_path / "a.npz")
    whole = (tmp_path / "a.npz").read_bytes()
    for content in (whole[:500], b"PK" + whole[9:], b""):
        (tmp_path / "b.npz").write_bytes(content)
        with pytest.raises(UserError, match=r"b\.npz"):
            read_array(tmp_path / "b.npz")
    with zipfile.ZipFile(tmp_path / "b.npz", "w"):
        pass
    with pytest.raises(UserError, match="contains no array"):
        read_array(tmp_path / "b.npz")
    buffer = io.BytesIO()
    np.save(buffer, PICTURES)
    (tmp_path / "c.npy").write_bytes(buffer.getvalue()[:-5])
    with pytest.raises(UserError, match="cut off: 187 of 192 bytes"):
        read_array(tmp_path / "c.npy")
