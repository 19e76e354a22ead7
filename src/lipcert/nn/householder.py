r"""Householder activation: pairs of channels on one side of a learned line are reflected in it.

Singla, Singla, Feizi. Improved Deterministic l2 Robustness on CIFAR-10 and CIFAR-100. ICLR 2022.

Also in deel-torchlip and orthogonium.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.bounds.rules.pointwise import Smooth
from lipcert.errors import InputError


def householder(x: Tensor, theta: Tensor) -> Tensor:
    r"""Reflect the pair (a, b) where it lies beyond the line at angle θ/2; halves of dimension 1 are paired.

    $$ (a, b) \mapsto \begin{pmatrix}\cos\theta & \sin\theta\\ \sin\theta & -\cos\theta\end{pmatrix}(a, b)
       \quad\text{where } a\sin\tfrac\theta2 \le b\cos\tfrac\theta2 $$

    Example:
        At θ = π/2 the activation sorts the pair, largest first:

        >>> householder(torch.tensor([[1.0, 3.0]]), torch.tensor([torch.pi / 2]))
        tensor([[3.0000, 1.0000]])
    """
    a, b = x.chunk(2, dim=1)
    angle = theta.view(-1, *[1] * (x.ndim - 2))  # (C/2, 1, ...)
    cos, sin = angle.cos(), angle.sin()
    keep = a * (angle / 2).sin() > b * (angle / 2).cos()
    mirrored = torch.cat([cos * a + sin * b, sin * a - cos * b], dim=1)
    return torch.where(torch.cat([keep, keep], dim=1), x, mirrored)


class Householder(nn.Module):
    """Reflect pairs of channels in a line of a learned angle, initially π/2, which sorts; keeps gradients."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        if channels < 2 or channels % 2:
            raise InputError(f"channels: expected an even number, got {channels}")
        self.theta = nn.Parameter(torch.full((channels // 2,), math.pi / 2))

    def forward(self, x: Tensor) -> Tensor:
        """Reflect the pairs beyond their lines; the shape stays."""
        return householder(x, self.theta)


@rule(Householder, examples=[lambda: (Householder(6), (6,)), lambda: (Householder(4), (4, 3, 3))])
class HouseholderRule(Smooth):
    """The constant is 1 for any angle: an isometry on either side of the line, continuous across it.

    Rounded cosines cost a few units, and so does a pair so near the line that rounding picks the wrong side.
    """
