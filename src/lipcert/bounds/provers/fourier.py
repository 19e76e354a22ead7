"""The fast prover for convolutions: the largest norm of their symbol, frequency by frequency.

A zero-padded convolution is a circular one on a large enough grid, with its input embedded and its output
cropped, so its norm is at most that of the circular one. That norm is the largest norm of a small matrix over
the grid's frequencies. A stride turns it into a convolution of phases. See docs/proofs.md, theorem 4.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from lipcert.bounds.provers.factorisation import gram_upper, nu
from lipcert.bounds.provers.rounding import SAFETY, U, gamma, sqrt_up, sum_up

# Numbers in the matrices that are proved at once.
_CHUNK = 1 << 23

# Numbers in all the symbols that are tried before one is proved.
_SEARCHED = 1 << 23

# The most grids per axis that are tried, from the smallest up.
GRIDS = 3

# Real and imaginary parts (F, o, i) of the matrices of some frequencies.
Parts = Callable[[Tensor], tuple[Tensor, Tensor]]

# A bound of the norms of all such matrices, given the frequencies, o and i.
Largest = Callable[[Parts, Tensor, int, int], float]

# A twist per axis: 0 wraps around unchanged, 1 with the sign flipped.
Twist = tuple[int, int]
NO_TWIST: Twist = (0, 0)


def largest_norm_upper(parts: Parts, frequencies: Tensor, rows: int, columns: int) -> float:
    """Bound the norms of complex (rows, columns) matrices by theorem 1, some frequencies at a time."""
    side, length = 2 * min(rows, columns), 2 * max(rows, columns)
    step = max(1, _CHUNK // (side * length))
    largest = 0.0
    for chunk in torch.split(frequencies, step):
        a = real_matrix(*parts(chunk))
        a = a if rows <= columns else a.mT
        largest = gram_upper(a @ a.mT, terms=length, absolute=nu(a), floor=largest)
    return sqrt_up(largest)


def embedded_norm_upper(
    weight: Tensor, grid: tuple[int, int], largest: Largest = largest_norm_upper
) -> float:
    """Bound a convolution embedded in a grid on which nothing wraps around.

    A larger grid serves as well, and so does one that flips the sign of what would wrap around: their
    frequencies lie elsewhere and may miss the peaks of the symbol. As many as are cheap are tried.
    """
    numbers = 4 * weight.shape[0] * weight.shape[1] * len(half_frequencies(grid, NO_TWIST))
    choices = _choices(grid)[: max(1, _SEARCHED // numbers)]

    def estimate(choice: tuple[tuple[int, int], Twist]) -> float:
        return norm_estimate(real_matrix(*symbol(weight, choice[0], half_frequencies(*choice))))

    best = min(choices, key=estimate) if len(choices) > 1 else choices[0]
    return circular_norm_upper(weight, *best, largest)


def _choices(grid: tuple[int, int]) -> list[tuple[tuple[int, int], Twist]]:
    """Return grids and twists, small grids first."""
    grids = sorted(itertools.product(*(range(n, n + GRIDS) for n in grid)), key=sum)
    return [((down, right), (i, j)) for down, right in grids for i in (0, 1) for j in (0, 1)]


def norm_estimate(a: Tensor) -> float:
    """Estimate the largest norm of (F, n, m) matrices by short power iteration, to choose what to prove."""
    v = a.new_ones(len(a), a.shape[2], 1)
    v += 0.5 * torch.cos(torch.arange(a.shape[2], dtype=a.dtype, device=a.device))[:, None]
    for _ in range(4):
        v = a.mT @ (a @ v)
        v = v / torch.linalg.vector_norm(v, dim=1, keepdim=True).clamp_min(U)
    return float(torch.linalg.vector_norm(a @ v, dim=(1, 2)).max())


def circular_norm_upper(
    weight: Tensor, grid: tuple[int, int], twist: Twist = NO_TWIST, largest: Largest = largest_norm_upper
) -> float:
    """Bound the circular convolution of (o, i, k₁, k₂) kernels on a grid; weights at most 1, float64."""
    outputs, inputs, *_ = weight.shape
    frequencies = half_frequencies(grid, twist)
    norm = largest(lambda chunk: symbol(weight, grid, chunk), frequencies, outputs, inputs)
    return sum_up(norm, symbol_error(weight))


def symbol_error(weight: Tensor) -> float:
    """Bound how far rounding and the tabulated cosines move the symbol, in the Frobenius norm."""
    taps = weight[0, 0].numel()
    whole = float(torch.linalg.vector_norm(weight.abs().sum((2, 3))))
    return SAFETY * (gamma(4 * taps + 8) + 16 * U) * whole


def polyphase(weight: Tensor, stride: tuple[int, int]) -> Tensor:
    """Return the kernels of a strided convolution as stride-1 kernels over the phases of its input.

    The shape is (o, i, k₁, k₂) → (o, i·s₁·s₂, ⌈k₁/s₁⌉, ⌈k₂/s₂⌉), zero beyond the kernel.
    """
    outputs, inputs, *kernel = weight.shape
    taps = [-(-k // s) for k, s in zip(kernel, stride, strict=True)]
    whole = weight.new_zeros(outputs, inputs, taps[0] * stride[0], taps[1] * stride[1])
    whole[:, :, : kernel[0], : kernel[1]] = weight
    split = whole.view(outputs, inputs, taps[0], stride[0], taps[1], stride[1])
    return split.permute(0, 1, 3, 5, 2, 4).reshape(outputs, -1, *taps)


def dilated(weight: Tensor, dilation: tuple[int, int]) -> Tensor:
    """Return the kernels with their dilation filled by zeros."""
    outputs, inputs, *kernel = weight.shape
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    whole = weight.new_zeros(outputs, inputs, *reach)
    whole[:, :, :: dilation[0], :: dilation[1]] = weight
    return whole


def half_frequencies(grid: tuple[int, int], twist: Twist) -> Tensor:
    """Return half of the grid's frequencies, in half steps; opposite ones have conjugate symbols."""
    half = grid[1] // 2 + 1 if twist[1] == 0 else (grid[1] + 1) // 2
    down, right = torch.meshgrid(torch.arange(grid[0]), torch.arange(half), indexing="ij")
    return torch.stack([2 * down.flatten() + twist[0], 2 * right.flatten() + twist[1]], dim=1)  # (F, 2)


