"""A real browser for benchmarks, tests and pictures of the explorer: the installed chromium, driven by playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# No network of its own: a test must not depend on what a browser likes to fetch.
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class NoBrowserError(Exception):
    """Why no page can be opened."""


@contextmanager
def browsing() -> Iterator[Any]:
    """A browser without a window; :class:`NoBrowserError` where there is none."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NoBrowserError("the browser is driven by playwright: pip install playwright") from None
    found = os.environ.get("ANYORDER_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise NoBrowserError("no browser: install chromium, or set ANYORDER_BROWSER to one")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=OPTIONS)
        try:
            yield browser
        finally:
            browser.close()


def until(page: Any, expression: str, milliseconds: int = 30_000) -> None:
    """Wait until this holds on the page. (Playwright's own way needs eval, which the page forbids.)"""
    for _ in range(milliseconds // 20):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"never came true: {expression}")
