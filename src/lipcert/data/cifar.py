"""CIFAR-10 and CIFAR-100, from the official binary or python files.

Alex Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009. The official test batch is our
test split; validation is held out of the training batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from lipcert.data.archives import Archive, published
from lipcert.data.base import DATASETS, Dataset, Split
from lipcert.data.examples import write_cifar10, write_cifar100
from lipcert.data.pickles import read_pickle
from lipcert.data.places import find
from lipcert.data.sizes import published_size
from lipcert.data.splitting import part
from lipcert.errors import InputError

_PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class _Layout:
    """A format in which the data is published."""

    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    names: str  # the file with the class names
    labels: str = ""  # python: key of the labels; binary: none
    skip: int = 0  # binary: bytes of a record before the label


_CIFAR10 = (
    _Layout(
        "cifar-10-batches-bin",
        tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
        ("test_batch.bin",),
        "batches.meta.txt",
    ),
    _Layout(
        "cifar-10-batches-py",
        tuple(f"data_batch_{i}" for i in range(1, 6)),
        ("test_batch",),
        "batches.meta",
        labels="labels",
    ),
)
_CIFAR100 = (
    _Layout("cifar-100-binary", ("train.bin",), ("test.bin",), "fine_label_names.txt", skip=1),
    _Layout("cifar-100-python", ("train",), ("test",), "meta", labels="fine_labels"),
)

published(
    "cifar10",
    Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "c32a1d4ab5d03f1284b67883e8d87530",
        tuple(layout.folder for layout in _CIFAR10),
    ),
)
published(
    "cifar100",
    Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        "03b5dce01913d631647c71ecec9e9cb8",
        tuple(layout.folder for layout in _CIFAR100),
    ),
)

published_size("cifar10", (3, 32, 32), classes=10, train=5000, test=1000, val=0.05)
published_size("cifar100", (3, 32, 32), classes=100, train=500, test=100, val=0.05)


@DATASETS.register("cifar10", example=write_cifar10)
def cifar10(split: Split = "train", *, root: str | None = None, val: float = 0.05, seed: int = 0) -> Dataset:
    """Load 60,000 colour images of 32×32 in 10 classes, from cifar-10-batches-bin or cifar-10-batches-py.

    `val` is the share of the training images that is held out for validation.
    """
    return _load("cifar10", _CIFAR10, split, root, val, seed)


@DATASETS.register("cifar100", example=write_cifar100)
def cifar100(split: Split = "train", *, root: str | None = None, val: float = 0.05, seed: int = 0) -> Dataset:
    """Load 60,000 colour images of 32×32 in 100 classes, from cifar-100-binary or cifar-100-python.

    `val` is the share of the training images that is held out for validation.
    """
    return _load("cifar100", _CIFAR100, split, root, val, seed)


def _load(
    name: str, layouts: Sequence[_Layout], split: Split, root: str | None, val: float, seed: int
) -> Dataset:
    folder = find(name, [layout.folder for layout in layouts], root)
    layout = next(layout for layout in layouts if layout.folder == folder.name)
    files = layout.test if split == "test" else layout.train
    parts = [_read(folder / file, layout) for file in files]
    images = np.concatenate([images for images, _ in parts])
    labels = np.concatenate([labels for _, labels in parts])
    data = Dataset(
        torch.from_numpy(images.reshape(-1, 3, 32, 32)),
        torch.from_numpy(labels.astype(np.int64)),
        classes=_class_names(folder / layout.names, layout),
    )
    if split == "test":
        return data
    return data.subset(part(data.y, split, {"val": val}, seed))


def _read(path: Path, layout: _Layout) -> tuple[np.ndarray, np.ndarray]:
    """Read images (n, 3072) and labels (n,), uint8."""
    if layout.labels:
        batch = read_pickle(path)
        try:
            images, labels = np.asarray(batch["data"]), np.asarray(batch[layout.labels])
        except (KeyError, TypeError):
            raise InputError(f"{path}: expected the keys data and {layout.labels}") from None
        if images.dtype != np.uint8 or images.ndim != 2 or images.shape[1] != _PIXELS:
            raise InputError(f"{path}: expected uint8 images of {_PIXELS} values, got {images.shape}")
        if labels.shape != images.shape[:1]:
            raise InputError(f"{path}: {len(images)} images, but {len(labels)} labels")
        return images, labels
    try:
        content = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    record = layout.skip + 1 + _PIXELS
    if len(content) == 0 or len(content) % record:
        raise InputError(f"{path}: cut short, {len(content)} bytes are not a multiple of {record}")
    records = content.reshape(-1, record)
    return records[:, layout.skip + 1 :], records[:, layout.skip]


def _class_names(path: Path, layout: _Layout) -> tuple[str, ...]:
    if layout.labels:
        meta = read_pickle(path)
        names = meta.get(layout.labels.rstrip("s") + "_names") or meta.get("label_names")
    else:
        try:
            names = path.read_text(encoding="utf-8").split()
        except (OSError, UnicodeDecodeError):
            raise InputError(f"{path}: the class names cannot be read") from None
    if not names:
        raise InputError(f"{path}: holds no class names")
    return tuple(name.decode() if isinstance(name, bytes) else str(name) for name in names)
