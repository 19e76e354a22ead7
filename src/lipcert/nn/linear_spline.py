r"""Linear splines: a learned function per channel, linear between equally spaced knots, slopes in [−1, 1].

Ducotterd, Goujon, Bohra, Perdios, Neumayer, Unser. Improving Lipschitz-Constrained Neural Networks by
Learning Activation Functions. JMLR 2024.

$$ f(x) = v_k + s_k (x - t_k), \qquad t_k \le x < t_{k+1}, \quad v_{k+1} = v_k + s_k (t_{k+1} - t_k), \quad
   s_k = \min(\max(p_k, -1), 1) $$

The first and the last slope go on for ever. The slopes p are learned, and so is the value at the middle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.bounds.contract import Channelwise, sample_norm
from lipcert.bounds.provers.rounding import SAFETY, gamma
from lipcert.errors import InputError


class LinearSpline(nn.Module):
    """Apply a learned piecewise linear function to every channel, initially |x|.

    There are `pieces` equal pieces between −reach and reach. Slopes are clipped to [−1, 1]. The gradient
    passes a slope that is clipped, so that it can come back.

    Example:
        >>> LinearSpline(1)(torch.tensor([[-3.0], [0.5]])).flatten().tolist()
        [3.0, 0.5]
    """

    def __init__(self, channels: int, pieces: int = 10, reach: float = 1.0) -> None:
        super().__init__()
        if channels < 1 or pieces < 2 or pieces % 2 or not 0 < reach < math.inf:
            raise InputError(
                f"channels, pieces, reach: expected numbers > 0 and even pieces, got {channels}, {pieces} "
                f"and {reach}"
            )
        self.pieces, self.reach = pieces, float(reach)
        # The slopes below −reach and above reach are the first and the last.
        slopes = torch.ones(channels, pieces)
        slopes[:, : pieces // 2] = -1.0
        self.slopes = nn.Parameter(slopes)
        self.middle = nn.Parameter(torch.zeros(channels))

    @property
    def step(self) -> float:
        """Return the distance of two knots."""
        return 2 * self.reach / self.pieces

    def tables(self) -> tuple[Tensor, Tensor]:
        """Return the slope of every piece, and its value at the knot where it begins: (C, pieces) each."""
        slopes = self.slopes + (self.slopes.clamp(-1, 1) - self.slopes).detach()
        rises = self.step * slopes
        half = self.pieces // 2
        after = rises[:, half:-1].cumsum(1)
        before = -rises[:, :half].flip(1).cumsum(1).flip(1)
        starts = torch.cat([before, torch.zeros_like(before[:, :1]), after], dim=1)
        return slopes, starts + self.middle[:, None]

    def forward(self, x: Tensor) -> Tensor:
        """Return the values, of the shape of the input."""
        if x.shape[1] != len(self.middle):
            raise InputError(f"LinearSpline: expected {len(self.middle)} channels, got {x.shape[1]}")
        slopes, starts = self.tables()
        # Which of two pieces a knot belongs to makes no difference, as they agree there.
        with torch.no_grad():
            place = ((x + self.reach) / self.step).floor().nan_to_num().clamp(0, self.pieces - 1)
            knot = place * self.step - self.reach
            channel = torch.arange(len(slopes), device=x.device).view(-1, *[1] * (x.ndim - 2))
            index = place.long() + self.pieces * channel
        return starts.flatten()[index] + slopes.flatten()[index] * (x - knot)

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return f"{len(self.middle)}, pieces={self.pieces}, reach={self.reach:g}"


def _moved() -> LinearSpline:
    layer = LinearSpline(3, pieces=4, reach=0.7)
    with torch.no_grad():
        layer.slopes.copy_(torch.linspace(-1.5, 1.5, 12).view(3, 4))
        layer.middle.copy_(torch.tensor([0.3, -2.0, 0.0]))
    return layer


@rule(LinearSpline, examples=[lambda: (LinearSpline(6), (6,)), lambda: (_moved(), (3, 2, 2))])
class LinearSplineRule(Channelwise):
    """The constant is 1: slopes are clipped to [−1, 1]."""

    def roundoff(self, module: Any, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the errors of the sums of rises, of the product and of the piece next to a knot."""
        (x,) = inputs
        shape = (-1, *[1] * (x.ndim - 2))
        # |v| ≤ |middle| + reach and |s| ≤ 1. The distance from a knot and its error grow with |x| + reach.
        size = module.middle.abs().view(shape) + 3 * (x.abs() + 2 * module.reach)
        return SAFETY * gamma(self.products(module) + 16) * sample_norm(size)

    def roundoff_gain(self, module: Any) -> float:
        """Return the factor of |x| above."""
        return SAFETY * SAFETY * 3 * (self.products(module) + 17)

    def products(self, module: Any) -> int:
        """Count the rises that are added up."""
        return int(module.pieces) + 2
