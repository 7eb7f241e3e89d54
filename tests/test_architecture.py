"""The house: one tree, one import rule between its packages, and nothing that could run code from a file."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src" / "anyorder"

# From the bottom up. A package may import itself and whatever stands on a lower line; packages on one line do not
# know each other.
LAYERS: list[tuple[str, ...]] = [
    ("errors",),
    ("support",),
    ("query",),
    ("variables",),
    ("distributions",),
    ("masking", "protocols", "heads", "networks", "data"),
    ("model",),
    ("training", "questions"),
    ("tasks",),
    ("modalities", "explorer"),
    ("serve", "sklearn"),
    ("cli",),
    ("__init__", "__main__"),
]

# Beside the tower: the papers' baselines lean on the pieces of our networks, and `testing` ships contract checks to
# whoever adds a component.
BESIDE = {"baselines": "networks", "testing": "networks"}

# The random state of the process belongs to whoever calls us, and a fork of it is seen by all threads: take a
# generator, build under `anyorder.support.randomness`, and drop by `anyorder.networks.parts.dropout`.
GLOBAL_RANDOMNESS = re.compile(
    r"\b(?:np|numpy)\.random\.(?!default_rng\b|Generator\b|RandomState\()\w+"
    r"|\btorch\.(?:manual_seed|seed|initial_seed|set_rng_state)\("
    r"|\bfork_rng\("
    r"|\b(?:nn|F|functional)\.(?:\w*[dD]ropout\w*)\("
    r"|^\s*(?:import random\b|from random import)",
    re.MULTILINE,
)

BANNED = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}


def package_of(module: str) -> str:
    return module.split(".")[0]


def rank(module: str) -> int:
    """The layer of a module named relative to ``anyorder``, e.g. ``networks.unet``."""
    package = package_of(module)
    package = BESIDE.get(package, package)
    for index, layer in enumerate(LAYERS):
        if package in layer:
            return index
    raise LookupError(f"anyorder.{module} is in no package of the house; see LAYERS in {Path(__file__).name}")


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


@cache
def parse(module: str) -> tuple[ast.Module, str]:
    text = MODULES[module].read_text(encoding="utf-8")
    return ast.parse(text), text


def wrong_imports(tree: ast.Module, module: str, path: Path) -> list[str]:
    """What a module imports against the rule."""
    mine = rank(module)
    wrong = []
    for name in sorted(imported(tree, module, path)):
        target = own(name)
        if target is None or package_of(target) == package_of(module):
            continue
        beside = package_of(module) in BESIDE  # as high as its layer, and not strange to it
        if rank(target) > mine or (rank(target) == mine and not beside):
            wrong.append(f"anyorder.{module} imports anyorder.{target}")
    return wrong


def test_the_top_of_the_tree_fits_on_a_screen() -> None:
    top = [path for path in SOURCE.iterdir() if not path.name.startswith((".", "__pycache__"))]
    assert len([path for path in top if path.suffix == ".py"]) <= 5
    assert len([path for path in top if path.is_dir()]) <= 18


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str) -> None:
    tree, _ = parse(module)
    assert not wrong_imports(tree, module, MODULES[module])


@pytest.mark.parametrize("module", MODULES)
def test_nothing_unpickles(module: str) -> None:
    tree, text = parse(module)
    for name in imported(tree, module, MODULES[module]):
        assert name.split(".")[0] not in BANNED, f"anyorder.{module} imports {name}: a model file must never run code"
    assert not re.search(r"torch\s*\.\s*load\s*\(", text), f"anyorder.{module} calls torch.load: use safetensors"
    assert not re.search(r"allow_pickle\s*=\s*True", text), f"anyorder.{module} lets numpy unpickle"
    assert "torch.load" not in imported(tree, module, MODULES[module])


@pytest.mark.parametrize("module", MODULES)
def test_no_global_random_state(module: str) -> None:
    _, text = parse(module)
    assert not GLOBAL_RANDOMNESS.findall(text), f"anyorder.{module} uses random state that others use too"


@cache
def defined_in(package: str) -> tuple[set[str], set[str]]:
    """The classes that a package's own modules define, and the names under which its components are registered."""
    classes, names = set(), set()
    for module in MODULES:
        if module.rpartition(".")[0] != package:
            continue
        for node in ast.walk(parse(module)[0]):
            if isinstance(node, ast.ClassDef):
                classes.add(node.name)
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "name":
                names |= {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
    return classes, names


def class_tests(tree: ast.Module, classes: set[str], names: set[str]) -> list[str]:
    """Where a module asks for the class of something, or compares a name, in place of asking the thing itself."""
    found = []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            named = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
            named |= {part.attr for part in ast.walk(node.args[1]) if isinstance(part, ast.Attribute)}
            found += sorted(named & classes)
        if isinstance(node, ast.Compare):
            parts = [part for side in (node.left, *node.comparators) for part in ast.walk(side)]
            found += [part.value for part in parts if isinstance(part, ast.Constant) and part.value in names]
            attributes = [part for part in parts if isinstance(part, ast.Attribute) and part.attr == "name"]
            found += [part.value.id for part in attributes if getattr(part.value, "id", None) in classes]
    return found


ASKED = ("networks", "heads", "variables.codecs", "modalities.tables", "modalities.texts", "modalities.images")
"""Packages whose classes are asked what they are, and told apart by nobody outside."""


@pytest.mark.parametrize("module", MODULES)
def test_components_are_asked_and_not_told_apart(module: str) -> None:
    for package in ASKED:
        if package_of(module) == package_of(package):
            continue
        classes, names = defined_in(package)
        if package != "networks":
            names = set()  # "categorical" and "gaussian" are ordinary words as well
        # Sums of known distributions may be told apart; what makes them may not.
        classes = {name for name in classes if not name.endswith("Distribution")}
        found = class_tests(parse(module)[0], classes, names)
        assert not found, f"anyorder.{module} tests for {found}: let the contract of {package} say it"


def test_tests_mirror_the_tree() -> None:
    files = sorted(TESTS.rglob("test_*.py"))
    folders = {path.parent.relative_to(TESTS) for path in files} - {Path(), Path("benchmarks"), Path("docs")}
    assert [folder for folder in folders if not (SOURCE / folder / "__init__.py").exists()] == []
    # pytest imports test files by their bare names.
    names = [path.name for path in files]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: str(path.relative_to(TESTS)))
