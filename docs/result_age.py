"""How old a committed result is: at which commit it was made, and how much of the code it times has changed since.

All of it comes from git. Moves do not count as changes, nor do imports, comments and blank lines. Where there is no
history (a source archive, a shallow clone) nothing is said.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = "src/anyorder/"
BENCHMARKS = "benchmarks/"
# What a moved line may change without changing what it does.
NO_CODE = re.compile(r"\s*(#.*|import .*|from .* import .*|\w+( as \w+)?,|\))?")


@dataclass
class Changes:
    """Lines that were added or taken out between a commit and now, by file, and where files went."""

    lines: Counter[str] = field(default_factory=Counter)
    moved: dict[str, str] = field(default_factory=dict)


def commits_of(path: Path, content: dict[str, Any], root: Path) -> list[str]:
    """The commits at which the calls were made; without a record, the first one that has this very file."""
    if "runs" in content:
        return list(dict.fromkeys(run["commit"] for run in content["runs"] if run.get("commit")))
    first = _first_commits(root).get(_git(root, "hash-object", str(path)) or "")
    return [first] if first else []


@cache
def _first_commits(root: Path) -> dict[str, str]:
    """The commit that first had each version of each result file."""
    history = _git(root, "log", "--reverse", "--raw", "--no-abbrev", "--no-renames", "--format=%h", "--", "*.json")
    found: dict[str, str] = {}
    commit = ""
    for line in (history or "").splitlines():
        if line.startswith(":"):
            found.setdefault(line.split()[3], commit)
        elif line:
            commit = line[:12]
    return found


def changed_since(commit: str, content: dict[str, Any], root: Path) -> str | None:
    """One sentence about the script and the packages it times; None where the history is not at hand."""
    changes = _changes(root, commit)
    if changes is None:
        return None
    script = script_of(content, changes)
    packages = _declared(root / script) if script else None
    found: Counter[str] = Counter()
    for name, lines in changes.lines.items():
        inside = name.removeprefix(PACKAGE)
        if script is not None and name == script:
            found["the script itself"] += lines
        elif inside != name and packages is None:
            found[inside.split("/")[0]] += lines
        else:
            for package in packages or ():
                if inside == package or inside.startswith(f"{package}/"):
                    found[package] += lines
    if not found:
        return "The code it times has not changed since."
    listed = ", ".join(f"{count:,} in {name}" for name, count in found.most_common())
    return f"The code it times has changed since: {found.total():,} lines ({listed})."


def script_of(content: dict[str, Any], changes: Changes) -> str | None:
    """The script as it is called now."""
    said = content["runs"][0]["command"] if "runs" in content else content.get("command", "")
    found = re.search(r"benchmarks/\S+?\.py", said)
    name = found[0] if found else f"benchmarks/{content['benchmark']}.py" if "benchmark" in content else None
    return None if name is None else changes.moved.get(name, name)


def _declared(script: Path) -> tuple[str, ...] | None:
    """``TIMES`` of a script: packages and files of src/anyorder."""
    try:
        found = re.search(r"^TIMES = \((.*)\)", script.read_text(encoding="utf-8"), re.M)
    except OSError:
        return None
    return tuple(re.findall(r'"([^"]+)"', found[1])) if found else None


@cache
def _changes(root: Path, commit: str) -> Changes | None:
    patch = _git(root, "diff", "-M40%", "-C", "-U0", "--no-color", commit, "HEAD", "--", PACKAGE, BENCHMARKS + "*.py")
    return None if patch is None else parsed(patch)


def parsed(patch: str) -> Changes:
    """Count the lines of a patch that are code, under the name that a file has now."""
    changes, old, new = Changes(), "", ""
    for line in patch.splitlines():
        if line.startswith("diff --git "):
            old = new = ""
        elif line.startswith("rename from "):
            old = line.removeprefix("rename from ")
        elif line.startswith("rename to "):
            changes.moved[old] = line.removeprefix("rename to ")
        elif line.startswith("--- "):
            old = line.removeprefix("--- a/")
        elif line.startswith("+++ "):
            # A file that is gone counts under its last name.
            new = old if line == "+++ /dev/null" else line.removeprefix("+++ b/")
        elif new and line[:1] in "+-" and line and not NO_CODE.fullmatch(line[1:]):
            changes.lines[new] += 1
    return changes


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
