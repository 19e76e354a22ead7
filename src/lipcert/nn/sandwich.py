r"""Sandwich layers (LBDN) have an activation between two matrices that are bounded together.

Wang, Manchester. Direct Parameterization of Lipschitz-Bounded Deep Networks. ICML 2023.

$$ y = \sqrt2 A^T \Psi\, \sigma(\sqrt2 \Psi^{-1} B x + b), \qquad A A^T + B B^T = I, \quad \Psi = e^{\psi} $$

A and B come from free matrices by a Cayley transform. The executed layer is $W_2\,\sigma(W_1 x + b)$. For
any such pair, any diagonal Ψ > 0, unit vectors u, v and a diagonal D between 0 and 1

$$ u^T W_2 D W_1 v = \sum_i d_i p_i q_i \le \tfrac14 \|p + q\|^2
   \le \tfrac12 \|\,[\Psi^{-1}W_2^T,\ \Psi W_1]\,\|^2, \qquad p = \Psi^{-1}W_2^T u,\ q = \Psi W_1 v. $$

The last number is proved; it is 1 for the A and B above. A convolution is the same at every
frequency.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds import Proof, rule
from lipcert.bounds.contract import plain_type, sample_norm
from lipcert.bounds.provers.factorisation import nu
from lipcert.bounds.provers.proof_cache import remembered
from lipcert.bounds.provers.rounding import SAFETY, U, gamma, mul_up, sum_up
from lipcert.errors import InputError
from lipcert.nn.bases.derived import Built, Derived, linear_with
from lipcert.nn.bases.elementwise import EXACT, require_elementwise
from lipcert.nn.bases.spectral import (
    Spectral,
    by_frequency,
    centred_symbol,
    convolution_unit,
    norm_upper,
    require_channels,
)
from lipcert.nn.cayley import cayley, scaled
from lipcert.types import Effort, Shape


class _Sandwich(Derived):
    """The base of the dense and the convolutional sandwich layer."""

    sources = ("raw", "alpha", "psi")

    def __init__(self, raw: Tensor, outputs: int, bias: bool, activation: nn.Module | None) -> None:
        super().__init__()
        self.raw = nn.Parameter(nn.init.xavier_normal_(raw))
        self.alpha = nn.Parameter(torch.linalg.vector_norm(self.raw.detach()))
        self.psi = nn.Parameter(torch.zeros(outputs))
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None
        self.activation = nn.ReLU() if activation is None else activation
        require_elementwise(self.activation, type(self).__name__)

    def outer_and_inner(self, free: Tensor, psi: Tensor) -> tuple[Tensor, Tensor]:
        """Return W₂ and W₁."""
        n = free.shape[-2]
        both = math.sqrt(2) * cayley(free)
        return both[..., :n].mH * psi.exp(), both[..., n:] * (-psi).exp()[:, None]


class SandwichLinear(_Sandwich):
    """Put the activation between two matrices that are bounded together."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, activation: nn.Module | None = None
    ) -> None:
        if min(in_features, out_features) < 1:
            raise InputError(f"features: expected at least 1, got {in_features} and {out_features}")
        super().__init__(
            torch.empty(out_features, out_features + in_features), out_features, bias, activation
        )
        self.in_features, self.out_features = in_features, out_features

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W₂ and W₁."""
        raw, alpha, psi = sources
        return self.outer_and_inner(scaled(raw, alpha), psi)

    def forward(self, x: Tensor) -> Tensor:
        """Return W₂ σ(W₁x + b)."""
        outer, inner = self.weights()
        return F.linear(self.activation(F.linear(x, inner, self.bias)), outer)

    def plain(self) -> nn.Module:
        """Return two dense layers with the activation between them."""
        outer, inner = self.weights()
        return nn.Sequential(linear_with(inner, self.bias), self.activation, linear_with(outer, None))

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class SandwichConv2d(Spectral, _Sandwich):
    """Put the activation between two circular convolutions that are bounded together, by FFT.

    A stride is taken by space-to-depth and halves the kernel.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int] = 3,
        stride: int = 1,
        bias: bool = True,
        activation: nn.Module | None = None,
    ) -> None:
        require_channels(in_channels, out_channels, stride)
        kernel = self.kernel_under(kernel_size, stride)
        inputs = in_channels * stride**2
        raw = torch.empty(out_channels, out_channels + inputs, kernel, kernel)
        super().__init__(raw, out_channels, bias, activation)
        self.in_channels, self.out_channels, self.stride = in_channels, out_channels, stride

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W₂ and W₁ at half the frequencies of the image: (F, out, out) and (F, out, in)."""
        raw, alpha, psi = sources
        return self.outer_and_inner(centred_symbol(scaled(raw, alpha), self._size), psi)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output: (B, out, H/stride, W/stride)."""
        x, (outer, inner) = self.as_channels(x), self.weights_on(x.shape)
        before = by_frequency(x, inner)
        before = before if self.bias is None else before + self.bias[:, None, None]
        return by_frequency(self.activation(before), outer)

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.raw.shape[-1]}, stride={self.stride}"
        )


