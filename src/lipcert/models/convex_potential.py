"""Deep stacks of CPL and SLL layers: convolutions that keep size and channels, pooling, dense layers, a head.

Meunier et al., ICML 2022; Araujo et al., ICLR 2023. The sizes S, M, L, XL are the published ones; `width`,
`convolutions`, `dense` and `inner` replace single numbers of a size. `normalise` gives the means of the
channels and one std: the authors subtract the means and divide by 1, which leaves the constant as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torch import nn

from lipcert.errors import InputError
from lipcert.models.base import MODELS
from lipcert.models.heads import make_head
from lipcert.nn import CPLConv2d, CPLLinear, PadChannels, SLLConv2d, SLLLinear, Standardise
from lipcert.suggestions import expected_one_of

# The inner channels of a convolution, and the side of the pooling windows.
_INNER_CHANNELS, _POOL = 5, 4


@dataclass(frozen=True)
class Size:
    """The depth and width of a network."""

    convolutions: int
    width: int
    dense: int
    inner: int


_SIZES = {"s": Size(20, 45, 7, 2048), "m": Size(30, 60, 10, 2048), "l": Size(50, 90, 10, 2048)}
_SLL = {**_SIZES, "xl": Size(70, 120, 15, 2048)}
_CPL = {**_SIZES, "xl": Size(70, 120, 15, 4096)}

_EXAMPLE = {"num_classes": 3, "input_shape": (1, 8, 8), "width": 4, "convolutions": 2, "dense": 1, "inner": 6}


@MODELS.register("cpl", example=_EXAMPLE)
def cpl(
    num_classes: int = 10,
    input_shape: Sequence[int] = (3, 32, 32),
    size: str = "xl",
    head: str = "linear",
    width: int | None = None,
    convolutions: int | None = None,
    dense: int | None = None,
    inner: int | None = None,
    normalise: tuple[tuple[float, ...], float] | None = None,
) -> nn.Sequential:
    """Build a stack of convex potential layers.

    Example:
        >>> import torch
        >>> with torch.device("meta"):
        ...     model = cpl()
        >>> round(sum(p.numel() for p in model.parameters()) / 1e6, 1)
        472.4
    """
    chosen = _chosen(_CPL, size, width, convolutions, dense, inner)
    return _stack(chosen, CPLConv2d, CPLLinear, num_classes, input_shape, head, normalise)


@MODELS.register("sll", example={**_EXAMPLE, "head": "lln", "normalise": ((0.5,), 1.0)})
def sll(
    num_classes: int = 10,
    input_shape: Sequence[int] = (3, 32, 32),
    size: str = "xl",
    head: str = "linear",
    width: int | None = None,
    convolutions: int | None = None,
    dense: int | None = None,
    inner: int | None = None,
    normalise: tuple[tuple[float, ...], float] | None = None,
) -> nn.Sequential:
    """Build a stack of SDP-based Lipschitz layers.

    Example:
        >>> import torch
        >>> with torch.device("meta"):
        ...     model = sll()
        >>> round(sum(p.numel() for p in model.parameters()) / 1e6, 1)
        236.4
    """
    chosen = _chosen(_SLL, size, width, convolutions, dense, inner)
    return _stack(chosen, SLLConv2d, SLLLinear, num_classes, input_shape, head, normalise)


def published_size(network: str, size: str) -> Size:
    """Return the published size of a `cpl` or `sll` network.

    Example:
        >>> published_size("cpl", "xl").inner
        4096
    """
    return {"cpl": _CPL, "sll": _SLL}[network][size]


def _chosen(
    sizes: dict[str, Size],
    size: str,
    width: int | None,
    convolutions: int | None,
    dense: int | None,
    inner: int | None,
) -> Size:
    if size not in sizes:
        raise InputError(f"size: {expected_one_of(sizes, size)}")
    given = {"width": width, "convolutions": convolutions, "dense": dense, "inner": inner}
    changes = {name: value for name, value in given.items() if value is not None}
    if any(value < (1 if name in ("width", "inner") else 0) for name, value in changes.items()):
        raise InputError(
            f"width, inner: expected numbers >= 1, convolutions, dense: numbers >= 0, got {changes}"
        )
    return replace(sizes[size], **changes)


def _stack(
    size: Size,
    convolution: Callable[[int, int], nn.Module],
    linear: Callable[[int, int], nn.Module],
    num_classes: int,
    input_shape: Sequence[int],
    head: str,
    normalise: tuple[tuple[float, ...], float] | None,
) -> nn.Sequential:
    channels, *sides = input_shape
    if len(sides) != 2 or any(n < _POOL for n in sides):
        raise InputError(
            f"input_shape: expected images of at least {_POOL}×{_POOL}, got {tuple(input_shape)}"
        )
    if channels > size.width:
        raise InputError(f"width: expected at least the {channels} channels of the input, got {size.width}")
    features = size.width * math.prod(n // _POOL for n in sides)
    # Before the padding, whose zeros stay zeros.
    first = [Standardise(*normalise)] if normalise is not None else []
    return nn.Sequential(
        *first,
        PadChannels(size.width),
        *(convolution(size.width, _INNER_CHANNELS) for _ in range(size.convolutions)),
        nn.AvgPool2d(_POOL, divisor_override=_POOL),  # has norm 1: windows of 16 divided by √16
        nn.Flatten(),
        *(linear(features, size.inner) for _ in range(size.dense)),
        make_head(head, features, num_classes),
    )
