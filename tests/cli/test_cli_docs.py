"""docs/cli.md knows every command and every option, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from anyorder.cli import app

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def sections() -> dict[str, str]:
    """The text under each heading, by the commands that the heading names."""
    found = {}
    for section in re.split(r"^## ", (DOCS / "cli.md").read_text(encoding="utf-8"), flags=re.M)[1:]:
        heading, _, text = section.partition("\n")
        found.update(dict.fromkeys(re.findall(r"`([a-z-]+)`", heading), text))
    for name in ("next", "interview"):
        found[name] += (DOCS / "measuring.md").read_text(encoding="utf-8")
    return found


SECTIONS = sections()


def names(command: str) -> list[list[str]]:
    """The options of a command, each with all of its names."""
    options = [option for option in COMMANDS[command].params if option.param_type_name == "option"]
    return [[*option.opts, *option.secondary_opts] for option in options if "--help" not in option.opts]


def test_every_command_has_a_section() -> None:
    assert set(SECTIONS) == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_documented(command: str) -> None:
    written = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", SECTIONS[command]))
    assert [option for option in names(command) if not written & set(option)] == []


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_every_command_line_in_the_docs_is_one(page: Path) -> None:
    """No page types an option that its command does not have."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    typed = "\n".join(re.findall(r"^```(?:sh|console)\n(.*?)^```", text, flags=re.M | re.S))
    for line in re.findall(r"^\$? ?anyorder ([a-z-]+.*)$", typed, flags=re.M):
        command, *words = re.sub(r"\"[^\"]*\"|#.*", "", line).split()
        known = {name for option in names(command) for name in option}
        assert {word for word in words if re.match(r"--?[a-z]", word)} <= known, line
