"""Names that a shell completes, read from files without importing anything heavy: a shell waits for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.resources import files

import typer

from lipcert.commands.support.registries import KINDS
from lipcert.registry import names_in

# Those with an official address; a test compares.
DATA_SETS = ("cifar10", "cifar100", "tiny-imagenet")


def recipes(incomplete: str) -> list[str]:
    """Complete the packaged recipes."""
    return _beginning(incomplete, _recipes())


def models(incomplete: str) -> list[str]:
    """Complete the bundled models; run directories the shell finds itself."""
    return _beginning(incomplete, _trained())


def reproductions(incomplete: str) -> list[str]:
    """Complete the tables and figures."""
    return _beginning(incomplete, KINDS["reproductions"].names())


def kinds(incomplete: str) -> list[str]:
    """Complete the kinds of things to list."""
    return _beginning(incomplete, NAMES)


def names(context: typer.Context, incomplete: str) -> list[str]:
    """Complete what there is of the kind before it."""
    read = NAMES.get(context.params.get("kind") or "")
    return _beginning(incomplete, read() if read else ())


def data_sets(incomplete: str) -> list[str]:
    """Complete the data sets that can be fetched."""
    return _beginning(incomplete, DATA_SETS)


def _recipes() -> Iterable[str]:
    return _stems("recipes/library", ".yaml")


def _trained() -> Iterable[str]:
    return _stems("models/weights", "")


def _commands() -> Iterable[str]:
    return (name for name in _stems("commands", ".py") if not name.startswith("_"))


def _layers() -> Iterable[str]:
    calls = ("rule", "register", "refuse")
    return {*names_in("lipcert.bounds.rules", *calls), *names_in("lipcert.nn", *calls)}


def _stems(folder: str, suffix: str) -> Iterable[str]:
    found = (entry.name for entry in files("lipcert").joinpath(folder).iterdir())
    return [name.removesuffix(suffix) for name in found if name.endswith(suffix)]


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


# What `lipcert list` shows, and how the names of each kind are read.
NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "recipes": _recipes,
    "trained": _trained,
    "layers": _layers,
    "commands": _commands,
    **{kind: where.names for kind, where in KINDS.items()},
}
