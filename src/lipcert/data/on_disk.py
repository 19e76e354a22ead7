"""Data of your own that a command line names: a folder of images or an .npz file, as a registered data set.

Somebody else's model was trained by somebody else's split, so nothing is held out here: what has no parts of
its own is the test split, whole.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from lipcert.data.base import DATASETS, SPLITS, Split
from lipcert.errors import InputError
from lipcert.types import Shape


def own_data(text: str, split: Split, input_shape: Shape | None = None) -> dict[str, Any]:
    """Return the name and the arguments of the data set: a registered name, a folder or an .npz file."""
    if text in DATASETS:
        return {"name": text}
    path = Path(text)
    if path.is_dir():
        shares = _shares(text, split, {name for name in SPLITS if (path / name).is_dir()})
        return {"name": "folder", "root": text, **_image_form(text, input_shape), **shares}
    if path.suffix == ".npz":
        return {"name": "arrays", "path": text, **_shares(text, split, _parts_in(path))}
    raise InputError(
        f"--data: expected one of {', '.join(sorted(DATASETS))}, a folder of images or an .npz file, "
        f"found none of these: {text!r}"
    )


def _shares(text: str, split: Split, parts: set[Split]) -> dict[str, float]:
    """Return the shares held out: everything if there are no parts, nothing of those that there are."""
    if not parts and split != "test":
        raise InputError(f"--split: {text} has no parts, so all of it is the test split; got {split!r}")
    if parts and split not in parts:
        raise InputError(f"--split: {text} has the parts {', '.join(sorted(parts))}, got {split!r}")
    return {"val": 0.0, "test": 0.0 if parts else 1.0}


def _parts_in(path: Path) -> set[Split]:
    """Return the parts of an .npz file; the loader complains about one that cannot be read."""
    try:
        with zipfile.ZipFile(path) as file:
            return {name for name in SPLITS if f"x_{name}.npy" in file.namelist()}
    except (OSError, zipfile.BadZipFile):
        return set()


def _image_form(text: str, shape: Shape | None) -> dict[str, Any]:
    """Return how images become inputs: the middle square, resized; grey for one channel."""
    if shape is None:
        raise InputError(f"--input-shape: {text}/ needs one, such as 3,224,224: its images become this size")
    if len(shape) != 3 or shape[0] not in (1, 3) or shape[1] != shape[2]:
        raise InputError(f"--input-shape: expected 3,H,H or 1,H,H for a folder of images, got {shape}")
    kind = {"convert": True} if shape[0] == 3 else {"detect": True}
    return {"size": shape[1], "crop": True, **kind}
