"""Optimisers by name. Their kernels are fused, which makes a moons step a third faster."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterable

import torch
from torch import nn

from lipcert.bounds import Bounded
from lipcert.errors import InputError
from lipcert.registry import Registry
from lipcert.train.muon import Muon
from lipcert.train.orthogonal import OrthogonalAdam, has_orthogonal

Parameters = Iterable[nn.Parameter]

# Takes the parameters, and those of the last layer if it has an argument `head`.
MakeOptimizer = Callable[..., torch.optim.Optimizer]

OPTIMIZERS: Registry[torch.optim.Optimizer] = Registry("optimizer", package="lipcert.train")


@OPTIMIZERS.register("adam", example={"lr": 1e-3})
def adam(
    parameters: Parameters,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    weight_decay: float = 0.0,
) -> torch.optim.Optimizer:
    """Return Adam, which rotates orthogonal matrices."""
    _check(lr, weight_decay)
    parameters = list(parameters)
    kind = OrthogonalAdam if has_orthogonal(parameters) else torch.optim.Adam
    return kind(parameters, lr=lr, betas=betas, weight_decay=weight_decay, fused=True)


@OPTIMIZERS.register("adamw", example={"lr": 1e-3})
def adamw(
    parameters: Parameters,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    weight_decay: float = 0.01,
) -> torch.optim.Optimizer:
    """Return Adam with decoupled weight decay."""
    _check(lr, weight_decay)
    parameters = _free(parameters, "adamw")
    return torch.optim.AdamW(parameters, lr=lr, betas=betas, weight_decay=weight_decay, fused=True)


@OPTIMIZERS.register("nadam", example={"lr": 1e-3})
def nadam(
    parameters: Parameters,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    weight_decay: float = 0.0,
) -> torch.optim.Optimizer:
    """Return Adam with Nesterov's momentum."""
    _check(lr, weight_decay)
    parameters = _free(parameters, "nadam")
    return torch.optim.NAdam(parameters, lr=lr, betas=betas, weight_decay=weight_decay)


@OPTIMIZERS.register("sgd", example={"lr": 1e-2})
def sgd(
    parameters: Parameters,
    lr: float = 0.1,
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
) -> torch.optim.Optimizer:
    """Return stochastic gradient descent with momentum."""
    _check(lr, weight_decay)
    parameters = _free(parameters, "sgd")
    return torch.optim.SGD(
        parameters, lr=lr, momentum=momentum, nesterov=nesterov, weight_decay=weight_decay, fused=True
    )


@OPTIMIZERS.register("muon", example={"lr": 0.02})
def muon(
    parameters: Parameters,
    head: Collection[nn.Parameter] = (),
    lr: float = 0.02,
    momentum: float = 0.95,
    nesterov: bool = True,
    weight_decay: float = 0.0,
    adam_lr: float = 4e-3,
    adam_betas: tuple[float, float] = (0.9, 0.999),
) -> torch.optim.Optimizer:
    """Return Muon for hidden matrices and kernels, with Adam for head, biases and the rest.

    `adam_lr` is Adam's learning rate; a schedule of `lr` scales both.
    """
    _check(lr, weight_decay)
    if not 0 < adam_lr < math.inf:
        raise InputError(f"adam_lr: expected a number > 0, got {adam_lr!r}")
    if not 0 <= momentum < 1:
        raise InputError(f"momentum: expected from 0 to below 1, got {momentum!r}")
    return Muon(parameters, head, lr, momentum, nesterov, weight_decay, adam_lr, adam_betas)


def optimizer_for(bounded: Bounded, make: MakeOptimizer) -> torch.optim.Optimizer:
    """Make the optimiser of a model; one with an argument `head` gets the head's parameters."""
    asks = "head" in inspect.signature(make).parameters
    head = [] if bounded.head is None else list(bounded.head.parameters())
    return make(bounded.parameters(), **({"head": head} if asks else {}))


def _free(parameters: Parameters, name: str) -> list[nn.Parameter]:
    """Return the parameters, or raise if some are orthogonal matrices, which this optimiser would break."""
    found = list(parameters)
    if has_orthogonal(found):
        raise InputError(
            f"optimizer: {name} does not keep matrices orthogonal, as this model needs; use adam"
        )
    return found


def _check(lr: float, weight_decay: float) -> None:
    if not 0 < lr < math.inf:
        raise InputError(f"lr: expected a number > 0, got {lr!r}")
    if not 0 <= weight_decay < math.inf:
        raise InputError(f"weight_decay: expected a number >= 0, got {weight_decay!r}")
