"""`lipcert verify`: check a certificate."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lipcert.commands.support.options import Weights, command, fail, show

app = command()


@app.command()
def verify(
    certificate: Annotated[str, typer.Argument(help="Check this certificate.json, or that of a MODEL.")],
    model: Annotated[
        str | None,
        typer.Argument(
            help="Prove the bounds of this MODEL, or of FILE.py:NAME (executed).",
            show_default="the one beside it",
        ),
    ] = None,
    weights: Weights = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Read the data from this folder.",
            show_default="where certify looks: $LIPCERT_DATA, the cache",
        ),
    ] = None,
    bounds_only: Annotated[
        bool, typer.Option("--bounds-only", help="Prove the bounds only; leave the counts unchecked.")
    ] = False,
) -> None:
    """Prove a certificate's bounds again, count again on its data; exit status 1 if anything does not hold.

    Exit status 2 if something cannot be checked, such as the counts where the data is missing.

    Example: lipcert verify runs/moons-cll
    """
    from lipcert.commands.work.certify_model import verify_file
    from lipcert.report.certificate_tables import check_table

    checks = verify_file(certificate, model, data, bounds_only, weights)
    show(check_table(checks))
    if any(check.holds is False for check in checks):
        sys.exit(1)
    if not bounds_only and any(check.is_unchecked for check in checks):
        fail(2, "not everything was checked: no recipe.yaml beside the model; --bounds-only accepts that")
