r"""Cayley layers: orthogonal matrices as a rational function of free ones, at every frequency of an image.

Trockman, Kolter. Orthogonalizing Convolutional Layers with the Cayley Transform. ICLR 2021.

$$ Z = U - U^H + V^H V, \qquad Q = \begin{pmatrix} (I+Z)^{-1}(I-Z) \\ -2V(I+Z)^{-1} \end{pmatrix},
   \qquad Q^H Q = I $$

U and V are the upper square and the rest of a matrix with at least as many rows as columns; another one is
transposed before and after. A convolution is circular, and the same at every frequency. The raw weights have
a learned length α, as in the authors' code.

Also in orthogonium.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.nn.bases.derived import Built
from lipcert.nn.bases.linear import DerivedLinear, DerivedLinearRule
from lipcert.nn.bases.spectral import SpectralConv2d, SpectralRule


def cayley(free: Tensor) -> Tensor:
    r"""Return [A B] with AAᴴ + BBᴴ = I from free matrices [X Yᴴ] of shape (…, n, n + m), real or complex.

    $$ Z = X - X^H + Y^H Y, \qquad A^H = (I+Z)^{-1}(I-Z), \quad B^H = -2Y(I+Z)^{-1} $$
    """
    n = free.shape[-2]
    x, y = free[..., :n], free[..., n:].mH  # (…, n, n), (…, m, n)
    z = x - x.mH + y.mH @ y
    eye = torch.eye(n, dtype=free.dtype, device=free.device)
    both: Tensor = torch.linalg.solve_ex((eye + z).mH, torch.cat([(eye - z).mH, -2 * y.mH], dim=-1)).result
    return both


def orthogonal(free: Tensor) -> Tensor:
    """Return Q of the shape (…, out, in) of the free matrices, with its shorter side orthonormal.

    Example:
        >>> q = orthogonal(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        >>> torch.allclose(q.T @ q, torch.eye(2), atol=1e-6)
        True
    """
    rows, columns = free.shape[-2:]
    if rows < columns:
        return orthogonal(free.mH).mH
    return cayley(torch.cat([free[..., :columns, :], free[..., columns:, :].mH], dim=-1)).mH


# With a longer α, rounding loses the I of I + Z. At first α is about ten.
_LONGEST = 1e3


def scaled(raw: Tensor, alpha: Tensor) -> Tensor:
    """Return α·W/‖W‖."""
    alpha = alpha.clamp(-_LONGEST, _LONGEST)
    norm = torch.linalg.vector_norm(raw)
    return raw * torch.where(norm > 0, alpha / torch.where(norm > 0, norm, 1.0), 0.0)


class CayleyLinear(DerivedLinear):
    """Take the Cayley transform of a free matrix, scaled to length α first: orthogonal."""

    sources = ("raw", "alpha")

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias)
        self.alpha = nn.Parameter(torch.linalg.vector_norm(self.raw.detach()))

    def first(self) -> Tensor:
        """Return normal numbers: the transform maps an orthogonal matrix close to its negative."""
        return nn.init.xavier_normal_(torch.empty(self.out_features, self.in_features))

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W."""
        return (orthogonal(scaled(*sources)),)


class CayleyConv2d(SpectralConv2d):
    """Take the Cayley transform at every frequency of a circular convolution, by FFT: orthogonal.

    A stride is taken by space-to-depth and halves the kernel.
    """

    sources = ("raw", "alpha")

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int] = 3,
        stride: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, bias)
        self.alpha = nn.Parameter(torch.linalg.vector_norm(self.raw.detach()))

    def first(self, inputs: int, kernel: int) -> Tensor:
        """Return normally distributed kernels."""
        return nn.init.xavier_normal_(torch.empty(self.out_channels, inputs, kernel, kernel))

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W at half the frequencies: (F, out, in)."""
        return super().derive(scaled(*sources))

    def symbols(self, spectrum: Tensor) -> Tensor:
        """Return orthogonal matrices."""
        return orthogonal(spectrum)


@rule(
    CayleyLinear,
    examples=[
        lambda: (CayleyLinear(6, 4), (6,)),
        lambda: (CayleyLinear(3, 8, bias=False), (3,)),
        lambda: (CayleyLinear(5, 5), (5,)),
    ],
)
class CayleyLinearRule(Built, DerivedLinearRule):
    """The constant is 1, up to rounding error."""


@rule(
    CayleyConv2d,
    examples=[
        lambda: (CayleyConv2d(4, 4), (4, 6, 5)),
        lambda: (CayleyConv2d(2, 6, bias=False), (2, 3, 3)),
        lambda: (CayleyConv2d(3, 2, kernel_size=5), (3, 5, 6)),
        lambda: (CayleyConv2d(2, 3, stride=2), (2, 6, 4)),
        lambda: (CayleyConv2d(5, 4, kernel_size=1), (5, 1, 1)),
    ],
)
class CayleyConvRule(SpectralRule):
    """The constant is 1, up to rounding error."""
