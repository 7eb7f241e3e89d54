"""The methods that are compared, and the environment each needs: one virtual environment a peer, versions pinned."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

OWN = "anyorder"
"""Not an environment of its own: the project's, from which the comparison is run."""


@dataclass(frozen=True)
class Environment:
    """Packages to install, in groups that are installed one after the other, and packages to take out again."""

    installs: tuple[tuple[str, ...], ...]
    removes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Method:
    """A runner script, the environment it runs in and what it is called with."""

    environment: str
    runner: str
    arguments: tuple[str, ...] = ()
    seconds: float = 60.0
    """About what it takes on one thread for a table of 10,000 cells; for the plan only, as is the next."""
    column_seconds: float = 0.0
    """What every column adds to that, however short the table."""


FRAMES = ("numpy==2.4.6", "pandas==3.1.1")
ENVIRONMENTS = {
    "sklearn": Environment(((*FRAMES, "scikit-learn==1.9.1"),)),
    "miceforest": Environment(((*FRAMES, "miceforest==6.0.5", "lightgbm==4.6.0"),)),  # breaks with lightgbm 4.7
    # It breaks with scikit-learn 1.9; and it asks for xgboost, which brings libraries for graphics cards.
    "utrees": Environment(
        (
            (*FRAMES, "scikit-learn==1.6.1", "xgboost-cpu==3.2.0", "numba", "tqdm", "kditransform"),
            ("--no-deps", "utrees==0.3.0"),
        )
    ),
    # torch first and alone, so that the pin decides which build is taken; the engine cannot be imported beside the two.
    "mostlyai": Environment(
        (("torch==2.13.0",), (*FRAMES, "torch==2.13.0", "mostlyai-engine==2.7.3")), ("torchvision", "torchaudio")
    ),
    "lace": Environment((("pandas==2.3.3", "pylace==0.10.1"),)),  # breaks with pandas 3
    "tabpfn": Environment((("torch==2.13.0",), ("torch==2.13.0", "tabpfn==2.2.1"))),
    "spflow": Environment((("torch==2.13.0",), ("torch==2.13.0", "spflow==1.1.0"))),
}
METHODS = {
    "mean/mode": Method("sklearn", "run_constant.py", ("mean",), 1),
    "hot deck": Method("sklearn", "run_constant.py", ("hotdeck",), 1),
    "linear chain": Method("sklearn", "run_linear.py", (), 10),
    "BayesianRidge": Method("sklearn", "run_iterative.py", ("ridge",), 60),
    "pylace": Method("lace", "run_lace.py", (), 30),
    "miceforest": Method("miceforest", "run_miceforest.py", (), 80, 4),
    "utrees K=10": Method("utrees", "run_utrees.py", ("10",), 110),
    "utrees": Method("utrees", "run_utrees.py", ("50",), 550),
    "random forest": Method("sklearn", "run_iterative.py", ("forest",), 500),
    "mostlyai-engine": Method("mostlyai", "run_mostlyai.py", (), 60),
    "anyorder neural": Method(OWN, "run_anyorder.py", ("neural", "default"), 120),
    "anyorder trees": Method(OWN, "run_anyorder.py", ("trees", "default"), 80),
    "anyorder auto": Method(OWN, "run_anyorder.py", ("auto", "default"), 120),
    "anyorder 15 s": Method(OWN, "run_anyorder.py", ("auto", "0.25"), 30),
}
PEERS = tuple(name for name, method in METHODS.items() if method.environment != OWN)
OURS = tuple(name for name, method in METHODS.items() if method.environment == OWN)
USUAL = (
    *("mean/mode", "hot deck", "linear chain", "BayesianRidge", "pylace", "miceforest", "utrees K=10"),
    *("anyorder auto", "anyorder 15 s"),
)
"""What is run unless more is asked for: the others take long, or are parts of these."""


def file_name(method: str) -> str:
    """A method's name as a part of a path."""
    return re.sub(r"\W+", "-", method)


def python_of(environment: str, work: Path) -> Path:
    """The interpreter of an environment; its virtual environment is made, or mended, if its pins have changed."""
    if environment == OWN:
        return Path(sys.executable)
    folder, wanted = work / "venvs" / environment, ENVIRONMENTS[environment]
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == repr(wanted):
        return python
    print(f"making the environment of {environment} ...", flush=True)
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    for packages in wanted.installs:
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    if wanted.removes:
        subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", *wanted.removes], check=True)
    stamp.write_text(repr(wanted), encoding="utf-8")
    return python
