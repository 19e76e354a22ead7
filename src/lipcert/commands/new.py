"""`lipcert new`: write a file to begin with."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support import completion
from lipcert.commands.support.options import command

app = command()


@app.command()
def new(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help=f"Kind: {', '.join(completion.new_kinds())}.",
            autocompletion=completion.templates,
        ),
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name in recipes, such as squared-hinge.")],
    output: Annotated[
        Path | None, typer.Option(help="Write this file.", show_default="the name in the current directory")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace the file if there is one.")] = False,
) -> None:
    """Write a commented Python file that registers a loss, a layer and so on, and passes lipcert check.

    Example: lipcert new loss squared-hinge
    """
    from lipcert.commands.work.new_file import write_new

    path = write_new(kind, name, output, overwrite)
    print(f"wrote {path}; its comments say what to change")
    print(f"next: lipcert check {shlex.quote(str(path))}")
