"""Multilayer perceptrons with MinMax, free or orthogonal; the paper's two-moons network is the default."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
    hidden = _hidden(input_shape, widths, nn.Linear)
    return initialise(nn.Sequential(*hidden, nn.Linear(widths[-1], num_classes)))


@MODELS.register("soc-mlp", example={"num_classes": 3, "widths": [4, 4]})
def soc_mlp(
    num_classes: int = 2,
    input_shape: Sequence[int] = (2,),
    widths: Sequence[int] = (10, 20, 40, 40, 20, 10),
    head: str = "lln",
) -> nn.Sequential:
    """Build orthogonal layers of the given widths with MinMax between them, and a head."""
    hidden = _hidden(input_shape, widths, SOCLinear)
    return nn.Sequential(*hidden, make_head(head, widths[-1], num_classes))


def _hidden(
    input_shape: Sequence[int], widths: Sequence[int], layer: Callable[[int, int], nn.Module]
) -> list[nn.Module]:
    """Return dense layers of the given widths, each followed by MinMax."""
    if not widths or any(w < 2 or w % 2 for w in widths):
        raise InputError(f"widths: expected even numbers >= 2 (MinMax sorts pairs), got {list(widths)}")
    layers: list[nn.Module] = [] if len(input_shape) == 1 else [nn.Flatten()]
    for inputs, outputs in pairwise([math.prod(input_shape), *widths]):
        layers += [layer(inputs, outputs), MinMax()]
    return layers
