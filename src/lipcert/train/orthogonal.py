r"""Adam that turns orthogonal matrices instead of moving them.

For an orthogonal X with gradient G the directions that keep it orthogonal are AX, A skew; the gradient along
them is ½(GXᵀ − XGᵀ). Adam's means are those of that skew matrix, and a step is a rotation

$$ X \leftarrow \exp(-\eta\,\hat m/(\sqrt{\hat v} + \epsilon))\,X $$

by its series up to the third power. What the series and rounding leave over is taken back at every step by
one step of Newton's iteration for the polar factor, X ← ½X(3I − XᵀX): nothing is left to drift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.nn.shift_mix import OrthogonalParameter


def has_orthogonal(parameters: Iterable[nn.Parameter]) -> bool:
    """Whether some of them are to be turned."""
    return any(isinstance(parameter, OrthogonalParameter) for parameter in parameters)


class OrthogonalAdam(torch.optim.Adam):
    """Adam; parameters that are OrthogonalParameter stay orthogonal, and no weight decay touches them."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of both kinds."""
        turned = [
            (group, parameter, parameter.grad)
            for group in self.param_groups
            for parameter in group["params"]
            if isinstance(parameter, OrthogonalParameter) and parameter.grad is not None
        ]
        for _, parameter, _ in turned:
            parameter.grad = None
        result = super().step(closure)
        for group, parameter, gradient in turned:
            self._turn(group, parameter, gradient)
            parameter.grad = gradient
        return result

    def _turn(self, group: dict[str, Any], matrix: Tensor, gradient: Tensor) -> None:
        state = self.state[matrix]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(matrix), torch.zeros_like(matrix)
        state["step"] += 1
        first, second = group["betas"]
        product = gradient @ matrix.T
        skew = 0.5 * (product - product.T)
        mean = state["exp_avg"].lerp_(skew, 1 - first)
        square = state["exp_avg_sq"].mul_(second).addcmul_(skew, skew, value=1 - second)
        count = float(state["step"])
        size = (square / (1 - second**count)).sqrt().add_(group["eps"])
        angle = -group["lr"] * (mean / (1 - first**count)) / size
        matrix.copy_(polished(rotated(matrix, angle)))


def rotated(matrix: Tensor, angle: Tensor) -> Tensor:
    """exp(angle)·X up to the third power of a skew angle."""
    once = angle @ matrix
    twice = angle @ once
    return matrix + once + twice / 2 + angle @ twice / 6


def polished(matrix: Tensor) -> Tensor:
    """Nearer to orthogonal: one step of Newton's iteration."""
    return 1.5 * matrix - 0.5 * matrix @ (matrix.T @ matrix)
