"""Random crops, flips, rotations and colours, on whole batches.

Pixels are moved while they are bytes, to the nearest place, with zeros from outside; colours
are changed afterwards, brightness first, then contrast, then saturation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lipcert.data.augmentations.base import AUGMENTATIONS, Augmentation
from lipcert.errors import InputError

# The weights of red, green and blue in a grey value (ITU-R 601).
_GREY = (0.299, 0.587, 0.114)


@AUGMENTATIONS.register("standard", example={"crop": 2, "flip": True, "rotate": 5.0, "jitter": 0.25})
@dataclass(frozen=True)
class Standard(Augmentation):
    """Moves images, by `crop` pixels and `rotate` degrees either way, and colours by 1 ± `jitter`."""

    chances: ClassVar[int] = 7

    crop: int = 0
    flip: bool = False
    rotate: float = 0.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if self.crop < 0:
            raise InputError(f"crop: expected pixels >= 0, got {self.crop}")
        if not 0 <= self.rotate <= 180:
            raise InputError(f"rotate: expected degrees from 0 to 180, got {self.rotate}")
        if not 0 <= self.jitter < 1:
            raise InputError(f"jitter: expected a number from 0 to 1, got {self.jitter}")

    def changed(self, images: Tensor, draws: Tensor) -> Tensor:
        """Move pixels, then change colours."""
        moved = self._move(images, draws) if self.crop or self.flip or self.rotate else images
        x = moved.float() / 255
        return self._recolour(x, draws) if self.jitter else x

    def _move(self, images: Tensor, draws: Tensor) -> Tensor:
        """Crop, flip and rotate, in this order, in one look-up of where each output pixel comes from."""
        batch, channels, height, width = images.shape
        shift = (draws[:, :2] * (2 * self.crop + 1)).floor() - self.crop  # (B, 2), whole pixels
        angle = (2 * draws[:, 2] - 1) * math.radians(self.rotate)
        mirror = 1.0 - 2.0 * (draws[:, 3] < 0.5) if self.flip else torch.ones_like(angle)
        y = torch.arange(height, device=images.device) - (height - 1) / 2
        x = torch.arange(width, device=images.device) - (width - 1) / 2
        cos, sin = angle.cos()[:, None, None], angle.sin()[:, None, None]
        from_y = cos * y[:, None] + sin * x + shift[:, :1, None] + (height - 1) / 2  # (B, H, W)
        from_x = mirror[:, None, None] * (cos * x - sin * y[:, None]) + shift[:, 1:, None] + (width - 1) / 2
        row, column = from_y.round().long(), from_x.round().long()
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        place = torch.where(inside, row * width + column, 0).view(batch, 1, -1)
        found = images.flatten(2).gather(2, place.expand(-1, channels, -1))
        return (found * inside.view(batch, 1, -1)).view(images.shape)

    def _recolour(self, x: Tensor, draws: Tensor) -> Tensor:
        factors = 1 + self.jitter * (2 * draws[:, 4:7] - 1)
        brightness, contrast, saturation = factors.view(-1, 3, 1, 1, 1).unbind(1)
        x = (x * brightness).clamp_(0, 1)
        x = torch.lerp(_grey(x).mean(dim=(2, 3), keepdim=True), x, contrast).clamp_(0, 1)
        return torch.lerp(_grey(x), x, saturation).clamp_(0, 1)


def _grey(x: Tensor) -> Tensor:
    """Average the channels: (B, C, H, W) to (B, 1, H, W)."""
    if x.shape[1] != 3:
        return x.mean(dim=1, keepdim=True)
    weights = torch.tensor(_GREY, dtype=x.dtype, device=x.device).view(1, 3, 1, 1)
    return (x * weights).sum(dim=1, keepdim=True)
