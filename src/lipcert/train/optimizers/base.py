"""The parts that optimisers share: the registry, the checks, and how a model gets its optimiser."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import nn

from lipcert.bounds import Bounded
from lipcert.errors import InputError
from lipcert.registry import Registry
from lipcert.train.optimizers.decay import matching, without_decay
from lipcert.train.optimizers.orthogonal import has_orthogonal

Parameters = Iterable[nn.Parameter]

# Takes the parameters, and those of the last layer as `head` if it has such an argument.
MakeOptimizer = Callable[..., torch.optim.Optimizer]

OPTIMIZERS: Registry[torch.optim.Optimizer] = Registry("optimizer", package="lipcert.train.optimizers")


def optimizer_for(
    bounded: Bounded, make: MakeOptimizer, no_decay: Sequence[str] = ()
) -> torch.optim.Optimizer:
    """Make the optimiser of a model; one that takes an argument `head` is given the head's parameters.

    Parameters whose names match a pattern of `no_decay` have no weight decay.
    """
    asks = "head" in inspect.signature(make).parameters
    head = [] if bounded.head is None else list(bounded.head.parameters())
    optimizer = make(bounded.parameters(), **({"head": head} if asks else {}))
    without_decay(optimizer, matching(bounded.model, no_decay))
    return optimizer


def without_orthogonal(parameters: Parameters, name: str) -> list[nn.Parameter]:
    """Return the parameters, or raise if some are orthogonal matrices, which this optimiser would move."""
    found = list(parameters)
    if has_orthogonal(found):
        raise InputError(
            f"optimizer: {name} does not keep matrices orthogonal, as this model needs; use adam"
        )
    return found


def check_rates(lr: float, weight_decay: float) -> None:
    """Raise for a learning rate that is not above 0, or a weight decay below 0."""
    if not 0 < lr < math.inf:
        raise InputError(f"lr: expected a number > 0, got {lr!r}")
    if not 0 <= weight_decay < math.inf:
        raise InputError(f"weight_decay: expected a number >= 0, got {weight_decay!r}")
