r"""The slopes of an activation: in suitable coordinates, each has a slope in an interval of its own.

An elementwise activation with slopes in [a, b] is its own example. MinMax is one in sums and differences of
its pairs: a sum passes, so its slope is 1, and a difference d becomes |d|, with slopes in [−1, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.bounds.contract import plain_type
from lipcert.nn.minmax import MinMax

# Activations whose slopes lie in [0, 1].
_RISING = (nn.ReLU, nn.ReLU6, nn.Hardtanh, nn.Tanh, nn.Softplus)

# Slopes from below in these steps: middles and halves of the intervals are then exact numbers.
_STEP = 2.0**-20


@dataclass(frozen=True)
class Sector:
    """The slope of coordinate k lies within `reach[k]` of `centre[k]`; all numbers are exact."""

    centre: Tensor  # (n,)
    reach: Tensor  # (n,)
    first: Tensor | None = None  # the pairs whose sums and differences are the coordinates; None for values
    second: Tensor | None = None

    @classmethod
    def of(cls, module: nn.Module, width: int) -> Sector | None:
        """Return the sector of an activation on `width` values, None where none is known."""
        kind = plain_type(module)
        if kind is MinMax:
            return cls._pairs(module, width)
        lowest = _lowest_slope(kind, module)
        if lowest is None:
            return None
        ones = torch.ones(width, dtype=torch.float64)
        return cls((1 + lowest) / 2 * ones, (1 - lowest) / 2 * ones)

    @classmethod
    def _pairs(cls, module: Any, width: int) -> Sector:
        places = torch.arange(width)
        half = width // 2
        first, second = (places[:half], places[half:]) if module.halves else (places[::2], places[1::2])
        differs = (places >= half).double()
        return cls(1 - differs, differs, first, second)

    @cached_property
    def passing(self) -> Tensor:
        """Return the coordinates whose middle slope is not 0."""
        return self.centre.nonzero()[:, 0]

    @cached_property
    def unsure(self) -> Tensor:
        """Return the coordinates whose slope is not known."""
        return self.reach.nonzero()[:, 0]

    def turned(self, weight: Tensor) -> Tensor:
        """Return the rows that give the coordinates: at most one rounding error per entry."""
        if self.first is None or self.second is None:
            return weight
        a, b = weight[self.first], weight[self.second]
        return torch.cat([a + b, a - b])

    def turned_back(self, weight: Tensor) -> Tensor:
        """Return the columns that take coordinates for values: at most one rounding error per entry."""
        if self.first is None or self.second is None:
            return weight
        a, b = weight[:, self.first], weight[:, self.second]
        return torch.cat([a + b, a - b], dim=1) / 2

    @property
    def turns(self) -> bool:
        """Return whether the coordinates are sums and differences."""
        return self.first is not None


def _lowest_slope(kind: type[nn.Module], module: Any) -> float | None:
    """Return at most the lowest slope of an activation whose highest is at most 1."""
    if kind in _RISING:
        return 0.0
    if kind is nn.LeakyReLU and 0 <= module.negative_slope <= 1:
        # Far enough below for a slope that a float32 module rounds.
        return max(0.0, math.floor(float(module.negative_slope) / _STEP - 1) * _STEP)
    return None
