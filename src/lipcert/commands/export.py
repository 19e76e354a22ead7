"""`lipcert export`: write a model as an ONNX file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support.options import EffortName, Model, choice, command

app = command()


@app.command()
def export(
    model: Model,
    output: Annotated[Path, typer.Argument(metavar="FILE", help="Write this file, such as model.onnx.")],
    float32: Annotated[
        bool, typer.Option("--float32", help="Write a float32 graph; rounding error reduces the radius.")
    ] = False,
    effort: EffortName = "auto",
) -> None:
    """Write an ONNX file with logits, class and certified radius as outputs. Needs the extra `onnx`.

    Example: lipcert export cifar10-4c3f-cll model.onnx
    """
    from lipcert.commands.work.export_model import export_model
    from lipcert.types import Effort

    for line in export_model(model, output, float32, choice("--effort", effort, Effort)):
        print(line)
    print(f"next: python examples/onnx_only.py {shlex.quote(str(output))}, or any ONNX runtime")
