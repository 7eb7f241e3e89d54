"""Public sets of pictures that a user has put in place: small files of the same form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from anyorder.data.images import celeba_hq, imagenet
from anyorder.data.picture_files import write_picture
from anyorder.errors import UserError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANYORDER_DATA", str(tmp_path))
    return tmp_path


def write_imagenet(folder: Path, side: int, files: int) -> tuple[np.ndarray, np.ndarray]:
    """Files as image-net.org has them: a row a picture, first all reds; labels from 1 to 1,000; a mean picture."""
    rng = np.random.default_rng(side)
    pictures = rng.integers(0, 256, (12 * files + 5, side, side, 3)).astype(np.uint8)
    labels = rng.integers(1, 1001, len(pictures))
    (folder / f"imagenet{side}").mkdir()
    for number in range(files + 1):
        rows = slice(12 * number, 12 * (number + 1))
        name = "val_data" if number == files else f"train_data_batch_{number + 1}"
        flat = pictures[rows].transpose(0, 3, 1, 2).reshape(len(pictures[rows]), -1)
        means = {"mean": flat.mean(axis=0)} if number < files else {}
        np.savez(folder / f"imagenet{side}" / f"{name}.npz", data=flat, labels=labels[rows], **means)
    return pictures, labels


@pytest.mark.parametrize("side", [32, 64])
def test_imagenet_is_read_as_it_is_published(folder: Path, side: int) -> None:
    pictures, labels = write_imagenet(folder, side, 2)
    found = imagenet(side)
    assert found.levels == 256 and "2 of 10 files" in found.partial
    assert np.array_equal(np.concatenate([found.training, found.validation, found.test]), pictures)
    assert (len(found.training), len(found.validation), len(found.test)) == (22, 2, 5)
    assert found.training_labels is not None and found.test_labels is not None
    assert np.array_equal(found.training_labels, labels[:22] - 1) and np.array_equal(found.test_labels, labels[24:] - 1)


def test_imagenet_that_is_not_there_or_is_something_else_is_named(folder: Path) -> None:
    with pytest.raises(UserError, match=r"imagenet32 in .ANYORDER_DATA"):
        imagenet(32)
    with pytest.raises(UserError, match="32 or 64"):
        imagenet(48)
    write_imagenet(folder, 32, 1)
    (folder / "imagenet32").rename(folder / "imagenet64")
    with pytest.raises(UserError, match=r"train_data_batch_1.npz.*64 x 64.*\(12, 3072\)"):
        imagenet(64)
    (folder / "imagenet64" / "train_data_batch_1.npz").write_bytes(b"no zip")
    with pytest.raises(UserError, match="no file of ImageNet"):
        imagenet(64)


def test_celeba_hq_is_a_folder_of_pictures_that_are_scaled_down(folder: Path) -> None:
    pytest.importorskip("PIL")
    with pytest.raises(UserError, match=r"celeba_hq in .ANYORDER_DATA"):
        celeba_hq()
    (folder / "celeba_hq").mkdir()
    for number in range(20):
        plain = np.zeros((128, 128, 3), dtype=np.uint8)
        plain[...] = (number, 2 * number, 100)
        write_picture(plain, folder / "celeba_hq" / f"{number:05d}.png")
    found = celeba_hq(64)
    assert found.training.shape == (16, 64, 64, 3) and "20 of 30,000" in found.partial
    reds = [part[:, 0, 0, 0].tolist() for part in (found.training, found.validation, found.test)]
    assert reds == [list(range(16)), [16, 17], [18, 19]]
    (folder / "celeba_hq" / "00003.png").write_bytes(b"broken")
    with pytest.raises(UserError, match=r"00003\.png"):
        celeba_hq(64)
