r"""Cholesky layers: rows made orthonormal by the Cholesky factor of their products.

Hu, Leino, Wang, Fredrikson. A Recipe for Improved Certifiable Robustness. ICLR 2024.

$$ W = L^{-1}X, \qquad L L^T = X X^T + \epsilon I, \quad \epsilon = 10^{-3} \cdot \text{mean diagonal} $$

A matrix with more rows than columns is transposed first and last. The convolution takes patches that do not
overlap, each by the same matrix.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.errors import InputError
from lipcert.nn.convolutional import DerivedConv2d, DerivedConvRule
from lipcert.nn.dense import DerivedLinear, DerivedLinearRule
from lipcert.nn.derived import Built

_EPSILON = 1e-3


def whitened(x: Tensor) -> Tensor:
    """L⁻¹X for a matrix (out, in); X = 0 stays so.

    Example:
        >>> whitened(torch.tensor([[3.0, 0.0]]))
        tensor([[0.9995, 0.0000]])
    """
    if x.shape[0] > x.shape[1]:
        return whitened(x.T).T
    gram = x @ x.T
    diagonal = gram.diagonal().mean()
    ridge = torch.where(diagonal > 0, _EPSILON * diagonal, 1.0)
    factor = torch.linalg.cholesky(gram + ridge * torch.eye(len(x), dtype=x.dtype, device=x.device))
    found: Tensor = torch.linalg.solve_triangular(factor, x, upper=False)
    return found


class CholeskyLinear(DerivedLinear):
    """`whitened` raw weights."""

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """W."""
        return (whitened(sources[0]),)


class CholeskyConv2d(DerivedConv2d):
    """`whitened` kernels of patches side by side: the stride is the kernel's side, and nothing is padded."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, bias: bool = True) -> None:
        if not isinstance(kernel_size, int) or kernel_size < 1:
            raise InputError(f"kernel_size: expected a number >= 1, got {kernel_size!r}")
        super().__init__(in_channels, out_channels, kernel_size, stride=kernel_size, bias=bias)
        nn.init.orthogonal_(self.raw)

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """The kernels."""
        (raw,) = sources
        return (whitened(raw.flatten(1)).view_as(raw),)


@rule(
    CholeskyLinear,
    examples=[lambda: (CholeskyLinear(6, 4), (6,)), lambda: (CholeskyLinear(3, 8, bias=False), (3,))],
)
class CholeskyLinearRule(Built, DerivedLinearRule):
    """At most 1, but for rounding."""


@rule(
    CholeskyConv2d,
    examples=[
        lambda: (CholeskyConv2d(3, 4, 2), (3, 6, 4)),
        lambda: (CholeskyConv2d(2, 20, 3, bias=False), (2, 7, 6)),
    ],
)
class CholeskyConvRule(Built, DerivedConvRule):
    """At most 1, but for rounding."""
