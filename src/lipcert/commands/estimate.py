"""`lipcert estimate`: say what a recipe costs before it is run."""

from __future__ import annotations

from typing import Annotated

import typer

from lipcert.commands.support import completion
from lipcert.commands.support.options import Budget, Settings, command, show

app = command()


@app.command()
def estimate(
    recipe: Annotated[
        str,
        typer.Argument(
            help="Recipe: a name (`lipcert list recipes`) or a YAML file.", autocompletion=completion.recipes
        ),
    ],
    budget: Budget = None,
    set_: Settings = None,
    device: Annotated[
        str, typer.Option(help="Measure times on this device, such as cpu or cuda; none: count only.")
    ] = "cpu",
) -> None:
    """Estimate memory, operations and time of a recipe: training, proof, certificates, tightness.

    Nothing of the recipe's size is allocated.

    Example: lipcert estimate cifar10-cpl-xl --device none
    """
    from lipcert.commands.work.cost_tables import cost_tables, device_named
    from lipcert.costs import estimate as estimated
    from lipcert.progress import waiting
    from lipcert.recipes import read_recipe

    chosen = device_named(device)
    found = read_recipe(recipe, budget, set_ or [])
    with waiting("counting and timing"):
        costs = estimated(found, chosen)
    for table in cost_tables(costs, device):
        show(table)
