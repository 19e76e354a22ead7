"""The command line: mounts every file of `lipcert.commands` and turns errors into exit statuses."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from lipcert import __version__
from lipcert.commands.support.allocator import keep_freed_memory
from lipcert.commands.support.importing import importing
from lipcert.commands.support.options import fail
from lipcert.commands.support.termination import terminable
from lipcert.registry import import_files

_START = """\
lipcert: classifiers whose every prediction has a proved L2 radius

  lipcert train moons-cll                         a first training: a minute, no data needed
  lipcert verify moons-cll                        prove the certificate of a bundled model
  lipcert train folder --set data.root=photos     your own images: a folder with one folder per class
  lipcert predict RUN photo.jpg                   class, certified radius, nearest rival
  lipcert export RUN model.onnx                   for runtimes without torch, the radius an output
  lipcert explore                                 a page to play with
  lipcert reproduce moons --seeds 1..3            a figure of the paper

lipcert list recipes     what can be trained        lipcert doctor    what is installed and found
lipcert --help           every command              lipcert --install-completion    for your shell"""

app = typer.Typer(
    name="lipcert",
    help="Train, prove and certify classifiers with deterministic L2 robustness certificates.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Train, prove and certify classifiers with deterministic L2 robustness certificates."""
    if version:
        print(f"lipcert {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(_START)


def _mount() -> None:
    """Add one command per file; a file with a callback, such as data.py, is a group of commands."""
    for module in import_files("lipcert.commands"):
        own: typer.Typer = module.app
        name = module.__name__.rpartition(".")[2]
        if own.registered_callback is None:
            (entry,) = own.registered_commands
            app.command(name)(importing(entry.callback))  # type: ignore[arg-type]
        else:
            for entry in own.registered_commands:
                entry.callback = importing(entry.callback)  # type: ignore[arg-type]
            app.add_typer(own, name=name)


_mount()


def main() -> None:
    """Run the command line. Exit status: 0 done, 1 failed, 2 the input was wrong, 130 interrupted."""
    from lipcert.atomic import disk_error
    from lipcert.errors import LipcertError, exit_status, lacks_memory

    keep_freed_memory()
    _print_in_any_locale()
    try:
        with terminable():
            status = app(standalone_mode=False)
        if status == 130:  # Ctrl-C or SIGTERM while nothing had to be saved
            fail(130, "interrupted")
        sys.exit(status)
    except LipcertError as error:
        fail(exit_status(error), str(error))
    except OSError as error:  # a full disk, a removed directory
        told = disk_error(error)
        fail(exit_status(told), str(told))
    except Exception as error:
        if lacks_memory(error):
            fail(1, "there is not enough memory for this; choose smaller sizes, or less data")
        if not hasattr(error, "format_message"):  # typer's error for a wrong flag has this method
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            sys.exit(0)  # the help is already printed
        fail(2, f"{error.format_message()} (see --help)")


def _print_in_any_locale() -> None:
    """Print a question mark for a character that the terminal does not have, instead of failing."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a test may have put something else in its place
        sys.stdout.reconfigure(errors="replace")


if __name__ == "__main__":
    main()
