"""Say how large a split of a data set is, without loading it where its size is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from lipcert.data.base import DATASETS, Split, load
from lipcert.data.splitting import part
from lipcert.types import Shape


@dataclass(frozen=True)
class Size:
    """The number of samples of a split, the shape of one, and the number of classes."""

    samples: int
    shape: Shape
    classes: int


Measure = Callable[..., Size]
M = TypeVar("M", bound=Measure)
_MEASURES: dict[str, Measure] = {}


def sized(name: str) -> Callable[[M], M]:
    """Decorate a function that returns the `Size` of a data set from its arguments, without loading it."""

    def add(measure: M) -> M:
        _MEASURES[name] = measure
        return measure

    return add


def published_size(name: str, shape: Shape, classes: int, train: int, test: int, val: float) -> None:
    """Register a data set with so many samples of each class; `val` is its default share of validation."""

    def measure(split: Split, val: float = val, seed: int = 0, **_: Any) -> Size:
        if split == "test":
            return Size(classes * test, shape, classes)
        labels = torch.arange(classes).repeat_interleave(train)
        return Size(len(part(labels, split, {"val": val}, seed)), shape, classes)

    sized(name)(measure)


def size_of(name: str, split: Split, **arguments: Any) -> Size:
    """Return the size of a split; one that is not known is loaded.

    Example:
        >>> size_of("cifar10", "val")
        Size(samples=2500, shape=(3, 32, 32), classes=10)
    """
    list(DATASETS)  # imports the files of all data sets
    if name in _MEASURES:
        return _MEASURES[name](split=split, **arguments)
    data = load(name, split=split, **arguments)
    return Size(len(data), data.input_shape, len(data.classes))
