"""Random changes of training images, one kind per file."""

from lipcert.data.augmentations.base import AUGMENTATIONS, Augmentation

__all__ = ["AUGMENTATIONS", "Augmentation"]
