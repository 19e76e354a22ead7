"""Adam with Nesterov's momentum."""

from __future__ import annotations

import torch

from lipcert.train.optimizers.base import OPTIMIZERS, Parameters, check_rates, without_orthogonal


@OPTIMIZERS.register("nadam", example={"lr": 1e-3})
def nadam(
    parameters: Parameters,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    weight_decay: float = 0.0,
) -> torch.optim.Optimizer:
    """Make Adam with Nesterov's momentum."""
    check_rates(lr, weight_decay)
    parameters = without_orthogonal(parameters, "nadam")
    return torch.optim.NAdam(parameters, lr=lr, betas=betas, weight_decay=weight_decay)
