"""The data set type: samples, labels and class names, in memory and checked."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from lipcert.errors import InputError
from lipcert.registry import Registry
from lipcert.suggestions import expected_one_of
from lipcert.types import Shape

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)  # the later, the less training has seen of it


@dataclass(frozen=True)
class Dataset:
    """Samples x (n, ...) with labels y (n,), 0..N−1, checked on construction.

    Images stay uint8, possibly mapped from a file; `floats` converts them for a network.
    """

    x: Tensor
    y: Tensor
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.x.ndim < 2 or self.x.numel() == 0:
            raise InputError(f"data: expected samples of shape (n, ...), n > 0, got {tuple(self.x.shape)}")
        if self.y.shape != self.x.shape[:1] or self.y.dtype != torch.int64:
            raise InputError(
                f"data: expected {len(self.x)} int64 labels, got {tuple(self.y.shape)} {self.y.dtype}"
            )
        if len(self.classes) < 2:
            raise InputError(f"data: expected at least 2 classes, got {len(self.classes)}")
        if len(set(self.classes)) < len(self.classes):
            twice = next(name for name in self.classes if self.classes.count(name) > 1)
            raise InputError(f"data: expected one name per class, got {twice!r} twice")
        low, high = (int(v) for v in self.y.aminmax())
        if low < 0 or high >= len(self.classes):
            raise InputError(
                f"data: expected labels 0..{len(self.classes) - 1}, got {low if low < 0 else high}"
            )
        if self.x.dtype != torch.uint8 and not self.x.is_floating_point():
            raise InputError(f"data: expected uint8 or floating-point samples, got {self.x.dtype}")
        if self.x.is_floating_point() and not torch.isfinite(self.x).all():
            raise InputError("data: expected finite samples, got NaN or infinity")

    def __len__(self) -> int:
        return len(self.x)

    def floats(self, index: Tensor | slice, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return some samples as network inputs: uint8 pixels become k/255, rounded to float32 first."""
        x = self.x[index]
        return (x.float() / 255 if x.dtype == torch.uint8 else x).to(dtype)

    def subset(self, index: Tensor) -> Dataset:
        """Return some of the samples, with the same classes."""
        return Dataset(self.x[index], self.y[index], self.classes)

    @property
    def input_shape(self) -> Shape:
        """Return the shape of one sample."""
        return tuple(self.x.shape[1:])


def shown_split(splits: Iterable[Split]) -> Split:
    """Return the split whose numbers are shown: the one of which training has seen least.

    Example:
        >>> shown_split(["val", "train"])
        'val'
    """
    return max(splits, key=SPLITS.index)


DATASETS: Registry[Dataset] = Registry("data set", package="lipcert.data")


def load(name: str, split: Split = "train", **arguments: Any) -> Dataset:
    """Load one split of a registered data set.

    Example:
        >>> moons = load("moons", split="val")
        >>> moons.x.shape, moons.classes
        (torch.Size([20000, 2]), ('upper', 'lower'))
    """
    if split not in SPLITS:
        raise InputError(f"split: {expected_one_of(SPLITS, split)}")
    parameters = inspect.signature(DATASETS[name].constructor).parameters.values()
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in {"split", *arguments}]
    if missing:
        raise InputError(
            f"{name}: expected {', '.join(missing)} as well, which says where the data is: the run directory "
            f"of a recipe with data.{missing[0]} has it"
        )
    return DATASETS.create(name, split=split, **arguments)
