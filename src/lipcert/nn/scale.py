r"""Multiply by a fixed number.

$$ y = c\,x, \qquad K = |c| $$
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from lipcert.bounds import Constant, rule
from lipcert.bounds.contract import sample_norm
from lipcert.bounds.provers.rounding import SCALAR, TINY, U
from lipcert.types import Shape


class Scale(nn.Module):
    """Multiply by a fixed factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = float(factor)

    def forward(self, x: Tensor) -> Tensor:
        """Return factor·x."""
        return self.factor * x

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return str(self.factor)


@rule(Scale, examples=[lambda: (Scale(-2.5), (4,)), lambda: (Scale(0.0), (4,))])
class ScaleRule(Constant):
    """The constant is |factor|."""

    def constant(self, module: Any, shape: Shape | None) -> float:
        """Return |factor|, rounded up."""
        return abs(float(module.factor)) * SCALAR

    def roundoff(self, module: Any, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound one rounding error, or one underflow, per entry."""
        return 2 * U * sample_norm(output) + output[0].numel() * TINY

    def roundoff_gain(self, module: Any) -> float:
        """Return at least 2·|factor|."""
        return 3 * abs(float(module.factor))
