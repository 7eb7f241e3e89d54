"""Pictures: the public sets that the papers use, and the arrays that users have.

A picture is an array of whole numbers 0 .. levels - 1, [height, width] or [height, width, channels]; a set of them has
one more axis in front. Sets are found in $ANYORDER_DATA, in the cache, or fetched (:mod:`anyorder.data.origin`).
"""

from __future__ import annotations

import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Int, UInt8

from anyorder.data.origin import Origin, data_folders, extract, fetch, find
from anyorder.data.unpacking import read_bytes
from anyorder.errors import UserError
from anyorder.support.checks import whole

Pictures: TypeAlias = UInt8[np.ndarray, "pictures height width *channels"]

MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
CHECKSUMS = {
    "binarized_mnist": {
        "binarized_mnist_train.amat": "sha256:ad693b29f94c14277b095f5238ddefbbdaaae0939789dd2f4f0205278cee3e4d",
        "binarized_mnist_valid.amat": "sha256:1de3d397c40fe8eeb33dafd4099a1f665ec01e96d9be234aaeeac8a34930e2e2",
        "binarized_mnist_test.amat": "sha256:e6687bfea3f820c174f33b7865140b2a2dd2930ef786f35d45795fc193b5ab2c",
    },
    "mnist": {
        "train-images-idx3-ubyte.gz": "sha256:440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1-ubyte.gz": "sha256:3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "t10k-images-idx3-ubyte.gz": "sha256:8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1-ubyte.gz": "sha256:f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    },
    "fashion_mnist": {
        "train-images-idx3-ubyte.gz": "sha256:3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "train-labels-idx1-ubyte.gz": "sha256:a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "t10k-images-idx3-ubyte.gz": "sha256:346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "t10k-labels-idx1-ubyte.gz": "sha256:67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    },
}
CIFAR10 = Origin(
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "cifar-10-binary.tar.gz",
    "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
IMAGENET_FILES, CELEBA_PICTURES = 10, 30_000
BINARY_MNIST = "http://www.cs.toronto.edu/~larocheh/public/datasets/binarized_mnist/"


@dataclass(frozen=True)
class PictureSet:
    """Pictures in three parts, and their labels where they have any; ``partial`` says what is missing of the set."""

    name: str
    training: Pictures
    validation: Pictures
    test: Pictures
    levels: int
    training_labels: Int[np.ndarray, " pictures"] | None = None
    test_labels: Int[np.ndarray, " pictures"] | None = None
    partial: str = ""


def digits() -> PictureSet:
    """scikit-learn's digits: 1,797 of 8 x 8 pixels in 17 levels; always at hand."""
    from sklearn.datasets import load_digits

    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.images))
    pictures, labels = data.images.astype(np.uint8)[order], data.target[order]
    return PictureSet("digits", pictures[:1400], pictures[1400:1500], pictures[1500:], 17, labels[:1400], labels[1500:])


def mnist() -> PictureSet:
    """MNIST in 256 levels; the last 10,000 training pictures are for validation."""
    return _idx_set("mnist", MNIST)


def fashion_mnist() -> PictureSet:
    """Fashion-MNIST in 256 levels; the last 10,000 training pictures are for validation."""
    return _idx_set("fashion_mnist", FASHION)


def binarized_mnist() -> PictureSet:
    """MNIST with the fixed binarisation of Larochelle and Murray, as in every table of its likelihoods."""
    packed = "binarized_mnist_larochelle.npz"
    folder = find(packed)
    if folder is not None:
        with np.load(folder / packed, allow_pickle=False) as found:
            parts = [np.unpackbits(found[name], axis=1)[:, :784] for name in ("train", "valid", "test")]
    else:
        sums = CHECKSUMS["binarized_mnist"]
        files = [fetch(Origin(BINARY_MNIST + file, file, checksum)) for file, checksum in sums.items()]
        parts = [np.loadtxt(file, dtype=np.uint8) for file in files]
    training, validation, test = (part.reshape(-1, 28, 28) for part in parts)
    return PictureSet("binarised MNIST", training, validation, test, 2)


