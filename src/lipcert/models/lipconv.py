"""LipConvNet: skew orthogonal convolutions and Householder activations in five stages that halve the image.

Singla, Feizi. Skew Orthogonal Convolutions. ICML 2021. LipConv-N has N = 5b convolutions: five stages of b,
the last of each with stride 2 and twice the channels, the very last one 1×1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn

from lipcert.errors import InputError
from lipcert.models.base import MODELS
from lipcert.models.heads import make_head
from lipcert.nn import Householder, SOCConv2d, Standardise

_STAGES = 5


@MODELS.register(
    "lipconv", example={"num_classes": 3, "input_shape": (1, 32, 32), "depth": 5, "width": 2, "head": "lln"}
)
def lipconv(
    num_classes: int = 10,
    input_shape: Sequence[int] = (3, 32, 32),
    depth: int = 20,
    width: int = 32,
    head: str = "linear",
    normalise: tuple[tuple[float, ...], float] | None = None,
) -> nn.Sequential:
    """Build LipConv with `width` first channels, for sides divisible by 32. `normalise`: means, one std.

    Example:
        >>> round(sum(p.numel() for p in lipconv().parameters()) / 1e6, 2)
        26.17
    """
    if depth < _STAGES or depth % _STAGES:
        raise InputError(f"depth: expected a multiple of {_STAGES}, got {depth}")
    if width < 2 or width % 2:
        raise InputError(f"width: expected an even number, got {width}")
    channels, *sides = input_shape
    if len(sides) != 2 or any(n % 2**_STAGES for n in sides):
        raise InputError(f"input_shape: expected sides divisible by {2**_STAGES}, got {tuple(input_shape)}")
    layers: list[nn.Module] = [Standardise(*normalise)] if normalise is not None else []
    for stage in range(_STAGES):
        planes = width * 2**stage
        for _ in range(depth // _STAGES - 1):
            layers += [SOCConv2d(channels, planes), Householder(planes)]
            channels = planes
        kernel = 1 if stage == _STAGES - 1 else 3
        layers += [SOCConv2d(channels, 2 * planes, kernel, stride=2), Householder(2 * planes)]
        channels = 2 * planes
    features = channels * math.prod(n // 2**_STAGES for n in sides)
    return nn.Sequential(*layers, nn.Flatten(), make_head(head, features, num_classes))
