"""Multilayer perceptrons with MinMax, free or orthogonal; the paper's two-moons network is the default."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from lipcert.errors import InputError
from lipcert.models.base import MODELS, initialise
from lipcert.models.heads import make_head
from lipcert.nn import MinMax, SOCLinear


@MODELS.register("mlp", example={"widths": [6, 4], "num_classes": 3})
def mlp(
    num_classes: int = 2,
    input_shape: Sequence[int] = (2,),
    widths: Sequence[int] = (10, 20, 40, 40, 20, 10),
) -> nn.Sequential:
    """Build dense layers of the given widths with MinMax between them, and a linear head.

    Example:
        >>> sum(p.numel() for p in mlp().parameters())  # 2-10-20-40-40-20-10-2
        3782
    """
    if not widths or any(w < 2 or w % 2 for w in widths):
        raise InputError(f"widths: expected even numbers >= 2 (MinMax sorts pairs), got {list(widths)}")
    sizes = [math.prod(input_shape), *widths]
    layers: list[nn.Module] = [] if len(input_shape) == 1 else [nn.Flatten()]
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), MinMax()]
    return initialise(nn.Sequential(*layers, nn.Linear(sizes[-1], num_classes)))


@MODELS.register("soc-mlp", example={"num_classes": 3, "depth": 3, "width": 4})
def soc_mlp(
    num_classes: int = 2,
    input_shape: Sequence[int] = (2,),
    depth: int = 7,
    width: int = 40,
    head: str = "lln",
) -> nn.Sequential:
    """Build `depth` dense layers with the head: orthogonal layers of equal width, MinMax between them."""
    if depth < 2 or width < 2 or width % 2:
        raise InputError(f"depth, width: expected >= 2 and an even number, got {depth} and {width}")
    sizes = [math.prod(input_shape), *[width] * (depth - 1)]
    layers: list[nn.Module] = [] if len(input_shape) == 1 else [nn.Flatten()]
    for inputs, outputs in pairwise(sizes):
        layers += [SOCLinear(inputs, outputs), MinMax()]
    return nn.Sequential(*layers, make_head(head, width, num_classes))
