"""The places of data sets: the given root, $LIPCERT_DATA, or the user's cache."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from lipcert.errors import InputError

# Arguments of data sets that are paths: files of a run keep them so that the run can be moved.
PATH_ARGUMENTS = ("root", "path")


def default_root() -> Path:
    """Return $LIPCERT_DATA, or the user's cache."""
    return Path(os.environ.get("LIPCERT_DATA") or platformdirs.user_cache_path("lipcert"))


def find(name: str, folders: Sequence[str], root: str | Path | None) -> Path:
    """Return the first of the folders that exists."""
    places = [Path(root)] if root is not None else [default_root()]
    for place in places:
        for folder in folders:
            # The root may be the folder itself.
            for path in (place / folder, place):
                if path.name == folder and path.is_dir():
                    return path
    raise InputError(
        f"{name}: no {' or '.join(folders)} in {places[0]}; `lipcert data fetch {name}` downloads it; "
        "set $LIPCERT_DATA or data.root to search another place"
    )
