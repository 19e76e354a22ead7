"""Circular convolutions by Fourier transforms that are products with real matrices, for formats without FFTs.

They are slower than an FFT and a little less accurate: one axis of length n has a relative error of at most
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lipcert.bounds.provers.rounding import gamma


def by_frequency_real(x: Tensor, matrices: Tensor) -> Tensor:
    """Convolve like `by_frequency`, with matrices given as pairs of real numbers: (F, out, in, 2)."""
    height, width = x.shape[-2:]
    half = width // 2 + 1
    cos_w, sin_w = _waves(width, half, x)
    cos_h, sin_h = _waves(height, height, x)
    real, imag = x @ cos_w, -(x @ sin_w)  # (B, in, H, half)
    real, imag = cos_h @ real + sin_h @ imag, cos_h @ imag - sin_h @ real
    real, imag = (part.flatten(2).permute(2, 1, 0) for part in (real, imag))  # (F, in, B)
    weight_real, weight_imag = matrices.unbind(-1)
    real, imag = weight_real @ real - weight_imag @ imag, weight_real @ imag + weight_imag @ real
    real, imag = (part.permute(2, 1, 0).reshape(x.shape[0], -1, height, half) for part in (real, imag))
    real, imag = cos_h @ real - sin_h @ imag, cos_h @ imag + sin_h @ real
    # The frequencies that rfft2 leaves out are the conjugates of those it returns.
    twice = torch.tensor([1.0 if 2 * k in (0, width) else 2.0 for k in range(half)]).to(x)
    out: Tensor = (real @ (twice * cos_w).T - imag @ (twice * sin_w).T) / (height * width)
    return out


def _waves(length: int, frequencies: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return cos and sin of 2πkt/n, from exact fractions of a turn: (n, frequencies) each."""
    turns = [[k * t % length / length for k in range(frequencies)] for t in range(length)]
    angles = [[2 * math.pi * turn for turn in row] for row in turns]
    cos = [[math.cos(angle) for angle in row] for row in angles]
    sin = [[math.sin(angle) for angle in row] for row in angles]
    return torch.tensor(cos, dtype=torch.float64).to(like), torch.tensor(sin, dtype=torch.float64).to(like)


def transforms_unit(*lengths: int) -> float:
    """Return the relative error of a transform along these axes and its inverse."""
    return 2 * sum(3 * math.sqrt(n + 2) * gamma(2 * n + 8) for n in lengths)
