"""The network of deel-torchlip's multiclass tutorial: Björck convolutions, MinMax, lengths of windows.

Serrurier et al. Achieving Robustness in Classification Using Optimal Transport with Hinge Regularization.
CVPR 2021. Every convolution has 3×3 kernels and is followed by the lengths of 2×2 windows; one dense layer
and the head follow. Theirs is for grey images of 28×28 pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn

from lipcert.errors import InputError
from lipcert.models.base import MODELS
from lipcert.models.heads import make_head
from lipcert.nn import BjorckConv2d, BjorckLinear, L2NormPool2d, MinMax


@MODELS.register(
    "torchlip", example={"num_classes": 3, "input_shape": (1, 8, 8), "widths": (4, 4), "features": 8}
)
def torchlip(
    num_classes: int = 10,
    input_shape: Sequence[int] = (3, 32, 32),
    widths: Sequence[int] = (16, 32),
    features: int = 64,
    head: str = "bjorck",
) -> nn.Sequential:
    """Build a convolution for each of `widths`, and a dense layer of `features`.

    Example:
        >>> sum(p.numel() for p in torchlip().parameters())
        136874
    """
    channels, *sides = input_shape
    windows = 2 ** len(widths)
    if len(sides) != 2 or any(n % windows for n in sides):
        raise InputError(f"input_shape: expected sides divisible by {windows}, got {tuple(input_shape)}")
    if any(n < 2 or n % 2 for n in (*widths, features)):
        raise InputError(f"widths, features: expected even numbers, got {tuple(widths)} and {features}")
    layers: list[nn.Module] = []
    for width in widths:
        layers += [BjorckConv2d(channels, width, 3, padding="same"), MinMax(), L2NormPool2d(2)]
        channels = width
    flat = channels * math.prod(n // windows for n in sides)
    layers += [nn.Flatten(), BjorckLinear(flat, features), MinMax()]
    return nn.Sequential(*layers, make_head(head, features, num_classes))
