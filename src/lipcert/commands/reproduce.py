"""`lipcert reproduce`: train and draw a figure or table of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support import completion
from lipcert.commands.support.options import Budget, Jobs, Overwrite, Settings, choice, command, fail, show

app = command()


@app.command()
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="Train and draw this figure or table (`lipcert list reproductions`).",
            autocompletion=completion.reproductions,
        ),
    ],
    budget: Budget = None,
    seeds: Annotated[
        str | None,
        typer.Option(help="Train with these seeds, such as 1, 1..3 or 1,5,7.", show_default="the budget's"),
    ] = None,
    set_: Settings = None,
    jobs: Jobs = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Write runs, figure and results into this directory.", show_default="runs/NAME"),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Train and draw a figure of the paper; what is already finished is kept.

    Example: lipcert reproduce moons --seeds 1..3
    """
    from lipcert.commands.work.reproduction import carry_out, parse_seeds
    from lipcert.sweeps import LocalCrew
    from lipcert.types import BudgetName

    report = carry_out(
        name,
        output or Path("runs") / name,
        crew=LocalCrew(jobs),
        budget=None if budget is None else choice("--budget", budget, BudgetName),
        seeds=None if seeds is None else parse_seeds(seeds),
        settings=set_ or [],
        overwrite=overwrite,
    )
    for table in report.tables:
        show(table)
    for path in report.written:
        print(f"wrote {path}")
    print("next: look at the figure; lipcert report RUN... makes a page of the runs beside it")
    if report.failures:
        fail(1, f"{report.failures}; the same command tries again")
