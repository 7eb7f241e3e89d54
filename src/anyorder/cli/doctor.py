"""``anyorder doctor``: what is installed, what the machine has, and whether a tiny model can be fitted and asked."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from anyorder.cli import show
from anyorder.cli.files import load_table_model
from anyorder.cli.options import Json
from anyorder.support.installed import version_of
from anyorder.support.plain import plain

PACKAGES = ("anyorder", "torch", "numpy", "pandas", "scipy", "lightgbm", "safetensors", "narwhals", "typer", "rich")
EXTRAS = {
    "polars": ("polars", "pyarrow"),
    "excel": ("openpyxl",),
    "parquet": ("pyarrow",),
    "plots": ("matplotlib",),
    "sklearn": ("sklearn",),
    "tensorboard": ("tensorboard",),
    "compress": ("constriction", "pyarrow"),
    "images": ("PIL",),
    "signed": ("cryptography",),
    "serve": ("fastapi", "uvicorn", "prometheus_client", "pyarrow"),
    "notebook": ("anywidget", "httpx", "fastapi", "uvicorn", "prometheus_client", "pyarrow"),
    "robotics": ("gymnasium_robotics", "mujoco", "h5py"),
}
"""What each extra of the package is needed for, by the modules that it brings."""

ROWS, MINUTES = 60, 0.02
UNEVEN = 1.0  # how far apart the means of the two kinds must be found; they are 4 apart in the table


def doctor(as_json: Json = False) -> None:
    """Show what is installed and what this machine has, then fit, save, load and ask a tiny model.

    The exit status is 1 if that test fails. Put the output into a bug report.
    """
    facts: dict[str, Any] = {
        "versions": {"python": platform.python_version(), **{name: version_of(name) for name in PACKAGES}},
        "machine": _machine(),
        "extras": _extras(),
    }
    facts["self_test"] = self_test()
    if as_json:
        show.print_json(facts)
    else:
        show.print_facts(plain(facts))
    if facts["self_test"]["result"] != "passed":
        raise typer.Exit(1)


def _machine() -> dict[str, Any]:
    import torch

    from anyorder.data.origin import data_folders
    from anyorder.support.memory import machine_memory

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = machine_memory()
    return {
        "system": platform.platform(terse=True),
        "cores": usable,
        "threads": torch.get_num_threads(),
        "memory": "unknown" if memory == sys.maxsize else f"{memory / 1e9:.1f} GB",
        "gpu": torch.cuda.get_device_name(0) if torch.cuda.is_available() else "none",
        "data_folders": [str(folder) + ("" if folder.is_dir() else " (not made yet)") for folder in data_folders()],
    }


def _extras() -> dict[str, str]:
    absent = {name: [module for module in modules if find_spec(module) is None] for name, modules in EXTRAS.items()}
    return {
        name: "installed" if not missing else f"not installed; to add it: pip install 'anyorder[{name}]'"
        for name, missing in absent.items()
    }


def self_test() -> dict[str, Any]:
    """Fit a table of 60 rows, save the model, load it and ask both: what failed, or that nothing did."""
    began, doing = time.perf_counter(), "importing the library"
    try:
        import numpy as np
        import pandas as pd

        from anyorder.modalities.tables.fit import fit

        generator = np.random.default_rng(0)
        large = np.arange(ROWS) % 2 == 1
        frame = pd.DataFrame(
            {
                "size": np.round(generator.normal(size=ROWS) + 4 * large, 3),
                "count": generator.integers(0, 9, ROWS),
                "kind": np.where(large, "large", "small"),
            }
        )
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")  # so short a fit is always still improving
            doing = "fitting"
            model = fit(frame, minutes=MINUTES, seed=0)
            doing = "saving"
            path = Path(folder) / "test.anyorder"
            model.save(path)
            doing = "loading"
            loaded = load_table_model(path)
            doing = "asking"
            means = [
                [float(one.given(kind=kind)["size"].mean()) for kind in ("small", "large")] for one in (model, loaded)
            ]
            shares = [float(share) for share in loaded.given(size=4.0)["kind"].probs().values()]
            doing = "checking the answers"
            if means[0] != means[1]:
                raise ValueError(f"the loaded model answers {means[1]}, the fitted one {means[0]}")
            if not means[0][1] - means[0][0] > UNEVEN:
                raise ValueError(f"means of 0 and 4 were found as {means[0]}")
            if abs(sum(shares) - 1) > 1e-6:
                raise ValueError(f"probabilities sum to {sum(shares)}")
    except Exception as error:  # noqa: BLE001 (whatever goes wrong is what this command is there to tell)
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return {"result": f"failed while {doing}", "error": said}
    return {"result": "passed", "seconds": round(time.perf_counter() - began, 1)}
