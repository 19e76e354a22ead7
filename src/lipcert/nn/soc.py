r"""SOC: skew orthogonal convolutions, the exponential of a skew-symmetric convolution by its Taylor series.

Singla, Feizi. Skew Orthogonal Convolutions. ICML 2021.

$$ y = \sum_{j \le T} \frac{A^{j} x}{j!}, \qquad A = \tfrac12 (M - M^T) $$

with T = 5 terms in training and 12 after it by default. The kernels of A are divided by the
smallest norm of their unfoldings, times 0.7, so ‖A‖ ≤ 0.7k. The executed A is exactly skew: its
eigenvalues are iθ with |θ| ≤ ‖A‖, and the layer's norm is the largest |Σ (iθ)^j/j!|.

Also in orthogonium.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds import Proof, rule
from lipcert.bounds.contract import sample_norm
from lipcert.bounds.krylov import first_vector, unit
from lipcert.bounds.provers.convolution_norm import convolution_upper
from lipcert.bounds.provers.geometry import Geometry
from lipcert.bounds.provers.rounding import SAFETY, U, gamma, sqrt_up, up
from lipcert.bounds.rules.convolution import row_times_column
from lipcert.bounds.rules.linear import dense_upper
from lipcert.errors import InputError
from lipcert.nn.bases.conv2d import space_to_depth, square_side
from lipcert.nn.bases.derived import Built, Derived
from lipcert.nn.bases.exponential import exponential
from lipcert.nn.bases.linear import DerivedLinear, DerivedLinearRule
from lipcert.types import Effort, Shape

TERMS = (5, 12)  # in training, in evaluation

# The unfolding of a kernel larger than 1×1 is scaled to this norm.
_SCALE = 0.7

# Power iterations per training step, and before the first step.
_ITERATIONS, _FIRST_ITERATIONS = 1, 50

# Cells per unit of ‖A‖² in which the series is bounded; larger norms are bounded by the exponential.
_CELLS, _FAR = 64, 5.0


class SOCConv2d(Derived):
    """Take the exponential of a skew kernel: orthogonal if no channel is added or left out.

    The padding is zero, the kernel odd. A stride is taken by space-to-depth first. Zero channels make more
    outputs than inputs; leaving channels out makes fewer. Where neither is needed the layer is orthogonal,
    up to the truncation of the series.
    """

    sources = ("raw", "vectors")
    fleeting = (*Derived.fleeting, "_norms")
    vectors: Tensor
    _norms: _Norms | None = None  # the norms of the last kernels

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int] = 3,
        stride: int = 1,
        bias: bool = True,
        terms: tuple[int, int] = TERMS,
    ) -> None:
        super().__init__()
        if min(terms) < 1:
            raise InputError(f"terms: expected at least 1 in training and in evaluation, got {terms}")
        kernel_size = square_side(kernel_size)
        if kernel_size % 2 == 0:
            raise InputError(f"kernel_size: expected an odd number, got {kernel_size}")
        if stride < 1:
            raise InputError(f"stride: expected at least 1, got {stride}")
        if min(in_channels, out_channels) < 1:
            raise InputError(f"channels: expected at least 1, got {in_channels} and {out_channels}")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride = kernel_size, stride
        self._terms = terms
        self.inner = max(out_channels, in_channels * stride**2)
        shape = (self.inner, self.inner, kernel_size, kernel_size)
        self.raw = nn.Parameter(torch.randn(shape) / (kernel_size * math.sqrt(self.inner)))
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None
        longest = self.inner * kernel_size**2
        start = torch.stack([first_vector((longest,), i, like=self.raw) for i in range(2)])
        self.register_buffer("vectors", start)
        self.follow(_FIRST_ITERATIONS)

    @property
    def terms(self) -> int:
        """Return T, the number of terms."""
        return self._terms[0 if self.training else 1]

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return the kernels of A, exactly skew-symmetric."""
        raw, vectors = sources
        skew = (raw - raw.transpose(0, 1).flip(2, 3)) / 2
        norm = torch.stack([_norm(m, v) for m, v in zip(unfoldings(skew), vectors, strict=True)]).amin()
        scale = 1.0 if self.kernel_size == 1 else _SCALE
        return (skew * torch.where(norm > 0, scale / torch.where(norm > 0, norm, 1.0), 0.0),)

    @torch.no_grad()
    def follow(self, times: int = _ITERATIONS) -> None:
        """Update the vectors by power iteration on the unfoldings of A."""
        skew = (self.raw - self.raw.transpose(0, 1).flip(2, 3)) / 2
        followed = []
        for matrix, vector in zip(unfoldings(skew), self.vectors, strict=True):
            v = vector[: matrix.shape[1]]
            for _ in range(times):
                v = unit(matrix.T @ unit(matrix @ v, otherwise=v.new_zeros(())), otherwise=v)
            followed.append(F.pad(v, (0, vector.numel() - v.numel())))
        self.vectors = torch.stack(followed)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output: (B, out, H/stride, W/stride)."""
        (kernels,) = self.weights()
        y = self.exponential(self.widened(x), kernels)
        return y if self.bias is None else y + self.bias[:, None, None]

    def widened(self, x: Tensor) -> Tensor:
        """Move space to depth, then append zero channels."""
        x = space_to_depth(x, self.stride, self)
        return F.pad(x, (0, 0, 0, 0, 0, self.inner - x.shape[1]))

    def exponential(self, x: Tensor, kernels: Tensor) -> Tensor:
        """Return Σ A^j x/j! = x + A(x + A(x + …)/2)/1, of the channels that are kept."""
        total, kept = x, slice(self.out_channels)
        for j in range(self.terms, 1, -1):
            total = torch.add(x, F.conv2d(total, kernels, padding=self.kernel_size // 2), alpha=1 / j)
        return x[:, kept] + F.conv2d(total, kernels[kept], padding=self.kernel_size // 2)

    def norms(self) -> tuple[float, float]:
        """Bound ‖A‖ and ‖|A|‖ on images of any size, for the rounding error of the series."""
        (kernels,) = self.weights()
        if self._norms is None or not (self.is_fixed or self._norms.of is kernels):
            self._norms = _Norms.proved(kernels)
        return self._norms.norm, self._norms.absolute

    def fix(self) -> None:
        """Fix the weights together with their norms."""
        self.norms()
        super().fix()

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        channels = f"{self.in_channels}, {self.out_channels}"
        return f"{channels}, kernel_size={self.kernel_size}, stride={self.stride}, terms={self._terms}"


@dataclass(frozen=True)
class _Norms:
    """The proved upper bounds of ‖A‖ and ‖|A|‖ of one set of kernels."""

    of: Tensor
    norm: float
    absolute: float

    @classmethod
    def proved(cls, kernels: Tensor) -> _Norms:
        """Prove ‖A‖ by the quicker one of its unfoldings."""
        exact = kernels.detach().to("cpu", torch.float64)
        absolute = SAFETY * math.sqrt(row_times_column(exact, 1))
        return cls(kernels, SAFETY * kernels.shape[-1] * dense_upper(exact.flatten(1)).value, absolute)


class SOCLinear(DerivedLinear):
    """Take the exponential of a skew-symmetric matrix, cut to the rows and columns it needs.

    The exponential is complete, not a few terms, so the exponent needs no scaling.
    """

    def first(self) -> Tensor:
        """Return a random square matrix of the larger side."""
        side = max(self.in_features, self.out_features)
        return torch.randn(side, side) / math.sqrt(side)

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W."""
        (raw,) = sources
        take = exponential if self.training and not raw.is_meta else torch.linalg.matrix_exp
        return (take(raw - raw.T)[: self.out_features, : self.in_features],)