def symbol(weight: Tensor, grid: tuple[int, int], frequencies: Tensor) -> tuple[Tensor, Tensor]:
    """Return Σ_q w_q e^(−πi⟨q, f⟩/grid) per frequency in half steps: real and imaginary parts (F, o, i)."""
    outputs, inputs, *kernel = weight.shape
    down, right = torch.meshgrid(torch.arange(kernel[0]), torch.arange(kernel[1]), indexing="ij")
    period = 2 * grid[0] * grid[1]
    # Exponents are integers, reduced exactly; only the table of cosines is rounded.
    turns = down.flatten() * frequencies[:, :1] * grid[1] + right.flatten() * frequencies[:, 1:] * grid[0]
    cos, sin = _table(period)
    flat = weight.reshape(outputs * inputs, -1).T  # (taps, o·i)
    real = (cos[turns % period].to(flat) @ flat).view(-1, outputs, inputs)
    imag = -(sin[turns % period].to(flat) @ flat).view(-1, outputs, inputs)
    return real, imag


def real_matrix(real: Tensor, imag: Tensor) -> Tensor:
    """Return [[Re, −Im], [Im, Re]], which has the same norm."""
    return torch.cat([torch.cat([real, -imag], dim=2), torch.cat([imag, real], dim=2)], dim=1)


def _table(period: int) -> tuple[Tensor, Tensor]:
    """Return cos and sin of 2πj/period for all j, each within 4u, by reduction to the first octant."""
    cos, sin = (torch.tensor(column, dtype=torch.float64) for column in _turns(period))
    return cos, sin


@lru_cache(maxsize=16)  # numbers only: tensors would stay on the device on which they were made first
def _turns(period: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    cos, sin = zip(*(_turn(j, period) for j in range(period)), strict=True)
    return cos, sin


def _turn(j: int, period: int) -> tuple[float, float]:
    """Return (cos, sin) of 2πj/period, by exact symmetries of the fraction 8j/period."""
    octant, rest = divmod(8 * j, period)  # angle = (octant + rest/period)·π/4
    if octant % 2:
        rest = period - rest  # measured back from the next multiple of π/2
    angle = math.pi * rest / (4 * period)
    c, s = math.cos(angle), math.sin(angle)
    pairs = [(c, s), (s, c), (-s, c), (-c, s), (-c, -s), (-s, -c), (s, -c), (c, -s)]
    return pairs[octant % 8]
