"""MAF's five sets: generated files of the same format, and what must come out of each."""

from __future__ import annotations

import sys
import tarfile
import types
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from anyorder.data import density_sets
from anyorder.data.density_sets import SETS, DensitySet, gaussian_log_prob, load
from anyorder.errors import UserError


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANYORDER_DATA", raising=False)
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache" / project)


def _power(folder: Path, rows: int = 1000) -> np.ndarray:
    rng = np.random.default_rng(0)
    columns = [
        rng.integers(100, 5000, rows) / 1000,  # active power
        np.full(rows, 777.0),  # reactive power: must go
        rng.integers(23000, 24500, rows) / 100,  # voltage
        np.full(rows, 888.0),  # intensity: must go
        *(rng.integers(0, 30, rows) for _ in range(3)),
        np.arange(rows),  # time: gets no noise, and so numbers the rows
    ]
    data = np.column_stack(columns).astype(float)
    (folder / "power").mkdir(parents=True)
    np.save(folder / "power" / "data.npy", data)
    return data


def _rows(data: DensitySet) -> tuple[int, int, int, int]:
    return len(data.train), len(data.validation), len(data.test), data.train.shape[1]


def test_power(tmp_path: Path) -> None:
    raw = _power(tmp_path)
    data = load("power", folder=tmp_path, strict=False)
    assert _rows(data) == (810, 90, 100, 6)
    together = np.vstack([data.train, data.validation])
    np.testing.assert_allclose(together.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(together.std(axis=0), 1, atol=1e-12)
    # Back in the units of the file, each row differs from its own by less than one quantisation step. The time orders
    # the rows, and its scale is known from the places it must take.
    everything = np.vstack([together, data.test])
    order = np.argsort(everything[:, 5])
    kept = raw[:, [0, 2, 4, 5, 6, 7]]
    times = np.sort(everything[:, 5])
    np.testing.assert_allclose(np.diff(times), times[1] - times[0], atol=1e-10)
    for column, step in enumerate((0.001, 0.01, 1, 1, 1)):
        found = everything[order, column]
        slope, offset = np.polyfit(found, kept[:, column], 1)
        noise = kept[:, column] - (slope * found + offset)
        assert 0.8 * step < np.ptp(noise) < 1.2 * step, column
    again = load("POWER", folder=tmp_path, strict=False)
    assert np.array_equal(again.test, data.test)


def test_gas(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    base = rng.normal(size=(4003, 3)).cumsum(axis=0)
    sensors = np.column_stack(
        [base[:, 0], base[:, 0] + 1e-3 * rng.normal(size=4003), base[:, 1], base[:, 2], base[:, 2] * 2 + 5, -base[:, 0]]
    )
    table = np.column_stack([np.arange(4003) / 100, rng.random(4003), rng.random(4003), sensors])
    (tmp_path / "gas").mkdir()
    with (tmp_path / "gas" / "ethylene_CO.txt").open("w") as file:
        file.write("Time (seconds), CO conc (ppm), Ethylene conc (ppm), sensor readings (16 channels)\n")
        for row in table:
            file.write("  ".join(f"{value:.6f}" for value in row) + "   \n")
    data = load("gas", folder=tmp_path, strict=False)
    # The first of each like pair goes; an opposite sensor is no repetition in MAF's sense.
    assert _rows(data) == (810, 90, 100, 4)
    everything = np.vstack([data.train, data.validation, data.test])
    expected = pd.DataFrame(sensors[:4000:4][:, [1, 2, 4, 5]])
    np.testing.assert_allclose(everything, (expected - expected.mean()) / expected.std(), atol=1e-4)


def test_hepmass(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    (tmp_path / "hepmass").mkdir()
    written = {}
    for part, rows, extra in (("train", 600, 0), ("test", 300, 1)):
        label = rng.integers(0, 2, rows)
        features = rng.normal(3, 2, (rows, 4))
        features[:, 1] = rng.integers(0, 3, rows)  # its least value stands in a third of the rows: discrete
        features[:, 2] = np.maximum(features[:, 2], 3.0)  # so does this one's
        features[:, 3] = np.minimum(features[:, 3], 3.0)  # its *greatest* value repeats: MAF keeps such a column
        table = np.column_stack([label, features, np.full((rows, extra), 1000.0)])
        names = ["# label", *(f"f{i}" for i in range(4)), *["mass"] * extra]
        pd.DataFrame(table, columns=names).to_csv(tmp_path / "hepmass" / f"1000_{part}.csv", index=False)
        written[part] = features[label == 1][:, [0, 3]]
    data = load("hepmass", folder=tmp_path, strict=False)
    count = len(written["train"])
    assert _rows(data) == (count - int(0.1 * count), int(0.1 * count), len(written["test"]), 2)
    mean, deviation = written["train"].mean(axis=0), written["train"].std(axis=0, ddof=1)
    np.testing.assert_allclose(data.test, (written["test"] - mean) / deviation, atol=1e-10)
    np.testing.assert_allclose(
        np.vstack([data.train, data.validation]), (written["train"] - mean) / deviation, atol=1e-10
    )


def test_miniboone_keeps_its_order(tmp_path: Path) -> None:
    rows = np.random.default_rng(3).normal(5, 3, (200, 43))
    (tmp_path / "miniboone").mkdir()
    np.save(tmp_path / "miniboone" / "data.npy", rows)
    data = load("miniboone", folder=tmp_path, strict=False)
    assert _rows(data) == (162, 18, 20, 43)
    rest = rows[:180]
    np.testing.assert_allclose(data.test, (rows[180:] - rest.mean(axis=0)) / rest.std(axis=0), atol=1e-10)


def _patches(folder: Path) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    parts = {name: rng.normal(size=(rows, 63)) for name, rows in (("train", 100), ("validation", 10), ("test", 20))}
    (folder / "BSDS300").mkdir()
    (folder / "BSDS300" / "BSDS300.hdf5").touch()
    return parts


def test_bsds300_through_h5py(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    parts = _patches(tmp_path)
    with h5py.File(tmp_path / "BSDS300" / "BSDS300.hdf5", "w") as file:
        for name, rows in parts.items():
            file[name] = rows
    data = load("bsds300", folder=tmp_path, strict=False)
    assert np.array_equal(data.validation, parts["validation"])


def test_bsds300_reads_the_three_parts_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = _patches(tmp_path)

    class File(dict):  # type: ignore[type-arg]  # h5py's, as far as it is used: a mapping of things read by [()]
        def __init__(self, path: Path, mode: str) -> None:
            assert mode == "r" and path.name == "BSDS300.hdf5"
            super().__init__(parts)

        def __enter__(self) -> File:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setitem(sys.modules, "h5py", types.SimpleNamespace(File=File))
    data = load("bsds300", folder=tmp_path, strict=False)
    assert _rows(data) == (100, 10, 20, 63) and np.array_equal(data.test, parts["test"])


def test_bsds300_without_h5py_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _patches(tmp_path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(UserError, match="pip install h5py"):
        load("bsds300", folder=tmp_path, strict=False)


def test_incomplete_files_are_refused_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _power(tmp_path)
    with pytest.raises(UserError, match=r"expected \(1659917, 184435, 204928, 6\).*got \(810, 90, 100, 6\)"):
        load("power", folder=tmp_path)
    monkeypatch.setitem(SETS, "power", density_sets.Recipe(**{**vars(SETS["power"]), "shape": (810, 90, 100, 6)}))
    with pytest.raises(UserError, match=r"a Gaussian gets .* -7.74"):
        load("power", folder=tmp_path)


def test_damage_is_named(tmp_path: Path) -> None:
    (tmp_path / "miniboone").mkdir()
    path = tmp_path / "miniboone" / "data.npy"
    path.write_bytes(b"not an array")
    with pytest.raises(UserError, match="cannot be read as an array"):
        load("miniboone", folder=tmp_path)
    rows = np.ones((50, 43))
    rows[3, 3] = np.nan
    np.save(path, rows + np.random.default_rng(0).normal(size=rows.shape))
    with pytest.raises(UserError, match="not finite"):
        load("miniboone", folder=tmp_path, strict=False)
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match="cannot be read as an array"):
        load("miniboone", folder=tmp_path, strict=False)


def test_names_and_places(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'power'"):
        load("powr")
    with pytest.raises(UserError, match=r"hepmass/1000_train.csv and hepmass/1000_test.csv.*ANYORDER_DATA"):
        load("hepmass", download=False)


def test_archives_are_unpacked_into_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _power(tmp_path / "data")
    tarred, zipped = tmp_path / "maf.tar.gz", tmp_path / "gas.zip"
    with tarfile.open(tarred, "w:gz") as packed:
        packed.add(tmp_path / "data", arcname="data")
    lines = "\n".join(" ".join(f"{v:.4f}" for v in row) for row in np.random.default_rng(0).normal(size=(400, 19)))
    with zipfile.ZipFile(zipped, "w") as packed_too:
        packed_too.writestr("ethylene_CO.txt", "Time (seconds), CO conc (ppm)\n" + lines)
    fetched = []

    def fake(origin: density_sets.Origin, *_: object, **__: object) -> Path:
        fetched.append(origin.file)
        return tarred if origin is density_sets.MAF else zipped

    monkeypatch.setattr(density_sets, "fetch", fake)
    assert _rows(load("power", strict=False)) == (810, 90, 100, 6)
    assert _rows(load("gas", strict=False)) == (81, 9, 10, 16)
    load("power", strict=False)
    assert fetched == ["maf-data.tar.gz", "uci-gas.zip"]  # the second time it is in the cache


def test_gaussian_log_prob_is_scipys() -> None:
    rng = np.random.default_rng(5)
    train, test = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3)), rng.normal(size=(50, 3))
    data = DensitySet("x", train, train[:1], test)
    expected = multivariate_normal(train.mean(axis=0), np.cov(train.T, ddof=0)).logpdf(test).mean()
    assert gaussian_log_prob(data) == pytest.approx(expected)
