r"""Softmax and its logarithm along one dimension, usually the last layer of a classifier.

Softmax has the Jacobian diag(p) − ppᵀ. It is symmetric, and row i has the absolute sum 2pᵢ(1 − pᵢ) ≤ ½, so
its norm is at most ½ for any number of classes; two classes of probability ½ attain it.

Log-softmax has the Jacobian I − 1pᵀ, a projection, whose norm is that of 1pᵀ: √N‖p‖ ≤ √N.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from torch import Tensor, nn

from lipcert.bounds.contract import Constant, register, sample_norm
from lipcert.bounds.provers.rounding import U, sqrt_up
from lipcert.errors import UnknownBoundError
from lipcert.types import Shape


class AlongOne(Constant):
    """A rule for a map along one dimension, whose length N it must know (`on`)."""

    def __init__(self, shape: Shape | None = None) -> None:
        super().__init__()
        self.shape = shape

    def on(self, module: Any, shape: Shape) -> Self:
        """Return the rule for inputs of this shape."""
        return type(self)(shape)

    def length(self, module: Any, shape: Shape | None = None) -> int:
        """Return N, and raise where the dimension is not given or is the batch."""
        known = shape or self.shape
        if known is None:
            raise NotImplementedError(f"{type(self).__name__} needs the shape of the inputs: rule.on(…)")
        count, dim = len(known) + 1, module.dim
        if not isinstance(dim, int) or not -count < dim < count or dim == 0:
            raise UnknownBoundError(f"expected a dimension that is not the batch, got dim={dim}: use dim=1")
        return known[dim % count - 1]

    def products(self, module: Any) -> int:
        """Count the exponentials of a sum, and a few operations more."""
        return self.length(module) + 8


class SoftmaxRule(AlongOne):
    """The constant is ½."""

    def constant(self, module: Any, shape: Shape | None) -> float:
        """Return ½, after a look at the dimension."""
        self.length(module, shape)
        return 0.5

    def roundoff(self, module: Any, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the errors of exponents, exponentials, their sum and quotients, for any input.

        With d = max x − x ≥ 0 and p ≤ e^−d, an exponent that is off by u·d moves p by at most u·p·d, and all
        of them the sum by u·Σp·d ≤ u·log N; the sum has N rounding errors, exponentials a few units each.
        """
        n = inputs[0].shape[module.dim]
        groups = math.sqrt(output[0].numel() / n)
        lost: Tensor = output.new_zeros(output.shape[0]) + 2 * (n + 32) * U * groups
        return lost

    def roundoff_gain(self, module: Any) -> float:
        """Return 0: the bound does not depend on the input."""
        return 0.0


class LogSoftmaxRule(AlongOne):
    """The constant is √N."""

    def constant(self, module: Any, shape: Shape | None) -> float:
        """Return √N."""
        return sqrt_up(float(self.length(module, shape)))

    def roundoff(self, module: Any, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the errors of x − max x − log Σ, where the sum is between 1 and N."""
        (x,) = inputs
        n = x.shape[module.dim]
        # Twice |x − max x| and |y|, a few units each; the logarithm of a sum with N rounding errors.
        size = (8 + 8 * math.sqrt(n)) * sample_norm(x) + 8 * sample_norm(output)
        lost: Tensor = U * (size + 2 * (n + 32) * math.sqrt(x[0].numel()))
        return lost

    def roundoff_gain(self, module: Any) -> float:
        """Return a little more than 8 + 16√N."""
        return 9 + 17 * math.sqrt(self.length(module))


register(
    SoftmaxRule(),
    nn.Softmax,
    examples=[
        lambda: (nn.Softmax(dim=1), (2,)),
        lambda: (nn.Softmax(dim=-1), (7,)),
        lambda: (nn.Softmax(dim=1), (4, 3)),
    ],
)
register(
    LogSoftmaxRule(),
    nn.LogSoftmax,
    examples=[lambda: (nn.LogSoftmax(dim=1), (5,)), lambda: (nn.LogSoftmax(dim=-1), (3, 4))],
)
