"""The contract of augmentations: each is a function of images and of random numbers drawn for each of them.

What happens to a sample is a function of the seed, the epoch and its index, so any number of processes sees
the same images.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from lipcert.errors import InputError
from lipcert.registry import Registry


class Augmentation(ABC):
    """Changes uint8 images (B, C, H, W) at random, to float32 in [0, 1]."""

    @property
    @abstractmethod
    def chances(self) -> int:
        """Return how many random numbers a sample needs; a class attribute serves where it is fixed."""

    def draws(self, samples: int, seed: int, epoch: int) -> Tensor:
        """Draw the chances of every sample in an epoch: (samples, chances) in [0, 1)."""
        generator = np.random.default_rng([seed, epoch])
        return torch.from_numpy(generator.random((samples, self.chances), dtype=np.float32))

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        """Change uint8 images (B, C, H, W) by their draws (B, chances): float32 in [0, 1]."""
        if images.ndim != 4 or images.dtype != torch.uint8:
            raise InputError(f"augmentation is for uint8 images, got {images.dtype} {tuple(images.shape)}")
        return self.changed(images, draws)

    @abstractmethod
    def changed(self, images: Tensor, draws: Tensor) -> Tensor:
        """Do what `__call__` says, with images that are checked."""


AUGMENTATIONS: Registry[Augmentation] = Registry("augmentation", package="lipcert.data.augmentations")
