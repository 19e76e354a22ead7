"""The documentation as a site: no warning, nothing loaded from elsewhere, equations that are rendered."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.browser import chromium_page, overheard

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", place],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout + done.stderr == ""  # a warning would be here
    return place


def test_every_page_is_built_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} <= {path.stem for path in site.glob("*.html")}
    notebooks = {path.stem for path in (ROOT / "notebooks").glob("*.py")}
    assert notebooks == {path.stem for path in (site / "notebooks").glob("*.html")}
    for path in site.rglob("*.html"):
        text = path.read_text()
        assert not re.findall(r"<(?:script|img|iframe|source)[^>]*\ssrc=[\"']?(?:https?:)?//[^>]*>", text), (
            path
        )
        assert not re.findall(r"<link[^>]*\shref=[\"']?(?:https?:)?//[^>]*>", text), path
    for path in site.rglob("*.css"):
        assert not re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", path.read_text()), path
    assert not list(site.rglob("*.py"))


def test_a_notebook_is_a_page_with_what_it_printed_and_drew(site: Path) -> None:
    text = (site / "notebooks" / "01-first-certificate.html").read_text(encoding="utf-8")
    assert "has class upper, radius 0." in text
    (picture,) = re.findall(r'<img alt="Two moons[^"]+" src="([^"]+\.png)"', text)
    assert (site / "notebooks" / picture).read_bytes().startswith(b"\x89PNG")
    listed = (site / "notebooks.html").read_text(encoding="utf-8")
    assert 'href="notebooks/01-first-certificate.html">A first certificate</a>' in listed


def test_an_error_in_a_notebook_ends_the_build() -> None:
    from nbclient.exceptions import CellExecutionError

    found = importlib.util.spec_from_file_location("notebook_pages", ROOT / "docs" / "notebook_pages.py")
    assert found
    assert found.loader
    pages = importlib.util.module_from_spec(found)
    found.loader.exec_module(pages)
    assert "```\n2\n```" in pages.executed("good", "# %%\nprint(1 + 1)\n")["good.md"].replace(
        " { .text .notebook-output .no-copy }", ""
    )
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        pages.executed("bad", "# %%\n1 / 0\n")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.mark.browser
def test_pages_work_without_a_network(site: Path, address: str) -> None:
    with chromium_page() as page:
        complaints, asked = overheard(page)
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            for path in sorted(site.rglob("*.html")):
                page.goto(address + path.relative_to(site).as_posix())
                equations = page.locator(".arithmatex").count()
                assert page.locator(".arithmatex .katex").count() == equations, path.name
                assert page.locator(".katex-error").count() == 0, path.name
                assert equations > 5 or path.stem not in ("concepts", "losses", "layers", "proofs")
                assert page.evaluate("document.documentElement.scrollWidth") <= width, path.name
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(address)
        page.locator("[data-md-component=search-query]").click()
        page.keyboard.type("slack")
        page.locator(".md-search-result__item").first.wait_for()
        assert complaints == []
        assert {url for url in asked if not url.startswith((address, "data:", "blob:"))} == set()


@pytest.mark.browser
def test_the_search_works_when_a_file_is_opened(site: Path) -> None:
    with chromium_page() as page:
        complaints, asked = overheard(page)
        page.goto((site / "index.html").as_uri())
        page.locator("[data-md-component=search-query]").click()
        page.keyboard.type("slack")
        page.locator(".md-search-result__item").first.wait_for()
        assert complaints == []
        assert {url for url in asked if not url.startswith(("file:", "data:", "blob:"))} == set()


@pytest.mark.browser
def test_equations_are_there_when_a_file_is_opened(site: Path) -> None:
    with chromium_page() as page:
        page.goto((site / "losses.html").as_uri())
        assert page.locator(".katex-display").count() > 5
        page.evaluate("document.fonts.load('16px KaTeX_Math')")
        assert page.evaluate("document.fonts.check('16px KaTeX_Math')")
