"""`lipcert certify`: prove the bounds of a model and certify a split of data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support.options import (
    Data,
    EffortName,
    Local,
    Model,
    Radii,
    RoundingName,
    SplitName,
    choice,
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
    output: Annotated[Path, typer.Option(help="Where the certificate goes.")] = Path("certificate.json"),
) -> None:
    """Prove the bounds of a trained model, certify a split of its data, and write certificate.json.

    Example: lipcert certify runs/moons-cll --radii 0.05,0.1,0.15
    """
    from lipcert.bounds.proof import Effort
    from lipcert.certificates.certificate import Rounding
    from lipcert.certificates.statement import write_certificate
    from lipcert.commands.work.certify_model import certify_model
    from lipcert.data.base import Split
    from lipcert.report.certificate_tables import certificate_table

    findings = certify_model(
        model,
        data,
        choice("--split", split, Split),
        radii,
        choice("--rounding", rounding, Rounding),
        choice("--effort", effort, Effort),
        local,
    )
    show(certificate_table(findings))
    write_certificate(output, findings)
    print(f"certificate: {output}")
    print(f"next: lipcert verify {output} {model}")
