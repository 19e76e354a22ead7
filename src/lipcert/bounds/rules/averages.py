"""Averages over windows whose size follows from the input: adaptive pooling and means over dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Self

from torch import Tensor, nn

from lipcert.bounds.contract import Constant, rule
from lipcert.bounds.provers.rounding import sqrt_up, up
from lipcert.bounds.rules.linear import dot_gain, dot_roundoff
from lipcert.errors import UnknownBoundError
from lipcert.types import Shape


class Mean(nn.Module):
    """A module that averages over dimensions, of which the batch is none."""

    def __init__(self, *dims: int, keepdim: bool = False) -> None:
        super().__init__()
        self.dims = dims
        self.keepdim = keepdim

    def forward(self, x: Tensor) -> Tensor:
        """Return the means."""
        return x.mean(self.dims, self.keepdim)


class Averages(Constant):
    r"""A rule for averages A over windows: ‖A‖² ≤ ‖A‖₁‖A‖_∞, where rows sum to 1.

    The sizes of the windows, and so everything the rule says, belong to one shape of inputs (`on`).
    """

    def __init__(self, shape: Shape | None = None) -> None:
        super().__init__()
        self.shape = shape

    def on(self, module: nn.Module, shape: Shape) -> Self:
        """Return the rule for inputs of this shape."""
        return type(self)(shape)

    def axes(self, module: Any, shape: Shape) -> list[list[range]]:
        """Return the windows along every averaged axis."""
        raise NotImplementedError

    def constant(self, module: nn.Module, shape: Shape | None) -> float:
        """Return the root of the largest sum of a column, the product of that of every axis."""
        column = math.prod(_largest_column(windows) for windows in self._axes(module, shape))
        return 1.0 if column == 1 else sqrt_up(up(float(column)))  # the fraction is exact

    def _axes(self, module: nn.Module, shape: Shape | None = None) -> list[list[range]]:
        known = shape or self.shape
        if known is None:
            raise NotImplementedError(f"{type(self).__name__} needs the shape of the inputs: rule.on(…)")
        return self.axes(module, known)

    def roundoff(self, module: nn.Module, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the error of a sum of entries and its divisions."""
        return dot_roundoff(module(inputs[0].abs()), self.products(module))

    def roundoff_gain(self, module: nn.Module) -> float:
        """Return the gain: averages of absolute values grow as the averages do."""
        return dot_gain(self.constant(module, None) ** 2, self.products(module))

    def products(self, module: nn.Module) -> int:
        """Count the entries of the largest window, and up to three divisions by rounded numbers."""
        return math.prod(max(map(len, windows)) for windows in self._axes(module)) + 3


def _largest_column(windows: Sequence[range]) -> Fraction:
    """Return the largest Σ 1/length over the windows that contain one entry, exactly."""
    sums: dict[int, Fraction] = {}
    for window in windows:
        for place in window:
            sums[place] = sums.get(place, Fraction(0)) + Fraction(1, len(window))
    return max(sums.values())


@rule(
    Mean,
    examples=[
        lambda: (Mean(2, 3), (3, 4, 5)),
        lambda: (Mean(-1, keepdim=True), (2, 6)),
        lambda: (Mean(1, 2, 3, keepdim=True), (2, 3, 3)),
    ],
)
class MeanRule(Averages):
    r"""The constant is $1/\sqrt n$ for means of n entries: one window per axis."""

    def axes(self, module: Mean, shape: Shape) -> list[list[range]]:
        """Return one window along every averaged dimension."""
        count = len(shape) + 1  # with the batch
        dims = [dim % count for dim in module.dims if -count <= dim < count]
        if 0 in dims or len(set(dims)) < len(module.dims) or not dims:
            raise UnknownBoundError(f"a mean over the dimensions {module.dims} mixes or drops the batch")
        return [[range(shape[dim - 1])] for dim in dims]


@rule(
    nn.AdaptiveAvgPool1d,
    nn.AdaptiveAvgPool2d,
    examples=[
        lambda: (nn.AdaptiveAvgPool1d(1), (2, 7)),
        lambda: (nn.AdaptiveAvgPool1d(3), (2, 7)),
        lambda: (nn.AdaptiveAvgPool2d((1, 1)), (3, 4, 5)),
        lambda: (nn.AdaptiveAvgPool2d(2), (2, 6, 4)),
        lambda: (nn.AdaptiveAvgPool2d((3, 2)), (2, 7, 5)),
        lambda: (nn.AdaptiveAvgPool2d((None, 2)), (1, 3, 5)),
        lambda: (nn.AdaptiveAvgPool2d((5, 7)), (1, 3, 4)),
    ],
)
class AdaptiveAveragesRule(Averages):
    r"""The constant is $1/\sqrt k$ for disjoint windows of k pixels; a shared pixel counts in each."""

    def axes(self, module: Any, shape: Shape) -> list[list[range]]:
        """Return torch's windows: output i averages the pixels from ⌊in/o⌋ to below ⌈(i+1)n/o⌉."""
        count = 1 if isinstance(module, nn.AdaptiveAvgPool1d) else 2
        sizes = module.output_size
        asked = list(sizes) if isinstance(sizes, list | tuple) else [sizes] * count
        lengths = shape[-count:]
        return [
            [range(i * n // o, -(-(i + 1) * n // o)) for i in range(o)]
            for n, o in zip(
                lengths, [n if o is None else o for n, o in zip(lengths, asked, strict=True)], strict=True
            )
        ]
