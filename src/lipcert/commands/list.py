"""`lipcert list`: list everything of a kind."""

from __future__ import annotations

from typing import Annotated

import typer

from lipcert.commands.support import completion
from lipcert.commands.support.options import command, show

app = command()


@app.command()
def list_(
    kind: Annotated[
        str | None,
        typer.Argument(
            help=f"Kind: {', '.join(completion.NAMES)}.",
            show_default="the kinds there are",
            autocompletion=completion.kinds,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(help="Show only this one.", show_default="all", autocompletion=completion.names),
    ] = None,
) -> None:
    """Show what there is of a kind, with a line about each; one alone with its arguments.

    Example: lipcert list recipes
    """
    from lipcert.commands.work.listing import listing

    for table in listing(kind, name):
        show(table)
