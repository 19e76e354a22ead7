r"""Boxes that hold all values of a layer while the input stays in a ball, in float64 and rounded outwards.

Lee, Lee, Park. Lipschitz-Certifiable Training with a Tight Outer Bound. NeurIPS 2020 (box constraint
propagation). An affine layer maps the box with centre m and half width h into

$$ Wm + b \pm |W|h $$

and an activation that only grows maps its ends. A ball gives a box as well; the overlap of both holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds.contract import plain_type
from lipcert.bounds.local_ball import MOVES
from lipcert.bounds.provers.rounding import SAFETY, TINY, U, gamma
from lipcert.bounds.tracing.program import Step
from lipcert.nn.minmax import MinMax

# Layers whose outputs only grow with their inputs and are computed without rounding.
_ORDERED = (*MOVES, nn.ReLU, nn.ReLU6, nn.Hardtanh, MinMax)


@dataclass(frozen=True)
class Box:
    """Ends of intervals, shaped like the values of a layer; the first dimension is the batch."""

    low: Tensor
    high: Tensor

    @classmethod
    def around(cls, centre: Tensor, distance: Tensor) -> Box:
        """Return the box that reaches at least this far in every direction."""
        far = centre.new_full((), torch.inf)
        return cls(torch.nextafter(centre - distance, -far), torch.nextafter(centre + distance, far))

    def overlap(self, other: Box | None) -> Box:
        """Return what lies in both."""
        if other is None:
            return self
        return Box(torch.maximum(self.low, other.low), torch.minimum(self.high, other.high))

    def of(self, samples: Tensor) -> Box:
        """Return the boxes of these samples."""
        return Box(self.low[samples], self.high[samples])

    def shifted(self, by: Tensor, error: Tensor) -> Box:
        """Return the box, widened to hold 0, of the differences to a point known up to this error."""
        low, high = self.low - by, self.high - by
        far = error + SAFETY * U * torch.maximum(low.abs(), high.abs())
        around = Box(Box.around(low, far).low, Box.around(high, far).high)
        return Box(around.low.clamp_max(0.0).flatten(1), around.high.clamp_min(0.0).flatten(1))


def box_after(step: Step, before: Box) -> Box | None:
    """Return a box of the outputs of a layer for inputs in a box; None where only a ball is known."""
    kind = plain_type(step.module)
    if kind in _ORDERED:
        return Box(step.module.forward(before.low), step.module.forward(before.high))
    if kind in (nn.Linear, nn.Conv1d, nn.Conv2d):
        return _affine(step, before)
    return None


def _affine(step: Step, before: Box) -> Box:
    module: Any = step.module
    middle = (before.low + before.high) / 2
    half = SAFETY * torch.maximum(before.high - middle, middle - before.low) + TINY
    centre = module.forward(middle)
    size = _with_sizes(module, middle.abs(), bias=True)
    # A sum of n products and a bias rounds n + 1 times; the rest is for the ends of the interval.
    lost = gamma(module.weight[0].numel() + 4) * size
    return Box.around(centre, SAFETY * (_with_sizes(module, half, bias=False) + lost) + TINY)


def _with_sizes(module: Any, x: Tensor, bias: bool) -> Tensor:
    """Return |W|x, or |W|x + |b|."""
    weight = module.weight.abs()
    added = module.bias.abs() if bias and module.bias is not None else None
    if isinstance(module, nn.Linear):
        return F.linear(x, weight, added)
    image: Tensor = module._conv_forward(x, weight, added)
    return image
