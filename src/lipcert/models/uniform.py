"""One network for every family of layers, so that two of them differ in the layer alone.

The shape is that of 4C3F: two convolutions of 32 channels and two of 64, the second of each with stride 2,
two dense layers of 512, a head. Layers that keep their channels get zero channels and pooling of norm 1
around them. Families whose papers have no dense layer of their own use the Cholesky layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from torch import nn

from lipcert.errors import InputError
from lipcert.models.base import MODELS, initialise
from lipcert.models.heads import make_head
from lipcert.nn import (
    AOCConv2d,
    AOLConv2d,
    AOLLinear,
    BCOPConv2d,
    BjorckConv2d,
    BjorckLinear,
    BROConv2d,
    CayleyConv2d,
    CayleyLinear,
    CholeskyConv2d,
    CholeskyLinear,
    CPLConv2d,
    CPLLinear,
    FrobeniusConv2d,
    FrobeniusLinear,
    LinearResidualConv2d,
    LOTConv2d,
    LOTLinear,
    MinMax,
    PadChannels,
    PartialAbs,
    RKOConv2d,
    SandwichConv2d,
    SandwichLinear,
    ShiftMix,
    SLLConv2d,
    SLLLinear,
    SOCConv2d,
    Standardise,
)
from lipcert.suggestions import expected_one_of

# (channels, stride) of 4C3F's convolutions, and its dense layers.
_CONVOLUTIONS = ((32, 1), (32, 2), (64, 1), (64, 2))
_DENSE = (512, 512)

Size = tuple[int, int]


@dataclass(frozen=True)
class Family:
    """A family's convolution (inputs, outputs, stride, image size) and its dense layer (inputs, outputs)."""

    convolution: Callable[[int, int, int, Size], list[nn.Module]]
    dense: Callable[[int, int], list[nn.Module]]
    keeps_features: bool = False  # whether its dense layer keeps the number of features


def _strided(kind: Callable[..., nn.Module]) -> Callable[[int, int, int, Size], list[nn.Module]]:
    """Return a convolution that takes a stride and changes channels, with MinMax after it."""
    return lambda inputs, outputs, stride, _: [kind(inputs, outputs, stride=stride), MinMax()]


def _padded(kind: type[nn.Module]) -> Callable[[int, int, int, Size], list[nn.Module]]:
    """Return a convolution with the kernels of 4C3F: 3×3, and 4×4 with stride 2."""
    return lambda inputs, outputs, stride, _: [
        kind(inputs, outputs, 3 if stride == 1 else 4, stride=stride, padding=1),
        MinMax(),
    ]


def _mixed(kind: type[nn.Module]) -> Callable[[int, int], list[nn.Module]]:
    return lambda inputs, outputs: [kind(inputs, outputs), MinMax()]


def _potential(kind: type[nn.Module]) -> Callable[[int, int, int, Size], list[nn.Module]]:
    """Return a residual layer, which contains its activation and keeps channels and size."""

    def make(inputs: int, outputs: int, stride: int, _: Size) -> list[nn.Module]:
        pool = [nn.AvgPool2d(stride, divisor_override=stride)] if stride > 1 else []
        return [PadChannels(outputs), *pool, kind(outputs, outputs)]

    return make


def _resized(inputs: int, outputs: int, stride: int) -> nn.Module:
    """Return an isometry, or half of one, to the channels and the size of the next layer."""
    return PadChannels(outputs) if stride == 1 else CholeskyConv2d(inputs, outputs, stride)


def _linear_residual(inputs: int, outputs: int, stride: int, _: Size) -> list[nn.Module]:
    layer = LinearResidualConv2d(outputs, depth=len(_CONVOLUTIONS))
    return [_resized(inputs, outputs, stride), layer, MinMax()]


