"""Tiny-ImageNet: 200 classes of 64×64 colour images, from the official folders.

The official validation images, listed in val_annotations.txt, are our test split (the official test images
have no labels). Validation is held out of the training images. The few grey images become RGB.
"""

from __future__ import annotations

from pathlib import Path

import torch

from lipcert.data.archives import Archive, published
from lipcert.data.base import DATASETS, Dataset, Split
from lipcert.data.examples import write_tiny_imagenet
from lipcert.data.image_cache import decoded
from lipcert.data.image_files import Form, image_files
from lipcert.data.places import find
from lipcert.data.sizes import published_size
from lipcert.data.splitting import part
from lipcert.errors import InputError

_ARCHIVE = published(
    "tiny-imagenet",
    Archive(
        "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
        "90528d7ca1a48142e341f4ef8d21d0de",
        ("tiny-imagenet-200",),
    ),
)

published_size("tiny-imagenet", (3, 64, 64), classes=200, train=500, test=50, val=0.05)


@DATASETS.register("tiny-imagenet", example=write_tiny_imagenet)
def tiny_imagenet(
    split: Split = "train", *, root: str | None = None, val: float = 0.05, seed: int = 0
) -> Dataset:
    """Load 110,000 colour images of 64×64 in 200 classes, from tiny-imagenet-200.

    The official validation images are the test split; `val` is the share of the training images that is held
    out for validation.
    """
    folder = find("tiny-imagenet", _ARCHIVE.folders, root)
    wnids = _lines(folder / "wnids.txt")
    words = dict(line.split("\t", 1) for line in _lines(folder / "words.txt") if "\t" in line)
    names = tuple(words.get(wnid, wnid).partition(",")[0] for wnid in wnids)
    paths, labels = _test_files(folder, wnids) if split == "test" else _train_files(folder, wnids)
    y = torch.tensor(labels)
    if split != "test":
        chosen = part(y, split, {"val": val}, seed)
        paths, y = [paths[i] for i in chosen.tolist()], y[chosen]
    return Dataset(decoded(paths, Form(convert=True)), y, _distinct(names, wnids))


def _train_files(folder: Path, wnids: list[str]) -> tuple[list[Path], list[int]]:
    paths: list[Path] = []
    labels: list[int] = []
    for label, wnid in enumerate(wnids):
        images = folder / "train" / wnid / "images"
        found = image_files(images) if images.is_dir() else []
        if not found:
            raise InputError(f"{images}: no images of class {wnid}")
        paths += found
        labels += [label] * len(found)
    return paths, labels


def _test_files(folder: Path, wnids: list[str]) -> tuple[list[Path], list[int]]:
    annotations = folder / "val" / "val_annotations.txt"
    index = {wnid: label for label, wnid in enumerate(wnids)}
    paths, labels = [], []
    for number, line in enumerate(_lines(annotations), start=1):
        image, _, rest = line.partition("\t")
        wnid = rest.partition("\t")[0]
        if wnid not in index:
            raise InputError(f"{annotations}: line {number}: unknown class {wnid!r}")
        path = folder / "val" / "images" / image
        if not path.is_file():
            raise InputError(f"{annotations}: line {number}: {path} is missing")
        paths.append(path)
        labels.append(index[wnid])
    return paths, labels


def _lines(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file") from None
    found = [line.rstrip() for line in lines if line.strip()]
    if not found:
        raise InputError(f"{path}: empty")
    return found


def _distinct(names: tuple[str, ...], wnids: list[str]) -> tuple[str, ...]:
    """Make class names unique: some share their first word and get their identifier beside it."""
    return tuple(
        name if names.count(name) == 1 else f"{name} ({wnid})"
        for name, wnid in zip(names, wnids, strict=True)
    )
