"""What every command obeys: one file of lipcert.commands each."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import pytest
import typer

from lipcert.cli import app

Cli = Callable[..., tuple[int, str, str]]


def all_commands() -> dict[str, Any]:
    """Commands by the words that call them; those of a group under the group's name and their own."""
    found: dict[str, Any] = {}
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        inner = getattr(command, "commands", None)
        found |= {name: command} if inner is None else {f"{name} {n}": c for n, c in inner.items()}
    return found


every_command = pytest.mark.parametrize("name", sorted(all_commands()))


@every_command
def test_its_help_has_an_example_that_can_be_typed(name: str) -> None:
    command = all_commands()[name]
    example = (command.help or "").partition("Example: lipcert ")[2]
    assert example.startswith(name)
    words = shlex.split(example.removeprefix(name))
    command.make_context(name, words, resilient_parsing=False)  # raises for what it does not know


@every_command
def test_its_help_is_shown(name: str, cli: Cli) -> None:
    status, out, _ = cli(*name.split(), "--help")
    assert status == 0
    assert f"lipcert {name}" in out
    assert "Example: lipcert" in " ".join(out.split())


@every_command
def test_an_unknown_option_is_a_mistake_of_the_input(name: str, cli: Cli) -> None:
    status, out, err = cli(*name.split(), "--no-such-option")
    assert status == 2
    assert out == ""
    assert "--no-such-option" in err
    assert len(err.splitlines()) == 1
