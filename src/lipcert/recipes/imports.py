"""The code of one's own that a recipe needs: `imports: [my.py, package.module]`.

A run keeps every file with its SHA-256. Code is executed only if a user's own recipe or `--import` names it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, model_serializer, model_validator

from lipcert import extensions
from lipcert.errors import InputError, LipcertWarning
from lipcert.extensions import Extension

Tree = dict[str, Any]


class Import(BaseModel):
    """A file with its hash, or an installed module."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    file: str | None = None
    sha256: str | None = None
    module: str | None = None

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Import:
        if (self.module is None) == (self.file is None) or (self.file is None) != (self.sha256 is None):
            raise ValueError("expected a file with its sha256, or a module")
        return self

    @classmethod
    def of(cls, extension: Extension) -> Import:
        """Return what a recipe keeps of an extension."""
        if extension.is_file:
            # Relative, so that the file of a run can hold it relative to the run.
            return cls(file=_near(extension.source), sha256=extension.sha256)
        return cls(module=extension.source)

    @model_serializer
    def _write(self) -> dict[str, str]:
        return (
            {"file": self.file, "sha256": self.sha256}
            if self.file and self.sha256
            else {"module": self.module or ""}
        )

    @property
    def extension(self) -> Extension:
        """Return the extension that this names."""
        return Extension(self.file or self.module or "", self.sha256)


def _near(path: str) -> str:
    """Return a path from the current directory, if there is one."""
    try:
        return os.path.relpath(path)
    except ValueError:  # on another drive
        return path


def with_imports(tree: Tree, source: str, *, execute: bool) -> Tree:
    """Return a recipe's tree with its imports settled: loaded here if `execute`, else only looked for.

    What the command line named is added: a training keeps all code that was there.
    """
    named = [_named(one, source) for one in _listed(tree.get("imports", []), source)]
    if execute:
        for one in named:
            extensions.load(one.source)
        settled = [extensions.extension_of(one.source) for one in named]
        settled += [one for one in extensions.given() if one not in settled]
    else:
        settled = [one for one in named if one.sha256 or not one.is_file]
        for before, now in zip(named, extensions.require(named, source), strict=True):
            _tell_change(before, now, source)
    kept = [Import.of(one).model_dump() for one in settled]
    return {**tree, "imports": kept} if kept else {k: v for k, v in tree.items() if k != "imports"}


def load_kept(tree: Mapping[str, Any]) -> None:
    """Load what a recipe keeps, in a worker whose sender has loaded it."""
    for one in tree.get("imports", []):
        extensions.load(Import.model_validate(one).extension.source)


def _listed(imports: Any, source: str) -> Sequence[Any]:
    if not isinstance(imports, list | tuple):
        raise InputError(f"{source}: imports: expected a list such as [my.py], got {imports!r}")
    return imports


def _named(one: Any, source: str) -> Extension:
    if isinstance(one, str) and one:
        return Extension(one)
    try:
        return Import.model_validate(one).extension
    except ValueError:
        raise InputError(
            f"{source}: imports: expected files that end in .py or modules, got {one!r}"
        ) from None


def _tell_change(before: Extension, now: Extension, source: str) -> None:
    if before.sha256 not in (None, now.sha256):
        warnings.warn(
            f"{source}: made with another content of {before.source} than that of {now.source}",
            LipcertWarning,
            stacklevel=2,
        )
