"""`lipcert inspect`: show a model layer by layer."""

from __future__ import annotations

from lipcert.commands.support.options import AnyModel, EffortName, InputShape, Weights, choice, command, show

app = command()


@app.command()
def inspect(
    model: AnyModel,
    weights: Weights = None,
    input_shape: InputShape = None,
    effort: EffortName = "auto",
) -> None:
    """Show a model layer by layer, with estimated and proved Lipschitz constants.

    Example: lipcert inspect runs/moons-cll
    """
    from lipcert.commands.work.inspection import inspection_of
    from lipcert.types import Effort

    show(inspection_of(model, input_shape, choice("--effort", effort, Effort), weights))
