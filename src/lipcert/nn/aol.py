r"""AOL: almost-orthogonal layers, whose weight is rescaled column by column.

Prach, Lampert. Almost-Orthogonal Layers for Efficient General-Purpose Lipschitz Networks. ECCV 2022.

$$ W = P D, \qquad D_{jj} = \Big(\sum_i |P^T P|_{ij}\Big)^{-1/2}, \qquad \|W\|_2 \le 1 $$

A convolution has one entry of $P^T P$ for every pair of input channels and every distance of two taps. The
bound holds for any stride, dilation and image, with zero or circular padding.

Also in orthogonium.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from lipcert.bounds import rule
from lipcert.nn.bases.conv2d import DerivedConv2d, DerivedConvRule
from lipcert.nn.bases.derived import Built
from lipcert.nn.bases.linear import DerivedLinear, DerivedLinearRule


def aol_dense(p: Tensor) -> Tensor:
    """Return P D for a matrix (out, in).

    Example:
        >>> aol_dense(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor([[1., 0.],
                [0., 1.]])
    """
    return p * _inverse_root((p.T @ p).abs().sum(0))


def aol_convolution(p: Tensor) -> Tensor:
    """Return P D for kernels (out, in, k₁, k₂)."""
    by_input = p.transpose(0, 1)  # (in, out, k₁, k₂)
    products = F.conv2d(by_input, by_input, padding=(p.shape[2] - 1, p.shape[3] - 1))
    return p * _inverse_root(products.abs().sum((0, 2, 3)))[:, None, None]


def _inverse_root(sums: Tensor) -> Tensor:
    """Return 1/√s, and 0 where s is 0, so that a column of zeros stays zero."""
    return torch.where(sums > 0, torch.where(sums > 0, sums, 1.0).rsqrt(), 0.0)


class AOLLinear(DerivedLinear):
    """Rescale the columns of a dense layer."""

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W."""
        return (aol_dense(sources[0]),)


class AOLConv2d(DerivedConv2d):
    """Rescale the input channels of a convolution: any stride and dilation, zero or circular padding."""

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return the kernels."""
        return (aol_convolution(sources[0]),)


@rule(
    AOLLinear,
    examples=[
        lambda: (AOLLinear(6, 4), (6,)),
        lambda: (AOLLinear(3, 8, bias=False), (3,)),
    ],
)
class AOLLinearRule(Built, DerivedLinearRule):
    """The constant is at most 1."""


@rule(
    AOLConv2d,
    examples=[
        lambda: (AOLConv2d(3, 4, 3, padding=1), (3, 6, 6)),
        lambda: (AOLConv2d(4, 2, 3, stride=2, bias=False), (4, 7, 5)),
        lambda: (AOLConv2d(2, 5, 4, padding=(1, 3), dilation=(1, 2), padding_mode="circular"), (2, 8, 8)),
        lambda: (AOLConv2d(2, 3, 3, padding=1), (2, 1, 1)),
    ],
)
class AOLConvRule(Built, DerivedConvRule):
    """The constant is at most 1."""
