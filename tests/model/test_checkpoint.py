"""Model files: bit-identical answers, atomic writing, and a clear refusal of everything else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from anyorder.errors import UserError
from anyorder.model.checkpoint import load_model, model_to_bytes, read_tensors, save_model, write_tensors
from anyorder.model.likelihood import log_probs
from anyorder.model.sampling import draws
from anyorder.model.tensor_bytes import check_description, from_bytes, to_bytes
from anyorder.query import Query

from models import categorical_model, gaussian_model

NETWORKS = [
    {"name": "residual_mlp", "width": 16, "blocks": 1},
    {"name": "causal_transformer", "width": 16, "blocks": 1, "heads": 2},
]


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network["name"])
def test_answers_after_loading_are_bit_identical(tmp_path: Path, network: dict[str, object]) -> None:
    model = categorical_model(network, steps=5)
    path = tmp_path / "m.anyorder"
    save_model(model, {"note": "ü"}, path)
    again, card = load_model(path)
    assert card == {"note": "ü"}
    values = torch.tensor([[0.0, 2.0, 1.0, 3.0], [1.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
    known = torch.tensor([[True, False, False, False], [False, False, True, False]])
    query = Query(known, ~known)
    np.testing.assert_array_equal(log_probs(model, values, query, orders=4), log_probs(again, values, query, orders=4))
    np.testing.assert_array_equal(draws(model, values, query, seed=3), draws(again, values, query, seed=3))


def test_double_precision_buffers_survive(tmp_path: Path) -> None:
    model = gaussian_model(np.array([1 / 3, 2 / 3]), np.array([[1.0, 1 / 7], [1 / 7, 1.0]]))
    save_model(model, {}, tmp_path / "g.anyorder")
    again, _ = load_model(tmp_path / "g.anyorder")
    assert torch.equal(again.network.covariance, model.network.covariance)


def _file(tmp_path: Path) -> Path:
    path = tmp_path / "m.anyorder"
    write_tensors(path, {"w": torch.arange(1000.0)}, {"kind": "model", "x": 1})
    return path


def test_every_flipped_byte_region_is_noticed(tmp_path: Path) -> None:
    path = _file(tmp_path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with pytest.raises(UserError, match=r"damaged|not an anyorder|not one of anyorder|newer"):
            read_tensors(path)


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    path = _file(tmp_path)
    whole = path.read_bytes()
    for length in (0, 1, 7, 8, 50, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(UserError):
            read_tensors(path)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    csv = tmp_path / "table.csv"
    csv.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="not an anyorder file"):
        load_model(csv)
    other = tmp_path / "other.safetensors"
    save_file({"w": torch.zeros(2)}, other)
    with pytest.raises(UserError, match="not one of anyorder's"):
        load_model(other)
    with pytest.raises(UserError, match="no such file"):
        load_model(tmp_path / "absent.anyorder")
    write_tensors(tmp_path / "c.checkpoint", {}, {"kind": "training"})
    with pytest.raises(UserError, match="training file"):
        load_model(tmp_path / "c.checkpoint")


@pytest.mark.parametrize("version", ["3", "12"])
def test_newer_files_are_refused(tmp_path: Path, version: str) -> None:
    path = tmp_path / "m.anyorder"
    write_tensors(path, {}, {"kind": "model"}, version=int(version))
    with pytest.raises(UserError, match=f"newer anyorder \\(format {version}\\)"):
        read_tensors(path)


@pytest.mark.parametrize("version", ["", "two", "-1", "0"])
def test_a_version_that_is_none_is_damage(tmp_path: Path, version: str) -> None:
    path = tmp_path / "m.anyorder"
    write_tensors(path, {}, {"kind": "model"}, version=version)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="damaged"):
        read_tensors(path)


def test_reading_draws_nothing(tmp_path: Path) -> None:
    save_model(categorical_model(NETWORKS[0], steps=1), {}, tmp_path / "m.anyorder")
    state = torch.random.get_rng_state()
    load_model(tmp_path / "m.anyorder")
    assert torch.equal(torch.random.get_rng_state(), state)


def test_equal_models_give_equal_bytes(tmp_path: Path) -> None:
    model, card = categorical_model(NETWORKS[0], steps=1), {"note": "ü", "quoted": '"\\', "line": "a\nb\x01\x7f"}
    whole = model_to_bytes(model, card)
    for name in "abcdef":  # the order that safetensors chooses is another one almost every time
        save_model(model, card, tmp_path / name)
        assert (tmp_path / name).read_bytes() == whole == model_to_bytes(model, card)
    again, read = load_model(tmp_path / "a")
    assert read == card
    assert model_to_bytes(again, read) == whole


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of Unix")
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        write_tensors(pipe, {"w": torch.zeros(3)}, {"kind": "model"})
        assert b"sha256" in read.result()
    assert pipe.is_fifo()


def test_sigkill_while_saving_leaves_the_old_file(tmp_path: Path) -> None:
    path = _file(tmp_path)
    before = path.read_bytes()
    # The process is killed after the new bytes are written beside the file and before they take its place.
    script = (
        "import os, signal, sys, torch\n"
        "from pathlib import Path\n"
        "import anyorder.model.checkpoint as c\n"
        "import anyorder.support.atomic as a\n"
        "a.os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "c.write_tensors(Path(sys.argv[1]), {'w': torch.zeros(5000)}, {'kind': 'model'})\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(path)], env=dict(os.environ), check=False)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
    assert read_tensors(path)[1] == {"kind": "model", "x": 1}


def test_a_failed_save_leaves_no_litter(tmp_path: Path) -> None:
    path = _file(tmp_path)
    with pytest.raises(TypeError):
        write_tensors(path, {"w": torch.zeros(1)}, {"kind": {1, 2}})
    assert [p.name for p in tmp_path.iterdir()] == ["m.anyorder"]


def test_a_description_that_could_not_be_read_again_is_found_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyorder.model.tensor_bytes.LONGEST_HEADER", 1000)
    with pytest.raises(UserError, match="fit fewer columns"):
        check_description({"levels": ["a" * 1000]})
    data = to_bytes({}, {"levels": ["a" * 1000]})  # writing never fails for it
    with pytest.raises(UserError, match="are read"):
        from_bytes(data)
