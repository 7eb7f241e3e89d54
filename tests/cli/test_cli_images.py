"""The commands on a model of pictures, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import anyorder as ao
from anyorder.cli import main
from anyorder.data.images import digits
from anyorder.data.picture_files import open_picture, pillow, read_picture, write_picture

pytest.importorskip("PIL")
CONFIG = (
    '[training]\nsteps = 4\nthreads = 1\nbatch = 8\nvalidation_queries = 8\n[network]\nname = "unet"\nchannels = 8\n'
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("images")
    np.savez(folder / "digits.npz", pictures=digits().training[:60])
    (folder / "run.toml").write_text(CONFIG, encoding="utf-8")
    path = str(folder / "digits.anyorder")
    status = main(
        ["fit-images", str(folder / "digits.npz"), "-o", path, "--preset", "tiny", "--config", str(folder / "run.toml")]
    )
    assert status == 0
    return path


def test_fill(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = digits().test[0]
    write_picture(picture, tmp_path / "seven.png", levels=17)
    mask = np.zeros((8, 8))
    mask[:, 4:] = 255
    write_picture(mask, tmp_path / "mask.png")
    given = [str(tmp_path / "seven.png"), "--mask", str(tmp_path / "mask.png")]
    out = tmp_path / "out.png"
    assert main(["fill", model, *given, "-o", str(out), "--steps", "4"]) == 0
    filled = np.asarray(open_picture(out))
    assert np.array_equal(filled[:, :4], np.asarray(open_picture(tmp_path / "seven.png"))[:, :4])
    extra = ["--strip", str(tmp_path / "strip.png"), "--film", str(tmp_path / "film.gif"), "--mode", "left_to_right"]
    assert main(["fill", model, *given, "-o", str(out), "--draws", "5", "--calls", "4", *extra]) == 0
    assert np.asarray(open_picture(out)).shape == (36, 6 * 36, 3)
    assert open_picture(tmp_path / "film.gif").n_frames >= 3
    assert open_picture(tmp_path / "strip.png").size[0] > 36
    capsys.readouterr()
    for options, words in (
        ([str(tmp_path / "seven.png")], "anyorder fill MODEL PICTURE --mask PICTURE --out PICTURE"),
        ([*given, "-o", str(out), "--mode", "sideways"], "unknown masking mode"),
        ([*given, "-o", str(out), "--temperature", "0"], "above 0"),
        ([str(tmp_path / "mask.png"), "--mask", str(tmp_path / "nowhere.png"), "-o", str(out)], "no such file"),
    ):
        assert main(["fill", model, *options]) == 2
        assert words in capsys.readouterr().err


def test_what_is_known_stays_as_it_is_in_the_file(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Levels between the seventeen of the model; the right half is hidden.
    rng = np.random.default_rng(0)
    picture, mask = rng.integers(0, 256, (8, 8)).astype(np.uint8), np.zeros((8, 8))
    mask[:, 4:] = 255
    write_picture(picture, tmp_path / "picture.png")
    write_picture(mask, tmp_path / "mask.png")
    deep = pillow().fromarray(picture.astype(np.uint16) * 257)
    deep.save(tmp_path / "deep.png")
    for name, ending in (("picture.png", "png"), ("picture.png", "webp"), ("picture.png", "tiff"), ("deep.png", "png")):
        out = tmp_path / f"out.{ending}"
        given = [str(tmp_path / name), "--mask", str(tmp_path / "mask.png"), "--steps", "2"]
        assert main(["fill", model, *given, "-o", str(out)]) == 0
        assert np.array_equal(np.asarray(read_picture(out)[0])[:, :4], picture[:, :4])
        assert ("scaled to 8 bits" in capsys.readouterr().err) == (name == "deep.png")
    black, strip = tmp_path / "black.png", str(tmp_path / "strip.png")
    write_picture(np.zeros((8, 8)), black)
    given = [str(tmp_path / "picture.png"), "--mask", str(tmp_path / "mask.png")]
    for options, words in (
        ([*given, "-o", str(tmp_path / "o.jpg")], "others change what is known"),
        ([*given, "-o", str(tmp_path / "o.gif")], "must end in one of"),
        ([*given, "-o", strip, "--strip", strip], "are the same file"),
        ([*given, "-o", str(tmp_path / "mask.png")], "would overwrite"),
        ([given[0], "--mask", given[0], "-o", strip], "give two different files"),
        ([*given, "-o", strip, "--film", str(tmp_path / "film.mp4")], "must end in .gif"),
        ([*given, "-o", strip, "--missing", "?"], "--missing is for models of tables"),
        ([given[0], "--mask", str(black), "-o", strip], "paint the hole white"),
    ):
        assert main(["fill", model, *options]) == 2
        assert words in capsys.readouterr().err
    assert main(["sample", model, "-o", str(tmp_path / "o.gif")]) == 2
    assert main(["demo-images", "-o", str(tmp_path / "o.gif")]) == 2


def test_files_have_the_levels_of_a_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "dark"
    folder.mkdir()
    for number in range(6):
        write_picture(np.random.default_rng(number).integers(0, 2, (8, 8)), folder / f"{number}.png")
    (tmp_path / "run.toml").write_text(CONFIG, encoding="utf-8")
    fit = ["fit-images", str(folder), "-o", str(tmp_path / "m.anyorder"), "--config", str(tmp_path / "run.toml")]
    for levels in (256, 17):
        capsys.readouterr()
        assert main([*fit, "--json", *(["--levels", "17"] if levels == 17 else [])]) == 0
        assert json.loads(capsys.readouterr().out)["levels"] == levels
    assert main([*fit, "--levels", "1"]) == 2
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 nothing")
    (tmp_path / "empty.npy").write_bytes(b"")
    for name in ("broken.npz", "empty.npy"):
        assert main(["fit-images", str(tmp_path / name), "-o", str(tmp_path / "m.anyorder")]) == 2
        assert "cannot read an array" in capsys.readouterr().err


def test_sample_score_info(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "grid.png"
    assert main(["sample", model, "-n", "5", "--calls", "3", "-o", str(out)]) == 0
    assert np.asarray(open_picture(out)).shape == (2 * 36, 3 * 36, 3)
    np.save(tmp_path / "test.npy", digits().test[:6])
    capsys.readouterr()
    assert main(["score", model, str(tmp_path / "test.npy"), "--windows", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pictures"] == 3
    loaded = ao.load(model)
    nats = loaded.log_prob(digits().test[:6][[0, 2, 5]])
    assert found["nll_nats"] == pytest.approx(-float(nats.mean()))
    assert main(["info", model]) == 0
    assert "pictures.levels" in capsys.readouterr().out
    for command in (["ask", model, "a"], ["compress", model, "x", "-o", str(out)], ["sample", model]):
        assert main(command) == 2
        assert "picture" in capsys.readouterr().err.replace("images", "pictures")


def test_a_folder_is_fitted_and_odd_files_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number, picture in enumerate(digits().training[:12]):
        write_picture(picture, folder / f"{number}.png", levels=17)
    (folder / "broken.png").write_text("no")
    (tmp_path / "run.toml").write_text(CONFIG, encoding="utf-8")
    model = str(tmp_path / "m.anyorder")
    status = main(["fit-images", str(folder), "-o", model, "--config", str(tmp_path / "run.toml"), "--json"])
    said = capsys.readouterr()
    assert status == 0
    assert "left out: broken.png" in said.err
    assert json.loads(said.out)["shape"] == "8 x 8"
    assert main(["fit-images", str(folder), "-o", model, "--size", "8"]) == 2
    assert main(["fit-images", str(tmp_path / "none"), "-o", model]) == 2