def cifar10() -> PictureSet:
    """CIFAR-10 from $ANYORDER_DATA, the cache or its origin (the binary version); else the subset, if it is at hand."""
    tiles = [f"cifar10_subset/train_{start:05d}.webp" for start in range(0, 10_000, 2500)]
    names = ("cifar10_subset/labels.npz", "cifar10_subset/test_00000.webp", *tiles)
    folder = find(*names)
    if find(CIFAR10.file) is None and folder is not None:
        training = np.concatenate([_untiled(folder / tile) for tile in tiles])
        with np.load(folder / "cifar10_subset/labels.npz", allow_pickle=False) as found:
            labels = found["train"].astype(np.int64), found["test"].astype(np.int64)
        said = "the first 10,000 of 50,000 training pictures and 2,000 of 10,000 test pictures"
        test = _untiled(folder / "cifar10_subset/test_00000.webp")
        return PictureSet("CIFAR-10", training[:9000], training[9000:], test, 256, labels[0][:9000], labels[1], said)
    archive = fetch(CIFAR10)
    batches = [f"cifar-10-batches-bin/data_batch_{number}.bin" for number in range(1, 6)]
    members = [*batches, "cifar-10-batches-bin/test_batch.bin"]
    if find(*members, folders=[archive.parent]) is None:
        extract(archive, members, archive.parent)
    rows = [np.fromfile(archive.parent / name, dtype=np.uint8).reshape(-1, 3073) for name in members]
    seen, test = np.concatenate(rows[:-1]), rows[-1]
    pictures = [part[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1) for part in (seen, test)]
    labels = seen[:, 0].astype(np.int64), test[:, 0].astype(np.int64)
    return PictureSet(
        "CIFAR-10", pictures[0][:45_000], pictures[0][45_000:], pictures[1], 256, labels[0][:45_000], labels[1]
    )


def imagenet(side: int = 32) -> PictureSet:
    """ImageNet at 32 x 32 or 64 x 64 pixels: ``train_data_batch_1.npz`` .. and ``val_data.npz``, as published.

    They lie in a folder ``imagenet32`` or ``imagenet64`` of $ANYORDER_DATA or the cache; whoever wants them signs in at
    image-net.org (files ``Imagenet32_train_npz.zip``, ``Imagenet32_val_npz.zip``, unpacked). The last 10,000 training
    pictures, or a tenth if there are few, are for validation, and the published validation pictures for testing.
    """
    if side not in (32, 64):
        raise UserError(f"ImageNet is at hand at 32 or 64 pixels a side, got {side!r}")
    test = f"imagenet{side}/val_data.npz"
    names = [f"imagenet{side}/train_data_batch_{number}.npz" for number in range(1, IMAGENET_FILES + 1)]
    folder = find(test, names[0])
    if folder is None:
        raise UserError(
            f"ImageNet at {side} x {side} pixels is not at hand: sign in at image-net.org, fetch the .npz files of it, "
            f"and put train_data_batch_1.npz .. and val_data.npz into a folder imagenet{side} in $ANYORDER_DATA"
        )
    there = [name for name in names if (folder / name).is_file()]
    parts = [_npz_pictures(folder / name, side) for name in (*there, test)]
    pictures = np.concatenate([found for found, _ in parts[:-1]])
    labels = np.concatenate([found for _, found in parts[:-1]])
    cut = len(pictures) - min(10_000, len(pictures) // 10)
    said = "" if len(there) == len(names) else f"{len(there)} of {len(names)} files of training pictures"
    kept = pictures[:cut], pictures[cut:], parts[-1][0]
    return PictureSet(f"ImageNet {side} x {side}", *kept, 256, labels[:cut], parts[-1][1], said)


def celeba_hq(side: int = 64) -> PictureSet:
    """CelebA-HQ, from a folder ``celeba_hq`` of picture files in $ANYORDER_DATA or the cache, scaled down.

    By name the last tenth of the 30,000 is for testing, and the last tenth of the others for validation: no paper's.
    """
    from anyorder.data.picture_files import read_folder

    side = whole("side", side)
    folder = next((found / "celeba_hq" for found in data_folders() if (found / "celeba_hq").is_dir()), None)
    if folder is None:
        raise UserError("CelebA-HQ is not at hand: put its picture files into a folder celeba_hq in $ANYORDER_DATA")
    found = read_folder(folder, size=(side, side), colour=True)
    if found.refused:
        name, why = next(iter(found.refused.items()))
        raise UserError(f"{str(folder)!r} has {len(found.refused)} files that cannot be used, such as {name}: {why}")
    pictures, tenth = found.pictures, len(found.pictures) // 10
    parts = pictures[: len(pictures) - 2 * tenth], pictures[len(pictures) - 2 * tenth : len(pictures) - tenth]
    said = "" if len(pictures) == CELEBA_PICTURES else f"{len(pictures):,} of {CELEBA_PICTURES:,} pictures"
    return PictureSet(f"CelebA-HQ {side} x {side}", *parts, pictures[len(pictures) - tenth :], 256, partial=said)


def one_array(pictures: Any) -> np.ndarray:
    """A picture, or a list of equally large ones, as an array."""
    try:
        return np.asarray(pictures)
    except ValueError as error:
        raise UserError(f"pictures must all have one size: cut or scale them first ({error})") from error


def check_pictures(pictures: Any, levels: int | None = None) -> tuple[Pictures, int]:
    """An array of pictures as it must be, and how many levels its pixels have."""
    array = one_array(pictures)
    if array.ndim not in (3, 4) or (array.ndim == 4 and array.shape[3] not in (1, 3)):
        raise UserError(
            "pictures are an array [pictures, height, width] or [pictures, height, width, 1 or 3], "
            f"got the shape {array.shape}"
        )
    if array.ndim == 4 and array.shape[3] == 1:
        array = array[..., 0]
    if 0 in array.shape:
        raise UserError(f"there are no pictures in an array of the shape {array.shape}")
    if array.dtype == bool:
        array = array.astype(np.uint8)
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all() or (array != np.rint(array)).any():
        raise UserError("pixels must be whole numbers from 0 to 255 (grey levels, or 0 and 1); scale and round them")
    if array.min() < 0 or array.max() > 255:
        raise UserError(f"pixels must lie between 0 and 255, got {array.min()} to {array.max()}; scale them")
    most = int(array.max()) + 1
    if levels is None:
        levels = 2 if most <= 2 else most if most <= 32 else 256
    levels = whole("levels", levels, 2)
    if not 2 <= levels <= 256 or most > levels:
        raise UserError(
            f"levels must be between 2 and 256 and above every pixel (the greatest is {most - 1}), got {levels}"
        )
    return array.astype(np.uint8), levels


def read_idx(path: Path) -> np.ndarray:
    """One gzipped file of the IDX format of MNIST."""
    try:
        content = read_bytes(path)
        zero, kind, axes = struct.unpack(">HBB", content[:4])
        shape = struct.unpack(f">{axes}I", content[4 : 4 + 4 * axes])
        if zero != 0 or kind != 8:
            raise ValueError("not an IDX file of bytes")
        return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape)
    except (OSError, struct.error, ValueError) as error:
        raise UserError(f"{str(path)!r} is not a gzipped IDX file: {error}") from error


