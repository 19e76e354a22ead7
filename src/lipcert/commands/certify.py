"""`lipcert certify`: prove the bounds of a model and certify a split of data."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support.options import (
    Data,
    DeviceName,
    EffortName,
    Local,
    Model,
    Radii,
    RoundingName,
    SplitName,
    choice,
    chosen_device,
    command,
    show,
)

app = command()


@app.command()
def certify(
    model: Model,
    data: Data = None,
    split: SplitName = "test",
    radii: Radii = None,
    rounding: RoundingName = "float64",
    effort: EffortName = "auto",
    local: Local = False,
    device: DeviceName = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write the certificate to this file.", show_default="certificate-SPLIT.json in the run"
        ),
    ] = None,
) -> None:
    """Prove the bounds of a trained model, certify a split of its data, and write a certificate.

    Example: lipcert certify runs/moons-cll --radii 0.05,0.1,0.15
    """
    from lipcert.certificates.certificate import Rounding
    from lipcert.certificates.statement import write_certificate
    from lipcert.commands.work.certificate_place import certificate_place
    from lipcert.commands.work.certify_model import certify_model
    from lipcert.data.base import Split
    from lipcert.report.certificate_tables import K_F_EXPLAINED, certificate_table
    from lipcert.types import Effort

    chosen: Split = choice("--split", split, Split)
    kinds = choice("--rounding", rounding, Rounding), choice("--effort", effort, Effort)
    place = certificate_place(model, chosen, output)
    where = chosen_device(device)
    statement, budget = certify_model(model, data, chosen, radii, *kinds, local, place, where)
    show(certificate_table(statement, budget))
    print(K_F_EXPLAINED)
    write_certificate(place, statement)
    print(f"certificate: {place}")
    print(f"next: {shlex.join(['lipcert', 'verify', str(place), model])}")
