r"""Last-layer normalisation: a head with rows of length 1.

Singla, Singla, Feizi. Improved Deterministic l2 Robustness on CIFAR-10 and CIFAR-100. ICLR 2022.

$$ f_i = \frac{w_i}{\|w_i\|} \cdot x + b_i $$

Every logit is 1-Lipschitz; what a difference of two is worth follows from the rows, as for any linear head.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.bounds.rules.linear import LinearRule
from lipcert.nn.derived import Derived, linear_with


class LLNLinear(Derived):
    """A dense layer whose rows are divided by their lengths; a row of zeros stays one."""

    sources = ("raw",)

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        plain = nn.Linear(in_features, out_features, bias)
        self.in_features, self.out_features = in_features, out_features
        self.raw, self.bias = plain.weight, plain.bias

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """W."""
        (raw,) = sources
        length = torch.linalg.vector_norm(raw, dim=1, keepdim=True)
        return (torch.where(length > 0, raw / torch.where(length > 0, length, 1.0), 0.0),)

    @property
    def weight(self) -> Tensor:
        """What is executed."""
        return self.weights()[0]

    def forward(self, x: Tensor) -> Tensor:
        """Wx + b."""
        return F.linear(x, self.weight, self.bias)

    def plain(self) -> nn.Module:
        """nn.Linear."""
        return linear_with(self.weight, self.bias)

    def extra_repr(self) -> str:
        """Shown by print."""
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


@rule(
    LLNLinear,
    examples=[lambda: (LLNLinear(6, 4), (6,)), lambda: (LLNLinear(2, 5, bias=False), (2,))],
)
class LLNLinearRule(LinearRule):
    """The norm of the matrix that is executed: up to √N, though every row is 1."""

    def products(self, module: Any) -> int:
        """One more rounding, that of the weight itself."""
        return super().products(module) + 1
