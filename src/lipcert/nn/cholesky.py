r"""Cholesky layers: rows are made orthonormal by the Cholesky factor of their products.

Hu, Leino, Wang, Fredrikson. A Recipe for Improved Certifiable Robustness. ICLR 2024.

$$ W = L^{-1}X, \qquad L L^T = X X^T + \epsilon I, \quad \epsilon = 10^{-3} \cdot \text{mean diagonal} $$

A matrix with more rows than columns is transposed before and after. The convolution takes patches that do
not overlap and multiplies each by the same matrix.

Also in orthogonium.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.errors import InputError
from lipcert.nn.bases.conv2d import DerivedConv2d, DerivedConvRule
from lipcert.nn.bases.derived import Built
from lipcert.nn.bases.linear import DerivedLinear, DerivedLinearRule
from lipcert.transforms import is_transformed

_EPSILON = 1e-3


def whitened(x: Tensor) -> Tensor:
    """Return L⁻¹X for a matrix (out, in); X = 0 stays 0.

    Example:
        >>> whitened(torch.tensor([[3.0, 0.0]]))
        tensor([[0.9995, 0.0000]])
    """
    if x.shape[0] > x.shape[1]:
        return whitened(x.T).T
    # W does not depend on the length of X. Scaling keeps the squares from overflow and underflow.
    peak = x.detach().abs().amax()
    x = x / torch.where(peak > 0, peak, 1.0)
    # A custom autograd function also fails under an active transform that does not touch the weights.
    if is_transformed(x) or torch._C._are_functorch_transforms_active():
        return _factored(x)[0]
    found: Tensor = _Whiten.apply(x)[0]  # type: ignore[no-untyped-call]
    return found


def _factored(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return W and L."""
    gram = x @ x.T
    diagonal = gram.diagonal().mean()
    ridge = torch.where(diagonal > 0, _EPSILON * diagonal, 1.0)
    positive = gram + ridge * torch.eye(len(x), dtype=x.dtype, device=x.device)
    factor, failed = torch.linalg.cholesky_ex(positive)
    # Weights that are not finite give a result that is not finite, as in other layers: training reports them.
    factor = torch.where(failed == 0, factor, torch.nan)
    return torch.linalg.solve_triangular(factor, x, upper=False), factor


class _Whiten(torch.autograd.Function):
    r"""Compute `_factored` with one solve in the backward pass, where torch takes four.

    $$ \bar X = L^{-T}\bigl(\bar W - (P + P^T)W\bigr) - cX, \qquad P = \Phi(\bar W W^T) $$

    Φ keeps the lower triangle and half of the diagonal. W does not depend on the length of X, as ε grows with
    it. So the gradient is orthogonal to X, which gives c, the whole contribution of ε.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        w, factor = _factored(x)
        ctx.save_for_backward(x, w, factor)
        ctx.mark_non_differentiable(factor)
        return w, factor

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        x, w, factor = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted
            found: Tensor = torch.autograd.grad(_factored(x)[0], x, gradients[0], create_graph=True)[0]
            return found
        p = (gradients[0] @ w.T).tril_()
        p.diagonal().mul_(0.5)
        rest = torch.addmm(gradients[0], p + p.T, w, alpha=-1)
        along: Tensor = torch.linalg.solve_triangular(factor.T.contiguous(), rest, upper=True)
        size = torch.sum(x * x)
        c = torch.sum(along * x) / torch.where(size > 0, size, 1.0)
        return torch.addcmul(along, x, c, value=-1)


class CholeskyLinear(DerivedLinear):
    """Make the rows of a dense layer orthonormal by a Cholesky factor."""

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W."""
        return (whitened(sources[0]),)


class CholeskyConv2d(DerivedConv2d):
    """Make the kernels orthonormal by a Cholesky factor, on adjacent patches: stride = side, no padding."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, bias: bool = True) -> None:
        if not isinstance(kernel_size, int) or kernel_size < 1:
            raise InputError(f"kernel_size: expected a number >= 1, got {kernel_size!r}")
        super().__init__(in_channels, out_channels, kernel_size, stride=kernel_size, bias=bias)
        nn.init.orthogonal_(self.raw)

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return the kernels."""
        (raw,) = sources
        return (whitened(raw.flatten(1)).view_as(raw),)


@rule(
    CholeskyLinear,
    examples=[lambda: (CholeskyLinear(6, 4), (6,)), lambda: (CholeskyLinear(3, 8, bias=False), (3,))],
)
class CholeskyLinearRule(Built, DerivedLinearRule):
    """The constant is at most 1, up to rounding error."""


@rule(
    CholeskyConv2d,
    examples=[
        lambda: (CholeskyConv2d(3, 4, 2), (3, 6, 4)),
        lambda: (CholeskyConv2d(2, 20, 3, bias=False), (2, 7, 6)),
    ],
)
class CholeskyConvRule(Built, DerivedConvRule):
    """The constant is at most 1, up to rounding error."""
