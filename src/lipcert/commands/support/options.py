"""Options that several commands have, and how commands print and fail. It imports nothing heavy."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, get_args

import typer

from lipcert.commands.support import completion

if TYPE_CHECKING:
    import torch

    from lipcert.tables import Table

# No word of a table fits into less.
_NARROWEST = 20

Budget = Annotated[
    str | None, typer.Option(help="Use a smaller budget of the recipe, such as smoke.", show_default="full")
]
SplitName = Annotated[str, typer.Option(help="Split of the data: train, val or test.")]
Radii = Annotated[
    str | None,
    typer.Option(help="Certify at these radii, such as 36/255,72/255 or 0.15.", show_default="the run's"),
]
RoundingName = Annotated[
    str, typer.Option(help="Rounding error to include: float64, float32 (as deployed) or ignored.")
]
EffortName = Annotated[str, typer.Option(help="Proof effort: auto, exact, fast or tight.")]
Model = Annotated[
    str,
    typer.Argument(
        help="Model: a run directory, a .safetensors file, hf://OWNER/NAME or one of `lipcert list trained`.",
        autocompletion=completion.models,
    ),
]
AnyModel = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Model: a run directory, a .safetensors file, hf://OWNER/NAME, a name or FILE.py:NAME (run).",
        autocompletion=completion.models,
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        help="Load this data set; for FILE.py:NAME also a folder of images or an .npz file.",
        show_default="the run's",
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Give FILE.py:NAME these weights, such as net.pt (a state dict) or .safetensors."
    ),
]
InputShape = Annotated[
    str | None,
    typer.Option(
        help="Give FILE.py:NAME inputs of this shape, such as 3,32,32.", show_default="the data's or model's"
    ),
]
DeviceName = Annotated[
    str | None,
    typer.Option(
        "--device",
        help="Compute on this device: cpu, cuda, cuda:1 or mps.",
        show_default="a GPU if there is one",
    ),
]
Local = Annotated[bool, typer.Option(help="Prove bounds on balls around every sample as well.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, such as train.epochs=3; repeatable."),
]
Jobs = Annotated[
    int | None, typer.Option(help="Run this many trainings at a time.", show_default="one per core")
]
Imports = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="FILE",
        help="Load code of your own first, a Python file or an installed module; repeatable.",
    ),
]
Overwrite = Annotated[bool, typer.Option(help="Replace what the output directory holds.")]


def command() -> typer.Typer:
    """Make the app of one command file."""
    return typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich")


def choice(option: str, text: str, kind: Any) -> Any:
    """Return the text as one of the values of a `Literal`; raises `InputError` naming the option."""
    from lipcert.errors import InputError
    from lipcert.suggestions import expected_one_of

    if text not in get_args(kind):
        raise InputError(f"{option}: {expected_one_of(get_args(kind), text)}")
    return text


def chosen_device(text: str | None) -> torch.device:
    """Return the named device, or the one on which a training would run by default."""
    import torch

    from lipcert.bounds.arguments import device_named

    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return (found or torch.device("cpu")) if text is None else device_named(text, "--device")


def show(table: Table[Any]) -> None:
    """Print a table; a pipe or a file, which has no width, gets 120 columns, or $COLUMNS."""
    from rich.console import Console

    from lipcert.tables.terminal import fitting

    console = Console()
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console.width = 120
    console.width = max(console.width, _NARROWEST)
    console.print(fitting(table, console.width))


def fail(status: int, line: str) -> NoReturn:
    """Print one line to stderr and exit; names from files may hold characters that move the cursor."""
    from lipcert.strict_files import shown

    print(f"lipcert: {shown(line, len(line))}", file=sys.stderr)
    sys.exit(status)
