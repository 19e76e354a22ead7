r"""The base of CPL and SLL: a step down the gradient of a convex potential.

$$ y = x - W^T \Lambda\, \sigma(Wx + b), \qquad \Lambda = \mathrm{diag}(\lambda) \ge 0 $$

Two outputs differ by $(I - W^T \Lambda D W)(x - x')$ for a diagonal D between 0 and 1 (σ acts entry by entry,
with slopes in [0, 1]). That matrix is symmetric with eigenvalues between 1 − ‖Λ^½W‖² and 1, so the layer's
constant is at most max(1, ‖Λ^½W‖² − 1): it is 1 if ‖Λ^½W‖² ≤ 2, for any λ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds import Proof
from lipcert.bounds.contract import plain_type, sample_norm
from lipcert.bounds.precision import in_double
from lipcert.bounds.provers.convolution_norm import convolution_upper
from lipcert.bounds.provers.factorisation import nu
from lipcert.bounds.provers.geometry import Geometry
from lipcert.bounds.provers.rounding import SAFETY, U, gamma, mul_up, sum_up, up
from lipcert.bounds.rules.convolution import row_times_column
from lipcert.bounds.rules.linear import dense_upper
from lipcert.errors import InputError
from lipcert.nn.bases.conv2d import square_side
from lipcert.nn.bases.derived import Built, Derived, convolution_with, linear_with
from lipcert.nn.bases.elementwise import EXACT, require_elementwise
from lipcert.nn.blocks import Residual
from lipcert.types import Effort, Shape


class Potential(Derived):
    """The base of both layers; subclasses derive (W, λ), with one entry of λ per row of W."""

    weight: nn.Parameter
    bias: nn.Parameter
    activation: nn.Module

    def _with_activation(self, activation: nn.Module | None) -> None:
        self.activation = nn.ReLU() if activation is None else activation
        require_elementwise(self.activation, type(self).__name__)

    def into(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return Wx + b."""
        raise NotImplementedError

    def back(self, y: Tensor, weight: Tensor) -> Tensor:
        """Return Wᵀy."""
        raise NotImplementedError

    def channels(self, values: Tensor) -> Tensor:
        """Reshape one number per row of W so that it multiplies Wx."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Return x − WᵀΛσ(Wx + b)."""
        weight, steps = self.weights()
        inner = self.activation(self.into(x, weight, self.bias))
        return x - self.back(self.channels(steps) * inner, weight)