def test_no_test_imports_another(path: Path) -> None:
    names = imported(ast.parse(path.read_text(encoding="utf-8")), "", path)
    assert not [name for name in names if name.startswith("test_")], "put what tests share into a helper module"


# The checker itself: each of these must be caught, or the tests above could not fail.


@pytest.mark.parametrize(
    "source",
    [
        "from anyorder.model import AnyOrderModel",
        "import anyorder.model as m",
        "from anyorder import model",
        "def f():\n    from anyorder.model import x",
        "from ..model import AnyOrderModel",
        "from .. import model",
        "from anyorder.heads import Head",
        "from anyorder.cli import main",
    ],
)
def test_checker_sees_every_form(source: str) -> None:
    path = SOURCE / "networks" / "dropped_in.py"
    assert wrong_imports(ast.parse(source), "networks.dropped_in", path)
    assert not wrong_imports(ast.parse("from .base import Network"), "networks.dropped_in", path)
    assert not wrong_imports(ast.parse("from anyorder.query import Query"), "networks.dropped_in", path)


@pytest.mark.parametrize(
    "source",
    [
        "np.random.seed(0)",
        "numpy.random.rand(3)",
        "torch.manual_seed(0)",
        "with torch.random.fork_rng(devices=[]):",
        "self.dropout = nn.Dropout(0.1)",
        "F.dropout(x, 0.1)",
        "import random",
    ],
)
def test_checker_sees_shared_randomness(source: str) -> None:
    assert GLOBAL_RANDOMNESS.search(source)


@pytest.mark.parametrize(
    "source",
    [
        "rng: np.random.Generator = np.random.default_rng(0)",
        "rng = np.random.RandomState(0)",
        "torch.Generator().manual_seed(0)",
        "self.dropout = Dropout(0.1)",
        "from anyorder.protocols.random import Random",
    ],
)
def test_checker_allows_randomness_of_ones_own(source: str) -> None:
    assert not GLOBAL_RANDOMNESS.search(source)


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(network, UNet)",
        "isinstance(model.network, networks.UNet | ChainNetwork)",
        "issubclass(kind, (int, ChainNetwork))",
        "if name == 'unet': pass",
        "if name in ('unet', 'blend'): pass",
        "if described.get('name') == UNet.name: pass",
    ],
)
def test_checker_sees_class_tests(source: str) -> None:
    assert class_tests(ast.parse(source), *defined_in("networks"))
    assert not class_tests(ast.parse("isinstance(network, Network2) or name == 'unet2'"), *defined_in("networks"))


def test_an_unlisted_package_is_named() -> None:
    with pytest.raises(LookupError, match="no package of the house"):
        rank("somewhere_else.inside")
