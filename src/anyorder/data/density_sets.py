"""The five density benchmarks of MAF (Papamakarios et al. 2017), which ACE and MAC use too, prepared as MAF does it.

The files lie as in MAF's own archive (``power/data.npy``, ``hepmass/1000_train.csv``, ...): in $ANYORDER_DATA, in the
cache, or in the archive of Zenodo record 1161203, which has the MD5 sum below. Zenodo states no SHA-256, so that
archive is not fetched: put it into the cache as ``maf-data.tar.gz``. The exception is GAS, which the archive holds as
a pickle: pickles are never read here, so the text file of the UCI repository (by hand too, as ``uci-gas.zip``) is
taken through the same steps. By their number (1,052,065) MAF's rows are every fourth of the 4,208,261 of that file;
which ones exactly is not stated, so our GAS is close to MAF's and may not be it row for row.

What was read is checked by its content: MAF's numbers of rows and columns, finite values, and the mean test
log-likelihood of a full-covariance Gaussian, which MAF's Table 1 prints for every set.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyorder.data.origin import VARIABLE, Origin, cache_folder, extract, fetch, find
from anyorder.errors import UserError, nearest

Numbers = NDArray[np.float64]

MAF = Origin(
    "https://zenodo.org/records/1161203/files/data.tar.gz",
    "maf-data.tar.gz",
    "md5:9b9c9b0375315ad270eba4ce80c093ab",
)
UCI_GAS = Origin(
    "https://archive.ics.uci.edu/static/public/322/gas+sensor+array+under+dynamic+gas+mixtures.zip", "uci-gas.zip"
)
SEED = 42  # MAF's own, for the noise and the order of POWER
ALIKE = 0.98  # GAS: of two sensors that correlate more than this, the first goes
REPEATED = 5  # HEPMASS: a column whose least value stands in more rows than this is discrete, and goes
EVERY = 4  # GAS: rows of the text file per row kept


@dataclass(frozen=True)
class DensitySet:
    """Standardised rows, split as in MAF."""

    name: str
    train: Numbers
    validation: Numbers
    test: Numbers


@dataclass(frozen=True)
class Recipe:
    """Files, where they come from, how they become rows, and what is known of the result.

    ``shape``: rows of the training, validation and test part, and columns.
    """

    files: tuple[str, ...]
    origin: Origin
    prepare: Callable[[Path], tuple[Numbers, Numbers, Numbers]]
    shape: tuple[int, int, int, int]
    gaussian: tuple[float, float]  # mean test log-likelihood and twice its standard error, as MAF prints them


def load(
    name: str, *, folder: str | Path | None = None, download: bool = True, strict: bool = True, show: bool = True
) -> DensitySet:
    """A set by its name: ``gas``, ``hepmass``, ``miniboone``, ``power`` or ``bsds300``.

    Parameters
    ----------
    folder
        Look only here, instead of $ANYORDER_DATA and the cache.
    download
        Whether to fetch what is nowhere to be found.
    strict
        Whether to insist on the rows, columns and Gaussian log-likelihood of the complete set.
    """
    key = name.lower()
    if key not in SETS:
        raise UserError(f"unknown density set {name!r}; {nearest(key, SETS)}")
    recipe = SETS[key]
    where = find(*recipe.files, folders=None if folder is None else [Path(folder)])
    if where is None and (folder is not None or not download):
        raise UserError(f"{key}: no folder has {' and '.join(recipe.files)}; name the one that does in ${VARIABLE}")
    if where is None:
        where = cache_folder()
        extract(fetch(recipe.origin, where, show=show), recipe.files, where)
    found = DensitySet(key, *recipe.prepare(where))
    _check(found, recipe, strict)
    return found


def gaussian_log_prob(data: DensitySet) -> float:
    """Mean test log-likelihood of a Gaussian with the mean and covariance of the training part."""
    mean, covariance = data.train.mean(axis=0), np.cov(data.train.T, ddof=0)
    covariance = np.atleast_2d(covariance)
    gap = data.test - mean
    distance = np.einsum("ij,ji->i", gap, np.linalg.solve(covariance, gap.T))
    return float(-0.5 * (distance.mean() + np.linalg.slogdet(2 * np.pi * covariance)[1]))


def _check(data: DensitySet, recipe: Recipe, strict: bool) -> None:
    shape = (len(data.train), len(data.validation), len(data.test), data.train.shape[1])
    if not all(np.isfinite(part).all() for part in (data.train, data.validation, data.test)):
        raise UserError(f"{data.name}: a value is not finite; the file is damaged")
    if strict and shape != recipe.shape:
        raise UserError(
            f"{data.name}: expected {recipe.shape} rows of training, validation, test and columns, got {shape}; "
            "the file is incomplete, or not that of MAF (strict=False takes it as it is)"
        )
    if strict:
        expected, tolerance = recipe.gaussian
        score = gaussian_log_prob(data)
        # MAF's interval is one of its own noise; a quarter of a nat more allows for other noise and other rows.
        if abs(score - expected) > tolerance + 0.25:
            raise UserError(
                f"{data.name}: a Gaussian gets {score:.2f} nats on the test part and {expected} ± {tolerance} in "
                "MAF's Table 1; the file is not the one it used (strict=False takes it as it is)"
            )


def _array(path: Path) -> Numbers:
    try:
        rows: Numbers = np.load(path, allow_pickle=False).astype(np.float64)
    except (ValueError, EOFError, OSError) as error:
        raise UserError(f"{str(path)!r} cannot be read as an array: {error}") from error
    return rows


def _tail(rows: Numbers) -> tuple[Numbers, Numbers]:
    """All but the last tenth, and the last tenth."""
    count = int(0.1 * len(rows))
    return rows[: len(rows) - count], rows[len(rows) - count :]


def _split(rows: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The last tenth is the test part, the last tenth of the rest the validation part."""
    rest, test = _tail(rows)
    return (*_tail(rest), test)


