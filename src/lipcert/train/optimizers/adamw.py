"""Adam with decoupled weight decay."""

from __future__ import annotations

import torch

from lipcert.train.optimizers.base import OPTIMIZERS, Parameters, check_rates, without_orthogonal


@OPTIMIZERS.register("adamw", example={"lr": 1e-3})
def adamw(
    parameters: Parameters,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    weight_decay: float = 0.01,
) -> torch.optim.Optimizer:
    """Make Adam with decoupled weight decay."""
    check_rates(lr, weight_decay)
    parameters = without_orthogonal(parameters, "adamw")
    return torch.optim.AdamW(parameters, lr=lr, betas=betas, weight_decay=weight_decay, fused=True)
