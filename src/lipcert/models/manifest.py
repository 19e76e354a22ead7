"""The manifest of a published model: size and SHA-256 of every file in its folder.

The folder has the layout of the Hugging Face Hub. None of its files is used before all of them were compared
with the manifest, and the manifest can name no file elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

import lipcert
from lipcert.atomic import write_json
from lipcert.errors import InputError
from lipcert.models.trained import CERTIFICATE, RECIPE, WEIGHTS
from lipcert.strict_files import Hash, Strict, read_json, shown, validated

# A name that no other tool gives to a file: a folder with this file is a published model.
MANIFEST = "lipcert-manifest.json"

# The hub shows the first as the model's page, and counts downloads by the second.
CARD, CONFIG = "README.md", "config.json"

# What every published model has; code of one's own is in a folder beside.
FILES = (CARD, CONFIG, WEIGHTS, CERTIFICATE, RECIPE)
CODE = "code"

_CODE_FILE = re.compile(rf"{CODE}/\w[\w-]*\.py", re.ASCII)


class Record(Strict):
    """The size of a file and the hash of its content."""

    bytes: int = Field(ge=0)
    sha256: Hash


class Manifest(Strict):
    """The files of a published model, and the version of lipcert that wrote them."""

    format: Literal[1]
    lipcert: str
    files: dict[str, Record]

    @field_validator("files")
    @classmethod
    def _are_those_of_a_model(cls, files: dict[str, Record]) -> dict[str, Record]:
        """Refuse every name that `publish` does not write: none leads out of the folder."""
        missing = [name for name in FILES if name not in files]
        if missing:
            raise ValueError(f"expected {', '.join(FILES)}, {missing[0]} is not among them")
        for name in files:
            if name not in FILES and not is_code_file(name):
                raise ValueError(f"expected {', '.join(FILES)} or {CODE}/NAME.py, got {shown(repr(name))}")
        return files


def is_code_file(name: str) -> bool:
    """Return whether a published model may have a file of code with this name."""
    return _CODE_FILE.fullmatch(name) is not None


def is_published(folder: Path) -> bool:
    """Return whether a folder holds a published model."""
    return os.path.lexists(folder / MANIFEST)


def write_manifest(folder: Path, names: Iterable[str]) -> None:
    """Write the manifest of these files, the last file of a model that is published."""
    files = {name: _record(folder / name) for name in names}
    write_json(folder / MANIFEST, Manifest(format=1, lipcert=lipcert.__version__, files=files).model_dump())


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest in a folder, every key and name checked."""
    path, what = folder / MANIFEST, "the manifest of a published model"
    return validated(path, read_json(path, what), Manifest, what)


def check_published(folder: Path, source: str, remedy: str) -> None:
    """Raise unless a folder has every file as it was published; the complaint begins with `source`."""
    for name, record in read_manifest(folder).files.items():
        try:
            found = _record(folder / name)
        except OSError as error:
            raise InputError(f"{source}: {name} cannot be read ({error.strerror}); {remedy}") from None
        if found.bytes != record.bytes:
            sizes = f"expected {record.bytes:,} bytes, found {found.bytes:,}"
            raise InputError(f"{source}: {name} is not as it was published: {sizes}; {remedy}")
        if found != record:
            odd = f"its SHA-256 is not the one in {MANIFEST}"
            raise InputError(f"{source}: {name} is not as it was published: {odd}; {remedy}")


def _record(path: Path) -> Record:
    status = path.stat()
    version = status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
    return Record(bytes=status.st_size, sha256=_sha256(path, version))


@lru_cache(maxsize=256)
def _sha256(path: Path, version: tuple[int, ...]) -> str:
    """Hash a file; a command asks for its model several times, and this version is hashed once."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
