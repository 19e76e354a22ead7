r"""Adam that rotates orthogonal matrices, so that they stay orthogonal.

For an orthogonal X with gradient G the directions that keep it orthogonal are AX, A skew. The gradient along
them is ½(GXᵀ − XGᵀ). Adam's means are those of that skew matrix, and a step is a rotation

$$ X \leftarrow \exp(-\eta\,\hat m/(\sqrt{\hat v} + \epsilon))\,X $$

Rounding error is removed at every step by one step of Newton's iteration for the polar factor,
X ← ½X(3I − XᵀX), so that nothing drifts. Matrices that are not orthogonal at first are made orthogonal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.nn.bases.exponential import exponential
from lipcert.nn.shift_mix import OrthogonalParameter, nearest_orthogonal


def has_orthogonal(parameters: Iterable[nn.Parameter]) -> bool:
    """Return whether some parameters are orthogonal matrices."""
    return any(isinstance(parameter, OrthogonalParameter) for parameter in parameters)


class OrthogonalAdam(torch.optim.Adam):
    """Adam that keeps every OrthogonalParameter orthogonal, without weight decay on it."""

    def __init__(
        self,
        params: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        fused: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, fused=fused)
        # A gradient scaler then unscales gradients, and skips steps that overflow, by itself.
        self._step_supports_amp_scaling = False

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make one step, by rotation for orthogonal matrices and by Adam for the rest."""
        result = None
        if closure is not None:  # first, because it computes the gradients
            with torch.enable_grad():
                result = closure()
        turned = [
            (group, parameter, parameter.grad)
            for group in self.param_groups
            for parameter in group["params"]
            if isinstance(parameter, OrthogonalParameter) and parameter.grad is not None
        ]
        for _, parameter, _ in turned:
            parameter.grad = None
        super().step()
        for group, parameter, gradient in turned:
            self._turn(group, parameter, gradient)
            parameter.grad = gradient
        return result

    def _turn(self, group: dict[str, Any], matrix: Tensor, gradient: Tensor) -> None:
        state = self.state[matrix]
        if not state:
            matrix.copy_(nearest_orthogonal(matrix))
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
        matrix.copy_(polished(exponential(angle) @ matrix))


def polished(matrix: Tensor) -> Tensor:
    """Bring a matrix nearer to orthogonal by one step of Newton's iteration."""
    return 1.5 * matrix - 0.5 * matrix @ (matrix.T @ matrix)
