"""Your own images, in one folder per class."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from lipcert.data.base import DATASETS, Dataset, Split
from lipcert.data.examples import write_folder
from lipcert.data.image_cache import Form, common_form, decoded, image_files
from lipcert.data.splitting import part
from lipcert.errors import InputError


@DATASETS.register("folder", example=write_folder)
def folder(
    split: Split = "train",
    *,
    root: str,
    detect: bool = False,
    size: int | None = None,
    convert: bool = False,
    val: float = 0.1,
    test: float = 0.1,
    seed: int = 0,
) -> Dataset:
    """Load the images in root/CLASS, or in root/train/CLASS and root/test/CLASS (and root/val/CLASS).

    The shares `val` and `test` are held out, equally of every class, where there is no folder for them.
    `size` resizes the images to squares of that side, `convert` makes them RGB. `detect` chooses both: grey
    if all images are grey, and their own size if they share one of at most 64 pixels, else squares of 64.
    """
    place = Path(root)
    if not place.is_dir():
        raise InputError(f"root: {root}: no such folder")
    if size is not None and size < 1:
        raise InputError(f"size: expected a number of pixels, got {size}")
    whole = place / "train" if (place / "train").is_dir() else place
    classes = _classes(whole)
    own = {name for name in ("val", "test") if whole != place and (place / name).is_dir()}
    paths, labels = _files(place / split if split in own else whole, classes)
    y = torch.tensor(labels)
    if split not in own:
        shares = {name: share for name, share in (("test", test), ("val", val)) if name not in own}
        chosen = part(y, split, shares, seed)
        paths, y = [paths[i] for i in chosen.tolist()], y[chosen]
    form = Form(size=(size, size) if size else None, convert=convert)
    if detect:
        found = common_form(tuple(_everything(place, whole, own, classes)))
        form = replace(found, size=form.size or found.size)
    return Dataset(decoded(paths, form), y, classes)


def _everything(place: Path, whole: Path, own: set[str], classes: tuple[str, ...]) -> list[Path]:
    """Return the images of all splits, which get a common form."""
    folders = [whole, *(place / name for name in sorted(own))]
    return [path for folder in folders for path in _files(folder, classes)[0]]


def _classes(place: Path) -> tuple[str, ...]:
    names = sorted(p.name for p in place.iterdir() if p.is_dir() and not p.name.startswith("."))
    if len(names) < 2:
        raise InputError(f"{place}: expected one subfolder per class (at least 2), found {len(names)}")
    return tuple(names)


def _files(place: Path, classes: tuple[str, ...]) -> tuple[list[Path], list[int]]:
    paths: list[Path] = []
    labels: list[int] = []
    extra = {p.name for p in place.iterdir() if p.is_dir() and not p.name.startswith(".")} - set(classes)
    if extra:
        raise InputError(f"{place}: class {sorted(extra)[0]!r} is not among the training classes")
    for label, name in enumerate(classes):
        found = image_files(place / name) if (place / name).is_dir() else []
        if not found:
            raise InputError(f"{place / name}: no images of this class")
        paths += found
        labels += [label] * len(found)
    return paths, labels
