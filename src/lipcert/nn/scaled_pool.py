r"""Scaled adaptive pooling: averages times the number that gives them the constant 1.

Serrurier et al. Achieving Robustness in Classification Using Optimal Transport with Hinge Regularization.
CVPR 2021.

$$ y = \frac{1}{c} A x, \qquad c = \sqrt{\|A\|_1 \|A\|_\infty} \ge \|A\|_2 $$

A has rows that sum to 1. For disjoint windows of k pixels c is 1/√k, which is exact. Windows that share
pixels have a larger c.

Also in deel-torchlip.
"""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.bounds.provers.rounding import SCALAR, U, up
from lipcert.bounds.rules.averages import AdaptiveAveragesRule
from lipcert.errors import InputError
from lipcert.types import Shape


class ScaledAdaptiveAvgPool2d(nn.Module):
    """Average over as many windows as asked for, scaled to the constant 1; None keeps a side.

    Example:
        >>> import torch
        >>> ScaledAdaptiveAvgPool2d(1)(torch.full((1, 1, 2, 2), 3.0))
        tensor([[[[6.]]]])
    """

    def __init__(self, output_size: int | tuple[int | None, int | None]) -> None:
        super().__init__()
        sizes = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
        if len(sizes) != 2 or any(n is not None and n < 1 for n in sizes):
            raise InputError(f"output_size: expected one or two numbers >= 1, got {output_size}")
        self.output_size = sizes

    def forward(self, x: Tensor) -> Tensor:
        """Return the scaled averages: (B, C, H', W')."""
        averages = F.adaptive_avg_pool2d(x, self.output_size)
        return averages * self.scale(tuple(x.shape[1:]))

    def scale(self, shape: Shape) -> float:
        """Return 1/c for inputs of this shape."""
        return 1 / AdaptiveAveragesRule(shape).constant(self, shape)

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return f"output_size={self.output_size}"


@rule(
    ScaledAdaptiveAvgPool2d,
    examples=[
        lambda: (ScaledAdaptiveAvgPool2d(1), (3, 4, 5)),
        lambda: (ScaledAdaptiveAvgPool2d(2), (2, 6, 4)),
        lambda: (ScaledAdaptiveAvgPool2d((3, None)), (2, 7, 5)),
    ],
)
class ScaledAdaptiveRule(AdaptiveAveragesRule):
    """The constant is 1, but for the rounding of the scale (float32 modules round it to float32)."""

    def constant(self, module: Any, shape: Shape | None) -> float:
        """Bound c times the rounded 1/c."""
        super().constant(module, shape)  # which says where the shape is missing
        return up(SCALAR * (1 + 4 * U))

    def products(self, module: Any) -> int:
        """Count one product more."""
        return super().products(module) + 1
