"""Docstrings say what a thing is or does; one that leans on its neighbours cannot be read alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src" / "anyorder"
OPENINGS = ("Of ", "As above", "As :", "The same", "Both together")


def leaning(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring with such an opening; texts below an assignment count as docstrings."""
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", ())
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text = statement.value.value
                if isinstance(text, str) and text.lstrip().startswith(OPENINGS):
                    yield statement.lineno, text.strip().splitlines()[0]


@pytest.mark.parametrize("path", sorted(SOURCES.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCES)))
def test_no_docstring_leans_on_another(path: Path) -> None:
    assert not list(leaning(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("opening", OPENINGS)
def test_such_an_opening_is_seen(opening: str) -> None:
    for source in (f'"""{opening} x."""', f'def f():\n    """{opening} x."""', f'X = 1\n"""{opening} x."""'):
        assert len(list(leaning(source))) == 1
