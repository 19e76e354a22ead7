"""Serve the page to this machine alone, without a request to any other."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files

import gradio as gr

from lipcert.errors import InputError
from lipcert.explore.exhibit import Exhibit
from lipcert.explore.explore_page import build_page
from lipcert.report.palette import ATTACKED, GREEN, GREY, ORANGE, PROVED, RED, WHITE, css_variables

MAX_UPLOAD = 5 << 20  # bytes
HOST = "127.0.0.1"


@contextmanager
def served(exhibit: Exhibit, port: int | None = None, browser: bool = False) -> Iterator[str]:
    """Yield the address of the page; uploads are deleted at the end of the context."""
    with tempfile.TemporaryDirectory(prefix="lipcert-explore-") as folder, _files_in(folder):
        page = build_page(exhibit)
        try:
            page.launch(
                server_name=HOST,
                server_port=port,
                share=False,
                ssr_mode=False,
                quiet=True,
                prevent_thread_lock=True,
                inbrowser=browser,
                max_file_size=MAX_UPLOAD,
                footer_links=[],
                run_history=False,
                theme=_theme(),
                css=_style(),
            )
        except OSError:
            where = "7860 and the next hundred are" if port is None else f"{port} is"
            raise InputError(f"--port: {where} taken or not permitted; choose another") from None
        try:
            yield str(page.local_url)
        finally:
            page.close(verbose=False)


def serve(exhibit: Exhibit, port: int | None, browser: bool) -> None:
    """Serve until Ctrl-C or SIGTERM, both of which clean up."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a shell may ignore SIGINT
    with served(exhibit, port, browser) as address:
        try:
            print(f"lipcert explore: {address} (Ctrl-C stops)", flush=True)
            threading.Event().wait()
        except KeyboardInterrupt:
            print("\nstopped")


def _style() -> str:
    """Return the style sheet, its colours taken from the palette of the figures."""
    colours = {
        "good": GREEN,
        "bad": ORANGE,
        "error": RED,
        "note": GREY,
        "proved": PROVED,
        "attacked": ATTACKED,
        "sheet": WHITE,
    }
    sheet = files("lipcert.explore") / "style.css"
    return f"{css_variables(colours)}\n{sheet.read_text(encoding='utf-8')}"


def _theme() -> gr.themes.Base:
    """Use the fonts of the visitor's own system: no request goes to a font server."""
    return gr.themes.Default(
        primary_hue="blue",
        secondary_hue="blue",
        font=["system-ui", "sans-serif"],
        font_mono=["ui-monospace", "monospace"],
    )


@contextmanager
def _files_in(folder: str) -> Iterator[None]:
    """Set the folder of uploads and gallery images, which Gradio reads from the environment."""
    before = os.environ.get("GRADIO_TEMP_DIR")
    os.environ["GRADIO_TEMP_DIR"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["GRADIO_TEMP_DIR"]
        else:
            os.environ["GRADIO_TEMP_DIR"] = before
