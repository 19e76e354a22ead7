"""Paths in the files of a run: absolute, or relative to the folder of the file, so that both can move.

In memory a relative path begins at the current directory, as it was typed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lipcert.certificates.statement import DataSource
from lipcert.data.places import PATH_ARGUMENTS
from lipcert.models.model_names import is_path

Tree = dict[str, Any]


def stored(recipe: Tree, folder: Path) -> Tree:
    """Return a recipe as a file in this folder holds it."""
    return _with_paths(recipe, lambda path: _stored(path, folder))


def restored(recipe: Tree, folder: Path) -> Tree:
    """Return the recipe of a file in this folder with paths that hold here.

    Runs of before have paths from the directory in which they were started: where there is nothing beside the
    file, a path is taken as it is.
    """
    return _with_paths(recipe, lambda path: _restored(path, folder))


def absolute(recipe: Tree) -> Tree:
    """Return a recipe with absolute paths, to compare it with another."""
    return _with_paths(recipe, os.path.abspath)


def expanded(recipe: Tree) -> Tree:
    """Return a recipe with the user's home in place of ~, which shells leave alone behind an equals sign."""
    return _with_paths(recipe, os.path.expanduser)


def stored_data(data: DataSource, folder: Path) -> DataSource:
    """Return the data of a recipe as a file in this folder holds it."""
    return DataSource.model_validate(stored({"data": data.model_dump()}, folder)["data"])


def restored_data(data: DataSource, folder: Path) -> DataSource:
    """Return the data that a file in this folder holds with paths that hold here."""
    return DataSource.model_validate(restored({"data": data.model_dump()}, folder)["data"])


def _with_paths(recipe: Tree, change: Callable[[str], str]) -> Tree:
    """Change the paths of data and imports, and the model to start from unless it is a name."""
    changed = dict(recipe)
    data, start = recipe.get("data"), recipe.get("start")
    if isinstance(data, Mapping):
        paths = {key: change(data[key]) for key in PATH_ARGUMENTS if isinstance(data.get(key), str)}
        changed["data"] = {**data, **paths}
    if isinstance(recipe.get("imports"), list | tuple):
        changed["imports"] = [_with_place(one, change) for one in recipe["imports"]]
    if isinstance(start, str) and is_path(start):
        changed["start"] = change(start)
    return changed


def _with_place(imported: Any, change: Callable[[str], str]) -> Any:
    """Change the path of an imported file, written as its name alone or with its hash beside it."""
    if isinstance(imported, str) and imported.endswith(".py"):
        return change(imported)
    if isinstance(imported, Mapping) and isinstance(imported.get("file"), str):
        return {**imported, "file": change(imported["file"])}
    return imported


def _stored(path: str, folder: Path) -> str:
    # Without links: ".." of a folder that is a link leads to another place than its name says.
    home, full = os.path.realpath(folder), os.path.abspath(path)
    place = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
    if place.startswith(os.path.join(home, "")):
        return os.path.relpath(place, home)
    if os.path.isabs(path):
        return path
    try:
        return os.path.relpath(full, home)
    except ValueError:  # on another drive
        return full


def _restored(path: str, folder: Path) -> str:
    if os.path.isabs(path) or path.startswith("~"):
        return path
    beside = os.path.normpath(os.path.join(os.path.realpath(folder), path))
    if os.path.exists(path) and not os.path.exists(beside):
        return path
    return os.path.relpath(beside)
