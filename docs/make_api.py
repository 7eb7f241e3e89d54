"""The API pages, made from the packages themselves: what ``anyorder`` exports, then one page a package.

A hook of MkDocs. ``api.md`` gets every public name of ``anyorder``. Each package gets a page of its own with what its
``__init__`` lists in ``__all__``; a package that lists nothing is shown module by module. So a new head or a
new task is on the site without an edit here, and ``tests/test_docs.py`` fails when a public name has no docstring.
"""

from __future__ import annotations

import ast
from json import dumps
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

SOURCE = Path(__file__).resolve().parents[1] / "src" / "anyorder"
NAMES = "<!-- names -->"
PACKAGES = "<!-- packages -->"
FIRST = ["fit", "fit_text", "fit_images", "load", "TableModel", "TextModel", "ImageModel", "Conditional", "Answer"]
# From what a user meets first down to the ground. The command line has a page of its own, and the estimators of
# `anyorder.sklearn` are names of `anyorder`.
ORDER = [
    *("modalities", "questions", "tasks", "training", "model", "networks", "heads", "distributions"),
    *("protocols", "masking", "query", "variables", "data", "baselines", "support", "errors", "testing"),
]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the page of every package into the navigation, under *API*, in whichever group that is."""
    groups: Any = config.nav or []
    entries = [entry for group in groups for pages in group.values() if isinstance(pages, list) for entry in pages]
    for entry in (*groups, *entries):
        if "API" in entry:
            entry["API"] = [{"anyorder": "api.md"}, *({name: f"api/{name}.md"} for name in packages())]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add one page for every package."""
    for name in packages():
        files.append(File.generated(config, f"api/{name}.md", content=package_page(name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the names of ``anyorder`` and the list of its packages on ``api.md``."""
    if page.file.src_uri != "api.md":
        return markdown
    return markdown.replace(NAMES, top_page()).replace(PACKAGES, package_list())


def packages() -> list[str]:
    """Packages and single modules of the top of the tree, in the order of the site."""
    found = {path.stem for path in SOURCE.iterdir() if is_module(path)} - {"cli", "sklearn"}
    return [name for name in ORDER if name in found] + sorted(found - set(ORDER))


def is_module(path: Path) -> bool:
    """Whether a path is a public module or a package with a docstring of its own."""
    return not path.stem.startswith("_") and (path.suffix == ".py" or (path / "__init__.py").exists())


def top_page() -> str:
    """A directive for every public name of ``anyorder``."""
    names = [*FIRST, *sorted(set(top_names()) - set(FIRST), key=str.lower)]
    return "\n\n".join(directive(name, heading_level=2, inherited_members=True) for name in names)


def top_names() -> list[str]:
    """What ``import anyorder`` offers, the scikit-learn estimators included."""
    import anyorder

    return [name for name in dir(anyorder) if not name.startswith("_")]


def bases() -> set[str]:
    """What the public classes of ``anyorder`` are made of: ``api.md`` shows its methods as theirs."""
    import anyorder

    shown = [thing for name in top_names() if isinstance(thing := getattr(anyorder, name), type)]
    return {base.__name__ for thing in shown for base in thing.__mro__ if base.__module__.startswith("anyorder.")}


def package_list() -> str:
    """A table of the packages, each with the first line of its docstring."""
    rows = [f"| [`anyorder.{name}`](api/{name}.md) | {first_line(name)} |" for name in packages()]
    return "\n".join(["| package | what it is |", "|---|---|", *rows])


def first_line(name: str) -> str:
    """The first paragraph of a module's docstring, on one line."""
    text = ast.get_docstring(parsed(name)) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def package_page(name: str) -> str:
    """The page of a package, or of a module at the top of the tree."""
    about = f"# anyorder.{name}\n\n" + directive(name, show_root_heading=False, members=False)
    exported = names_in_all(name)
    if exported:
        shown = [directive(f"{name}.{each}", heading_level=2) for each in exported]
    else:
        shown = [module_part(module) for module in modules(name)]
    return "\n\n".join([about, *filter(None, shown)])


def directive(name: str, **options: Any) -> str:
    """What mkdocstrings reads: an object by its name below ``anyorder``, with options of its own."""
    return "\n".join([f"::: anyorder.{name}", "    options:", *(f"      {k}: {dumps(v)}" for k, v in options.items())])


def module_part(module: str) -> str:
    """The public classes and functions of one module, without those that ``api.md`` has already."""
    members = [name for name in public(module) if name not in top_names() and name not in bases()]
    if not members:
        return ""
    if "." not in module:  # its docstring opens the page
        return "\n\n".join(directive(f"{module}.{name}", heading_level=2) for name in members)
    return directive(module, heading_level=2, members=members)


def modules(name: str) -> list[str]:
    """A top module itself, or the public modules of a package by their dotted names."""
    if not (SOURCE / name).is_dir():
        return [name]
    found = [path.relative_to(SOURCE).with_suffix("").parts for path in sorted((SOURCE / name).rglob("*.py"))]
    return [".".join(parts) for parts in found if not any(part.startswith("_") for part in parts)]


def public(module: str) -> list[str]:
    """Classes and functions that a module defines and does not hide."""
    definitions = (ast.ClassDef, ast.FunctionDef)
    return [
        node.name for node in parsed(module).body if isinstance(node, definitions) and not node.name.startswith("_")
    ]


def names_in_all(name: str) -> list[str]:
    """The list ``__all__`` of a module, empty if there is none."""
    for node in parsed(name).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return [str(each) for each in ast.literal_eval(node.value)]
    return []


def parsed(name: str) -> ast.Module:
    """The syntax tree of a module or of a package's ``__init__``, by its dotted name without ``anyorder.``."""
    path = SOURCE.joinpath(*name.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))
