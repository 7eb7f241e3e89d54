"""The explorer as one ES module, for where there is no server to give its files: a notebook, a report.

Put together from the files as they are when it is asked for: no bundler, and nothing in the repository twice. Each file
becomes a function that is called once and gives what the file exports, so a name of one file is never another's; files
come after those that they import. Only what these files use of the language is understood, the rest is refused.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

IMPORT = re.compile(r'^import (?:\{ ?(?P<names>[^}]*?) ?\} from )?"\./(?P<file>[\w-]+\.js)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:class|function|const) (?P<name>\w+))", re.MULTILINE)
LEFT = re.compile(r"^\s*(?:import|export)\b(?!\().*$|\bimport\(.*$", re.MULTILINE)


@cache
def one_module(entry: str) -> str:
    """A file of the explorer with everything that it imports, as the text of one module.

    ``entry`` keeps its ``export default``, if it has one; nothing else is exported.
    """
    order: list[str] = []
    _after_its_imports(entry, order, ())
    return "\n".join(_scoped(file) for file in order[:-1]) + "\n" + _own_text(entry)


def in_script(text: str) -> str:
    """A text as it can stand between script tags: what could end them, or begin a comment, stands there escaped.

    Within the strings of JavaScript and JSON, where such a thing may stand, it means the same.
    """
    return re.sub(r"<(?=/script|!--|script)", r"\\u003c", text, flags=re.IGNORECASE)


def source(file: str) -> str:
    """One file as it is in the package."""
    return files(__package__).joinpath(file).read_text(encoding="utf-8")


def imports_of(file: str) -> list[str]:
    """The files that one imports."""
    return [found["file"] for found in IMPORT.finditer(source(file))]


def _after_its_imports(file: str, order: list[str], within: tuple[str, ...]) -> None:
    assert file not in within, f"{' imports '.join((*within, file))}"
    for other in imports_of(file):
        if other not in order:
            _after_its_imports(other, order, (*within, file))
    if file not in order:
        order.append(file)


def _scoped(file: str) -> str:
    """A file as a function that is called once: what it exports, by name."""
    text = source(file)
    exported = ", ".join(found["name"] for found in EXPORT.finditer(text))
    body = EXPORT.sub("", _with_constants(text))
    _check(file, body)
    return f"const {_name(file)} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();"


def _own_text(file: str) -> str:
    text = _with_constants(source(file))
    _check(file, re.sub(r"^export default ", "", text, flags=re.MULTILINE))
    return text


def _with_constants(text: str) -> str:
    """Imports as constants: ``import { a, b as c } from "./x.js"`` takes them from what the function of x.js gave."""

    def taken(found: re.Match[str]) -> str:
        names = (found["names"] or "").replace(" as ", ": ")
        return f"const {{ {names} }} = {_name(found['file'])};" if names else ""

    return IMPORT.sub(taken, text)


def _check(file: str, text: str) -> None:
    found = LEFT.search(text)
    assert found is None, f"{file}: this form of import or export is not understood: {found and found[0].strip()}"


def _name(file: str) -> str:
    return "file_" + re.sub(r"\W", "_", file.removesuffix(".js"))
