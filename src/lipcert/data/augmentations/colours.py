"""Changes of brightness, contrast, saturation and hue, by one number per image.

Images are floats (B, C, H, W) in [0, 1], and stay in [0, 1]. Factors are (B,); 1 changes nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

# The weights of red, green and blue in a grey value (ITU-R 601).
_GREY = (0.299, 0.587, 0.114)

# Where the colour circle, of length 6, begins for red, green and blue.
_STARTS = (5.0, 3.0, 1.0)


def brightened(x: Tensor, factor: Tensor) -> Tensor:
    """Multiply every pixel."""
    return (x * _per_image(factor)).clamp_(0, 1)


def contrasted(x: Tensor, factor: Tensor) -> Tensor:
    """Multiply the distance of every pixel to the mean grey value of its image."""
    return torch.lerp(_grey(x).mean(dim=(2, 3), keepdim=True), x, _per_image(factor)).clamp_(0, 1)


def saturated(x: Tensor, factor: Tensor) -> Tensor:
    """Multiply the distance of every pixel to its own grey value."""
    return torch.lerp(_grey(x), x, _per_image(factor)).clamp_(0, 1)


def hue_shifted(x: Tensor, shift: Tensor) -> Tensor:
    r"""Move colours around the colour circle, whose length is 1; other than three channels have no hue.

    The largest channel v and the distance c to the smallest stay. With the hue h in [0, 6) a channel is

    $$ v - c\,\max(0, \min(k, 4 - k, 1)), \qquad k = (n + h) \bmod 6 $$

    with n = 5, 3, 1 for red, green and blue.

    Example:
        A third of the circle takes red to green:

        >>> red = torch.tensor([1.0, 0.0, 0.0]).view(1, 3, 1, 1)
        >>> hue_shifted(red, torch.tensor([1 / 3])).flatten()
        tensor([0., 1., 0.])
    """
    if x.shape[1] != 3:
        return x
    hue = _hue(x) + 6 * _per_image(shift)  # (B, 1, H, W)
    low, high = x.aminmax(dim=1, keepdim=True)
    starts = torch.tensor(_STARTS, dtype=x.dtype, device=x.device).view(1, 3, 1, 1)
    k = (starts + hue) % 6  # (B, 3, H, W)
    return (high - (high - low) * torch.minimum(k, 4 - k).clamp_(0, 1)).clamp_(0, 1)


def _hue(x: Tensor) -> Tensor:
    """Return the place on the colour circle, from -1 to 5, as (B, 1, H, W); 0 for grey pixels."""
    red, green, blue = x.chunk(3, dim=1)
    low, high = x.aminmax(dim=1, keepdim=True)
    span = torch.where(high > low, high - low, 1.0)
    beyond_green, beyond_blue = 2 + (blue - red) / span, 4 + (red - green) / span
    return torch.where(
        high == red, (green - blue) / span, torch.where(high == green, beyond_green, beyond_blue)
    )


def _per_image(numbers: Tensor) -> Tensor:
    return numbers[:, None, None, None]


def _grey(x: Tensor) -> Tensor:
    """Average the channels: (B, C, H, W) to (B, 1, H, W)."""
    if x.shape[1] != 3:
        return x.mean(dim=1, keepdim=True)
    weights = torch.tensor(_GREY, dtype=x.dtype, device=x.device).view(1, 3, 1, 1)
    return (x * weights).sum(dim=1, keepdim=True)
