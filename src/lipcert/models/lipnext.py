"""LipNeXt: shifts instead of convolutions, between matrices that the optimiser keeps orthogonal.

Hu et al. LipNeXt. arXiv 2601.18513, 2026; no public code. Patches of the image enter as channels by an
isometry, `depth` blocks of ShiftMix and PartialAbs follow, and the head sees the length of every channel over
the image. The sizes, the patches and the share of |x| are our choice.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from lipcert.errors import InputError
from lipcert.models.base import MODELS
from lipcert.models.heads import make_head
from lipcert.nn import CholeskyConv2d, L2NormPool2d, PartialAbs, ShiftMix


@MODELS.register(
    "lipnext",
    example={"num_classes": 3, "input_shape": (1, 8, 8), "width": 6, "depth": 2, "head": "lln"},
)
def lipnext(
    num_classes: int = 10,
    input_shape: Sequence[int] = (3, 32, 32),
    width: int = 256,
    depth: int = 16,
    patch: int = 2,
    share: float = 0.75,
    pool: int | None = None,
    head: str = "linear",
) -> nn.Sequential:
    """Build LipNeXt-small; `pool` is the side of the pooling windows, the whole image if None.

    Example:
        >>> sum(p.numel() for p in lipnext(width=64, depth=4).parameters())
        42698
    """
    channels, *sides = input_shape
    if patch < 1 or len(sides) != 2 or any(n % patch for n in sides):
        raise InputError(f"input_shape: expected sides divisible by patch={patch}, got {tuple(input_shape)}")
    if depth < 0 or width < 1:
        raise InputError(f"width, depth: expected numbers >= 1 and >= 0, got {width} and {depth}")
    size = tuple(n // patch for n in sides)
    if pool is not None and (pool < 1 or any(n % pool for n in size)):
        raise InputError(f"pool: expected a side that divides {size[0]} and {size[1]}, got {pool}")
    windows = 1 if pool is None else (size[0] // pool) * (size[1] // pool)
    layers: list[nn.Module] = [CholeskyConv2d(channels, width, patch)]
    for _ in range(depth):
        layers += [ShiftMix(width, size), PartialAbs(share)]
    layers += [L2NormPool2d(pool), nn.Flatten()]
    return nn.Sequential(*layers, make_head(head, windows * width, num_classes))
