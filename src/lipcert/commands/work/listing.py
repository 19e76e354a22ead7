"""The content of `lipcert list`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import typer

from lipcert.commands.support.completion import NAMES
from lipcert.commands.support.registries import KINDS
from lipcert.errors import InputError
from lipcert.registry import import_files, summary_of
from lipcert.suggestions import expected_one_of, meant
from lipcert.tables import Table
from lipcert.tables.table import text_table

# The names of a kind that the list of kinds shows.
_SHOWN = 3


def listing(kind: str | None = None, name: str | None = None) -> list[Table[Any]]:
    """Return names and one line about each, or one alone; for trained models a leaderboard per data set.

    Without a kind, the kinds themselves are listed.
    """
    if kind is None:
        return [_kinds()]
    if kind not in NAMES:
        raise InputError(f"list: {expected_one_of(NAMES, kind)}")
    if kind == "trained" and name is None:
        from lipcert.report.leaderboard import leaderboard, leaderboard_table

        return [leaderboard_table(data, entries) for data, entries in leaderboard().items()]
    if name is not None:
        return [_table(kind, _one(kind, name))]
    return [_table(kind, _LINES.get(kind, partial(_registered, kind))())]


def _kinds() -> Table[Any]:
    """Lay out the kinds: how many there are of each, and the first names."""
    rows = [(kind, str(len(names)), _some(names)) for kind, names in _names_by_kind().items()]
    table = text_table(["kind", "how many", "such as"], rows)
    return replace(table, title="lipcert list KIND", note="lipcert list KIND NAME tells more about one")


def _names_by_kind() -> dict[str, list[str]]:
    return {kind: sorted(read()) for kind, read in NAMES.items()}


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")


Lines = Iterable[tuple[str, str]]


def _table(kind: str, lines: Lines) -> Table[Any]:
    return replace(text_table(["name", "what it is"], list(lines)), title=kind)


def _one(kind: str, name: str) -> Lines:
    """Return the whole docstring and the arguments of what is registered, the line of anything else."""
    if kind in KINDS and kind not in _LINES:
        make = KINDS[kind].open()[name].constructor
        plain = [p.replace(annotation=p.empty) for p in inspect.signature(make).parameters.values()]
        return [(name, f"{inspect.getdoc(make)}\n\n{name}{inspect.Signature(plain)}")]
    found = [line for line in _LINES[kind]() if line[0] == name]
    if not found:
        known = (line[0] for line in _LINES[kind]())
        raise InputError(f"list: there is no {name!r} among the {kind}{meant(name, known)}")
    return found


def _registered(kind: str) -> Lines:
    registry = KINDS[kind].open()
    return [(name, registry[name].summary) for name in registry]


def _recipes() -> Lines:
    from lipcert.recipes import packaged_recipes, read_recipe

    return [(name, _labelled(read_recipe(name).claim)) for name in packaged_recipes()]


def _labelled(claim: str) -> str:
    """Say of figures that they are the paper's, where the claim does not say whose they are."""
    return f"in the paper: {claim}" if claim.startswith("clean ") and "paper" not in claim else claim


def _trained() -> Lines:
    from lipcert.models.trained import trained_models

    return [(name, f"`lipcert inspect {name}` shows its layers") for name in trained_models()]


def _reproductions() -> Lines:
    from lipcert.paper import REPRODUCTIONS
    from lipcert.paper.definition import BUDGETS

    return [
        (r.name, "\n".join([r.summary, *(f"  {budget}: {r.cost(budget)}" for budget in BUDGETS)]))
        for r in map(REPRODUCTIONS.create, REPRODUCTIONS)
    ]


def _layers() -> Lines:
    import lipcert.nn  # noqa: F401  registers lipcert's own layers
    from lipcert.bounds.contract import REFUSALS, RULES

    known = [(t.__name__, " ".join([*_own_words(t), summary_of(type(r.rule))])) for t, r in RULES.items()]
    return sorted(known) + [(t.__name__, f"refused: {why}") for t, why in REFUSALS.items()]


def _own_words(layer: type) -> list[str]:
    """Return what lipcert says of its own layer; torch documents the others."""
    return [summary_of(layer)] if layer.__module__.startswith("lipcert.nn") else []


def _commands() -> Lines:
    found = {
        module.__name__.rpartition(".")[2]: typer.main.get_command(module.app)
        for module in import_files("lipcert.commands")
    }
    return [(name, (command.help or "").partition("\n")[0]) for name, command in found.items()]


_LINES: dict[str, Callable[[], Lines]] = {
    "recipes": _recipes,
    "trained": _trained,
    "reproductions": _reproductions,
    "layers": _layers,
    "commands": _commands,
}
