"""Leave some parameters out of the weight decay: by patterns of their names.

The angles of Householder activations, for example, mean nothing smaller when they shrink.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import torch
from torch import nn

from lipcert.errors import InputError

# The names that an error shows.
_SHOWN = 6


def matching(model: nn.Module, patterns: Sequence[str]) -> list[nn.Parameter]:
    """Return the parameters whose names match a pattern (`*` is any text); each pattern must match one.

    Example:
        >>> [p.shape for p in matching(nn.Sequential(nn.Linear(2, 3)), ["*.bias"])]
        [torch.Size([3])]
    """
    named = dict(model.named_parameters())
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in named):
            some = ", ".join(list(named)[:_SHOWN]) + (", …" if len(named) > _SHOWN else "")
            raise InputError(f"no_decay: no parameter matches {pattern!r}; the model has {some or 'none'}")
    return [p for name, p in named.items() if any(fnmatchcase(name, pattern) for pattern in patterns)]


def without_decay(optimizer: torch.optim.Optimizer, parameters: Iterable[nn.Parameter]) -> None:
    """Move parameters of an optimiser to groups of their own, which are like theirs without weight decay."""
    chosen = {id(p) for p in parameters}
    for group in list(optimizer.param_groups):
        apart = [p for p in group["params"] if id(p) in chosen]
        if not apart:
            continue
        group["params"] = [p for p in group["params"] if id(p) not in chosen]
        optimizer.add_param_group({**group, "params": apart, "weight_decay": 0.0, "decays": False})
