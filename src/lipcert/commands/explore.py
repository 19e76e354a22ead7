"""`lipcert explore`: open the interactive page."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lipcert.commands.support import completion
from lipcert.commands.support.options import command

app = command()


@app.command()
def explore(
    model: Annotated[
        str | None,
        typer.Argument(
            help="Model: a run directory, a .safetensors file, hf://OWNER/NAME or a name.",
            show_default="cifar10-4c3f-cll",
            autocompletion=completion.models,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            help="Serve the page at this port.",
            show_default="7860, or the next that is free",
        ),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Open a page to train two moons, attack images and see a run's curves. Needs the extra `explore`.

    Example: lipcert explore runs/cifar10-4c3f-cll --no-browser
    """
    from lipcert.errors import InputError

    try:
        import gradio  # noqa: F401
    except ImportError:
        raise InputError("explore: Gradio is missing; pip install 'lipcert[explore]' brings it") from None
    try:
        from lipcert.explore.exhibit import DEFAULT, Exhibit
        from lipcert.explore.server import serve

        serve(Exhibit.open(model or DEFAULT), port, browser)
    except KeyboardInterrupt:
        sys.exit(130)
