"""Which versions of packages are installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def version_of(package: str) -> str:
    """The version of an installed package, "unknown" where none is."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
