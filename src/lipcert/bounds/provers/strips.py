"""The prover between exact and fast: Fourier along one axis of the image, the matrix itself along the other.

Its bound is half as far above the truth as the Fourier bound. It is for kernels that are large beside the
image when the exact prover's matrix would be too large. See docs/proofs.md, theorem 4.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from torch import Tensor

from lipcert.bounds.provers.fourier import (
    GRIDS,
    Largest,
    half_frequencies,
    norm_estimate,
    real_matrix,
    symbol,
    symbol_error,
)
from lipcert.bounds.provers.geometry import Geometry
from lipcert.bounds.provers.rounding import sum_up
from lipcert.bounds.provers.squaring import largest_by_squaring


@dataclass(frozen=True)
class Strip:
    """The axis that is kept exact (cells of inputs, outputs) and the circle that replaces the other."""

    axis: int
    first: int
    last: int
    outputs: int
    circle: int

    @classmethod
    def of(cls, g: Geometry) -> Strip:
        """Keep the axis exact on which the kernel is the larger part of the image."""
        axis = max((0, 1), key=lambda a: (g.taps[a] - 1) / g.cells[a])
        return cls(axis, *g.seen(axis), g.output[axis], g.cells[1 - axis])

    @property
    def cells(self) -> int:
        """Return the number of inputs along the exact axis."""
        return self.last - self.first + 1

    def cost(self, weight: Tensor) -> int:
        """Count the multiplications for the Gram matrices of all frequencies."""
        sides = (2 * weight.shape[0] * self.outputs, 2 * weight.shape[1] * self.cells)
        return (self.circle // 2 + 1) * min(sides) ** 2 * max(sides)


def strip_norm_upper(weight: Tensor, strip: Strip, largest: Largest = largest_by_squaring) -> float:
    """Bound a convolution of (o, i, k₁, k₂) kernels over cells; weights at most 1, float64.

    As in the Fourier bound, larger circles and a twist serve as well: the best by estimate is proved.
    """
    outputs, inputs, *_ = weight.shape
    kernels = weight if strip.axis == 0 else weight.mT  # the exact axis first
    choices = itertools.product(range(strip.circle, strip.circle + GRIDS), (0, 1))
    circle, twist = min(choices, key=lambda choice: _estimate(kernels, strip, *choice))
    norm = largest(
        lambda chunk: _parts(kernels, strip, circle, chunk),
        half_frequencies((1, circle), (0, twist)),
        outputs * strip.outputs,
        inputs * strip.cells,
    )
    return sum_up(norm, symbol_error(weight))


def _estimate(kernels: Tensor, strip: Strip, circle: int, twist: int) -> float:
    frequencies = half_frequencies((1, circle), (0, twist))
    return max(norm_estimate(real_matrix(*_parts(kernels, strip, circle, one[None]))) for one in frequencies)


def _parts(kernels: Tensor, strip: Strip, circle: int, frequencies: Tensor) -> tuple[Tensor, Tensor]:
    """Return real and imaginary parts of the matrix of every frequency, (F, outputs·o, cells·i) each."""
    outputs, inputs, taps, across = kernels.shape
    rows = kernels.permute(2, 0, 1, 3).reshape(taps * outputs, inputs, 1, across)
    parts = symbol(rows, (1, circle), frequencies)  # each (F, taps·o, i)
    real, imag = (_banded(part.view(-1, taps, outputs, inputs), strip) for part in parts)
    return real, imag


def _banded(blocks: Tensor, strip: Strip) -> Tensor:
    """Return the matrix whose block (y, x) is tap x − y of (F, taps, o, i): (F, outputs·o, cells·i)."""
    count, taps, outputs, inputs = blocks.shape
    whole = blocks.new_zeros(count, strip.outputs, outputs, strip.cells, inputs)
    for y in range(strip.outputs):
        low, high = max(y, strip.first), min(y + taps - 1, strip.last)
        if low > high:  # sees only padding
            continue
        seen = blocks[:, low - y : high - y + 1].transpose(1, 2)  # (F, o, cells, i)
        whole[:, y, :, low - strip.first : high - strip.first + 1] = seen
    return whole.view(count, strip.outputs * outputs, strip.cells * inputs)
