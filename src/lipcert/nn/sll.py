r"""SLL: SDP-based Lipschitz layers.

Araujo, Havens, Delattre, Allauzen, Hu. A Unified Algebraic Perspective on Lipschitz Neural Networks.
ICLR 2023.

$$ y = x - 2 W^T T^{-1} \sigma(Wx + b), \qquad T_{ii} = \sum_j |W W^T|_{ij}\, q_j / q_i, \quad q = e^\theta $$

T − WWᵀ is diagonally dominant up to a scaling, so ‖T^−½W‖ ≤ 1. Where T is zero, so is the row of W, and its
step is 0: an ε inside the inverse, as in published code, breaks the bound.

Also in orthogonium.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.nn.bases.potential import PotentialConv2d, PotentialLinear, PotentialRule


def sll_steps(gram: Tensor, theta: Tensor) -> Tensor:
    """Return 2/T from |WWᵀ| (inner, inner) and θ (inner,); 0 where T is 0."""
    sums = (gram * (theta - theta[:, None]).exp()).sum(1)  # Σ_j |WWᵀ|_ij q_j/q_i
    return torch.where(sums > 0, 2 / torch.where(sums > 0, sums, 1.0), 0.0)


class SLLLinear(PotentialLinear):
    """Step down a convex potential, by row sums of |WWᵀ| per channel; the shape stays."""

    sources = ("weight", "theta")

    def __init__(self, features: int, inner: int, activation: nn.Module | None = None) -> None:
        super().__init__(features, inner, activation)
        self.theta = nn.Parameter(torch.zeros(inner))

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W and 2/T."""
        weight, theta = sources
        return weight, sll_steps((weight @ weight.T).abs(), theta)


class SLLConv2d(PotentialConv2d):
    """Step down a potential of convolutions, by row sums of |WWᵀ| per channel; the shape stays.

    |WWᵀ| is taken for every pair of inner channels and summed over the distances of taps.
    """

    sources = ("weight", "theta")

    def __init__(
        self,
        in_channels: int,
        inner: int,
        kernel_size: int | tuple[int, int] = 3,
        activation: nn.Module | None = None,
    ) -> None:
        super().__init__(in_channels, inner, kernel_size, activation)
        self.theta = nn.Parameter(torch.zeros(inner))

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W and 2/T."""
        weight, theta = sources
        products = F.conv2d(weight, weight, padding=self.kernel_size - 1)  # (inner, inner, 2k − 1, 2k − 1)
        return weight, sll_steps(products.abs().sum((2, 3)), theta)


@rule(
    SLLLinear,
    examples=[
        lambda: (SLLLinear(6, 4), (6,)),
        lambda: (SLLLinear(3, 8, activation=nn.Tanh()), (3,)),
    ],
)
@rule(
    SLLConv2d,
    examples=[
        lambda: (SLLConv2d(3, 5), (3, 6, 5)),
        lambda: (SLLConv2d(4, 2, kernel_size=5), (4, 1, 1)),
        lambda: (SLLConv2d(2, 3, kernel_size=1, activation=nn.Sigmoid()), (2, 4, 4)),
    ],
)
class SLLRule(PotentialRule):
    """The constant is 1."""
