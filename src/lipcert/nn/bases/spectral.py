r"""Convolutions executed frequency by frequency: one matrix between channels per frequency of an image.

$$ \hat y(f) = W(f)\,\hat x(f), \qquad \|W\| = \max_f \|W(f)\|_2 $$

This is exact on a circle. A zero-padded image is placed on a larger circle and its output is cut out again,
which increases no distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds import Proof
from lipcert.bounds.contract import sample_norm
from lipcert.bounds.precision import in_double
from lipcert.bounds.provers.factorisation import nu, scale_to_one, spectral_norm_upper
from lipcert.bounds.provers.fourier import largest_norm_upper
from lipcert.bounds.provers.proof_cache import remembered
from lipcert.bounds.provers.rounding import SAFETY, U, gamma, ldexp_up
from lipcert.errors import InputError
from lipcert.nn.bases.conv2d import space_to_depth, square_side
from lipcert.nn.bases.derived import Built, Derived
from lipcert.nn.bases.real_fourier import by_frequency_real, transforms_unit
from lipcert.types import Effort, Shape

# FFTs add pixels for any weights: an overflow of their sums must be noticed where W is 0.
_LEAST_NORM = 2.0**-20


class Spectral(Derived):
    """A layer whose weights depend on the size of the image."""

    raw: nn.Parameter
    stride: int
    halves_kernel: ClassVar[bool] = True  # with a stride, because space-to-depth doubles the reach
    pads: ClassVar[bool] = False  # zeros around the image, up to the kernel's reach

    fleeting: ClassVar[tuple[str, ...]] = ("_kept", "_size")
    _size: tuple[int, int] = (0, 0)
    _norms: tuple[float, ...] | None = None  # kept while the weights are fixed

    @property
    def padding(self) -> int:
        """Return the number of zeros on each side."""
        return self.raw.shape[-1] // 2 if self.pads else 0

    def kernel_under(self, kernel_size: int | tuple[int, int], stride: int) -> int:
        """Return the side of the kernel after space-to-depth."""
        side = square_side(kernel_size)
        return max(1, side // 2) if stride > 1 and self.halves_kernel else side

    def grid(self, shape: Sequence[int]) -> tuple[int, int]:
        """Return the size of the circle on which images of this shape are convolved."""
        down, right = (n // self.stride + 2 * self.padding for n in shape[-2:])
        return down, right

    def weights_on(self, shape: Sequence[int]) -> tuple[Tensor, ...]:
        """Return the weights that are executed on images of this shape."""
        size, kind = self.grid(shape), type(self).__name__
        if size != self._size and self.is_fixed:
            raise InputError(f"{kind}: fixed for images of {self._size}, got {size}")
        if size != self._size:
            self._size, self._kept = size, None
        kernel = self.raw.shape[-1]
        if min(size) < kernel:
            raise InputError(
                f"{kind}: the kernel ({kernel}) is larger than the image {size}: use a smaller one"
            )
        return self.weights()

    def as_channels(self, x: Tensor) -> Tensor:
        """Move space to depth, and refuse half precision, which is too coarse for FFTs."""
        if x.dtype in (torch.float16, torch.bfloat16):
            kind = type(self).__name__
            raise InputError(f"{kind}: half precision is too coarse for its FFTs; use float32")
        return space_to_depth(x, self.stride, self)

    def absolute_norms(self) -> tuple[float, ...]:
        """Bound the norm of |W| from above for every weight, at the worst frequency; never 0."""
        if self._norms is not None:
            return self._norms
        return tuple(max(_LEAST_NORM, math.sqrt(nu(weight.abs()))) for weight in self.weights())

    def fix(self) -> None:
        """Fix the weights and their norms for the image size of the last call."""
        if min(self._size) < 1:
            raise InputError(f"{type(self).__name__}: call the layer on an image first to set the size")
        self._norms = self.absolute_norms()
        super().fix()


def require_channels(in_channels: int, out_channels: int, stride: int) -> None:
    """Raise unless there is at least one of each."""
    if min(in_channels, out_channels, stride) < 1:
        given = f"{in_channels}, {out_channels} and {stride}"
        raise InputError(f"channels, stride: expected at least 1, got {given}")


class SpectralConv2d(Spectral):
    """A convolution with one matrix per frequency, made by `symbols` from the spectrum of the raw kernels."""

    sources: ClassVar[tuple[str, ...]] = ("raw",)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int] = 3,
        stride: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        require_channels(in_channels, out_channels, stride)
        self.in_channels, self.out_channels, self.stride = in_channels, out_channels, stride
        kernel = self.kernel_under(kernel_size, stride)
        self.raw = nn.Parameter(self.first(self.inner, kernel))
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None

    @property
    def inner(self) -> int:
        """Return the number of input channels after the stride."""
        return self.in_channels * self.stride**2

    def first(self, inputs: int, kernel: int) -> Tensor:
        """Return the initial raw kernels."""
        raise NotImplementedError

    def symbols(self, spectrum: Tensor) -> Tensor:
        """Return the matrices (F, out, in) for the spectrum of the raw kernels."""
        raise NotImplementedError

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W at half the frequencies of the circle: (F, out, in)."""
        return (self.symbols(centred_symbol(sources[0], self._size)),)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output: (B, out, H/stride, W/stride)."""
        (matrices,) = self.weights_on(x.shape)
        y = self.convolved(self.as_channels(x), matrices)
        return y if self.bias is None else y + self.bias[:, None, None]

    def convolved(self, x: Tensor, matrices: Tensor) -> Tensor:
        """Convolve on the circle, and cut the padding off again."""
        p = self.padding
        if p == 0:
            return by_frequency(x, matrices)
        return by_frequency(F.pad(x, (p, p, p, p)), matrices)[..., p:-p, p:-p]

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.raw.shape[-1]}, stride={self.stride}"
        )


def centred_symbol(kernels: Tensor, size: tuple[int, int]) -> Tensor:
    """Transform circular kernels around their middle, at the frequencies of rfft2: (F, out, in)."""
    middle = (kernels.shape[-1] - 1) // 2
    down = torch.fft.fftfreq(size[0], device=kernels.device, dtype=kernels.dtype)
    right = torch.fft.rfftfreq(size[1], device=kernels.device, dtype=kernels.dtype)
    turn = -2 * math.pi * middle * (down[:, None] + right)  # (H, W/2 + 1)
    shift = torch.polar(torch.ones_like(turn), turn)
    spectrum = torch.fft.rfft2(kernels, s=size).conj() * shift  # (out, in, H, W/2 + 1)
    return cast(Tensor, spectrum.flatten(2).permute(2, 0, 1))


def by_frequency(x: Tensor, matrices: Tensor) -> Tensor:
    """Convolve on a circle with matrices at the frequencies of rfft2: (B, in, H, W) → (B, out, H, W)."""
    if not matrices.is_complex():
        return by_frequency_real(x, matrices)
    size = x.shape[-2:]
    spectrum = torch.fft.rfft2(x).flatten(2).permute(2, 1, 0)  # (F, in, B)
    product = (matrices @ spectrum).permute(2, 1, 0)  # (B, out, F)
    out: Tensor = torch.fft.irfft2(product.unflatten(2, (size[0], size[1] // 2 + 1)), s=size)
    return out


# The error of one FFT, in units of log₂ of its length: generous for the usual algorithms, whose constant is
# below 4 (Higham, Accuracy and Stability of Numerical Algorithms, theorem 24.2).
_FFT = 16


def convolution_unit(module: Spectral, size: Sequence[int], products: int) -> float:
    """Return the error of two FFTs and the product between them, relative to ‖|W|‖‖x‖."""
    if module.is_fixed:
        return gamma(products + 16) + transforms_unit(size[-2], size[-1])
    return gamma(products + 16) + 2 * _FFT * math.log2(2 * size[-2] * size[-1]) * U


def norm_upper(matrices: Tensor) -> Proof:
    """Bound the norm of a matrix, or the largest norm of complex matrices (F, n, m)."""
    if not matrices.is_complex():
        return Proof(spectral_norm_upper(matrices), "cholesky")
    small, exponent = scale_to_one(torch.view_as_real(matrices))
    if small is None:
        return Proof(0.0, "known")
    real, imag = small.unbind(-1)
    every = torch.arange(len(matrices))
    value = largest_norm_upper(lambda i: (real[i], imag[i]), every, *matrices.shape[1:])
    return Proof(ldexp_up(value, exponent), "fourier")


class SpectralRule(Built):
    """The constant is the largest norm of the executed matrices."""

    def upper(self, module: SpectralConv2d, shape: Shape, effort: Effort) -> Proof:
        """Prove the constant: 1, up to rounding error."""
        if module.is_fixed:
            raise InputError(
                f"{type(module).__name__}: its weights are fixed; prove the original layer instead"
            )
        (matrices,) = (in_double(m) for m in module.weights_on(shape))
        return remembered(torch.view_as_real(matrices), "spectral", lambda: norm_upper(matrices))

    def roundoff(self, module: SpectralConv2d, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the error by norms, because FFTs mix all pixels."""
        (x,) = inputs
        module.weights_on(x.shape)
        (size,) = module.absolute_norms()
        bias = x.new_zeros(())
        if module.bias is not None:
            bias = torch.linalg.vector_norm(module.bias) * math.sqrt(output.shape[-1] * output.shape[-2])
        return SAFETY * self._unit(module) * (size * sample_norm(x) + bias)

    def roundoff_gain(self, module: SpectralConv2d) -> float:
        """Return the gain of the product."""
        (size,) = module.absolute_norms()
        return SAFETY * SAFETY * size * self._unit(module) / U

    def _unit(self, module: SpectralConv2d) -> float:
        return convolution_unit(module, module._size, self.products(module))

    def products(self, module: Any) -> int:
        """Count the complex products, at least as many as the raw kernels have inputs."""
        return 4 * int(max(module.raw.shape[:2])) + 8
