"""Joins of branches: a sum (residual connection) and a concatenation.

They are modules without weights, so that a traced `x + y` or `torch.cat` is a step like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.bounds.contract import Constant, rule, sample_norm
from lipcert.bounds.provers.rounding import U, hypot_up, sum_up


class Add(nn.Module):
    """A module that adds its inputs."""

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return x + y + … of all inputs."""
        total = inputs[0]
        for x in inputs[1:]:
            total = total + x
        return total


class Concatenate(nn.Module):
    """A module that concatenates its inputs."""

    def __init__(self, dim: int = 1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return [x, y, …] of all inputs."""
        return torch.cat(inputs, self.dim)


@rule(Add, examples=[lambda: (Add(), (4,))])
class AddRule(Constant):
    """The constant is K = ΣK_i."""

    def join_upper(self, constants: Sequence[float]) -> float:
        """Return the sum, rounded up."""
        return sum_up(*constants)

    def join_estimate(self, constants: Sequence[Tensor]) -> Tensor:
        """Return the sum."""
        return torch.stack(list(constants)).sum(0)

    def join_errors(self, errors: Sequence[Tensor]) -> Tensor:
        """Return the sum."""
        return torch.stack(list(errors)).sum(0)

    def roundoff(self, module: Any, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound one rounding error per addition."""
        size: Tensor = sum((x.abs() for x in inputs[1:]), inputs[0].abs())
        return 2 * len(inputs) * U * sample_norm(size)

    def roundoff_gain(self, module: Any) -> float:
        """Return 2 per input; longer sums than eight inputs are not traced as one."""
        return 2.0 * self.products(module)


@rule(Concatenate, examples=[lambda: (Concatenate(), (4,))])
class ConcatenateRule(Constant):
    """The constant is K = √ΣK_i²."""

    def join_upper(self, constants: Sequence[float]) -> float:
        """Return the root of the sum of squares, rounded up."""
        return hypot_up(*constants)

    def join_estimate(self, constants: Sequence[Tensor]) -> Tensor:
        """Return the root of the sum of squares."""
        norm: Tensor = torch.linalg.vector_norm(torch.stack(list(constants)), dim=0)
        return norm

    def join_errors(self, errors: Sequence[Tensor]) -> Tensor:
        """Return the root of the sum of squares."""
        return reduce(torch.hypot, errors)  # squares of small errors would underflow
