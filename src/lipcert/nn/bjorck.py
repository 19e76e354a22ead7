r"""Björck layers: the weight is divided by a bound of its norm, then orthonormalised by Björck's iteration.

Anil, Lucas, Grosse. Sorting Out Lipschitz Function Approximation. ICML 2019; convolutions
as in deel-torchlip.

$$ W \leftarrow W/s, \quad s \ge \|W\|_2, \qquad W \leftarrow W + \tfrac12 W (I - W^T W) $$

A convolution does so with its kernel reshaped to a matrix, and divides it by the root of the number of
patches that share a pixel. Its norm is then at most 1, and usually less. The constant is that of the kernel
which runs, estimated in training and proved in evaluation.

Also in deel-torchlip and orthogonium.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from lipcert.bounds import rule
from lipcert.nn.bases.conv2d import DerivedConvRule
from lipcert.nn.bases.derived import Built
from lipcert.nn.bases.linear import DerivedLinear, DerivedLinearRule
from lipcert.nn.bases.polar import ORDER, STEPS, check_steps, polar
from lipcert.nn.bases.reshaped import ReshapedConv2d


class BjorckLinear(DerivedLinear):
    """Orthonormalise the shorter side of a dense layer by at most `steps` steps of Björck's iteration."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, order: int = ORDER, steps: int = STEPS
    ) -> None:
        check_steps(order, steps)
        super().__init__(in_features, out_features, bias)
        self.order, self.steps = order, steps

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W."""
        return (polar(sources[0], self.order, self.steps),)


class BjorckConv2d(ReshapedConv2d):
    """Orthonormalise the reshaped kernel of a convolution; any stride, dilation and groups."""

    def __init__(self, *arguments: Any, order: int = ORDER, steps: int = STEPS, **settings: Any) -> None:
        check_steps(order, steps)
        super().__init__(*arguments, **settings)
        self.order, self.steps = order, steps

    def matrices(self, raw: Tensor) -> Tensor:
        """Return polar factors."""
        return polar(raw, self.order, self.steps)


@rule(
    BjorckLinear,
    examples=[
        lambda: (BjorckLinear(6, 4), (6,)),
        lambda: (BjorckLinear(3, 8, bias=False, order=3), (3,)),
        lambda: (BjorckLinear(5, 5, steps=1), (5,)),
    ],
)
class BjorckLinearRule(Built, DerivedLinearRule):
    """The constant is at most 1, up to rounding error."""


@rule(
    BjorckConv2d,
    examples=[
        lambda: (BjorckConv2d(3, 4, 3, padding=1), (3, 6, 6)),
        lambda: (BjorckConv2d(4, 2, 3, stride=2, bias=False, order=2, steps=3), (4, 7, 5)),
        lambda: (BjorckConv2d(2, 4, (2, 3), dilation=(1, 2), groups=2), (2, 6, 6)),
        lambda: (BjorckConv2d(2, 3, 3, padding=1, padding_mode="circular"), (2, 5, 4)),
    ],
)
class BjorckConvRule(DerivedConvRule):
    """The constant is the norm of the executed convolution, at most 1 up to rounding error."""
