"""`lipcert attack`: attack the certificates of a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support.options import (
    AnyModel,
    Data,
    DeviceName,
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
def attack(
    model: AnyModel,
    data: Data = None,
    weights: Weights = None,
    input_shape: InputShape = None,
    split: SplitName = "test",
    radii: Radii = None,
    rounding: RoundingName = "float64",
    budget: Annotated[
        str,
        typer.Option(help="Search effort: full (1000 samples, 500 steps), cpu (128, 50) or smoke (16, 10)."),
    ] = "cpu",
    local: Local = False,
    device: DeviceName = None,
    output: Annotated[
        Path, typer.Option(help="Write the findings to this file, and the picture beside it.")
    ] = Path("attack.json"),
) -> None:
    """Attack a certified model; exit status 1 if a certificate breaks. Needs the extra `attack`.

    `lipcert list attacks` shows the attacks.

    Example: lipcert attack runs/moons-cll --budget smoke
    """
    from lipcert.atomic import check_file_place, write_json
    from lipcert.certificates.certificate import Rounding
    from lipcert.commands.work.attack_model import attack_model
    from lipcert.commands.work.own_model import Own
    from lipcert.data.base import Split
    from lipcert.errors import InputError
    from lipcert.report.attack_band import band_figure, band_table
    from lipcert.runs.run_paths import stored_data
    from lipcert.types import BudgetName

    picture = output.with_suffix(".png")
    if output == picture:
        raise InputError(
            f"--output {output}: expected a name such as attack.json; the picture goes beside it"
        )
    for place in (output, picture):
        check_file_place(place)
    band, findings = attack_model(
        model,
        data,
        choice("--split", split, Split),
        radii,
        choice("--rounding", rounding, Rounding),
        choice("--budget", budget, BudgetName),
        local,
        chosen_device(device),
        Own(weights, input_shape),
    )
    asked = [row.radius for row in findings.radii]
    show(band_table(band, asked, findings.split))
    output.parent.mkdir(parents=True, exist_ok=True)
    stored = findings.model_copy(update={"data": stored_data(findings.data, output.parent)})
    write_json(output, stored.model_dump(mode="json"))
    band_figure(band, asked, picture)
    print(f"wrote {output}, {picture}")
    if band.broken:
        sys.exit(1)
