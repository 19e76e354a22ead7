"""`lipcert train`: train a recipe, prove its bounds, certify its data."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lipcert.commands.support import completion
from lipcert.commands.support.options import Budget, Overwrite, Settings, choice, command, show

if TYPE_CHECKING:
    from lipcert.recipes import Recipe
    from lipcert.recipes.splits import Splits
    from lipcert.runs import Run

app = command()


@app.command()
def train(
    recipes: Annotated[
        list[str],
        typer.Argument(
            metavar="RECIPE...",
            help="Recipes: names (`lipcert list recipes`) or YAML files.",
            autocompletion=completion.recipes,
        ),
    ],
    budget: Budget = None,
    stack: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUES", help="Train all values as one training, such as seed=1..9; repeatable."
        ),
    ] = None,
    set_: Settings = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write the run into this directory; several runs get a subdirectory each.",
            show_default="runs/NAME",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option(help="Continue from the last checkpoint.")] = False,
    overwrite: Overwrite = False,
    accelerator: Annotated[str, typer.Option(help="Accelerator: cpu, cuda, mps or auto.")] = "auto",
    devices: Annotated[str, typer.Option(help="Use this many devices per node, or auto.")] = "1",
    nodes: Annotated[int, typer.Option(help="Use this many machines.")] = 1,
    strategy: Annotated[
        str, typer.Option(help="Use this strategy of Lightning Fabric, such as ddp.")
    ] = "auto",
    precision: Annotated[
        str | None,
        typer.Option(
            help="Precision: 32, bf16-mixed or, on accelerators, 16-mixed; short for --set train.precision=."
        ),
    ] = None,
) -> None:
    """Train a recipe, prove its bounds, certify its data; or several of one model as one training.

    Example: lipcert train moons-cll --set seed=2 --output runs/second
    """
    from lipcert.errors import InputError
    from lipcert.recipes import execute, execute_stack, read_recipe, read_stack
    from lipcert.recipes.splits import Splits
    from lipcert.train.hardware import Accelerator, Hardware, Precision, is_first_process

    if resume and overwrite:
        raise InputError(
            "--resume: expected it without --overwrite, which begins anew; leave out one of them"
        )
    hardware = Hardware(
        accelerator=choice("--accelerator", accelerator, Accelerator),
        devices=devices,
        nodes=nodes,
        strategy=strategy,
    )
    set_ = [*(set_ or [])]
    if precision is not None:
        set_.append(f"train.precision={choice('--precision', precision, Precision)}")
    splits = Splits()
    if stack or len(recipes) > 1:
        named = read_stack(recipes, budget, set_, stack or [])
        places = {(output or Path("runs")) / name: recipe for name, recipe in named.items()}
        runs = execute_stack(
            places, resume=resume, overwrite=overwrite, hardware=hardware, splits=splits, lines=True
        )
    else:
        settled = read_recipe(recipes[0], budget, set_)
        places = {output or Path("runs") / settled.name: settled}
        ((place, recipe),) = places.items()
        run = execute(
            recipe,
            place,
            resume=resume,
            overwrite=overwrite,
            hardware=hardware,
            splits=splits,
            lines=True,
        )
        runs = [run]
    if is_first_process():
        _tell(runs, list(places.values()), splits)


def _tell(runs: Sequence[Run], recipes: Sequence[Recipe], splits: Splits) -> None:
    """Print what was found, draw it, and suggest the next step."""
    from lipcert.report.run_figures import write_evaluation
    from lipcert.report.run_table import run_table
    from lipcert.runs.rows import row_of

    show(run_table([row_of(run) for run in runs], recipes[0].budget))
    for run, recipe in zip(runs, recipes, strict=True):
        for picture in write_evaluation(run, recipe, splits):
            print(f"wrote {picture}")
        print(f"run: {run.path}")
    print(f"next: {_next_step(runs[0])}")


def _next_step(run: Run) -> str:
    """Suggest what to do with a trained model."""
    from lipcert.models.model_files import read_card

    takes_images = len(read_card(run.model).input_shape) == 3
    place = shlex.quote(str(run.path))
    return f"lipcert predict {place} IMAGE..." if takes_images else f"lipcert inspect {place}"
