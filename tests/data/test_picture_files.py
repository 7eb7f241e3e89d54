"""Picture files: a folder with everything in it, each file used or refused by name."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest

from anyorder.data import images
from anyorder.data.picture_files import WRITTEN, open_picture, pillow, read_folder, read_picture, write_picture
from anyorder.errors import UserError
from anyorder.support.atomic import WriteError

from disks import no_file_above

Image = pytest.importorskip("PIL.Image")


def save(path: Path, array: np.ndarray, mode: str | None = None, **options: object) -> None:
    picture = Image.fromarray(array)
    (picture if mode is None else picture.convert(mode)).save(path, **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 256, (12, 10, 3)).astype(np.uint8)
    for number in range(3):
        save(tmp_path / f"plain{number}.png", colour)
    save(tmp_path / "grey.png", colour[..., 0])
    save(tmp_path / "deep.png", (colour[..., 0].astype(np.uint16) * 257))
    save(tmp_path / "print.jpg", colour, "CMYK")
    save(tmp_path / "glass.png", np.dstack([colour, np.full((12, 10), 100, dtype=np.uint8)]))
    save(tmp_path / "tiny.png", colour[:2, :2])
    save(tmp_path / "large.png", rng.integers(0, 256, (40, 60, 3)).astype(np.uint8))
    save(tmp_path / "black.bmp", colour[..., 0] > 100)
    (tmp_path / "deeper").mkdir()
    save(tmp_path / "deeper" / "palette.gif", colour, "P")
    (tmp_path / "broken.png").write_bytes((tmp_path / "plain0.png").read_bytes()[:80])
    (tmp_path / "lie.jpg").write_text("not a picture")
    (tmp_path / "notes.txt").write_text("a text")
    (tmp_path / "empty.png").write_bytes(b"")
    return tmp_path


def test_every_file_is_used_or_refused_by_name(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found = read_folder(folder)
    assert found.pictures.shape == (len(found.names), 12, 10, 3)
    assert found.pictures.dtype == np.uint8
    assert sorted([*found.names, *found.refused]) == sorted(str(path.relative_to(folder)) for path in before)
    assert set(found.refused) == {"tiny.png", "broken.png", "lie.jpg", "notes.txt", "empty.png"}
    assert "2 x 2" in found.refused["tiny.png"]
    assert "cannot be read" in found.refused["broken.png"]
    assert "8 bits" in found.notes["deep.png"]
    assert "CMYK" in found.notes["print.jpg"]
    assert "white" in found.notes["glass.png"]
    assert "scaled down" in found.notes["large.png"]
    assert {path: path.read_bytes() for path in before} == before  # nothing is touched
    grey = found.pictures[found.names.index("grey.png")]
    deep = found.pictures[found.names.index("deep.png")]
    assert np.array_equal(grey, deep)  # 16 bits are the same picture
    plain = np.asarray(open_picture(folder / "plain0.png")).astype(float)
    glass = found.pictures[found.names.index("glass.png")].astype(float)
    assert np.abs(glass - (plain * 100 / 255 + 255 * 155 / 255)).max() <= 2


def test_size_and_colour_can_be_said(folder: Path) -> None:
    found = read_folder(folder, size=(8, 8), colour=False)
    assert found.pictures.shape[1:] == (8, 8)
    assert "tiny.png" in found.refused


def test_folders_without_pictures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        read_folder(tmp_path / "nowhere")
    with pytest.raises(UserError, match="it has no files"):
        read_folder(tmp_path)
    (tmp_path / "a.png").write_text("no")
    with pytest.raises(UserError, match=r"a\.png"):
        read_folder(tmp_path)


def test_pictures_are_written_whole(tmp_path: Path) -> None:
    picture = np.array([[0, 16], [8, 4]])
    write_picture(picture, tmp_path / "a.png", levels=17)
    assert np.asarray(open_picture(tmp_path / "a.png")).tolist() == [[0, 255], [128, 64]]
    with pytest.raises(UserError, match="must end in"):
        write_picture(picture, tmp_path / "a.xyz")
    with pytest.raises(UserError, match="no such file"):
        open_picture(tmp_path / "b.png")


def test_idx_files_are_read_and_others_refused(tmp_path: Path) -> None:
    import gzip
    import struct

    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(struct.pack(">HBB3I", 0, 8, 3, 2, 2, 3) + bytes(range(12))))
    assert images.read_idx(path).shape == (2, 2, 3)
    for content in (b"", b"no gzip", gzip.compress(b"short"), gzip.compress(struct.pack(">HBB3I", 0, 8, 3, 2, 2, 9))):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"x\.gz.*(not a gzipped IDX|not a gzip file)"):
            images.read_idx(path)


def _png(path: Path, height: int, width: int) -> None:
    """A PNG of that size by its header; its pixels are all black, so it is tiny."""
    pillow().new("1", (width, height)).save(path)


def test_a_picture_is_refused_by_its_header_if_it_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _png(tmp_path / "large.png", 300, 400)
    monkeypatch.setattr("anyorder.data.picture_files.MOST_PIXELS", 100_000)
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda self: pytest.fail("it was decoded"))
    with pytest.raises(UserError, match="too large: 300 x 400 pixels"):
        open_picture(tmp_path / "large.png")


def test_a_bomb_is_an_error_and_no_warning(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    _png(tmp_path / "bomb.png", 10_000, 12_000)
    with pytest.raises(UserError, match="too large"):
        open_picture(tmp_path / "bomb.png")
    assert not recwarn.list


def test_large_pictures_are_not_kept_at_full_size(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = read_folder(folder)
    monkeypatch.setattr("anyorder.data.picture_files.KEPT_PIXELS", 0)  # each is read again when the size is known
    twice = read_folder(folder)
    assert np.array_equal(once.pictures, twice.pictures)
    assert (once.names, once.notes, once.refused) == (twice.names, twice.notes, twice.refused)
    monkeypatch.setattr("anyorder.data.picture_files.MOST_BYTES", 1000)
    with pytest.raises(UserError, match=r"12 x 10 pixels, their most frequent.*--size"):
        read_folder(folder)
    assert read_folder(folder, size=(8, 8)).pictures.shape[1:3] == (8, 8)


def test_what_is_done_in_strips_is_done_as_in_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_folder(folder)
    monkeypatch.setattr("anyorder.data.picture_files.STRIP", 30)
    assert np.array_equal(read_folder(folder).pictures, whole.pictures)


@pytest.mark.parametrize("kind", ["tif", "png", "gif", "webp", "bmp", "jpg", "ppm"])
def test_a_damaged_picture_is_refused_in_words(tmp_path: Path, kind: str) -> None:
    generator = np.random.default_rng(0)
    picture = pillow().fromarray(generator.integers(0, 255, (12, 12), dtype=np.uint8))
    picture.save(tmp_path / f"a.{kind}", **({"compression": "tiff_lzw"} if kind == "tif" else {}))
    content = (tmp_path / f"a.{kind}").read_bytes()
    for _ in range(60):
        damaged = bytearray(content)
        for position in generator.integers(0, min(len(content), 400), 3):
            damaged[position] = generator.integers(0, 256)
        (tmp_path / f"b.{kind}").write_bytes(damaged)
        with contextlib.suppress(UserError):
            read_picture(tmp_path / f"b.{kind}")


def test_odd_modes_of_tiff(tmp_path: Path) -> None:
    values = np.array([[0.5, np.nan, np.inf, -3.0]] * 4, dtype=np.float32)
    pillow().fromarray(values).save(tmp_path / "a.tif")
    picture, said = read_picture(tmp_path / "a.tif")
    assert "8 bits" in said and np.asarray(picture)[0].tolist() == [128, 0, 255, 0]
    frames = [pillow().new("L", (5, 5), colour) for colour in (7, 9)]
    frames[0].save(tmp_path / "b.tif", save_all=True, append_images=frames[1:])
    picture, said = read_picture(tmp_path / "b.tif")
    assert "first frame" in said and np.asarray(picture).max() == 7


@pytest.mark.data
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "binarized_mnist", "cifar10"])
def test_public_sets(name: str, data_dir: Path) -> None:
    found = getattr(images, name)()
    assert found.training.dtype == np.uint8
    assert found.training.max() == found.levels - 1
    assert len(found.test) in (2000, 10_000)


@pytest.mark.parametrize("ending", WRITTEN)
def test_a_picture_that_the_disk_takes_only_half_of_is_not_written(tmp_path: Path, ending: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (100, 100, 3))
    target = tmp_path / f"picture{ending}"
    target.write_bytes(b"old")
    with no_file_above(3000), pytest.raises(WriteError, match="cannot write"):
        write_picture(noise, target)
    assert target.read_bytes() == b"old"
