"""Your own images, in one folder per class."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lipcert.data.base import DATASETS, Dataset, Split
from lipcert.data.examples import write_folder
from lipcert.data.image_cache import common_form, decoded
from lipcert.data.image_files import SUFFIXES, Form, image_files, read_image
from lipcert.data.sizes import Size, sized
from lipcert.data.splitting import part
from lipcert.errors import InputError

# The side of images beyond which no network of lipcert trains in any memory.
_LARGEST = 4096

# The classes without images that an error names.
_NAMED = 10


@DATASETS.register("folder", example=write_folder)
def folder(
    split: Split = "train",
    *,
    root: str,
    detect: bool = False,
    size: int | None = None,
    convert: bool = False,
    crop: bool = False,
    val: float = 0.1,
    test: float = 0.1,
    seed: int = 0,
) -> Dataset:
    """Load the images in root/CLASS, or in root/train/CLASS and root/test/CLASS (and root/val/CLASS).

    The shares `val` and `test` are held out, equally of every class, where there is no folder for them.
    `size` resizes the images to squares of that side; `crop` cuts the middle square out before, otherwise
    they are stretched. `convert` makes them RGB. `detect` chooses both: grey if all images are grey, and
    their own size if they share one of at most 64 pixels, else squares of 64.
    """
    found = _files_of(split, root, detect, size, convert, crop, val, test, seed)
    return Dataset(decoded(found.paths, found.form), found.y, found.classes)


@sized("folder")
def folder_size(split: Split, root: str, **arguments: Any) -> Size:
    """Count the images of a split; none but the first is read."""
    found = _files_of(split, root, **{**_DEFAULTS, **arguments})
    return Size(len(found.paths), read_image(found.paths[0], found.form).shape, len(found.classes))


_DEFAULTS = {name: p.default for name, p in signature(folder).parameters.items() if p.default is not p.empty}
del _DEFAULTS["split"]


@dataclass(frozen=True)
class _Files:
    """The images of one split, before any is decoded."""

    paths: list[Path]
    y: Tensor
    form: Form
    classes: tuple[str, ...]


def _files_of(
    split: Split,
    root: str,
    detect: bool,
    size: int | None,
    convert: bool,
    crop: bool,
    val: float,
    test: float,
    seed: int,
) -> _Files:
    place = Path(root)
    if not place.is_dir():
        raise InputError(
            f"root: {place.absolute()}: no such folder; expected one with a folder of images per class"
        )
    if size is not None and not 1 <= size <= _LARGEST:
        raise InputError(f"size: expected from 1 to {_LARGEST} pixels, got {size}")
    whole = place / "train" if (place / "train").is_dir() else place
    classes = _classes(whole)
    own = {name for name in ("val", "test") if whole != place and (place / name).is_dir()}
    paths, labels = _files(place / split if split in own else whole, classes, every=split not in own)
    y = torch.tensor(labels)
    if split not in own:
        asked: dict[Split, float] = {"test": test, "val": val}
        shares = {name: share for name, share in asked.items() if name not in own}
        chosen = part(y, split, shares, seed)
        paths, y = [paths[i] for i in chosen.tolist()], y[chosen]
    form = Form(size=(size, size) if size else None, convert=convert, crop=crop)
    if detect:
        found = common_form(tuple(_everything(place, whole, own, classes)))
        form = replace(found, size=form.size or found.size, crop=crop)
    return _Files(paths, y, form, tuple(map(_readable, classes)))


def _readable(name: str) -> str:
    """Return the name of a folder as it is in UTF-8; in an ASCII locale Python gives its bytes otherwise."""
    return os.fsencode(name).decode("utf-8", errors="replace")


def _everything(place: Path, whole: Path, own: set[str], classes: tuple[str, ...]) -> list[Path]:
    """Return the images of all splits, which get a common form."""
    folders = {whole: True} | {place / name: False for name in sorted(own)}
    return [path for folder, every in folders.items() for path in _files(folder, classes, every)[0]]


def _classes(place: Path) -> tuple[str, ...]:
    names = sorted(p.name for p in place.iterdir() if p.is_dir() and not p.name.startswith("."))
    if len(names) < 2:
        raise InputError(f"{place}: expected one subfolder per class (at least 2), found {len(names)}")
    return tuple(names)


def _files(place: Path, classes: tuple[str, ...], every: bool) -> tuple[list[Path], list[int]]:
    """Return images and labels; training has `every` class, a test may lack some."""
    paths: list[Path] = []
    labels: list[int] = []
    extra = {p.name for p in place.iterdir() if p.is_dir() and not p.name.startswith(".")} - set(classes)
    if extra:
        raise InputError(f"{place}: class {sorted(extra)[0]!r} is not among the training classes")
    found = [image_files(place / name) if (place / name).is_dir() else [] for name in classes]
    empty = [name for name, files in zip(classes, found, strict=True) if not files]
    if len(empty) == len(classes) or (empty and every):
        raise InputError(
            f"{place}: no images of {_counted(empty, len(classes))}; put some there or remove the folders "
            f"(images are files such as {', '.join(SUFFIXES[:3])})"
        )
    for label, files in enumerate(found):
        paths += files
        labels += [label] * len(files)
    return paths, labels


def _counted(empty: list[str], total: int) -> str:
    """Name the classes without images: a few, and how many."""
    names = ", ".join(empty[:_NAMED]) + (", …" if len(empty) > _NAMED else "")
    return f"{len(empty)} of {total} classes ({names})"
