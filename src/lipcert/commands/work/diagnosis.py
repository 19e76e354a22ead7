"""`lipcert doctor`: show versions, devices, data, and how to install what is missing."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from rich.markup import escape
from rich.table import Table

from lipcert.data.fetch import ARCHIVES
from lipcert.data.places import default_root, find
from lipcert.environment import environment
from lipcert.errors import InputError

# Extras for developers, not for users.
_OURS = {"all", "browser", "dev", "docs"}


def findings() -> list[Table]:
    """Return tables of versions, devices, data and extras."""
    return [_versions(), _devices(), _data(), _extras()]


def _versions() -> Table:
    table = _table("versions", "what", "version")
    table.add_row(
        "lipcert", str(environment()["lipcert"]) + (f" ({c})" if (c := environment()["commit"]) else "")
    )
    table.add_row("python", f"{platform.python_version()} ({sys.executable})")
    for requirement in _requirements(None):
        table.add_row(
            requirement.name, _version(requirement) or escape(f"missing: pip install '{requirement}'")
        )
    return table


def _devices() -> Table:
    import torch

    table = _table("devices", "what", "found")
    table.add_row("processor", f"{environment()['machine']}, torch uses {torch.get_num_threads()} threads")
    table.add_row("memory", f"{_memory() / 2**30:.0f} GiB")
    cards = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    table.add_row("cuda", ", ".join(cards) or "none")
    table.add_row("mps", "yes" if torch.backends.mps.is_available() else "none")
    return table


def _data() -> Table:
    root = default_root()
    table = _table(f"data in {root}", "name", "found")
    for name, archive in ARCHIVES.items():
        try:
            found = str(find(name, [archive.folder, *_OTHER_LAYOUTS.get(name, ())], None))
        except InputError:
            found = f"missing: lipcert data fetch {name}, or set LIPCERT_DATA"
        table.add_row(name, escape(found))
    table.add_row("can be written", "yes" if _writable(root) else "no")
    return table


# The layouts of torchvision.
_OTHER_LAYOUTS = {"cifar10": ("cifar-10-batches-py",), "cifar100": ("cifar-100-python",)}


def _extras() -> Table:
    table = _table("extras", "extra", "state")
    for extra in metadata.metadata("lipcert").get_all("Provides-Extra") or []:
        if extra in _OURS:
            continue
        lacking = [r.name for r in _requirements(extra) if _version(r) is None]
        found = f"missing {', '.join(lacking)}: pip install 'lipcert[{extra}]'" if lacking else "installed"
        table.add_row(extra, escape(found))
    return table


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


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _writable(path: Path) -> bool:
    """Return whether the path, or its nearest existing parent, takes new files."""
    while not path.exists():
        path = path.parent
    return os.access(path, os.W_OK)


def _table(title: str, *columns: str) -> Table:
    return Table(*columns, title=title, title_justify="left", title_style="bold")
