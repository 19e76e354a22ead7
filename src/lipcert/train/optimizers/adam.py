"""Adam, which turns orthogonal matrices instead of moving them."""

from __future__ import annotations

import torch

from lipcert.train.optimizers.base import OPTIMIZERS, Parameters, check_rates
from lipcert.train.optimizers.orthogonal import OrthogonalAdam, has_orthogonal


@OPTIMIZERS.register("adam", example={"lr": 1e-3})
def adam(
    parameters: Parameters,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    weight_decay: float = 0.0,
) -> torch.optim.Optimizer:
    """Make Adam, which turns orthogonal matrices instead of moving them."""
    check_rates(lr, weight_decay)
    parameters = list(parameters)
    kind = OrthogonalAdam if has_orthogonal(parameters) else torch.optim.Adam
    return kind(parameters, lr=lr, betas=betas, weight_decay=weight_decay, fused=True)
