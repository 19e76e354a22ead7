"""`lipcert predict`: classify image files, each with its certified radius."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support.options import Model, command, show

app = command()


@app.command()
def predict(
    model: Model,
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE_OR_DIR...", help="Files and directories.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    abstain_below: Annotated[
        float | None, typer.Option(help="Name no class where the radius is not above this.", metavar="R")
    ] = None,
) -> None:
    """Classify images: class, probability, certified L2 radius, nearest rival.

    Example: lipcert predict runs/folder photo.jpg more/ --abstain-below 0.1
    """
    from lipcert.certificates.predictions import as_json, predict_files
    from lipcert.report.certificate_tables import prediction_table

    found, complaints = predict_files(model, images, abstain_below, quiet=not sys.stderr.isatty())
    if json:
        print(as_json(found))
    elif found:
        show(prediction_table(found))
    for line in complaints:
        print(f"lipcert: {line}", file=sys.stderr)
    if complaints:
        sys.exit(2)