def _standardised(rows: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Split, and standardised by the training and validation parts together."""
    rest, _ = _tail(rows)
    mean, deviation = rest.mean(axis=0), rest.std(axis=0)
    train, validation, test = _split((rows - mean) / deviation)
    return train, validation, test


def _power(folder: Path) -> tuple[Numbers, Numbers, Numbers]:
    """Active power, voltage, three sub-meters and the time; noise of one quantisation step on all but the time."""
    rows = _array(folder / "power" / "data.npy")
    # The legacy generator, since another would give other noise and another order than MAF's.
    rng = np.random.RandomState(SEED)
    rng.shuffle(rows)
    rows = np.delete(rows, [1, 3], axis=1)  # reactive power and intensity
    count = len(rows)
    voltage, active, meters = 0.01 * rng.rand(count, 1), 0.001 * rng.rand(count, 1), rng.rand(count, 3)
    return _standardised(rows + np.hstack([active, voltage, meters, np.zeros((count, 1))]))


def _gas(folder: Path) -> tuple[Numbers, Numbers, Numbers]:
    """Sixteen sensors, without those that repeat another; standardised by all rows, as MAF does it."""
    path = folder / "gas" / "ethylene_CO.txt"
    # The header has fewer words separated by blanks than the table has columns, so it is passed over.
    table = pd.read_csv(path, sep=r"\s+", header=None, skiprows=1).to_numpy(dtype=np.float64)
    sensors = table[: len(table) // EVERY * EVERY : EVERY, 3:]  # without time and the two concentrations
    left = list(range(sensors.shape[1]))
    alike = np.corrcoef(sensors.T) > ALIKE
    while True:
        repeats = [sensor for sensor in left if alike[sensor, left].sum() > 1]
        if not repeats:
            break
        left.remove(repeats[0])
    rows = sensors[:, left]
    return _split((rows - rows.mean(axis=0)) / rows.std(axis=0, ddof=1))


def _hepmass(folder: Path) -> tuple[Numbers, Numbers, Numbers]:
    """Signal rows of the mass-1000 files, without the columns of few values."""
    train, test = (_signal(folder / "hepmass" / f"1000_{part}.csv") for part in ("train", "test"))
    test = test[:, : train.shape[1]]  # the test file has one column more
    mean, deviation = train.mean(axis=0), train.std(axis=0, ddof=1)
    # MAF counts how often the *least* value of a column stands there, not the most frequent one; so do we.
    discrete = (train == train.min(axis=0)).sum(axis=0) > REPEATED
    train, test = ((rows - mean)[:, ~discrete] / deviation[~discrete] for rows in (train, test))
    return (*_tail(train), test)


def _signal(path: Path) -> Numbers:
    table = pd.read_csv(path, index_col=False)
    rows: Numbers = table[table.iloc[:, 0] == 1].iloc[:, 1:].to_numpy(dtype=np.float64)
    return rows


def _miniboone(folder: Path) -> tuple[Numbers, Numbers, Numbers]:
    return _standardised(_array(folder / "miniboone" / "data.npy"))


def _bsds300(folder: Path) -> tuple[Numbers, Numbers, Numbers]:
    """Patches that are stored split and prepared; they are not standardised."""
    try:
        h5py = importlib.import_module("h5py")
    except ImportError as error:
        raise UserError("BSDS300 is an HDF5 file: install h5py to read it (pip install h5py)") from error
    with h5py.File(folder / "BSDS300" / "BSDS300.hdf5", "r") as file:
        train, validation, test = (
            np.asarray(file[part][()], dtype=np.float64) for part in ("train", "validation", "test")
        )
    return train, validation, test


SETS: dict[str, Recipe] = {
    "power": Recipe(("power/data.npy",), MAF, _power, (1_659_917, 184_435, 204_928, 6), (-7.74, 0.02)),
    "gas": Recipe(("gas/ethylene_CO.txt",), UCI_GAS, _gas, (852_174, 94_685, 105_206, 8), (-3.58, 0.75)),
    "hepmass": Recipe(
        ("hepmass/1000_train.csv", "hepmass/1000_test.csv"),
        MAF,
        _hepmass,
        (315_123, 35_013, 174_987, 21),
        (-27.93, 0.02),
    ),
    "miniboone": Recipe(("miniboone/data.npy",), MAF, _miniboone, (29_556, 3_284, 3_648, 43), (-37.24, 1.07)),
    "bsds300": Recipe(("BSDS300/BSDS300.hdf5",), MAF, _bsds300, (1_000_000, 50_000, 250_000, 63), (96.67, 0.25)),
}