class _SandwichRule(Built):
    """The constant is ½‖[Ψ⁻¹W₂ᵀ, ΨW₁]‖² of the executed matrices."""

    def executed(self, module: Any, shape: Shape) -> tuple[Tensor, ...]:
        """Return W₂ and W₁."""
        raise NotImplementedError

    def upper(self, module: Any, shape: Shape, effort: Effort) -> Proof:
        """Prove the constant: 1, up to rounding error."""
        require_elementwise(module.activation, type(module).__name__)
        exact = torch.complex128 if isinstance(module, SandwichConv2d) else torch.float64
        outer, inner = (m.detach().to("cpu", exact) for m in self.executed(module, shape))
        balance = module.psi.detach().to("cpu", torch.float64).exp()[:, None]  # any Ψ > 0 gives a bound
        both = torch.cat([outer.mH / balance, inner * balance], dim=-1)
        numbers = torch.view_as_real(both) if both.is_complex() else both
        proof = remembered(numbers, "sandwich", lambda: norm_upper(both))
        # Entries of the matrix have one rounding error each.
        norm = sum_up(proof.value, SAFETY * 4 * U * math.sqrt(nu(both.abs())))
        return Proof(mul_up(mul_up(norm, norm), 0.5), proof.prover)


@rule(
    SandwichLinear,
    examples=[
        lambda: (SandwichLinear(6, 4), (6,)),
        lambda: (SandwichLinear(3, 8, bias=False, activation=nn.Tanh()), (3,)),
    ],
)
class SandwichLinearRule(_SandwichRule):
    """The constant of the dense sandwich layer is 1, up to rounding error."""

    def executed(self, module: SandwichLinear, shape: Shape) -> tuple[Tensor, ...]:
        """Return W₂ and W₁."""
        return module.weights()

    def roundoff(self, module: SandwichLinear, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the error by γ‖|W₂|(|W₁||x| + |b| + 2|σ| + 16)‖, with the 16 for activations that round."""
        (x,) = inputs
        outer, inner = module.weights()
        bias = None if module.bias is None else module.bias.abs()
        values = module.activation(F.linear(x, inner, module.bias)).abs()
        size = F.linear(x.abs(), inner.abs(), bias) + 2 * values + _rounded(module)
        return SAFETY * gamma(self.products(module) + 16) * sample_norm(F.linear(size, outer.abs()))

    def roundoff_gain(self, module: SandwichLinear) -> float:
        """Return three times |W₂||W₁|."""
        outer, inner = module.weights()
        return SAFETY * SAFETY * (self.products(module) + 17) * 4 * math.sqrt(nu(outer) * nu(inner))

    def products(self, module: SandwichLinear) -> int:
        """Count the products of both matrices."""
        return module.raw.shape[1] + 8


def _rounded(module: _Sandwich) -> float:
    return 0.0 if plain_type(module.activation) in EXACT else 16.0


@rule(
    SandwichConv2d,
    examples=[
        lambda: (SandwichConv2d(3, 4), (3, 6, 5)),
        lambda: (SandwichConv2d(4, 2, kernel_size=2, bias=False), (4, 4, 4)),
        lambda: (SandwichConv2d(2, 5, stride=2), (2, 4, 6)),
        lambda: (SandwichConv2d(2, 3, kernel_size=1, activation=nn.Sigmoid()), (2, 1, 1)),
    ],
)
class SandwichConvRule(_SandwichRule):
    """The constant of the sandwich convolution is 1, up to the rounding error of four FFTs."""

    def executed(self, module: SandwichConv2d, shape: Shape) -> tuple[Tensor, ...]:
        """Return W₂ and W₁: (F, …)."""
        return module.weights_on(shape)

    def roundoff(self, module: SandwichConv2d, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the error by norms, because FFTs mix all pixels."""
        (x,) = inputs
        _, inner = module.weights_on(x.shape)
        of_outer, of_inner = module.absolute_norms()
        x = module.as_channels(x)
        before, bias = by_frequency(x, inner), x.new_zeros(())
        if module.bias is not None:
            before = before + module.bias[:, None, None]
            bias = torch.linalg.vector_norm(module.bias) * math.sqrt(before[0, 0].numel())
        values = module.activation(before)
        lost = convolution_unit(module, x.shape, self.products(module))
        first = lost * (of_inner * sample_norm(x) + bias)
        activation = U * _rounded(module) * sample_norm(1 + before.abs() + values.abs())
        return SAFETY * of_outer * (first + activation + lost * sample_norm(values))

    def roundoff_gain(self, module: SandwichConv2d) -> float:
        """Return the gain of both products, and of an activation that rounds."""
        through = math.prod(module.absolute_norms())
        units = convolution_unit(module, module._size, self.products(module)) / U
        return SAFETY * SAFETY * through * (2 * units + 40)

    def products(self, module: SandwichConv2d) -> int:
        """Count the complex products of both matrices."""
        return 4 * module.raw.shape[1] + 8
