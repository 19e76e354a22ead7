"""`lipcert predict`: classify image files, each with its certified radius."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support.options import Model, command, show

app = command()

# The complaints that are printed; a folder may hold thousands of damaged files.
_SHOWN = 20


@app.command()
def predict(
    model: Model,
    images: Annotated[
        list[Path],
        typer.Argument(
            metavar="IMAGE_OR_DIR...", help="Classify these files, and those of these directories."
        ),
    ],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write CSV to a file, or print it with -.")
    ] = None,
    abstain_below: Annotated[
        float | None,
        typer.Option(help="Name no class where the radius is not above this, such as 0.1.", metavar="R"),
    ] = None,
) -> None:
    """Classify images: class, probability, certified L2 radius, nearest rival.

    Example: lipcert predict runs/folder photo.jpg more/ --abstain-below 0.1
    """
    from lipcert.certificates.predictions import as_csv, as_json, predict_files
    from lipcert.report.certificate_tables import prediction_table

    _check_place(csv, json)
    found, complaints = predict_files(model, images, abstain_below)
    if json:
        print(as_json(found))
    elif csv is not None:
        _write(csv, as_csv(found))
    elif found:
        show(prediction_table(found))
    for line in complaints[:_SHOWN]:
        print(f"lipcert: {line}", file=sys.stderr)
    if len(complaints) > _SHOWN:
        print(f"lipcert: and {len(complaints) - _SHOWN} more", file=sys.stderr)
    if complaints:
        sys.exit(2)


def _check_place(csv: Path | None, json: bool) -> None:
    """Raise before any image is read if the table has no place to go."""
    from lipcert.atomic import check_file_place
    from lipcert.errors import InputError

    if csv is None:
        return
    if json:
        raise InputError("--csv: expected one format, found --json as well; leave out one of them")
    if csv.is_dir() or not csv.absolute().parent.is_dir():
        raise InputError(f"--csv: expected a file in a directory that exists, got {csv}; - prints the table")
    if str(csv) != "-":
        check_file_place(csv)


def _write(csv: Path, table: str) -> None:
    """Write the table, or print it where the file is "-"."""
    from lipcert.atomic import write_atomically, writing

    if str(csv) == "-":
        print(table, end="")
        return
    with writing(csv):
        # A file name need not be UTF-8: then its bytes are written as they are.
        write_atomically(csv, table.encode("utf-8", "surrogateescape"))
    print(f"wrote {csv}")
