"""Deep networks of one kind of convolution between a stem and a neck: LiResNet and BRONet.

Hu et al. Unlocking Deterministic Robustness Certification on ImageNet. NeurIPS 2023; A Recipe for Improved
Certifiable Robustness. ICLR 2024. Lai et al. Block Reflector Orthogonal Layers. ICML 2025.

0.5 is subtracted from inputs. A plain 5×5 stem of stride 2 follows, kept small by the loss (or of another
`stride` s, with kernels of side 2s + 1), then `depth` convolutions that keep size and channels, a neck of
4×4 patches and a dense layer, `dense` dense layers and a head. MinMax follows every layer but the patches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch import nn

from lipcert.errors import InputError
from lipcert.models.base import MODELS
from lipcert.models.heads import make_head
from lipcert.nn import BROConv2d, CholeskyConv2d, CholeskyLinear, LinearResidualConv2d, MinMax, Standardise

_PATCH, _CENTRE = 4, 0.5

_EXAMPLE = {
    "num_classes": 3,
    "input_shape": (1, 8, 8),
    "width": 4,
    "depth": 2,
    "dense": 1,
    "features": 6,
    "head": "lln",
}


@MODELS.register("liresnet", example=_EXAMPLE)
def liresnet(
    num_classes: int = 10,
    input_shape: Sequence[int] = (3, 32, 32),
    width: int = 512,
    depth: int = 12,
    dense: int = 8,
    features: int = 2048,
    head: str = "lln",
    gain: float = 1.0,
    stride: int = 2,
) -> nn.Sequential:
    """Build LiResNet of linear residual convolutions; `gain` and `stride` are those of the stem.

    Example:
        >>> import torch
        >>> with torch.device("meta"):
        ...     model = liresnet()
        >>> round(sum(p.numel() for p in model.parameters()) / 1e6, 1)
        82.9
    """
    return _network(
        lambda channels: LinearResidualConv2d(channels, depth=depth),
        num_classes,
        input_shape,
        width,
        depth,
        dense,
        features,
        head,
        gain,
        stride,
    )


@MODELS.register("bronet", example={**_EXAMPLE, "head": "linear"})
def bronet(
    num_classes: int = 10,
    input_shape: Sequence[int] = (3, 32, 32),
    width: int = 512,
    depth: int = 12,
    dense: int = 8,
    features: int = 2048,
    head: str = "lln",
    gain: float = 1.0,
    rank: float = 0.5,
    stride: int = 2,
) -> nn.Sequential:
    """Build BRONet of block reflector convolutions; `gain` and `stride` are those of the stem.

    Example:
        >>> import torch
        >>> with torch.device("meta"):
        ...     model = bronet()
        >>> round(sum(p.numel() for p in model.parameters()) / 1e6, 1)
        68.8
    """
    return _network(
        lambda channels: BROConv2d(channels, channels, rank=rank),
        num_classes,
        input_shape,
        width,
        depth,
        dense,
        features,
        head,
        gain,
        stride,
    )


def _network(
    convolution: Callable[[int], nn.Module],
    num_classes: int,
    input_shape: Sequence[int],
    width: int,
    depth: int,
    dense: int,
    features: int,
    head: str,
    gain: float,
    stride: int,
) -> nn.Sequential:
    channels, *sides = input_shape
    if stride < 1:
        raise InputError(f"stride: expected a number >= 1, got {stride}")
    if len(sides) != 2 or any(n % (stride * _PATCH) for n in sides):
        raise InputError(
            f"input_shape: expected sides divisible by {stride * _PATCH}, got {tuple(input_shape)}"
        )
    if any(n < 2 or n % 2 for n in (width, features)) or min(depth, dense) < 0:
        raise InputError(
            f"width, features: expected even numbers, depth, dense: numbers >= 0, "
            f"got {width}, {features}, {depth} and {dense}"
        )
    if not 0 < gain < math.inf:
        raise InputError(f"gain: expected a number > 0, got {gain}")
    layers: list[nn.Module] = [
        Standardise((_CENTRE,) * channels, 1.0),
        _stem(channels, width, gain, stride),
        MinMax(),
    ]
    for _ in range(depth):
        layers += [convolution(width), MinMax()]
    flat = width * math.prod(n // (stride * _PATCH) for n in sides)
    layers += [CholeskyConv2d(width, width, _PATCH), nn.Flatten(), CholeskyLinear(flat, features), MinMax()]
    for _ in range(dense):
        layers += [CholeskyLinear(features, features), MinMax()]
    return nn.Sequential(*layers, make_head(head, features, num_classes))


def _stem(channels: int, width: int, gain: float, stride: int) -> nn.Conv2d:
    stem = nn.Conv2d(channels, width, 2 * stride + 1, stride=stride, padding=stride)
    nn.init.normal_(stem.weight, std=gain / math.sqrt(stem.weight[:, 0].numel()))
    nn.init.zeros_(stem.bias)  # type: ignore[arg-type]
    return stem
