"""`lipcert inspect`: show a model layer by layer."""

from __future__ import annotations

from typing import Annotated

import typer

from lipcert.commands.support.options import EffortName, choice, command, show

app = command()


@app.command()
def inspect(
    model: Annotated[
        str,
        typer.Argument(
            help="Model: a run directory, a .safetensors file, hf://OWNER/NAME, a name or FILE.py:NAME (run)."
        ),
    ],
    input_shape: Annotated[
        str | None,
        typer.Option(
            help="Give FILE.py:NAME inputs of this shape, such as 3,32,32.", show_default="the model's"
        ),
    ] = None,
    effort: EffortName = "auto",
) -> None:
    """Show a model layer by layer, with estimated and proved Lipschitz constants.

    Example: lipcert inspect runs/moons-cll
    """
    from lipcert.commands.work.inspection import inspection_of
    from lipcert.types import Effort

    show(inspection_of(model, input_shape, choice("--effort", effort, Effort)))
