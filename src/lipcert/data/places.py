"""Where data sets lie: the root that is given, $LIPCERT_DATA, or the user's cache."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from lipcert.errors import InputError


def default_root() -> Path:
    """$LIPCERT_DATA, or the user's cache."""
    return Path(os.environ.get("LIPCERT_DATA") or platformdirs.user_cache_path("lipcert"))


def find(name: str, folders: Sequence[str], root: str | Path | None) -> Path:
    """The first of the folders that is there."""
    places = [Path(root)] if root is not None else [default_root()]
    for place in places:
        for folder in folders:
            # The root may be the folder itself.
            for path in (place / folder, place):
                if path.name == folder and path.is_dir():
                    return path
    raise InputError(
        f"{name}: no {' or '.join(folders)} in {places[0]}; `lipcert data fetch {name}` downloads it, "
        "$LIPCERT_DATA or data.root names another place"
    )
