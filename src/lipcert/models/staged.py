"""Networks of adaptive orthogonal convolutions in stages, as orthogonium's script for CIFAR-10 has them.

Boissin, Mamalet, Fel, Picard, Massena, Serrurier. An Adaptive Orthogonal Convolution Scheme for Efficient and
Flexible CNN Architectures. ICML 2025. A stage has `repeats` convolutions, the channels double from stage to
stage, and one with stride 2 leads to the next. Kernels are 3×3 with circular padding and without bias. MinMax
and batch centering follow each. Dense layers are orthonormalised by Björck's iteration.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn

from lipcert.errors import InputError
from lipcert.models.base import MODELS
from lipcert.models.heads import make_head
from lipcert.nn import AOCConv2d, BatchCentering, BjorckLinear, MinMax, Standardise

_EXAMPLE = {
    "num_classes": 3,
    "input_shape": (1, 8, 8),
    "width": 4,
    "stages": 2,
    "repeats": 1,
    "dense": 1,
    "features": 8,
}


@MODELS.register("aoc", example=_EXAMPLE)
def aoc(
    num_classes: int = 10,
    input_shape: Sequence[int] = (3, 32, 32),
    width: int = 128,
    stages: int = 4,
    repeats: int = 4,
    dense: int = 5,
    features: int = 1024,
    head: str = "bjorck",
) -> nn.Sequential:
    """Build stages from `width` channels on, and `dense` layers of `features`.

    Example:
        >>> import torch
        >>> with torch.device("meta"):
        ...     model = aoc()
        >>> round(sum(p.numel() for p in model.parameters()) / 1e6, 1)
        40.8
    """
    if min(width, stages, repeats, features) < 1 or dense < 0 or width % 2 or features % 2:
        raise InputError(
            f"width, stages, repeats, dense, features: expected numbers > 0, even widths and features, got "
            f"{width}, {stages}, {repeats}, {dense} and {features}"
        )
    channels, *sides = input_shape
    if len(sides) != 2 or any(n % 2 ** (stages - 1) for n in sides):
        raise InputError(
            f"input_shape: expected sides divisible by {2 ** (stages - 1)}, got {tuple(input_shape)}"
        )
    layers: list[nn.Module] = [Standardise((0.5,) * channels, 0.5)]
    for stage in range(stages):
        planes = width * 2**stage
        for repeat in range(repeats + (stage > 0)):
            stride = 2 if stage > 0 and repeat == 0 else 1
            layers += _convolution(channels, planes, stride)
            channels = planes
    flat = channels * math.prod(n // 2 ** (stages - 1) for n in sides)
    layers.append(nn.Flatten())
    for _ in range(dense):
        layers += [BjorckLinear(flat, features), MinMax()]
        flat = features
    return nn.Sequential(*layers, make_head(head, flat, num_classes))


def _convolution(inputs: int, outputs: int, stride: int) -> list[nn.Module]:
    layer = AOCConv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False, padding_mode="circular")
    return [layer, MinMax(), BatchCentering(outputs)]
