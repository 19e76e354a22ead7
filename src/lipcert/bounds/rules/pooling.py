"""Pooling: the constant follows from the number of windows that contain one entry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.bounds.contract import Constant, Proof, rule
from lipcert.bounds.provers.gram import EXACT_SIDE, Operator, operator_norm_upper
from lipcert.bounds.provers.rounding import mul_up, sqrt_up, up
from lipcert.bounds.rules.linear import dot_gain, dot_roundoff
from lipcert.errors import UnknownBoundError
from lipcert.types import Effort, Shape


def _axes(module: nn.Module, *names: str) -> list[tuple[int, ...]]:
    """Return the named settings, axis by axis."""
    n = 1 if type(module).__name__.endswith("1d") else 2
    settings = [getattr(module, name) for name in names]
    each = [tuple(s) if isinstance(s, list | tuple) else (s,) for s in settings]
    return list(zip(*[s * n if len(s) == 1 else s for s in each], strict=True))


@rule(
    nn.MaxPool1d,
    nn.MaxPool2d,
    examples=[
        lambda: (nn.MaxPool1d(2), (2, 6)),
        lambda: (nn.MaxPool1d(3, stride=2, dilation=2), (1, 11)),
        lambda: (nn.MaxPool2d(2), (2, 6, 6)),
        lambda: (nn.MaxPool2d(3, stride=2, padding=1), (2, 7, 7)),
        lambda: (nn.MaxPool2d((3, 2), stride=1, ceil_mode=True), (1, 5, 6)),
    ],
)
class MaxPoolRule(Constant):
    r"""The constant is $\prod \sqrt{\lceil k\gcd(s,d)/s \rceil}$: an entry counts once per window."""

    def constant(self, module: Any, shape: Shape | None) -> float:
        """Return the constant: 1 for disjoint windows, 2 for the usual k = 3, s = 2."""
        if module.return_indices:
            raise UnknownBoundError("max-pooling with return_indices returns more than one tensor")
        windows = 1
        for k, s, d in _axes(module, "kernel_size", "stride", "dilation"):
            windows *= -(-k * math.gcd(s, d) // s)
        return 1.0 if windows == 1 else sqrt_up(float(windows))


def _uneven(module: Any) -> bool:
    """Return whether windows at the edge have another divisor than the rest."""
    padded = any(p for (p,) in _axes(module, "padding"))
    override = getattr(module, "divisor_override", None)
    return not override and bool(module.ceil_mode or (padded and not module.count_include_pad))


def _averaging(module: nn.Module, shape: Shape) -> Operator:
    origin = torch.zeros(1, *shape, dtype=torch.float64)

    def adjoint(y: Tensor) -> Tensor:
        back: Tensor = torch.func.vjp(module, origin.expand(len(y), *shape))[1](y)[0]
        return back

    window = math.prod(k for (k,) in _axes(module, "kernel_size"))
    output = tuple(module(origin).shape[1:])
    return Operator(shape, output, module, adjoint, module, adjoint, window + 4, torch.device("cpu"))


@rule(
    nn.AvgPool1d,
    nn.AvgPool2d,
    examples=[
        lambda: (nn.AvgPool1d(3, stride=2), (2, 7)),
        lambda: (nn.AvgPool2d(2), (2, 6, 6)),
        lambda: (nn.AvgPool2d(3, stride=2, padding=1), (2, 7, 7)),
        lambda: (nn.AvgPool2d(4, divisor_override=4), (1, 8, 8)),
        lambda: (nn.AvgPool2d((2, 3), stride=1), (1, 5, 5)),
        lambda: (nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), (2, 6, 5)),
        lambda: (nn.AvgPool2d(3, stride=2, ceil_mode=True), (1, 6, 6)),
    ],
)
class AvgPoolRule(Constant):
    r"""The constant is $\prod \sqrt{\lceil k/s \rceil / k}$ · window/divisor: √(‖A‖₁‖A‖_∞) of the map A."""

    def constant(self, module: Any, shape: Shape | None) -> float:
        """Return the constant: at most 1, unless the divisor is below the window size or edges differ."""
        windows, window = 1, 1
        for k, s in _axes(module, "kernel_size", "stride"):
            window *= k
            windows *= -(-k // s)
        if _uneven(module):
            return sqrt_up(float(windows))  # rows sum to 1, columns to at most the number of windows
        divisor = abs(getattr(module, "divisor_override", None) or window)
        return mul_up(sqrt_up(up(windows / window)), up(window / divisor))

    def upper(self, module: Any, shape: Shape, effort: Effort) -> Proof:
        """Prove the constant by the formula, or exactly where edges are averaged differently."""
        if not _uneven(module) or effort == "fast":
            return super().upper(module, shape, effort)
        operator = _averaging(module, shape)
        if operator.side > EXACT_SIDE:
            return super().upper(module, shape, effort)
        return Proof(operator_norm_upper(operator), "gram")

    def roundoff(self, module: nn.Module, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the error of a sum of k² entries and one division."""
        return dot_roundoff(module(inputs[0].abs()), self.products(module))

    def roundoff_gain(self, module: nn.Module) -> float:
        """Return the gain: averages of absolute values grow as the averages do."""
        return dot_gain(self.constant(module, None) ** 2, self.products(module))

    def products(self, module: nn.Module) -> int:
        """Count the entries of a window, and the division."""
        return math.prod(k for (k,) in _axes(module, "kernel_size")) + 1
