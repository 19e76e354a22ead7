"""`lipcert check`: run the laws on code of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support.options import command, show

app = command()


@app.command()
def check(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="Check this Python file, or an installed module.")
    ],
    output: Annotated[Path | None, typer.Option(help="Write all checks to this JSON file as well.")] = None,
) -> None:
    """Run the laws of lipcert on everything that a file registers. Exit status 1 if one is broken.

    Example: lipcert check my_loss.py
    """
    from lipcert.atomic import check_file_place
    from lipcert.errors import LipcertError
    from lipcert.laws import check_source

    if output is not None:
        check_file_place(output)
    found = check_source(source)
    show(found.table())
    if output is not None:
        found.save(output)
        print(f"all checks: {output}")
    if found.failed:
        raise LipcertError(f"{source}: {len(found.failed)} of {len(found.checks)} checks failed")
    print(f"all {len(found.checks)} checks of {source} passed")
