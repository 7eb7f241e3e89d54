"""A service of small models on a port of its own, and a real browser that visits it; skipped where there is none."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anyorder as ao

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "serve"))
from browsing import NoBrowserError, browsing, until

FILES = Path(__file__).resolve().parents[1] / "files" / "v1"
KEPT = {"table": "table_both", "text": "text", "pictures": "pictures_few_levels"}


@pytest.fixture(scope="session")
def models() -> dict[str, Any]:
    return {name: ao.load(FILES / f"{file}.anyorder") for name, file in KEPT.items()}


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where the models are served: by a process of its own, as for a visitor."""
    named = [f"{name}={FILES / file}.anyorder" for name, file in KEPT.items()]
    command = [sys.executable, "-m", "anyorder", "serve", "--port", "0", "--workers", "1", *named]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    late = threading.Timer(600, process.kill)
    late.start()
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found, "the service did not begin"
        yield found[0]
    finally:
        late.cancel()
        process.terminate()
        process.communicate()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    pytest.importorskip("fastapi", reason="the service is an extra")
    opened = browsing()
    try:
        browser = opened.__enter__()
    except NoBrowserError as reason:
        pytest.skip(str(reason))
    yield browser
    opened.__exit__(None, None, None)


class Visit:
    """One page, and everything that it complained about."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(permissions=["clipboard-read", "clipboard-write"], **options)
        self.page, self.address, self.complaints = self.context.new_page(), address, []
        self.page.set_default_timeout(15_000)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._heard)
        self.outside: list[str] = []
        self.page.on("request", lambda asked: self.outside.append(asked.url))

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def open(self, hash_: str = "") -> Any:
        self.page.goto(self.address + hash_)
        return self.page

    def card(self, name: str) -> Any:
        return self.page.locator(f'article[data-column="{name}"]')

    def share(self, column: str, level: str) -> str:
        """The probability that a card shows for a level."""
        row = self.card(column).locator("button.level").filter(has=self.page.get_by_text(level, exact=True))
        return str(row.locator(".share").inner_text())

    def until(self, expression: str) -> None:
        until(self.page, expression)

    def asked(self, what: str) -> list[str]:
        return [url for url in self.outside if url.endswith(what)]


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Any]:
    visits: list[Visit] = []

    def begin(**options: Any) -> Visit:
        visits.append(Visit(browser, address, **options))
        return visits[-1]

    yield begin
    for one in visits:
        one.context.close()
        assert not one.complaints
        # Nothing is fetched from anywhere else.
        assert all(url.startswith((address, "blob:", "data:")) for url in one.outside)
