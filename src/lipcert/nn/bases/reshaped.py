r"""Convolutions by their reshaped kernel: a matrix (out, in·k₁·k₂) that multiplies every patch of an image.

A pixel lies in at most $r = \prod \lceil k \gcd(s, d) / s \rceil$ patches (kernel k, stride s, dilation d),
so the norm of a convolution is at most √r times that of the matrix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lipcert.errors import InputError
from lipcert.nn.bases.conv2d import DerivedConv2d


def most_patches(kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> int:
    """Return in how many patches a pixel lies at most.

    Example:
        >>> most_patches((3, 3), (1, 1), (1, 1)), most_patches((4, 2), (2, 2), (1, 2))
        (9, 4)
    """
    axes = zip(kernel, stride, dilation, strict=True)
    return math.prod(-(-k * math.gcd(s, d) // s) for k, s, d in axes)


class ReshapedConv2d(DerivedConv2d):
    """A convolution whose matrices are made one per group, and divided by √r."""

    takes_groups = True

    def matrices(self, raw: Tensor) -> Tensor:
        """Return the matrices (groups, out/groups, in/groups·k₁·k₂) for raw ones."""
        raise NotImplementedError

    def first(self, shape: Sequence[int]) -> Tensor:
        """Return random matrices with orthonormal rows or columns, one per group."""
        parts = [torch.empty(shape[0] // self.groups, *shape[1:]) for _ in range(self.groups)]
        return torch.cat([nn.init.orthogonal_(part) for part in parts])

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return the kernels."""
        (raw,) = sources
        found = self.matrices(raw.reshape(self.groups, raw.shape[0] // self.groups, -1))
        patches = most_patches(raw.shape[2:], self.stride, self.dilation)
        return ((found * patches**-0.5).view_as(raw),)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve with the derived kernels."""
        require_whole_strides(self, x)
        return super().forward(x)


def require_whole_strides(layer: DerivedConv2d, x: Tensor) -> None:
    """Raise where patches would overlap around a circle that the stride does not divide."""
    axes = zip(x.shape[-2:], layer.stride, strict=True)
    if layer.padding_mode != "circular" or not any(n % s for n, s in axes):
        return
    expected = f"expected sides divisible by the stride {layer.stride}, got {tuple(x.shape[-2:])}"
    raise InputError(f"{type(layer).__name__}: with circular padding {expected}: pad or crop the image")
