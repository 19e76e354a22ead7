"""Names that a shell completes, read from files without importing anything heavy: a shell waits for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path

import typer

from lipcert.commands.support.registries import KINDS
from lipcert.registry import names_in, names_of


def _recipes() -> Iterable[str]:
    return _stems("recipes/library", ".yaml")


def _trained() -> Iterable[str]:
    return _stems("models/weights", "")


def _commands() -> Iterable[str]:
    return (name for name in _stems("commands", ".py") if not name.startswith("_"))


def _downloadable() -> Iterable[str]:
    return names_in("lipcert.data", "published")


def _layers() -> Iterable[str]:
    calls = ("rule", "register", "refuse")
    return {*names_in("lipcert.bounds.rules", *calls), *names_in("lipcert.nn", *calls)}


def new_kinds() -> list[str]:
    """Return the kinds of files that `lipcert new` writes."""
    return sorted(_stems("laws/templates", ".py.txt"))


def _stems(folder: str, suffix: str) -> Iterable[str]:
    found = (entry.name for entry in files("lipcert").joinpath(folder).iterdir())
    return [name.removesuffix(suffix) for name in found if name.endswith(suffix)]


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


def _completer(read: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return _beginning(incomplete, read())

    return complete


# What `lipcert list` shows, and how the names of each kind are read.
NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "recipes": _recipes,
    "trained": _trained,
    "layers": _layers,
    "commands": _commands,
    **{kind: where.names for kind, where in KINDS.items()},
}

recipes, models, kinds = _completer(_recipes), _completer(_trained), _completer(lambda: NAMES)
templates = _completer(new_kinds)
reproductions, data_sets = _completer(NAMES["reproductions"]), _completer(_downloadable)


def names(context: typer.Context, incomplete: str) -> list[str]:
    """Complete what there is of the kind before it, in lipcert and in files after `--import`."""
    kind = context.params.get("kind") or ""
    read = NAMES.get(kind)
    own = _imported(kind, context.params.get("import_") or ())
    return _beginning(incomplete, {*(read() if read else ()), *own})


def _imported(kind: str, sources: Iterable[str]) -> Iterable[str]:
    """Read the names of a kind from files of one's own, which are not executed."""
    found = KINDS.get(kind)
    own = [file for file in map(Path, sources) if file.suffix == ".py" and file.is_file()]
    return {name for file in own for name in names_of(file, found.registry)} if found else ()
