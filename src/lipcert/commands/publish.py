"""`lipcert publish`: write a model as a folder for the Hugging Face Hub, and upload it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support import completion
from lipcert.commands.support.options import command

app = command()


@app.command()
def publish(
    run: Annotated[
        str,
        typer.Argument(
            help="Publish this run directory, or one of `lipcert list trained`.",
            autocompletion=completion.models,
        ),
    ],
    output: Annotated[Path, typer.Argument(metavar="DIR", help="Write the model into this folder.")],
    push: Annotated[
        str | None,
        typer.Option(metavar="OWNER/NAME", help="Upload the folder to the hub under this name."),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Make the model private if --push creates it.")
    ] = False,
    license_: Annotated[
        str | None, typer.Option("--license", help="Name the license of the model, such as mit.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the published model in the folder.")
    ] = False,
) -> None:
    """Write a folder with weights, recipe, certificate, page and checksums. Needs the extra `hub`.

    No logs, no checkpoints and no paths of this machine are published. `lipcert.load` and every command
    take the folder, and after --push the name hf://OWNER/NAME.

    Example: lipcert publish runs/moons-cll published/moons-cll
    """
    from lipcert.errors import InputError
    from lipcert.models.downloads import PREFIX
    from lipcert.publishing import publish, upload
    from lipcert.publishing.upload import check_upload

    if private and push is None:
        raise InputError("--private: is about an upload; add --push OWNER/NAME, or leave it out")
    if push is not None:
        check_upload(push)
    address = None if push is None else f"{PREFIX}{push}"
    names = publish(run, output, address, license_, overwrite=overwrite)
    print(f"wrote {output}: {', '.join(names)}")
    if push is not None:
        print(f"uploaded {upload(output, push, private=private)}")
    print(f"next: {shlex.join(['lipcert', 'verify', address or str(output)])}")
