"""`lipcert data`: download data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support import completion
from lipcert.commands.support.options import command

app = command()


@app.callback()
def data() -> None:
    """Download data sets to this machine."""


@app.command()
def fetch(
    name: Annotated[
        str,
        typer.Argument(
            help="Name a published data set, such as cifar10 (`lipcert doctor` lists them).",
            autocompletion=completion.data_sets,
        ),
    ],
    root: Annotated[
        Path | None,
        typer.Option(
            help="Write the data set into this folder.", show_default="$LIPCERT_DATA or the user's cache"
        ),
    ] = None,
) -> None:
    """Download a data set from its official address, with its checksum.

    Example: lipcert data fetch cifar10
    """
    from lipcert.data.fetch import fetch

    place = fetch(name, root)
    print(f"{name}: {place}")
    print(f"next: lipcert list recipes | grep {name.partition('-')[0]}")