class PotentialLinear(Potential):
    """A potential layer on vectors of `features` entries, through `inner` units."""

    def __init__(self, features: int, inner: int, activation: nn.Module | None = None) -> None:
        super().__init__()
        if min(features, inner) < 1:
            raise InputError(f"features, inner: expected at least 1, got {features} and {inner}")
        self.features, self.inner = features, inner
        self.weight = nn.Parameter(nn.init.xavier_normal_(torch.empty(inner, features)))
        self.bias = nn.Parameter(torch.zeros(inner))
        self._with_activation(activation)

    def into(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return Wx + b."""
        return F.linear(x, weight, bias)

    def back(self, y: Tensor, weight: Tensor) -> Tensor:
        """Return Wᵀy."""
        return F.linear(y, weight.T)

    def channels(self, values: Tensor) -> Tensor:
        """Return the values unchanged."""
        return values

    def plain(self) -> nn.Module:
        """Return x + (−WᵀΛ) σ(Wx + b): two dense layers in a residual block."""
        weight, steps = self.weights()
        into, back = linear_with(weight, self.bias), linear_with(-weight.T * steps, None)
        return Residual(into, self.activation, back)

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return f"{self.features}, {self.inner}"


class PotentialConv2d(Potential):
    """A potential layer on images, through `inner` channels, with odd kernels, zero padding and stride 1."""

    def __init__(
        self,
        in_channels: int,
        inner: int,
        kernel_size: int | tuple[int, int] = 3,
        activation: nn.Module | None = None,
    ) -> None:
        super().__init__()
        kernel_size = square_side(kernel_size)
        if min(in_channels, inner) < 1:
            raise InputError(f"in_channels, inner: expected at least 1, got {in_channels} and {inner}")
        if kernel_size % 2 == 0:
            raise InputError(f"kernel_size: expected an odd number, got {kernel_size}")
        self.in_channels, self.inner, self.kernel_size = in_channels, inner, kernel_size
        shape = (inner, in_channels, kernel_size, kernel_size)
        self.weight = nn.Parameter(nn.init.xavier_normal_(torch.empty(shape)))
        self.bias = nn.Parameter(torch.zeros(inner))
        self._with_activation(activation)

    def into(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return Wx + b."""
        return F.conv2d(x, weight, bias, padding=self.kernel_size // 2)

    def back(self, y: Tensor, weight: Tensor) -> Tensor:
        """Return Wᵀy."""
        return F.conv_transpose2d(y, weight, padding=self.kernel_size // 2)

    def channels(self, values: Tensor) -> Tensor:
        """Return the values as (inner, 1, 1)."""
        return values[:, None, None]

    def plain(self) -> nn.Module:
        """Return a residual block of two convolutions: Wᵀ has the kernels of W, flipped."""
        weight, steps = self.weights()
        into = convolution_with(weight, self.bias)
        turned = -(weight * steps[:, None, None, None]).transpose(0, 1).flip(2, 3)
        back = convolution_with(turned, None)
        return Residual(into, self.activation, back)

    def geometry(self, shape: Shape) -> Geometry:
        """Return the geometry of the convolution W."""
        k, p = self.kernel_size, self.kernel_size // 2
        return Geometry((shape[-2], shape[-1]), (k, k), (1, 1), ((p, p), (p, p)), (1, 1), 1, "zeros")

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return f"{self.in_channels}, {self.inner}, kernel_size={self.kernel_size}"


class PotentialRule(Built):
    """The constant is max(1, ‖Λ^½W‖² − 1) of the executed W and λ."""

    def upper(self, module: Any, shape: Shape, effort: Effort) -> Proof:
        """Prove the constant: 1, unless λ is too large for W."""
        require_elementwise(module.activation, type(module).__name__)
        weight, steps = (in_double(w) for w in module.weights())
        if not bool((steps >= 0).all()):
            raise InputError("expected steps >= 0, got a negative number or NaN")
        scaled = weight * steps.sqrt().view(-1, *[1] * (weight.ndim - 1))
        proof = self._norm(module, scaled, shape, effort)
        # Entries of the scaled weight have two rounding errors each.
        norm = sum_up(proof.value, SAFETY * 4 * U * math.sqrt(absolute(scaled)))
        square = mul_up(norm, norm)
        return Proof(1.0 if square <= 2 else up(square - 1), proof.prover)

    def _norm(self, module: Any, scaled: Tensor, shape: Shape, effort: Effort) -> Proof:
        if isinstance(module, PotentialConv2d):
            return convolution_upper(scaled, module.geometry(shape), effort)
        return dense_upper(scaled)

    def roundoff(self, module: Any, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        r"""Bound the error by γ‖|W|ᵀλ(|W||x| + |b| + 2|σ| + 16) + |x| + |y|‖, 16 for activations that round.

        With slopes of at most 1, |σ| ≤ |W||x| + |b| + |σ(0)|.
        """
        (x,) = inputs
        weight, steps = module.weights()
        size = 3 * module.into(x.abs(), weight.abs(), module.bias.abs())
        size = size + 2 * module.activation(x.new_zeros(())).abs()
        size = size + (0.0 if plain_type(module.activation) in EXACT else 16.0)
        carried = module.back(module.channels(steps) * size, weight.abs())
        total = sample_norm(carried + x.abs() + output.abs())
        return SAFETY * gamma(self.products(module) + 16) * total

    def roundoff_gain(self, module: Any) -> float:
        """Return three times |W|ᵀλ|W|, plus twice the residual connection."""
        weight, steps = module.weights()
        through = absolute(weight) * float(steps.max())
        return SAFETY * SAFETY * (self.products(module) + 17) * (4 * through + 2)

    def products(self, module: Any) -> int:
        """Count the products of W and of Wᵀ, and a few other rounding errors."""
        weight = module.weight
        return int(weight[0].numel() + weight[:, 0].numel()) + 8


def absolute(weight: Tensor) -> float:
    """Bound ‖|W|‖₂² of a matrix or a convolution."""
    weight = weight.detach().double()
    return nu(weight) if weight.ndim == 2 else row_times_column(weight, 1)


__all__ = ["PotentialConv2d", "PotentialLinear", "PotentialRule", "absolute"]
