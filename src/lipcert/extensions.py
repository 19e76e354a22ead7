"""Code of one's own: files and modules that register losses, layers, models and so on as lipcert's files do.

A user names them with `--import`, a recipe with `imports`, an installed package by the entry point group
`lipcert.plugins`. Each is executed once per process. Nothing is executed because a run names it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

import yaml

from lipcert.errors import InputError, reason

GROUP = "lipcert.plugins"


@dataclass(frozen=True)
class Extension:
    """A file, with the hash of its content where it is known, or an installed module."""

    source: str
    sha256: str | None = None

    @property
    def is_file(self) -> bool:
        """Return whether this is a file."""
        return self.source.endswith(".py")

    def is_like(self, other: Extension) -> bool:
        """Return whether the other one is this file, perhaps moved or changed, or this module."""
        if not (self.is_file and other.is_file):
            return self == other
        known = self.sha256 is not None and self.sha256 == other.sha256
        return known or Path(self.source).name == Path(other.source).name


# What this process has loaded, by place and hash, and what the command line named.
_LOADED: dict[Extension, ModuleType] = {}
_GIVEN: list[Extension] = []


def load(source: str) -> ModuleType:
    """Load a file or a module by its dotted name; what was loaded before is only returned."""
    extension = extension_of(source)
    if extension not in _LOADED:
        _LOADED[extension] = _execute(extension, source) if extension.is_file else _import(source)
    return _LOADED[extension]


def give(source: str) -> None:
    """Load what the command line names; recipes that are read later keep it among their imports."""
    load(source)
    _GIVEN.append(extension_of(source))


def given() -> list[Extension]:
    """Return what the command line named."""
    return list(dict.fromkeys(_GIVEN))


def loaded() -> list[Extension]:
    """Return everything that was loaded in this process."""
    return list(_LOADED)


def extension_of(source: str) -> Extension:
    """Return the extension of this name; a file must be there."""
    if not Extension(source).is_file:
        return Extension(source)
    path = Path(source)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{source}: no such Python file ({error.strerror})") from None
    return Extension(str(path.resolve()), hashlib.sha256(content).hexdigest())


def _execute(extension: Extension, source: str) -> ModuleType:
    assert extension.sha256 is not None
    # The name is new for each file and content, so that files of one name do not replace each other.
    name = f"lipcert_extension_{Path(extension.source).stem}_{extension.sha256[:8]}"
    spec = importlib.util.spec_from_file_location(name, extension.source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # foreign code may raise anything, and end the process
        del sys.modules[name]
        raise _complaint(source, error) from error
    return module


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and name.startswith(error.name or " "):
            expected = "expected an installed module or a file that ends in .py"
            raise InputError(f"{name}: no such module; {expected}") from None
        raise _complaint(name, error) from error


def _complaint(source: str, error: BaseException) -> InputError:
    kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
    return InputError(f"{source}: {kind}{reason(error)}")


@cache
def load_installed() -> None:
    """Import what installed packages registered as plugins, once per process."""
    for point in entry_points(group=GROUP):
        _load_installed(point)


def _load_installed(point: EntryPoint) -> None:
    try:
        point.load()
    except Exception as error:
        package = point.dist.name if point.dist else "an unknown package"
        raise InputError(
            f"the plugin {point.name} of {package} cannot be loaded ({_complaint(point.value, error)}); "
            "repair or uninstall it"
        ) from error


def require(named: Iterable[Extension], where: str) -> list[Extension]:
    """Return those of the loaded extensions that a run was made with; raise for one that is missing."""
    found = []
    for extension in named:
        here = [one for one in (*given(), *loaded()) if one.is_like(extension)]
        if not here:
            raise InputError(f"{where}: {_needs([extension.source])}")
        found.append(extension if extension in here else here[0])
    return found


def needed_by(recipe: Path) -> str:
    """Return the complaint that a run's recipe names code of one's own; empty if it names none."""
    try:
        tree = yaml.safe_load(recipe.read_text(encoding="utf-8"))
        sources = [
            _place(one["file"], recipe.parent) if "file" in one else one["module"] for one in tree["imports"]
        ]
    except (OSError, ValueError, LookupError, TypeError, yaml.YAMLError):
        return ""
    return _needs(sources)


def _place(path: str, folder: Path) -> str:
    """Return the path from here of a file that a recipe in this folder names."""
    return os.path.relpath(os.path.join(os.path.realpath(folder), path))


def _needs(sources: Iterable[str]) -> str:
    """Say which code is missing, and how to load it."""
    names = list(sources)
    options = " ".join(f"--import {shlex.quote(name)}" for name in names)
    return (
        f"made with code that is no part of lipcert: {', '.join(names)}; if you trust it, add {options} "
        "(in Python: lipcert.extensions.load)"
    )
