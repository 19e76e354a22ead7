"""Options that several commands have, and how commands print and fail. It imports nothing heavy."""

from __future__ import annotations

import sys
from typing import Annotated, Any, NoReturn, get_args

import typer

from lipcert.commands.support import completion

Budget = Annotated[
    str | None, typer.Option(help="A smaller budget of the recipe, such as smoke.", show_default="full")
]
Data = Annotated[
    str | None, typer.Option(help="A data set, for a model file without a run.", show_default="the run's")
]
SplitName = Annotated[str, typer.Option(help="train, val or test.")]
Radii = Annotated[str | None, typer.Option(help="Comma-separated.", show_default="the run's")]
RoundingName = Annotated[str, typer.Option(help="float64, float32 (as deployed) or ignored.")]
EffortName = Annotated[str, typer.Option(help="Proof effort: auto, exact or fast.")]
Model = Annotated[
    str,
    typer.Argument(
        help="A run directory, a .safetensors file or a name (`lipcert list trained`).",
        autocompletion=completion.models,
    ),
]
Local = Annotated[bool, typer.Option(help="Prove bounds on balls around every sample as well.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key; repeatable.")
]
Jobs = Annotated[int | None, typer.Option(help="Trainings at a time.", show_default="one per core")]
Overwrite = Annotated[bool, typer.Option(help="Replace what the output directory holds.")]


def command() -> typer.Typer:
    """Make the app of one command file."""
    return typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich")


def choice(option: str, text: str, kind: Any) -> Any:
    """Return the text as one of the values of a `Literal`; raises `InputError` naming the option."""
    from lipcert.errors import InputError

    if text not in get_args(kind):
        raise InputError(f"{option}: expected one of {', '.join(get_args(kind))}, got {text!r}")
    return text


def show(what: Any) -> None:
    """Print a table; a pipe or a file, which has no width, gets 120 columns."""
    from rich.console import Console

    from lipcert.tables import Table
    from lipcert.tables.terminal import terminal

    console = Console()
    if not console.is_terminal:
        console.width = 120
    console.print(terminal(what) if isinstance(what, Table) else what)


def fail(status: int, line: str) -> NoReturn:
    """Print one line to stderr and exit."""
    print(f"lipcert: {line}", file=sys.stderr)
    sys.exit(status)
