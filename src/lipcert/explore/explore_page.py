"""The page with three tabs about one model."""

from __future__ import annotations

from html import escape

import gradio as gr

from lipcert.explore.exhibit import Exhibit
from lipcert.explore.images_tab import images_tab
from lipcert.explore.playground_tab import playground_tab
from lipcert.explore.run_curves import curves_html

# Concurrent trainings, and as many attacks: they take turns. Other visitors wait in a queue.
_AT_A_TIME = 4
_LINE = 100

# Every ten minutes, uploads older than an hour are deleted.
_CLEANING = (600, 3600)


def build_page(exhibit: Exhibit) -> gr.Blocks:
    """Build the page."""
    page: gr.Blocks = gr.Blocks(title="lipcert explore", analytics_enabled=False, delete_cache=_CLEANING)
    with page:
        gr.HTML(f"<h1>lipcert explore</h1> <code>{escape(exhibit.source)}</code>", elem_id="head")
        with gr.Tabs():
            with gr.Tab("Two moons"):
                watching = playground_tab()
            with gr.Tab("Images"):
                images_tab(page, exhibit)
            with gr.Tab("Curves"):
                gr.HTML(curves_html(exhibit.run), elem_id="curves")
        page.unload(watching.leave)
    page.queue(max_size=_LINE, default_concurrency_limit=_AT_A_TIME)
    return page