def _idx_set(name: str, address: str) -> PictureSet:
    files = CHECKSUMS[name]
    folder = find(*(f"{name}/{file}" for file in files))
    if folder is None:  # where it is at hand it may be packed otherwise, so only what is fetched is compared
        paths = [fetch(Origin(address + file, f"{name}/{file}", checksum)) for file, checksum in files.items()]
    else:
        paths = [folder / name / file for file in files]
    pictures, labels, test, test_labels = (read_idx(path) for path in paths)
    title = name.replace("_", "-").upper() if name == "mnist" else "Fashion-MNIST"
    cut = len(pictures) * 5 // 6
    return PictureSet(
        title, pictures[:cut], pictures[cut:], test, 256, labels[:cut].astype(int), test_labels.astype(int)
    )


def _npz_pictures(path: Path, side: int) -> tuple[Pictures, Int[np.ndarray, " pictures"]]:
    """Pictures and labels of one file of downsampled ImageNet: rows of bytes, plane by plane; labels from 1 up."""
    try:
        with np.load(path, allow_pickle=False) as found:
            data, labels = found["data"], found["labels"]
        if data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != 3 * side * side or len(labels) != len(data):
            raise ValueError(f"its pictures are {data.dtype} of the shape {data.shape}")
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise UserError(
            f"{str(path)!r} is no file of ImageNet at {side} x {side} pixels with `data` and `labels`: {error}"
        ) from error
    planes = data.reshape(-1, 3, side, side)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels.astype(np.int64) - 1


def _untiled(path: Path) -> Pictures:
    """Tiles of 32 x 32, fifty a row."""
    from anyorder.data.picture_files import open_picture

    tile = np.asarray(open_picture(path).convert("RGB"))
    return tile.reshape(-1, 32, 50, 32, 3).transpose(0, 2, 1, 3, 4).reshape(-1, 32, 32, 3)
