"""Networks of sandwich layers (LBDN).

Wang, Manchester. Direct Parameterization of Lipschitz-Bounded Deep Networks. ICML 2023. There are two
convolutions per stage, the second with stride 2, then dense layers of 2048, 2048 and 1024. Activations are
inside the layers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn

from lipcert.errors import InputError
from lipcert.models.base import MODELS
from lipcert.models.heads import make_head
from lipcert.nn import SandwichConv2d, SandwichLinear, Standardise

# Channels double from stage to stage; there are three stages for CIFAR and four for Tiny-ImageNet.
_CHANNELS = 64
_DENSE = (2048, 2048, 1024)


@MODELS.register(
    "sandwich",
    example={"num_classes": 3, "input_shape": (1, 8, 8), "stages": 2, "width": 0.0625, "head": "lln"},
)
def sandwich(
    num_classes: int = 200,
    input_shape: Sequence[int] = (3, 64, 64),
    stages: int = 4,
    width: float = 1.0,
    head: str = "lln",
    normalise: tuple[tuple[float, ...], float] | None = None,
) -> nn.Sequential:
    """Build `stages` times two convolutions and three dense layers; `width` scales all channels.

    `normalise` gives the means of the channels and one std.

    Example:
        >>> import torch
        >>> with torch.device("meta"):
        ...     model = sandwich()
        >>> sum(p.numel() for p in model.parameters())
        39149203
    """
    if stages < 1 or not 0 < width < math.inf:
        raise InputError(f"stages, width: expected numbers > 0, got {stages} and {width}")
    channels, *sides = input_shape
    if len(sides) != 2 or any(n % 2**stages for n in sides):
        raise InputError(f"input_shape: expected sides divisible by {2**stages}, got {tuple(input_shape)}")
    layers: list[nn.Module] = [Standardise(*normalise)] if normalise is not None else []
    for stage in range(stages):
        planes = max(1, round(width * _CHANNELS * 2**stage))
        layers += [SandwichConv2d(channels, planes), SandwichConv2d(planes, planes, stride=2)]
        channels = planes
    features = channels * math.prod(n // 2**stages for n in sides)
    layers.append(nn.Flatten())
    for outputs in (max(1, round(width * n)) for n in _DENSE):
        layers.append(SandwichLinear(features, outputs))
        features = outputs
    return nn.Sequential(*layers, make_head(head, features, num_classes))