def unfoldings(kernels: Tensor) -> list[Tensor]:
    """Return two matrices of a convolution's kernels; k times the norm of either bounds the convolution.

    The paper has two more, (o, w) × (i, h) and i × (o, h, w). In a skew convolution they are the same two,
    transposed or with entries moved. They have the same norms, and ties would leave the gradient to rounding.
    """
    o, i, h, w = kernels.shape
    return [kernels.permute(0, 2, 1, 3).reshape(o * h, i * w), kernels.reshape(o, i * h * w)]


def _norm(matrix: Tensor, vector: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(matrix @ vector[: matrix.shape[1]])
    return norm


def series_upper(norm: float, terms: int) -> float:
    r"""Bound |Σ_{j≤T} (iθ)^j/j!| for |θ| ≤ norm, in rational arithmetic.

    Its square is 1 + s^m r(s), a polynomial in s = θ². On a cell [a, b] r is at most the sum of its positive
    terms at b and its negative ones at a.

    Example:
        >>> series_upper(2.1, terms=12)
        1.0
    """
    if norm > _FAR:
        return up(math.exp(norm) * SAFETY) if norm < 700 else math.inf
    # The cells have few digits and are the same for every norm, so all of them are bounded at once.
    return _largest(terms)[math.ceil(norm * norm * _CELLS * SAFETY)]


@lru_cache(maxsize=4)
def _largest(terms: int) -> list[float]:
    """Return the bound on [0, i/_CELLS] for every i."""
    coefficients = _square(terms)
    lowest = next(k for k, c in enumerate(coefficients) if k and c)
    found, excess = [1.0], Fraction(0)
    for i in range(math.ceil(_FAR**2 * _CELLS * SAFETY) + 1):
        a, b = Fraction(i, _CELLS), Fraction(i + 1, _CELLS)
        rest = sum(c * (b if c > 0 else a) ** (k - lowest) for k, c in enumerate(coefficients) if k >= lowest)
        excess = max(excess, rest * b**lowest)
        found.append(1.0 if excess == 0 else sqrt_up(up(float(1 + excess))))
    return found


@lru_cache(maxsize=4)
def _square(terms: int) -> list[Fraction]:
    """Return the coefficients of |Σ (iθ)^j/j!|² in s = θ²: odd powers of θ cancel."""
    found = [Fraction(0)] * (terms + 1)
    for j in range(terms + 1):
        for k in range(terms + 1):
            if (j + k) % 2 == 0:  # i^j·conj(i^k) is real
                sign = (-1) ** (((j - k) // 2) % 2)
                found[(j + k) // 2] += Fraction(sign, math.factorial(j) * math.factorial(k))
    return found


@rule(
    SOCConv2d,
    examples=[
        lambda: (SOCConv2d(4, 4), (4, 6, 5)),
        lambda: (SOCConv2d(2, 6, bias=False), (2, 3, 3)),
        lambda: (SOCConv2d(3, 2, kernel_size=5), (3, 5, 5)),
        lambda: (SOCConv2d(2, 3, stride=2), (2, 6, 4)),
        lambda: (SOCConv2d(5, 4, kernel_size=1), (5, 2, 2)),
        lambda: (SOCConv2d(3, 3), (3, 1, 1)),
        lambda: (SOCConv2d(3, 3, terms=(3, 8)), (3, 4, 4)),
    ],
)
class SOCRule(Built):
    """The constant is 1 up to the truncation of the series, which the proved norm of A bounds."""

    def upper(self, module: SOCConv2d, shape: Shape, effort: Effort) -> Proof:
        """Prove the constant: 1 for 3×3 kernels and twelve terms."""
        (kernels,) = (w.detach().to("cpu", torch.float64) for w in module.weights())
        if not torch.equal(kernels, -kernels.transpose(0, 1).flip(2, 3)):
            raise InputError("expected skew-symmetric kernels")
        proof = convolution_upper(kernels, _geometry(module, shape), effort)
        return Proof(series_upper(proof.value, module.terms), proof.prover)

    def roundoff(self, module: SOCConv2d, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the rounding error of the series and of the bias by norms."""
        (x,) = inputs
        bias = 0.0 if module.bias is None else torch.linalg.vector_norm(module.bias) * _pixels(output)
        return SAFETY * gamma(_products(module)) * (_series(module) * sample_norm(x) + bias)

    def roundoff_gain(self, module: SOCConv2d) -> float:
        """Return the gain of the series."""
        return SAFETY * SAFETY * gamma(_products(module)) / U * _series(module)

    def products(self, module: SOCConv2d) -> int:
        """Count the products of all terms, with their divisions and sums."""
        return module.terms * _products(module)

    def float32_underflow(self, module: SOCConv2d) -> float:
        """Return what every term may lose, carried to the end, in channels that may be left out there."""
        return module.inner * _series(module) * super().float32_underflow(module)


def _products(module: SOCConv2d) -> int:
    """Count the products in an entry of x + At/j, with room for kept weights, 1/j and the bias."""
    return module.inner * module.kernel_size**2 + 8


def _series(module: SOCConv2d) -> float:
    return series_roundings(*module.norms(), module.terms, _products(module))


def series_roundings(norm: float, absolute: float, terms: int, products: int) -> float:
    r"""Return the rounding error of evaluating x + At/j for j = T, …, 1, in units of γ‖x‖.

    `norm` is ‖A‖ and `absolute` ‖|A|‖, from above. A step rounds by γ(‖x‖ + ‖|A|‖‖t‖/j) and multiplies the
    earlier error by ‖A‖/i for every i < j, plus γ‖|A|‖ because t itself is rounded, with the γ of float32.
    Steps that would shrink the error count as 1, so that the total is no less than the numbers that any step
    adds.
    """
    unit = products * 2.0**-23  # more than γ of float32
    lengths = _lengths(norm, terms)
    carried = _carried(norm + unit * absolute, terms)
    steps = zip(carried, lengths[1:], range(1, terms + 1), strict=True)
    lost = sum(by * (1 + absolute / j * length) for by, length, j in steps)
    return lost * (1 + unit) + lengths[0] + 1  # plus the output, where the bias is added


def _lengths(norm: float, terms: int) -> list[float]:
    """Return ‖t‖ for ‖x‖ = 1: of the result, and of what enters the steps with j = 1, …, T."""
    steps = accumulate(range(terms, 0, -1), lambda t, j: 1 + norm / j * t, initial=1.0)
    return list(steps)[::-1]


def _carried(norm: float, terms: int) -> list[float]:
    """Return by how much the steps i < j enlarge the error made at j = 1, …, T; at least 1."""
    factors = accumulate((norm / i for i in range(1, terms)), operator.mul, initial=1.0)
    return [max(1.0, factor) for factor in factors]


def _pixels(output: Tensor) -> float:
    return math.sqrt(output.shape[-1] * output.shape[-2])


def _geometry(module: SOCConv2d, shape: Shape) -> Geometry:
    """Return the geometry of A, after the stride."""
    size = (shape[-2] // module.stride, shape[-1] // module.stride)
    k, p = module.kernel_size, module.kernel_size // 2
    return Geometry(size, (k, k), (1, 1), ((p, p), (p, p)), (1, 1), 1, "zeros")


@rule(
    SOCLinear,
    examples=[
        lambda: (SOCLinear(4, 4), (4,)),
        lambda: (SOCLinear(2, 5, bias=False), (2,)),
        lambda: (SOCLinear(6, 3), (6,)),
    ],
)
class SOCLinearRule(Built, DerivedLinearRule):
    """The constant is 1, up to the rounding error of the exponential."""
