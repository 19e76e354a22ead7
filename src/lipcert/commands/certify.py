"""`lipcert certify`: prove the bounds of a model and certify a split of data."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support.options import (
    AnyModel,
    Data,
    DeviceName,
    EffortName,
    InputShape,
    Local,
    Radii,
    RoundingName,
    SplitName,
    Weights,
    choice,
    chosen_device,
    command,
    show,
)

app = command()


@app.command()
def certify(
    model: AnyModel,
    data: Data = None,
    weights: Weights = None,
    input_shape: InputShape = None,
    split: SplitName = "test",
    radii: Radii = None,
    rounding: RoundingName = "float64",
    effort: EffortName = "auto",
    local: Local = False,
    device: DeviceName = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write the certificate to this file.",
            show_default="certificate-SPLIT.json in the run; none for FILE.py:NAME",
        ),
    ] = None,
) -> None:
    """Prove the bounds of a trained model, certify a split of its data, and write a certificate.

    FILE.py:NAME (or package.module:NAME) is a model of your own: a torch module, or a function
    that returns one.

    Example: lipcert certify runs/moons-cll --radii 0.05,0.1,0.15
    """
    from lipcert.certificates.certificate import Rounding
    from lipcert.certificates.statement import write_certificate
    from lipcert.commands.work.certificate_place import certificate_place
    from lipcert.commands.work.certify_model import certify_model
    from lipcert.commands.work.own_model import Own
    from lipcert.data.base import Split
    from lipcert.report.certificate_tables import K_F_EXPLAINED, certificate_table, radius_line
    from lipcert.types import Effort

    chosen: Split = choice("--split", split, Split)
    kinds = choice("--rounding", rounding, Rounding), choice("--effort", effort, Effort)
    place = certificate_place(model, chosen, output)
    where = chosen_device(device)
    own = Own(weights, input_shape)
    found = certify_model(model, data, chosen, radii, *kinds, local, place, where, own)
    show(certificate_table(found.statement, found.budget))
    print(radius_line(found.radii))
    print(K_F_EXPLAINED)
    if place is None:
        print("next: --output certificate.json writes a certificate that lipcert verify checks")
        return
    write_certificate(place, found.statement)
    print(f"certificate: {place}")
    given = [] if weights is None else ["--weights", str(weights)]
    print(f"next: {shlex.join(['lipcert', 'verify', str(place), model, *given])}")
