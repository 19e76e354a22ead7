"""A real Chromium for tests of pages, without a window."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page


@contextmanager
def chromium_page() -> Iterator[Page]:
    """An empty page."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    assert chromium is not None, "these tests need Chromium (Debian: apt-get install chromium)"
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


def overheard(page: Page) -> tuple[list[str], list[str]]:
    """What the page complains of, and the addresses it asks, from now on."""
    complaints: list[str] = []
    asked: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("request", lambda request: asked.append(request.url))
    return complaints, asked
