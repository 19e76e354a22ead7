"""Find the MODEL of an argument: a path on disk, a name in the package or one on the Hugging Face Hub.

Every command and `lipcert.load` ask here, so all of them take the same names.
"""

from __future__ import annotations

import os
from pathlib import Path

from lipcert.errors import InputError
from lipcert.models.downloads import PREFIX, downloaded
from lipcert.models.manifest import check_published, is_published
from lipcert.models.trained import trained_models, trained_place

_EXPECTED = f"expected a run directory, a file, the name of a model or {PREFIX}OWNER/NAME"


def model_place(source: str | Path) -> Path:
    """Return where the MODEL of an argument is: on the hub, on disk, else in the package.

    A model of the hub is downloaded. A published folder is compared with its manifest.
    """
    if not isinstance(source, str | Path):
        raise InputError(f"model: {_EXPECTED}, got {type(source).__name__}")
    if str(source) == "":
        raise InputError(f"model: {_EXPECTED}, got ''")
    if _is_on_hub(source):
        return downloaded(str(source))
    path = Path(source)
    if not path.exists() and str(source) in trained_models():
        return trained_place(str(source))
    _check_on_disk(path)
    return path


def is_path(source: str) -> bool:
    """Return whether a MODEL is a path, which means another file from another directory."""
    return not _is_on_hub(source) and (os.path.exists(source) or source not in trained_models())


def _is_on_hub(source: str | Path) -> bool:
    return isinstance(source, str) and source.startswith(PREFIX)


def _check_on_disk(path: Path) -> None:
    """Compare a published folder, or that of a file in it, with its manifest."""
    folder = path if path.is_dir() else path.parent
    if path.exists() and is_published(folder):
        check_published(folder, str(path), "copy the folder again, or publish it anew")
