"""`lipcert attack`: attack the certificates of a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support.options import (
    Data,
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
def attack(
    model: Model,
    data: Data = None,
    split: SplitName = "test",
    radii: Radii = None,
    rounding: RoundingName = "float64",
    budget: Annotated[
        str, typer.Option(help="full (1000 samples, 500 steps), cpu (128, 50) or smoke (16, 10).")
    ] = "cpu",
    local: Local = False,
    output: Annotated[Path, typer.Option(help="Where the findings go; the picture beside.")] = Path(
        "attack.json"
    ),
) -> None:
    """Attack a certified model; exit status 1 if a certificate breaks. Needs the extra `attack`.

    `lipcert list attacks` shows the attacks.

    Example: lipcert attack runs/moons-cll --budget smoke
    """
    from lipcert.atomic import write_json
    from lipcert.attack import BudgetName
    from lipcert.certificates.certificate import Rounding
    from lipcert.commands.work.attack_model import attack_model
    from lipcert.data.base import Split
    from lipcert.report.attack_band import band_figure, band_table

    quiet = not sys.stderr.isatty()
    band, findings = attack_model(
        model,
        data,
        choice("--split", split, Split),
        radii,
        choice("--rounding", rounding, Rounding),
        choice("--budget", budget, BudgetName),
        local,
        quiet,
    )
    asked = [row["radius"] for row in findings["radii"]]
    show(band_table(band, asked, split))
    write_json(output, findings)
    picture = band_figure(band, asked, output.with_suffix(".png"))
    print(f"wrote {output}, {picture}")
    if band.broken:
        sys.exit(1)