def _shift_mix(inputs: int, outputs: int, stride: int, size: Size) -> list[nn.Module]:
    smaller = (size[0] // stride, size[1] // stride)
    return [_resized(inputs, outputs, stride), ShiftMix(outputs, smaller), PartialAbs()]


FAMILIES: dict[str, Family] = {
    "plain": Family(_padded(nn.Conv2d), _mixed(nn.Linear)),
    "aol": Family(_padded(AOLConv2d), _mixed(AOLLinear)),
    # Evaluation uses as many terms as training: twelve would take longer to certify than to train. With four
    # terms the norm is at most 1, as |Σ(iθ)^j/j!|² = 1 − θ⁶/72 + θ⁸/576; with five it would exceed 1 by 0.4
    # %.
    "soc": Family(_strided(partial(SOCConv2d, terms=(4, 4))), _mixed(CholeskyLinear)),
    "cpl": Family(_potential(CPLConv2d), lambda inputs, outputs: [CPLLinear(inputs, outputs)], True),
    "sll": Family(_potential(SLLConv2d), lambda inputs, outputs: [SLLLinear(inputs, outputs)], True),
    "sandwich": Family(
        lambda inputs, outputs, stride, _: [SandwichConv2d(inputs, outputs, stride=stride)],
        lambda inputs, outputs: [SandwichLinear(inputs, outputs)],
    ),
    "cayley": Family(_strided(CayleyConv2d), _mixed(CayleyLinear)),
    "lot": Family(_strided(LOTConv2d), _mixed(LOTLinear)),
    "bro": Family(_strided(BROConv2d), _mixed(CholeskyLinear)),
    "linear-residual": Family(_linear_residual, _mixed(CholeskyLinear)),
    "shift-mix": Family(_shift_mix, _mixed(CholeskyLinear)),
    "bjorck": Family(_padded(BjorckConv2d), _mixed(BjorckLinear)),
    "rko": Family(_padded(RKOConv2d), _mixed(BjorckLinear)),
    "bcop": Family(_padded(BCOPConv2d), _mixed(BjorckLinear)),
    "aoc": Family(_padded(AOCConv2d), _mixed(BjorckLinear)),
    "frobenius": Family(_padded(FrobeniusConv2d), _mixed(FrobeniusLinear)),
}


@MODELS.register(
    "uniform", example={"num_classes": 3, "input_shape": (1, 8, 8), "layer": "lot", "width": 0.125}
)
def uniform(
    num_classes: int = 10,
    input_shape: Sequence[int] = (3, 32, 32),
    layer: str = "plain",
    width: float = 1.0,
    patch: int = 1,
    head: str = "linear",
    gain: float = 1.0,
) -> nn.Sequential:
    """Build layers of one family; `width` scales all channels, `gain` the initial weights of plain layers.

    With `patch`, squares of that many pixels enter as the channels of one pixel: a smaller image costs less.

    Example:
        >>> sum(p.numel() for p in uniform().parameters())
        2466858
    """
    if layer not in FAMILIES:
        raise InputError(f"layer: {expected_one_of(FAMILIES, layer)}")
    if not 0 < width < math.inf:
        raise InputError(f"width: expected a number > 0, got {width}")
    channels, *sides = input_shape
    if patch < 1 or len(sides) != 2 or any(n % (4 * patch) for n in sides):
        raise InputError(
            f"input_shape: expected sides divisible by {4 * max(1, patch)}, got {tuple(input_shape)}"
        )
    family = FAMILIES[layer]
    layers: list[nn.Module] = [Standardise((0.5,) * channels, 1.0)]
    if patch > 1:
        layers.append(nn.PixelUnshuffle(patch))
    channels, size = channels * patch**2, (sides[0] // patch, sides[1] // patch)
    for outputs, stride in _CONVOLUTIONS:
        outputs = max(_scaled(outputs, width), channels + channels % 2)
        layers += family.convolution(channels, outputs, stride, size)
        channels, size = outputs, (size[0] // stride, size[1] // stride)
    layers.append(nn.Flatten())
    features = channels * math.prod(size)
    for outputs in (_scaled(n, width) for n in _DENSE):
        layers += family.dense(features, outputs)
        features = features if family.keeps_features else outputs
    return initialise(nn.Sequential(*layers, make_head(head, features, num_classes)), gain)


def _scaled(channels: int, width: float) -> int:
    """Return an even number of channels, as MinMax sorts pairs."""
    return max(2, 2 * round(width * channels / 2))
