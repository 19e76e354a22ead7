"""The sizes of a convolution on the actual input: padding, stride, dilation and their adjoints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.grad import conv2d_input

from lipcert.types import Shape

# One number for all axes, or one per axis.
Setting = int | Sequence[int]


def per_axis(values: Setting, axes: int) -> tuple[int, ...]:
    """Expand a setting to one number per axis, as torch does."""
    each = (values,) if isinstance(values, int) else tuple(values)
    return each * axes if len(each) == 1 else each


def _padding(
    module: nn.Conv1d | nn.Conv2d,
    kernel: tuple[int, int],
    dilation: tuple[int, int],
    pair: Callable[[Setting, int], tuple[int, int]],
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the padding (before, after) on each axis, as in torch."""
    if module.padding_mode != "zeros":
        edges = list(module._reversed_padding_repeated_twice)  # last axis first, as in F.pad
        ends = [(edges[i], edges[i + 1]) for i in range(0, len(edges), 2)][::-1]
        return ((0, 0), ends[0]) if len(ends) == 1 else (ends[0], ends[1])
    if module.padding == "same":
        down, right = (d * (k - 1) for k, d in zip(kernel, dilation, strict=True))
        return (down // 2, down - down // 2), (right // 2, right - right // 2)
    if module.padding == "valid":
        return (0, 0), (0, 0)
    down, right = pair(cast(Setting, module.padding), 0)
    return (down, down), (right, right)


@dataclass(frozen=True)
class Geometry:
    """A convolution without its weights; padding is (left, right) per dimension."""

    size: tuple[int, int]  # the input's height and width
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[tuple[int, int], tuple[int, int]]
    dilation: tuple[int, int]
    groups: int
    mode: str

    @classmethod
    def of(cls, module: nn.Conv1d | nn.Conv2d, shape: Shape) -> Geometry:
        """Read the geometry of a module on an input (C, H, W) or (C, L); one dimension becomes two.

        Everything is read where torch's forward reads it, so that changes by hand after construction count:
        the kernel from the weight, the padding of a mode other than zeros from the list that forward uses.
        """
        axes = 1 if isinstance(module, nn.Conv1d) else 2

        def pair(values: Setting, missing: int) -> tuple[int, int]:
            each = per_axis(values, axes)
            return (missing, each[0]) if axes == 1 else (each[0], each[1])

        kernel, dilation = pair(tuple(module.weight.shape[2:]), 1), pair(module.dilation, 1)
        return cls(
            size=pair(shape[1:], 1),
            kernel=kernel,
            stride=pair(module.stride, 1),
            padding=_padding(module, kernel, dilation, pair),
            dilation=dilation,
            groups=module.groups,
            mode=module.padding_mode,
        )

    @property
    def reach(self) -> tuple[int, int]:
        """Return the size of the dilated kernel."""
        down, right = (d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))
        return down, right

    @property
    def padded(self) -> tuple[int, int]:
        """Return the size after padding."""
        down, right = (n + a + b for n, (a, b) in zip(self.size, self.padding, strict=True))
        return down, right

    @property
    def output(self) -> tuple[int, int]:
        """Return the size after the convolution."""
        down, right = ((n - r) // s + 1 for n, r, s in zip(self.padded, self.reach, self.stride, strict=True))
        return down, right

    @property
    def cells(self) -> tuple[int, int]:
        """Return the smallest circle of each axis, in strides, on which nothing wraps around."""
        return self._axis_cells(0), self._axis_cells(1)

    def _axis_cells(self, axis: int) -> int:
        (first, last), outputs = self.seen(axis), self.output[axis]
        return max(last + 1, outputs, outputs + self.taps[axis] - 1 - first)

    def seen(self, axis: int) -> tuple[int, int]:
        """Return the first and the last cell (of one stride) with inputs that an output sees."""
        left = self.padding[axis][0] if self.mode == "zeros" else 0  # else the padded image is embedded whole
        size = self.size[axis] if self.mode == "zeros" else self.padded[axis]
        stride, outputs = self.stride[axis], self.output[axis]
        farthest = (stride * (outputs - 1) + self.reach[axis] - 1) // stride
        return left // stride, min((left + size - 1) // stride, farthest)

    @property
    def taps(self) -> tuple[int, int]:
        """Return the number of strides that the kernel covers."""
        down, right = (-(-r // s) for r, s in zip(self.reach, self.stride, strict=True))
        return down, right

    @property
    def kernel_share(self) -> float:
        """Return ((K − 1)/N)² for a kernel that reaches over K of N cells, for the larger axis.

        The true norm lies up to about half of that below the Fourier bound, and a quarter below that of
        strips.
        """
        return max(((k - 1) / n) ** 2 for k, n in zip(self.taps, self.cells, strict=True))

    @property
    def copies(self) -> int:
        """Return in how many places of the padded image one pixel can occur."""
        if self.mode == "zeros":
            return 1
        return math.prod(self._axis_copies(axis) for axis in (0, 1))

    def _axis_copies(self, axis: int) -> int:
        n = self.size[axis]
        places = torch.arange(n, dtype=torch.float64).view(1, 1, 1, n)
        padded = F.pad(places, (*self.padding[axis], 0, 0), mode=self.mode).flatten().long()
        return int(padded.bincount().max())

    def pad(self, x: Tensor) -> Tensor:
        """Return the padded image."""
        edges = (*self.padding[1], *self.padding[0])
        if not any(edges):
            return x
        return F.pad(x, edges) if self.mode == "zeros" else F.pad(x, edges, mode=self.mode)

    def unpad(self, x: Tensor) -> Tensor:
        """Apply the adjoint of `pad`, which adds up copies."""
        (up, _), (left, _) = self.padding
        if self.mode == "zeros":
            return x[..., up : up + self.size[0], left : left + self.size[1]]
        origin = x.new_zeros(*x.shape[:-2], *self.size)
        added: Tensor = torch.func.vjp(self.pad, origin)[1](x)[0]
        return added

    def convolve(self, x: Tensor, weight: Tensor) -> Tensor:
        """Return W x."""
        return F.conv2d(self.pad(x), weight, stride=self.stride, dilation=self.dilation, groups=self.groups)

    def transpose(self, y: Tensor, weight: Tensor) -> Tensor:
        """Return Wᵀ y, of exactly the input's size, including rows that the stride skips at the far edge."""
        (up, down), (left, right) = self.padding
        plain = self.mode == "zeros" and up == down and left == right
        size = self.size if plain else self.padded
        channels = weight.shape[1] * self.groups
        whole: Tensor = conv2d_input(  # type: ignore[no-untyped-call]
            (y.shape[0], channels, *size),
            weight,
            y,
            stride=self.stride,
            padding=(up, left) if plain else 0,
            dilation=self.dilation,
            groups=self.groups,
        )
        return whole if plain else self.unpad(whole)
