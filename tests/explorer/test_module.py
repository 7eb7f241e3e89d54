"""The explorer as one module: every file once and after what it needs, and nothing that is not understood."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from anyorder.explorer import module
from anyorder.explorer.module import imports_of, in_script, one_module


@pytest.mark.parametrize("entry", ["page.js", "notebook.js", "report.js"])
def test_every_file_once_and_after_what_it_imports(entry: str) -> None:
    text = one_module(entry)
    order = [f"{name}.js" for name in re.findall(r"^const file_(\w+) = \(\(\) => \{$", text, flags=re.M)]
    assert len(set(order)) == len(order) and entry not in order
    for at, file in enumerate([*order, entry]):
        assert set(imports_of(file)) <= set(order[:at])
    assert not re.search(r'^import |from "\./', text, flags=re.M)
    assert re.findall(r"^export .*$", text, flags=re.M) == (
        ["export default { render };"] if entry == "notebook.js" else []
    )


def test_all_files_belong_to_a_page() -> None:
    used = {"page.js", "notebook.js", "report.js"}
    for _ in range(4):
        used |= {other for file in used for other in imports_of(file)}
    assert used == {one.name for one in files("anyorder.explorer").iterdir() if one.name.endswith(".js")}


@pytest.mark.parametrize(
    "line",
    ['import x from "./dom.js";', 'export { a } from "./dom.js";', "export default 3;", 'await import("./x.js");'],
)
def test_what_is_not_understood_is_refused(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = {
        "one.js": 'import { a } from "./two.js";\nexport default { a };\n',
        "two.js": f"{line}\nexport const a = 1;\n",
    }
    monkeypatch.setattr(module, "source", text.__getitem__)
    with pytest.raises(AssertionError, match=r"two\.js"):
        one_module.__wrapped__("one.js")


def test_files_that_need_each_other_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = {
        "one.js": 'import { a } from "./two.js";\n',
        "two.js": 'import { b } from "./one.js";\nexport const a = 1;\n',
    }
    monkeypatch.setattr(module, "source", text.__getitem__)
    with pytest.raises(AssertionError, match=r"one\.js imports two\.js imports one\.js"):
        one_module.__wrapped__("one.js")


def test_a_script_cannot_be_ended_from_within() -> None:
    assert in_script('a("</script><!-- <SCRIPT>") < b') == 'a("\\u003c/script>\\u003c!-- \\u003cSCRIPT>") < b'
