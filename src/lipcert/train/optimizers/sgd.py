"""Stochastic gradient descent."""

from __future__ import annotations

import torch

from lipcert.train.optimizers.base import OPTIMIZERS, Parameters, check_rates, without_orthogonal


@OPTIMIZERS.register("sgd", example={"lr": 1e-2})
def sgd(
    parameters: Parameters,
    lr: float = 0.1,
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
) -> torch.optim.Optimizer:
    """Make stochastic gradient descent with momentum."""
    check_rates(lr, weight_decay)
    parameters = without_orthogonal(parameters, "sgd")
    return torch.optim.SGD(
        parameters, lr=lr, momentum=momentum, nesterov=nesterov, weight_decay=weight_decay, fused=True
    )
