"""Soft-constrained convolutional networks of the literature: plain layers with MinMax or ReLU between them.

4C3F has four convolutions and three dense layers, the last of which is the head, and so on. Only the loss
keeps their constants small. MinMax sorts adjacent channels (2k, 2k + 1). `width` scales all channels, `gain`
the initial weights: the constant of depth L starts in proportion to gain^L.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from torch import nn

from lipcert.errors import InputError
from lipcert.models.base import MODELS, initialise
from lipcert.nn import MinMax, Normalised
from lipcert.suggestions import expected_one_of

# Channels, kernel, stride, padding.
Convolution = tuple[int, int, int, int]

# Means and standard deviations of the channels; a single pair holds for all of them.
Statistics = tuple[tuple[float, ...], tuple[float, ...]]


# ReLUs have constant parts, which local bounds exploit; MinMax keeps gradients from vanishing.
ACTIVATIONS: dict[str, type[nn.Module]] = {"minmax": MinMax, "relu": nn.ReLU, "relu6": nn.ReLU6}


@MODELS.register("4c3f", example={"num_classes": 3, "input_shape": (1, 8, 8), "width": 0.125})
def c4f3(
    num_classes: int = 10,
    input_shape: Sequence[int] = (3, 32, 32),
    width: float = 1.0,
    normalise: Statistics | None = None,
    gain: float = math.sqrt(2),
    activation: str = "minmax",
    kernel: int = 4,
) -> nn.Sequential:
    """Build four convolutions and three dense layers, for CIFAR. `normalise`: means, stds.

    `kernel` is the side of the kernels with stride 2: 4 as printed, 3 in some runs of the CLL authors.

    Example:
        >>> [sum(p.numel() for p in c4f3(kernel=k).parameters()) for k in (4, 3)]
        [2466858, 2431018]
    """
    if kernel not in (3, 4):
        raise InputError(f"kernel: expected 3 or 4, got {kernel}; both halve the image with padding 1")
    convolutions = [(32, 3, 1, 1), (32, kernel, 2, 1), (64, 3, 1, 1), (64, kernel, 2, 1)]
    return convolutional_network(
        convolutions, [512, 512], num_classes, input_shape, width, normalise, gain, activation
    )


@MODELS.register(
    "6c2f",
    example={"num_classes": 3, "input_shape": (1, 8, 8), "width": 0.125, "normalise": ((0.5,), (0.25,))},
)
def c6f2(
    num_classes: int = 10,
    input_shape: Sequence[int] = (3, 32, 32),
    width: float = 1.0,
    normalise: Statistics | None = None,
    gain: float = math.sqrt(2),
    activation: str = "minmax",
) -> nn.Sequential:
    """Build six convolutions and two dense layers, for CIFAR. `normalise`: means, stds.

    Example:
        >>> sum(p.numel() for p in c6f2().parameters())
        2250378
    """
    stages = [[(c, 3, 1, 1), (c, 3, 1, 1), (c, 4, 2, 1)] for c in (32, 64)]
    return convolutional_network(
        [*stages[0], *stages[1]], [512], num_classes, input_shape, width, normalise, gain, activation
    )


@MODELS.register("8c2f", example={"num_classes": 3, "input_shape": (1, 22, 22), "width": 0.0625})
def c8f2(
    num_classes: int = 200,
    input_shape: Sequence[int] = (3, 64, 64),
    width: float = 1.0,
    normalise: Statistics | None = None,
    gain: float = math.sqrt(2),
    activation: str = "minmax",
) -> nn.Sequential:
    """Build eight convolutions and two dense layers, for Tiny-ImageNet. `normalise`: means, stds.

    Example:
        >>> sum(p.numel() for p in c8f2().parameters())
        4342984
    """
    stages = [[(c, 3, 1, 1), (c, 3, 1, 1), (c, 4, 2, 0)] for c in (64, 128)]
    convolutions = [*stages[0], *stages[1], (256, 3, 1, 1), (256, 4, 2, 0)]
    return convolutional_network(
        convolutions, [256], num_classes, input_shape, width, normalise, gain, activation
    )


def convolutional_network(
    convolutions: Sequence[Convolution],
    dense: Sequence[int],
    num_classes: int,
    input_shape: Sequence[int],
    width: float,
    normalise: Statistics | None,
    gain: float,
    activation: str,
) -> nn.Sequential:
    """Build convolutions, dense layers of these sizes and a head; an activation follows each but the last."""
    if activation not in ACTIVATIONS:
        raise InputError(f"activation: {expected_one_of(ACTIVATIONS, activation)}")
    between = ACTIVATIONS[activation]
    if len(input_shape) != 3:
        raise InputError(f"input_shape: expected (channels, height, width), got {tuple(input_shape)}")
    if not 0 < width < math.inf:
        raise InputError(f"width: expected a number > 0, got {width}")
    channels, *size = input_shape
    layers: list[nn.Module] = []
    for outputs, kernel, stride, padding in convolutions:
        outputs = _scaled(outputs, width)
        layers += [nn.Conv2d(channels, outputs, kernel, stride, padding), between()]
        channels, size = outputs, [(n + 2 * padding - kernel) // stride + 1 for n in size]
        if min(size) < 1:
            raise InputError(f"input_shape: {tuple(input_shape)} is too small for this network")
    if normalise is not None:
        means, stds = (v * input_shape[0] if len(v) == 1 else v for v in normalise)
        layers[0] = Normalised(cast(nn.Conv2d, layers[0]), means, stds)
    layers.append(nn.Flatten())
    features = channels * math.prod(size)
    for outputs in (_scaled(n, width) for n in dense):
        layers += [nn.Linear(features, outputs), between()]
        features = outputs
    return initialise(nn.Sequential(*layers, nn.Linear(features, num_classes)), gain)


def _scaled(channels: int, width: float) -> int:
    """Return an even number of channels, as MinMax sorts pairs."""
    return max(2, 2 * round(width * channels / 2))
