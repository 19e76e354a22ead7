"""`lipcert tightness`: measure how close a proved constant is to the truth."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support.options import choice, command

app = command()


@app.command()
def tightness(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    budget: Annotated[
        str, typer.Option(help="full (4000 pairs, 1000 steps), cpu (64, 200) or smoke.")
    ] = "full",
) -> None:
    """Measure how tight the proved constant is by searching for two inputs whose slope comes closest to it.

    Example: lipcert tightness runs/moons-cll --budget cpu
    """
    from lipcert.recipes.tightness_search import measure_run
    from lipcert.runs import Run
    from lipcert.runs.tightness import BudgetName

    found = measure_run(Run(run), choice("--budget", budget, BudgetName), quiet=not sys.stderr.isatty())
    print(
        f"{found.lower:.6g} (witnessed) ≤ K_f ≤ {found.upper:.6g} (proved): "
        f"tightness {100 * found.tightness:.1f} %, {found.pairs} pairs, {found.steps} steps"
    )
    print(f"wrote {Run(run).tightness_file}")
