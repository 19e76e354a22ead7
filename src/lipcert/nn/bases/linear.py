"""The base of derived dense layers: the arguments of nn.Linear, and a bound."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds.rules.linear import LinearRule
from lipcert.errors import InputError
from lipcert.nn.bases.derived import Derived, linear_with


class DerivedLinear(Derived):
    """A dense layer x ↦ Wx + b with a derived W; its arguments are those of nn.Linear."""

    sources: ClassVar[tuple[str, ...]] = ("raw",)

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        if min(in_features, out_features) < 1:
            raise InputError(f"features: expected at least 1, got {in_features} and {out_features}")
        self.in_features, self.out_features = in_features, out_features
        self.raw = nn.Parameter(self.first())
        self.bias = nn.Linear(in_features, out_features).bias if bias else None

    def first(self) -> Tensor:
        """Return the initial raw weights."""
        return nn.init.orthogonal_(torch.empty(self.out_features, self.in_features))

    @property
    def weight(self) -> Tensor:
        """Return the matrix that is executed."""
        return self.weights()[0]

    def forward(self, x: Tensor) -> Tensor:
        """Return Wx + b."""
        return F.linear(x, self.weight, self.bias)

    def plain(self) -> nn.Module:
        """Return the equivalent nn.Linear."""
        return linear_with(self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class DerivedLinearRule(LinearRule):
    """The constant is the norm of the executed matrix."""

    def products(self, module: Any) -> int:
        """Count one product more, for the rounding of the weight itself."""
        return super().products(module) + 1
