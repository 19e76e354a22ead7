"""Recipes and data without places on the author's machine."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from lipcert.certificates.statement import DataSource
from lipcert.data.base import DATASETS
from lipcert.data.places import PATH_ARGUMENTS
from lipcert.errors import InputError
from lipcert.models.manifest import CODE
from lipcert.models.model_names import is_path
from lipcert.strict_files import shown

Tree = dict[str, Any]


def portable_recipe(recipe: Tree) -> Tree:
    """Return a recipe as it is published: code is in a folder beside it, other paths keep their last name."""
    changed = {**recipe, "data": _without_places(recipe["data"])}
    if "imports" in recipe:
        changed["imports"] = [_beside(one) for one in recipe["imports"]]
    if isinstance(recipe.get("start"), str) and is_path(recipe["start"]):
        changed["start"] = _last(recipe["start"])
    return _checked(changed)


def portable_data(data: DataSource) -> DataSource:
    """Return the data of a certificate as it is published."""
    return DataSource.model_validate(_checked({"data": _without_places(data.model_dump())})["data"])


def code_name(file: str) -> str:
    """Return the name in a published folder of a file of code."""
    return f"{CODE}/{os.path.basename(file)}"


def _without_places(data: Mapping[str, Any]) -> Tree:
    """Drop the path of data that has a usual place, and keep the last name of another."""
    known = inspect.signature(DATASETS[data["name"]].constructor).parameters
    usual = {
        key for key in PATH_ARGUMENTS if key in known and known[key].default is not inspect.Parameter.empty
    }
    kept = {key: value for key, value in data.items() if key not in usual}
    return {k: _last(v) if k in PATH_ARGUMENTS and isinstance(v, str) else v for k, v in kept.items()}


def _last(path: str) -> str:
    return os.path.basename(os.path.abspath(path))


def _beside(imported: Mapping[str, str]) -> Tree:
    """Return an import whose file is in the folder of code; an installed module stays as it is."""
    return {**imported, "file": code_name(imported["file"])} if "file" in imported else dict(imported)


def _checked(tree: Tree) -> Tree:
    """Raise if a place on this machine is left, such as an argument of data of one's own."""
    for key, text in _texts(tree):
        if PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute() or text.startswith("~"):
            raise InputError(
                f"{key}: expected no place on this machine in what is published, got {shown(text)}; "
                "train with a relative path"
            )
    return tree


def _texts(tree: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text of a nested mapping with its dotted key."""
    if isinstance(tree, str):
        yield key, tree
    elif isinstance(tree, Mapping):
        for name, value in tree.items():
            yield from _texts(value, f"{key}.{name}" if key else str(name))
    elif isinstance(tree, Sequence):
        for value in tree:
            yield from _texts(value, key)
