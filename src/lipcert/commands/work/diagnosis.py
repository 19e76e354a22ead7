"""`lipcert doctor`: show versions, devices, data, and how to install what is missing."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from lipcert.data.archives import archives
from lipcert.data.places import default_root, find
from lipcert.environment import Environment, environment
from lipcert.errors import InputError
from lipcert.tables import Table
from lipcert.tables.table import text_table

# Extras for developers, not for users.
_OURS = {"all", "browser", "dev", "docs"}


Lines = Iterable[tuple[str, str]]


def findings() -> list[Table[Sequence[str]]]:
    """Return tables of versions, devices, data and extras."""
    here = environment()
    return [
        _table("versions", ("what", "version"), _versions(here)),
        _table("devices", ("what", "found"), _devices(here)),
        _table(f"data in {default_root()}", ("name", "found"), _data()),
        _table("extras", ("extra", "state"), _extras()),
    ]


def _table(title: str, columns: Sequence[str], lines: Lines) -> Table[Sequence[str]]:
    return replace(text_table(columns, list(lines)), title=title)


def _versions(here: Environment) -> Lines:
    yield "lipcert", here.lipcert + (f" ({here.commit})" if here.commit else "")
    yield "python", f"{platform.python_version()} ({sys.executable})"
    for requirement in _requirements(None):
        yield requirement.name, _version(requirement) or f"missing: pip install '{requirement}'"


def _devices(here: Environment) -> Lines:
    import torch

    from lipcert.models.memory import available_memory, told

    yield "processor", f"{here.machine}, torch uses {torch.get_num_threads()} threads"
    free = available_memory()
    yield "memory", "unknown" if free is None else f"{told(free)} available"
    cards = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    yield "cuda", ", ".join(cards) or "none"
    yield "mps", "yes" if torch.backends.mps.is_available() else "none"


def _data() -> Lines:
    for name, archive in archives().items():
        try:
            found = str(find(name, archive.folders, None))
        except InputError:
            found = f"missing: lipcert data fetch {name}, or set LIPCERT_DATA"
        yield name, found
    yield "can be written", "yes" if _writable(default_root()) else "no"


def _extras() -> Lines:
    for extra in metadata.metadata("lipcert").get_all("Provides-Extra") or []:
        if extra in _OURS:
            continue
        lacking = [r.name for r in _requirements(extra) if _version(r) is None]
        found = f"missing {', '.join(lacking)}: pip install 'lipcert[{extra}]'" if lacking else "installed"
        yield extra, found


def _requirements(extra: str | None) -> list[Requirement]:
    """Return the requirements of the core, or what an extra adds to them."""
    all_ = [Requirement(text) for text in metadata.requires("lipcert") or []]
    if extra is None:
        return [r for r in all_ if r.marker is None or "extra" not in str(r.marker)]
    return [r for r in all_ if r.marker is not None and f'extra == "{extra}"' in str(r.marker)]


def _version(requirement: Requirement) -> str | None:
    """Return the installed version, marked if lipcert does not support it."""
    try:
        found = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return None
    fits = requirement.specifier.contains(found, prereleases=True)
    return found if fits else f"{found}, but lipcert needs {requirement.specifier}"


def _writable(path: Path) -> bool:
    """Return whether the path, or its nearest existing parent, takes new files."""
    while not path.exists():
        path = path.parent
    return os.access(path, os.W_OK)
