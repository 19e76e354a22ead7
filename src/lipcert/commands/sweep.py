"""`lipcert sweep`: train every combination of some values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support import completion
from lipcert.commands.support.options import Budget, Jobs, Overwrite, Settings, choice, command, fail, show

app = command()


@app.command()
def sweep(
    recipe: Annotated[
        str,
        typer.Argument(
            help="Recipe: a name (`lipcert list recipes`) or a YAML file.",
            autocompletion=completion.recipes,
        ),
    ],
    over: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=VALUES", help="Vary a key, such as seed=1..9 or loss.eps=0.1,0.2; repeatable."
        ),
    ],
    budget: Budget = None,
    set_: Settings = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Write the runs into this directory.", show_default="runs/RECIPE-sweep"),
    ] = None,
    backend: Annotated[str, typer.Option(help="Backend: local, or ray (the extra `ray`).")] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            help="Use the Ray cluster at this address, such as ray://head:10001.",
            show_default="a Ray of this machine",
        ),
    ] = None,
    jobs: Jobs = None,
    overwrite: Overwrite = False,
) -> None:
    """Train every combination of some values; what is already finished is kept.

    Example: lipcert sweep cifar10-4c3f-cll --budget cpu --over loss.slack=0.05,0.15,0.25 --over seed=1..3
    """
    from lipcert.commands.work.sweep_run import Backend, carry_out

    chosen = choice("--backend", backend, Backend)
    found = carry_out(recipe, over, budget, set_ or [], output, chosen, address, jobs, overwrite)
    show(found.table)
    for line in found.lines:
        print(line)
    if found.failures:
        fail(1, found.failures)
