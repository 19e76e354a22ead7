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
        str,
        typer.Argument(help=f"{', '.join(completion.KINDS)}.", autocompletion=completion.kinds),
    ],
) -> None:
    """List everything of a kind, with one line about each.

    Example: lipcert list recipes
    """
    from lipcert.commands.work.listing import listing

    for table in listing(kind):
        show(table)
