r"""Frobenius-normalised layers: the weight is divided by the root of the sum of its squares.

Serrurier et al. Achieving Robustness in Classification Using Optimal Transport with Hinge Regularization.
CVPR 2021.

$$ W \leftarrow W/\|W\|_F, \qquad \|W\|_2 \le \|W\|_F = 1 $$

For a single output the norm is 1; for a matrix of rank n it is at least 1/√n.

Also in deel-torchlip.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lipcert.bounds import rule
from lipcert.nn.bases.conv2d import DerivedConvRule
from lipcert.nn.bases.derived import Built
from lipcert.nn.bases.linear import DerivedLinear, DerivedLinearRule
from lipcert.nn.bases.reshaped import ReshapedConv2d


def of_length_one(matrices: Tensor) -> Tensor:
    """Divide matrices (…, n, m) by their Frobenius norms; zero stays zero.

    Example:
        >>> of_length_one(torch.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    peak = matrices.detach().abs().amax((-2, -1), keepdim=True)
    scaled = matrices / torch.where(peak > 0, peak, 1.0)  # squares neither overflow nor vanish
    # Inside the root, because a norm has no derivative at zero.
    squares = scaled.square().sum((-2, -1), keepdim=True)
    return scaled * torch.where(squares > 0, squares, 1.0).rsqrt()


class FrobeniusLinear(DerivedLinear):
    """Divide the weight of a dense layer by its Frobenius norm."""

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W."""
        return (of_length_one(sources[0]),)


class FrobeniusConv2d(ReshapedConv2d):
    """Divide the kernels of each group by their Frobenius norm and the root of the patches per pixel."""

    def matrices(self, raw: Tensor) -> Tensor:
        """Return matrices of Frobenius norm 1."""
        return of_length_one(raw)


@rule(
    FrobeniusLinear,
    examples=[
        lambda: (FrobeniusLinear(6, 4), (6,)),
        lambda: (FrobeniusLinear(3, 1, bias=False), (3,)),
    ],
)
class FrobeniusLinearRule(Built, DerivedLinearRule):
    """The constant is at most 1, up to rounding error."""


@rule(
    FrobeniusConv2d,
    examples=[
        lambda: (FrobeniusConv2d(3, 4, 3, padding=1), (3, 6, 6)),
        lambda: (FrobeniusConv2d(4, 4, 2, stride=2, groups=2, bias=False), (4, 6, 4)),
    ],
)
class FrobeniusConvRule(Built, DerivedConvRule):
    """The constant is at most 1, up to rounding error."""
