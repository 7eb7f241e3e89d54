"""Imports point one way, and nothing that could run code from a file is imported.

A module may import from its own layer or a lower one. The first-named layer is the lowest. A package is listed once
for all of its files; a file of a package may be listed by its own name where it belongs elsewhere.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "anyorder"

LAYERS: list[tuple[str, ...]] = [
    ("errors", "atomic", "interrupt", "student", "threads"),
    (
        *(
            "registry",
            "layout",
            "query",
            "lattice",
            "schema",
            "advice",
            "cells",
            "missingness",
            "normal_scores",
            "warp",
            "splits",
            "tree_options",
            "device",
        ),
        *("tokens", "grammar", "evidence", "estimate"),
    ),
    ("masking", "protocols", "heads", "networks", "baselines"),
    ("induced", "fair", "restore", "codecs", "encoding", "families", "spiked_codec", "place", "data"),
    (
        *("model", "chunks", "region", "regions", "cut", "weighted", "truncated"),
        *("highest_density", "answer", "ranged_answer", "ranged"),
    ),
    (
        *("conditional", "information", "questions"),
        *(
            "objectives",
            "checkpoint",
            "curves",
            "train",
            "tree_classes",
            "boosting",
            "config",
            "progress",
            "speculative",
            "steps",
            "uncertainty",
            "gains",
            "measurements",
            "acquire",
        ),
    ),
    (
        *(
            "card",
            "candidates",
            "text_options",
            "text_core",
            "image_options",
            "image_core",
            "images",
            "image_fit",
            "image_plots",
            "image_scores",
            "text_scores",
            "text_plots",
            "text",
            "text_fit",
            "loading",
            "blending",
            "engines",
            "tables",
            "impute",
            "diagnostics",
            "acquire_plots",
            "interview",
            "range_coding",
            "cell_blobs",
            "compress_text",
            "compress_table",
            "compress",
            "plots",
        ),
        *("judged", "pooling", "calibration", "calibration_plots", "conformal", "anomaly", "order_search"),
    ),
    ("sklearn", "report", "show", "demo", "demo_images", "cli", "__init__", "__main__"),
]

# Siblings that must not know each other, though they stand on one layer.
STRANGERS = [("masking", "protocols", "heads", "networks")]

# `testing` ships contract checks to whoever adds a component: it may look as far up as the networks.
SPECIAL = {"testing": "networks"}

BANNED = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}


def rank(module: str) -> int:
    """The layer of a module named relative to the package, e.g. ``networks.mlp``; its longest listed prefix counts."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        name = SPECIAL.get(name, name)
        for index, layer in enumerate(LAYERS):
            if name in layer:
                return index
    raise LookupError(
        f"anyorder.{module} stands on no layer: add it to LAYERS in {Path(__file__).name}, as low as its imports allow"
    )


def modules() -> dict[str, Path]:
    """Every module of the package by its name without ``anyorder.``; a package goes by its own name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if len(parts) > 1 and parts[-1] == "__init__":
            parts = parts[:-1]
        found[".".join(parts)] = path
    return found


MODULES = modules()


def imported(tree: ast.Module, module: str, path: Path) -> set[str]:
    """Absolute dotted names of all imports, function-local ones too; ``from a import b`` gives ``a.b``."""
    names: set[str] = set()
    package = ["anyorder", *module.split(".")]
    if path.name != "__init__.py":
        package = package[:-1]
    elif module == "__init__":
        package = ["anyorder"]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package[: len(package) - node.level + 1], *([base] if base else [])])
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return names


def own(name: str) -> str | None:
    """The anyorder module that a dotted name leads to (``anyorder.query.Query`` -> ``query``), or None if foreign."""
    if name != "anyorder" and not name.startswith("anyorder."):
        return None
    inner = name.removeprefix("anyorder").removeprefix(".")
    while inner and inner not in MODULES:
        inner = inner.rpartition(".")[0]
    return inner or "__init__"


def parse(module: str) -> tuple[ast.Module, str]:
    text = MODULES[module].read_text(encoding="utf-8")
    return ast.parse(text), text


def test_there_are_modules() -> None:
    assert {"query", "networks.base", "heads.base"} <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str) -> None:
    tree, _ = parse(module)
    mine = rank(module)
    for name in imported(tree, module, MODULES[module]):
        target = own(name)
        if target is None or target == module:
            continue
        assert rank(target) <= mine, (
            f"anyorder.{module} (layer {mine}) imports anyorder.{target} (layer {rank(target)}): imports point one way"
        )
        for group in STRANGERS:
            here, there = module.split(".")[0], target.split(".")[0]
            assert not (here in group and there in group and here != there), (
                f"anyorder.{module} imports anyorder.{target}: {', '.join(group)} must not know each other"
            )


@pytest.mark.parametrize("module", MODULES)
def test_nothing_unpickles(module: str) -> None:
    tree, text = parse(module)
    for name in imported(tree, module, MODULES[module]):
        assert name.split(".")[0] not in BANNED, f"anyorder.{module} imports {name}: a model file must never run code"
    assert not re.search(r"torch\s*\.\s*load\s*\(", text), f"anyorder.{module} calls torch.load: use safetensors"
    assert not re.search(r"allow_pickle\s*=\s*True", text), f"anyorder.{module} lets numpy unpickle"
    assert "torch.load" not in imported(tree, module, MODULES[module])


@pytest.mark.parametrize("module", MODULES)
def test_one_idea_per_file(module: str) -> None:
    lines = MODULES[module].read_text(encoding="utf-8").count("\n")
    assert lines <= 400, f"anyorder.{module} has {lines} lines: look for the second idea in it"


@pytest.mark.parametrize("module", MODULES)
def test_no_global_random_state(module: str) -> None:
    _, text = parse(module)
    assert not re.search(r"\b(?:np|numpy)\.random\.seed\(", text), f"anyorder.{module} seeds numpy for everyone"
    # PyTorch's own layers are initialised from the global generator; seeding it is fine inside a fork of it.
    assert "torch.manual_seed(" not in text or "fork_rng(" in text, (
        f"anyorder.{module} seeds the global generator: take a `generator`, or seed inside torch.random.fork_rng()"
    )


# The checker itself: each of these must be caught, or the tests above could not fail.


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from anyorder.model import AnyOrderModel", "model"),
        ("import anyorder.model as m", "model"),
        ("from anyorder import model", "model"),
        ("def f():\n    from anyorder.model import x", "model"),
        ("from ..model import AnyOrderModel", "model"),
        ("from .. import model", "model"),
        ("from .base import Network", "networks.base"),
    ],
)
def test_checker_sees_every_form(source: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODULES, "model", SOURCE / "model.py")
    names = imported(ast.parse(source), "networks.dropped_in", SOURCE / "networks" / "dropped_in.py")
    assert expected in {own(name) for name in names}


def test_layers_are_ordered() -> None:
    assert rank("query") < rank("networks.base") < rank("model") < rank("conditional") < rank("impute") < rank("cli")
    assert rank("testing") == rank("networks")


def test_an_unlisted_module_is_named() -> None:
    with pytest.raises(LookupError, match="add it to LAYERS"):
        rank("somewhere_else")
