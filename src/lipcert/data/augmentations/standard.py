"""Random crops, flips, rotations and colours, on whole batches.

Pixels are moved while they are bytes, to the nearest place, with zeros or mirrored pixels from outside.
Colours are changed afterwards: brightness first, then contrast, saturation and hue.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from lipcert.data.augmentations.base import AUGMENTATIONS, Augmentation
from lipcert.data.augmentations.colours import brightened, contrasted, hue_shifted, saturated
from lipcert.errors import InputError

# A number j stands for the factors from 1 - j to 1 + j.
Range = float | tuple[float, float]


@AUGMENTATIONS.register(
    "standard",
    example={"crop": 2, "flip": True, "rotate": 5.0, "jitter": 0.25, "contrast": (0.5, 2.0), "hue": 0.1},
)
@dataclass(frozen=True)
class Standard(Augmentation):
    """Moves images, by `crop` pixels and `rotate` degrees either way, and colours by 1 ± `jitter`.

    What a crop or a rotation takes from outside is black, or mirrored with `padding="reflect"`. `brightness`,
    `contrast` and `saturation` replace `jitter` for one of them: a number like it, or the smallest and the
    largest factor. `hue` moves colours by up to that part of the colour circle, either way; it has no effect
    on images without three channels.
    """

    crop: int = 0
    flip: bool = False
    rotate: float = 0.0
    jitter: float = 0.0
    padding: Literal["zeros", "reflect"] = "zeros"
    brightness: Range | None = None
    contrast: Range | None = None
    saturation: Range | None = None
    hue: float = 0.0

    def __post_init__(self) -> None:
        if self.crop < 0:
            raise InputError(f"crop: expected pixels >= 0, got {self.crop}")
        if not 0 <= self.rotate <= 180:
            raise InputError(f"rotate: expected degrees from 0 to 180, got {self.rotate}")
        if self.padding not in ("zeros", "reflect"):
            raise InputError(f"padding: expected zeros or reflect, got {self.padding!r}")
        if not 0 <= self.jitter < 1:
            raise InputError(f"jitter: expected a number from 0 to 1, got {self.jitter}")
        for name in ("brightness", "contrast", "saturation"):
            _check_range(name, getattr(self, name))
        if not 0 <= self.hue <= 0.5:
            raise InputError(f"hue: expected a part of the colour circle from 0 to 0.5, got {self.hue}")

    @property
    def chances(self) -> int:
        """Return 7, and one more for the hue: without it the others are the same numbers as ever."""
        return 8 if self.hue else 7

    def changed(self, images: Tensor, draws: Tensor) -> Tensor:
        """Move pixels, then change colours."""
        moved = self._move(images, draws) if self.crop or self.flip or self.rotate else images
        return self._recolour(moved.float() / 255, draws)

    def _move(self, images: Tensor, draws: Tensor) -> Tensor:
        """Crop, flip and rotate, in this order, in one look-up of where each output pixel comes from."""
        channels, height, width = images.shape[1:]
        shift = (draws[:, :2] * (2 * self.crop + 1)).floor() - self.crop  # (B, 2), whole pixels
        angle = (2 * draws[:, 2] - 1) * math.radians(self.rotate)
        mirror = 1.0 - 2.0 * (draws[:, 3] < 0.5) if self.flip else torch.ones_like(angle)
        y = torch.arange(height, device=images.device) - (height - 1) / 2
        x = torch.arange(width, device=images.device) - (width - 1) / 2
        cos, sin = angle.cos()[:, None, None], angle.sin()[:, None, None]
        from_y = cos * y[:, None] + sin * x + shift[:, :1, None] + (height - 1) / 2  # (B, H, W)
        from_x = mirror[:, None, None] * (cos * x - sin * y[:, None]) + shift[:, 1:, None] + (width - 1) / 2
        row, column = from_y.round().long(), from_x.round().long()
        if self.padding == "reflect":
            row, column = _reflected(row, height), _reflected(column, width)
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        place = torch.where(inside, row * width + column, 0).flatten(1)[:, None]
        found = images.flatten(2).gather(2, place.expand(-1, channels, -1))
        return (found * inside.flatten(1)[:, None]).view(images.shape)

    def _recolour(self, x: Tensor, draws: Tensor) -> Tensor:
        changes = (brightened, contrasted, saturated)
        ranges = (self.brightness, self.contrast, self.saturation)
        for place, (change, own) in enumerate(zip(changes, ranges, strict=True), start=4):
            span = self.jitter if own is None else own
            if span not in (0, (1, 1)):
                x = change(x, _factors(span, draws[:, place]))
        return hue_shifted(x, self.hue * (2 * draws[:, 7] - 1)) if self.hue else x


def _check_range(name: str, span: Range | None) -> None:
    if isinstance(span, tuple):
        if not 0 <= span[0] <= span[1] < math.inf:
            raise InputError(f"{name}: expected factors 0 <= smallest <= largest, got {list(span)}")
    elif span is not None and not 0 <= span < 1:
        raise InputError(f"{name}: expected a number from 0 to 1, or two factors, got {span}")


def _factors(span: Range, draw: Tensor) -> Tensor:
    """Return a factor per image from draws in [0, 1)."""
    if isinstance(span, tuple):
        return span[0] + (span[1] - span[0]) * draw
    return 1 + span * (2 * draw - 1)


def _reflected(index: Tensor, size: int) -> Tensor:
    """Mirror indices beyond 0 and size - 1, any number of times; the border itself is not repeated."""
    period = max(2 * (size - 1), 1)
    index = index % period
    return torch.minimum(index, period - index) if size > 1 else index
